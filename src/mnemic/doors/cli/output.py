"""The one way to print: data to stdout, for people or as one JSON object; everything else to stderr.

Texts of a memory are data. In what people see their control characters are shown, not obeyed: no stored text can move
the cursor, change a colour or reverse the reading direction of the terminal. JSON is exact, whatever the encoding.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TextIO
from uuid import UUID

SCHEMA_VERSION = 1
LINE_CHARS = 160

# C0 and C1 controls, line and paragraph separators, and the overrides that make a text read as another one.
_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_HARMFUL_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command answers: the object that `--json` prints, the lines that people read instead, and hints for
    stderr (a command that wants them in its JSON puts them into `data` too). `printed`: it has streamed its data."""

    data: Mapping[str, object]
    lines: Iterable[str] = ()
    notices: Sequence[str] = ()
    exit_code: int = 0
    printed: bool = False


class Output:
    """Where a command prints."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._colour = not as_json and wants_colour(sys.stdout)

    def reply(self, reply: Reply) -> int:
        if reply.printed:
            sys.stdout.flush()
        elif self.as_json:
            print(dumps({"schema_version": SCHEMA_VERSION, **reply.data}), flush=True)
        else:
            for line in reply.lines:
                print(line)
            for notice in reply.notices:
                self.note(notice)
            sys.stdout.flush()
        return reply.exit_code

    def note(self, text: str) -> None:
        """A hint beside the data. With `--json` stderr stays free for errors."""
        if not self.as_json:
            sys.stdout.flush()
            print(safe(text), file=sys.stderr, flush=True)

    def styled(self, text: str, *names: str) -> str:
        if not self._colour or not text:
            return text
        return f"\x1b[{';'.join(_STYLES[name] for name in names)}m{text}\x1b[0m"


def wants_colour(stream: TextIO) -> bool:
    """`NO_COLOR` wins over `FORCE_COLOR`, both over what the stream is; a dumb terminal gets none."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()


def safe(text: str) -> str:
    """The text with what a terminal would obey made visible; line breaks and tabs stay."""
    return _HARMFUL.sub(lambda found: _escaped(found[0]), text.replace("\r\n", "\n"))


def one_line(text: str, limit: int = LINE_CHARS) -> str:
    """A text on one line, at most `limit` characters."""
    line = safe(re.sub(r"[ \t\r\n]+", " ", text[: limit * 4]).strip())
    return line if len(line) <= limit else line[: limit - 3].rstrip() + "..."


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def dumps(value: object) -> str:
    """One line of JSON. Readable where stdout can encode everything, in escapes where it cannot: never lossy."""
    encoding = (getattr(sys.stdout, "encoding", "") or "ascii").lower().replace("_", "-")
    text = json.dumps(plain(value), ensure_ascii=encoding not in ("utf-8", "utf8"), allow_nan=False)
    return _HARMFUL_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", _without_surrogates(text))


def plain(value: object) -> object:
    """Values of the house as JSON values."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, UUID | Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _without_surrogates(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def clock(at: datetime, zone: tzinfo) -> str:
    """A time as people read it, in their zone."""
    return at.astimezone(zone).strftime("%Y-%m-%d %H:%M")


def size(count: int) -> str:
    """Bytes in the unit that reads best."""
    amount = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError


def set_up_streams() -> None:
    """No character may crash a run: what a console cannot show becomes `?`."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # replaced by something else, or closed
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
