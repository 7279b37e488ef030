"""Errors on the command line: what went wrong and what to do, in words or as JSON on stderr, and the exit code."""

from __future__ import annotations

import logging
import os
import sys

from mnemic.doors.cli.output import SCHEMA_VERSION, dumps, safe
from mnemic.doors.logs import redacted
from mnemic.errors import MnemicError

INTERRUPTED = 130
USAGE = 2

log = logging.getLogger("mnemic.cli")


def report(error: BaseException, *, as_json: bool) -> int:
    """Say it on stderr; the exit code."""
    match error:
        case KeyboardInterrupt():
            return _say("Interrupted", "interrupted", INTERRUPTED, as_json=as_json)
        case MnemicError():
            return _say(type(error).__name__, str(error), error.exit_code, as_json=as_json)
        case _ if hasattr(error, "format_message"):  # how the command line was written
            return _say("UsageError", _usage(error), USAGE, as_json=as_json)
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return _say(type(error).__name__, f"{where}{error.strerror or error}", 1, as_json=as_json)
    log.debug("unexpected", exc_info=error)
    what = f"unexpected {type(error).__name__}: {error} (a bug; -vv shows where)"
    return _say(type(error).__name__, what, 1, as_json=as_json)


def _usage(error: BaseException) -> str:
    context = getattr(error, "ctx", None)
    hint = f"; see `{context.command_path} --help`" if context is not None else ""
    return str(error.format_message()).rstrip(".?") + hint  # type: ignore[attr-defined]


def _say(kind: str, message: str, code: int, *, as_json: bool) -> int:
    message = redacted(message)
    if as_json:
        body = {"type": kind, "message": message, "exit_code": code}
        text = dumps({"schema_version": SCHEMA_VERSION, "error": body})
    else:
        text = safe(f"mnemic: {message}")
    print(text, file=sys.stderr, flush=True)
    return code


def stdout_is_gone() -> None:
    """The reader of a pipe has gone: the rest is for nobody, and the interpreter must not complain at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
