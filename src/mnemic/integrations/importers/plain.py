"""Chats in plain text. One message a speaker's line, and the lines after it that start no other message.

    [2026-01-05 10:00] Ana: text            the brackets may hold any time `domain/dates.py` reads
    2026-01-05T10:00Z user: text
    Ana: text
    User: text

The first message settles which lines start one. With a time: only lines with a time. Without: lines whose speaker looks
like a name; but once the first two speakers are role words (User, Assistant), only role words, so that "Example:" in an
answer is not taken for a person. A file without a time must begin with a speaker; a text without speakers is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mnemic.domain.types import Data, Role
from mnemic.errors import InvalidInput
from mnemic.integrations.importers.record import (
    ROLE_WORDS,
    Failure,
    Ids,
    ImportOptions,
    Record,
    ids,
    lines,
    text_marks,
    too_long,
    when,
)

EXPECTED = (
    "expected a chat: each message on a line that starts with who speaks, such as `Ana: text`, `User: text`, "
    "`[2026-01-05 10:00] Ana: text` or `2026-01-05T10:00Z user: text`; a text without speakers is a document: "
    "use `mnemic ingest`"
)
_PREAMBLE_LINES = 100  # without a speaker so far it is not a chat

# Every repetition is bounded: a hostile line of megabytes is refused in one pass.
_SPEAKER = r"(?P<who>[^\s:：\[\]][^:：\n]{0,79}?)\s{0,4}(?::(?=\s|$)|：)[ \t]?(?P<text>.*)"
_BRACKETS = re.compile(rf"\[(?=[^\]\n]{{0,59}}[0-9])(?P<time>[^\]\n]{{1,60}})\]\s{{0,4}}{_SPEAKER}", re.DOTALL)
_TIMED = re.compile(
    r"(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T|,?\s{1,4})[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
    rf"\s?(?:Z\b|UTC\b|GMT\b|[+-][0-9]{{2}}:?(?:[0-9]{{2}})?)?)\s{{1,4}}(?:-\s)?{_SPEAKER}",
    re.DOTALL,
)
_UNTIMED = re.compile(_SPEAKER, re.DOTALL)
_NAME = re.compile(r"@?[^\W\d_][\w.'’()-]*(?: [\w.'’()-]+){0,3}")
_LABELS = (
    "note notes nota ps p.s re fwd todo fixme warning error info debug edit update example examples e.g i.e tip hint "
    "summary title subject from to cc bcc date time url link http https file input output question answer step result "
    "results total price address phone email tel"
)
_NOT_NAMES = frozenset(_LABELS.split())


@dataclass(slots=True)
class _Message:
    """A message while its lines come in."""

    line: int
    who: str
    time: str | None
    text: list[str]
    size: int


@dataclass(slots=True)
class _Style:
    """Which lines start a message, settled by the messages so far."""

    timed: bool | None = None
    speakers: list[str] = field(default_factory=list)

    def start(self, line: str) -> re.Match[str] | None:
        found = None if self.timed is False else _BRACKETS.fullmatch(line) or _TIMED.fullmatch(line)
        if not found and not self.timed:
            found = _UNTIMED.fullmatch(line)
            if found and not self._speaks(found["who"]):
                found = None
        if found:
            self.timed = "time" in found.re.groupindex
            if len(self.speakers) < 2 and found["who"].casefold() not in self.speakers:
                self.speakers.append(found["who"].casefold())
        return found

    def _speaks(self, who: str) -> bool:
        word = who.casefold()
        if word in ROLE_WORDS:
            return True
        if len(self.speakers) == 2 and all(speaker in ROLE_WORDS for speaker in self.speakers):
            return False
        if word in _NOT_NAMES or not _NAME.fullmatch(who):
            return False
        names = who.split()
        return len(names) == 1 or not any(name[0].islower() for name in names)


def read(pieces: Iterable[bytes], name: str, options: ImportOptions) -> Iterator[Record | Failure]:
    """The messages in order. Errors: InvalidInput when the text has no speakers."""
    style, message = _Style(), None
    before, seen = 0, 0  # lines without a speaker before the first message, and the first of them
    with ids() as known:
        for number, raw in lines(pieces, options.max_bytes):
            if raw is None:
                yield too_long(name, number, options.max_bytes)
                continue
            line = raw.decode(errors="replace")
            found = style.start(line)
            if found:
                if message:
                    yield _finished(message, known, name, options)
                elif before:
                    yield _preamble(name, seen, before, timed=bool(style.timed))
                message = _Message(number, found["who"], found.groupdict().get("time"), [], 0)
                line = found["text"]
            elif message is None:
                before, seen = before + bool(line.strip()), seen or (number if line.strip() else 0)
                if before > _PREAMBLE_LINES:
                    break
                continue
            message.size += len(raw)
            if message.size <= options.max_bytes:
                message.text.append(line)
        if message:
            yield _finished(message, known, name, options)
        elif before:
            raise InvalidInput(f"{name}: no speaker on its first lines; {EXPECTED}")


def _preamble(name: str, first: int, count: int, *, timed: bool) -> Failure:
    if not timed:
        raise InvalidInput(f"{name}, line {first}: no speaker; {EXPECTED}")
    reason = f"{name}, line {first}: {count} line(s) before the first message have no speaker; skipped"
    return Failure(name, first, InvalidInput(reason))


def _finished(message: _Message, known: Ids, name: str, options: ImportOptions) -> Record | Failure:
    if message.size > options.max_bytes:
        return too_long(name, message.line, options.max_bytes)
    text = "\n".join(message.text).rstrip().removeprefix("\n")  # `User:` with its text below
    if not text:
        return Failure(name, message.line, InvalidInput(f"{name}, line {message.line}: an empty message; skipped"))
    role = ROLE_WORDS.get(message.who.casefold())
    at, marks = when(message.time, options)
    data: Data = {"time": message.time} if "time_unreadable" in marks else {}
    return Record(
        role=role or Role.USER,
        text=text,
        session=None,
        at=at,
        external_id=known.derived(message.who, message.time, text),
        line=message.line,
        actor="" if role else message.who,
        data=data,
        marks=marks + text_marks(text),
    )
