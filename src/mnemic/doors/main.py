"""`mnemic`: the entry point. What needs no memory must not pay for one: `--version` imports nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code (see `mnemic.errors`)."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments in (["--version"], ["-V"]):
        from mnemic.version import __version__

        print(f"mnemic {__version__}")
        return 0
    from mnemic.doors.cli.run import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
