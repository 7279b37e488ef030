"""The version of the package; nothing else, so that it costs nothing to ask."""

__version__ = "0.1.0"
