"""Logs of the command line: `mnemic.*` to stderr, warnings always, more with `-v` and `-vv`; secrets never."""

from __future__ import annotations

import logging
import re
import sys

_SECRETS = (
    (re.compile(r"(?<=://)([^/\s:@]*):[^/\s@]+@"), r"\1:***@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), r"\1 ***"),
    (re.compile(r"(?i)((?:api[_-]?key|token|password|passwd|secret)[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&]{4,}"), r"\1***"),
    (re.compile(r"\b(?:sk|pk|ntn|ghp|gho|xox[abp])[-_][\w-]{12,}"), "***"),
    (re.compile(r"\bAIza[\w-]{20,}"), "***"),
)


def redacted(text: str) -> str:
    """The text without passwords of URLs, keys and tokens."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


class _Redaction(logging.Formatter):
    """Works on the finished line, so that arguments and tracebacks are covered too."""

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


def set_up(verbosity: int) -> None:
    """`verbosity`: how often `-v` was given."""
    log = logging.getLogger("mnemic")
    for handler in list(log.handlers):
        log.removeHandler(handler)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Redaction("mnemic: %(message)s" if not verbosity else _DETAILED))
    log.addHandler(handler)
    log.propagate = False
    log.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)])


_DETAILED = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
