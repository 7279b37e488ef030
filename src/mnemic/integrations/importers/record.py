"""What every importer yields, and the rules all of them keep.

* **Text**: bytes that are not UTF-8 and halves of surrogate pairs become U+FFFD, when bytes are decoded and in `clean`
  below, and nowhere else. A text that holds U+FFFD is marked `text_replaced`. NUL and control characters are passed on
  as they are.
* **Times** (`when`): a row whose time is impossible, before 1970 or in the future is kept and marked `time_marked` with
  the reason beside it; an unreadable time is kept as found in `data["time"]`, and `at` is None.
* **Ids** (`Ids`): the record's own id in its session if it has one; else a digest of what was said, where, by whom and
  when, plus a number for the second and later time the same is said. Neither the name of the file nor the position
  counts: the same file again gives the same ids, a longer version of it only new ones for what is new.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import BinaryIO

from mnemic.domain.dates import EPOCH, parse_moment
from mnemic.domain.types import Data, JsonValue, Role
from mnemic.errors import InvalidInput, MnemicError, StorageError

MAX_DEPTH = 64  # of nested JSON
_BLOCK = 1 << 16
_SURROGATE = re.compile("[\ud800-\udfff]")

_ROLES = {
    Role.USER: ("user", "human", "me", "customer", "prompter", "usuario", "utilisateur", "benutzer"),
    Role.ASSISTANT: ("assistant", "ai", "bot", "model", "chatbot", "gpt", "chatgpt", "agent", "asistente", "assistent"),
    Role.SYSTEM: ("system", "developer"),
    Role.TOOL: ("tool", "function", "tool_result"),
}
ROLE_WORDS: Mapping[str, Role] = {word: role for role, words in _ROLES.items() for word in words}


@dataclass(frozen=True, slots=True)
class Record:
    """One message as found. `line`: its line, or its number in a JSON array; the first is 1.

    `session`: None when the file names none; the caller gives one. `at`: None when it is not known, never "today".
    `actor`: who speaks, when that is more than the role. `kind`: as found, `message` when nothing is said.
    `data`: the record's own, plus `time` (unreadable, as found), `parts` (of unknown type, opaque), `tool_calls` and
    `other` (keys this importer has no name for).
    `marks`: `time_unknown`, `time_day` (only the day is known), `time_marked` with one of `time_unreadable`,
    `time_before_1970`, `time_in_future`; `text_replaced`. They depend on the clock and are no part of what was said.
    """

    role: Role
    text: str
    session: str | None
    at: datetime | None
    external_id: str
    line: int
    actor: str = ""
    channel: str = ""
    kind: str = "message"
    data: Data = field(default_factory=dict)
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """What could not be read, and why; the rest of the file goes on."""

    name: str
    line: int
    reason: MnemicError


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """`zone`: of times without an offset. `now`: what is later than this (and the tolerance) is marked; None: the
    machine's clock. `max_bytes`: of one line or message; longer ones are a Failure and are not held in memory."""

    zone: tzinfo = UTC
    now: datetime | None = None
    future_tolerance: timedelta = timedelta(days=1)
    max_bytes: int = 32 * 1024 * 1024

    @property
    def latest(self) -> datetime:
        return (self.now or datetime.now(UTC)) + self.future_tolerance


Source = BinaryIO | Iterable[bytes]


def blocks(stream: Source) -> Iterator[bytes]:
    """The bytes of a binary file, or of any iterable of bytes however cut."""
    if hasattr(stream, "read"):
        while block := stream.read(_BLOCK):
            yield block
    else:
        yield from stream


def lines(pieces: Iterable[bytes], max_bytes: int) -> Iterator[tuple[int, bytes | None]]:
    """Numbered lines without their ends; None in place of a line longer than `max_bytes`, which is not kept."""
    number, parts, size = 1, list[bytes](), 0
    for piece in pieces:
        *complete, rest = piece.split(b"\n")
        for line in complete:
            size += len(line)
            yield number, b"".join([*parts, line]).removesuffix(b"\r") if size <= max_bytes else None
            number, size = number + 1, 0
            parts.clear()
        size += len(rest)
        if size > max_bytes:
            parts.clear()
        elif rest:
            parts.append(rest)
    if size:
        yield number, b"".join(parts).removesuffix(b"\r") if size <= max_bytes else None


def too_long(name: str, line: int, max_bytes: int) -> Failure:
    limit = f"{max_bytes / 1024**2:g} MB" if max_bytes >= 1024**2 else f"{max_bytes} bytes"
    return Failure(name, line, InvalidInput(f"{name}, line {line}: longer than {limit}; skipped"))


def clean(text: str) -> str:
    """The text with each half of a surrogate pair as U+FFFD: it can be encoded, hashed and stored."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def clean_json(value: object, depth: int = 0) -> JsonValue:
    """A JSON value that every database takes: `clean` texts and keys, None for numbers that are not finite.

    Errors: InvalidInput when it is nested deeper than 64.
    """
    if depth > MAX_DEPTH:
        raise InvalidInput(f"nested deeper than {MAX_DEPTH}")
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean(str(key)): clean_json(item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [clean_json(item, depth + 1) for item in value]
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int():
            return value
    raise InvalidInput(f"{type(value).__name__} is not a JSON value")


def when(found: object, options: ImportOptions) -> tuple[datetime | None, tuple[str, ...]]:
    """The time of a record and its marks, as the head of this file says."""
    if found is None or found == "":
        return None, ("time_unknown",)
    if not isinstance(found, str | int | float):
        return None, ("time_marked", "time_unreadable")
    try:
        moment = parse_moment(found, options.zone)
    except InvalidInput:
        return None, ("time_marked", "time_unreadable")
    day = () if moment.precision == "instant" else ("time_day",)
    if moment.at <= EPOCH:  # 1970 itself is what an unset clock writes
        return moment.at, (*day, "time_marked", "time_before_1970")
    if moment.at > options.latest:
        return moment.at, (*day, "time_marked", "time_in_future")
    return moment.at, day


def text_marks(text: str) -> tuple[str, ...]:
    return ("text_replaced",) if "\ufffd" in text else ()


class Ids:
    """External ids of one file. Exact for any number of records in constant memory: what was seen spills to disk."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def given(self, session: str | None, own: object) -> str:
        return f"id:{clean(session or '')}/{clean(str(own))}"

    def derived(self, *said: object) -> str:
        """`said`: all that tells this message from another, as found (a time before any zone is applied to it)."""
        digest = hashlib.sha256(json.dumps(said, default=str).encode()).digest()
        times = self._count(int.from_bytes(digest[:8], signed=True))
        return f"sha256:{digest[:16].hex()}" + (f"#{times}" if times > 1 else "")

    def _count(self, key: int) -> int:
        row = self._database.execute("SELECT times FROM seen WHERE key = ?", (key,)).fetchone()
        if row is None:
            self._database.execute("INSERT INTO seen VALUES (?, 1)", (key,))
            return 1
        self._database.execute("UPDATE seen SET times = times + 1 WHERE key = ?", (key,))
        return int(row[0]) + 1


@contextmanager
def ids() -> Iterator[Ids]:
    """Ids over SQLite's private temporary database, which is in memory until it outgrows its cache and then a file that
    the system removes. Usable from any one thread at a time.

    Errors: StorageError when the temporary folder cannot take it.
    """
    try:
        with closing(sqlite3.connect("", isolation_level=None, check_same_thread=False)) as database:
            database.executescript(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384;"
                "CREATE TABLE seen (key INTEGER PRIMARY KEY, times INTEGER NOT NULL); BEGIN"
            )
            yield Ids(database)
    except sqlite3.Error as error:
        raise StorageError(f"the temporary folder cannot hold the ids of this import: {error}") from error
