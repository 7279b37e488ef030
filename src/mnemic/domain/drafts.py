"""From what a caller says to a checked Event. Pure: the clock and the limits are arguments."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from mnemic.domain.types import Event, EventId, JsonValue, Kind, Role, SessionId, Trust
from mnemic.errors import InvalidInput

E = TypeVar("E", bound=StrEnum)

# The names of the second vocabulary for perceptions (read_file, tool_call ...) are accepted for the first.
KIND_ALIASES: Mapping[str, Kind] = {
    "read_file": Kind.EYE_READ,
    "write_file": Kind.TONGUE_WRITE,
    "ai_output": Kind.MESSAGE,
    "tool_call": Kind.BODY_TOOL,
    "outcome": Kind.OUTCOME_DONE,
    "user_message": Kind.MESSAGE,
    "decision": Kind.NOTE,
    "memory_directive": Kind.NOTE,
    "session_start": Kind.MARKER,
    "session_end": Kind.MARKER,
}

IMPORTANCE: Mapping[Kind, float] = {
    Kind.MESSAGE: 0.5,
    Kind.NOTE: 0.8,
    Kind.MARKER: 0.1,
    Kind.DOCUMENT: 0.5,
    Kind.EDIT: 0.8,
    Kind.EYE_READ: 0.3,
    Kind.EYE_SEARCH: 0.3,
    Kind.BODY_TOOL: 0.3,
    Kind.BODY_BASH: 0.4,
    Kind.TONGUE_WRITE: 0.6,
    Kind.TONGUE_EDIT: 0.6,
    Kind.NOSE_ERROR: 0.7,
    Kind.NOSE_WARNING: 0.4,
    Kind.OUTCOME_TASK: 0.8,
    Kind.OUTCOME_DONE: 0.8,
}

_TRUST = {Role.USER: Trust.USER, Role.ASSISTANT: Trust.ASSISTANT, Role.SYSTEM: Trust.TOOL, Role.TOOL: Trust.TOOL}
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # PostgreSQL knows no NUL, UTF-8 no half surrogate pair
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_NAME_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Draft:
    """An event as a caller words it: what is left out gets its default when the event is made.

    `marks`: what an importer noticed about the row; a row marked "time" keeps a time that `record` would refuse.
    """

    text: str
    role: str = "user"
    kind: str = "message"
    session: str | None = None
    channel: str = ""
    actor: str = ""
    project: str = ""
    at: datetime | None = None
    importance: float | None = None
    trust: str | None = None
    data: Mapping[str, JsonValue] = field(default_factory=dict)
    id: UUID | str | None = None
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    max_bytes: int = 4 * 1024 * 1024
    future_tolerance_s: int = 86_400


def make_event(draft: Draft, now: datetime, limits: Limits) -> Event:
    """The checked event. Errors: InvalidInput that says what to do; nothing is changed silently but unstorable
    characters (NUL and half surrogate pairs become U+FFFD, in the text and everywhere in `data`)."""
    kind = KIND_ALIASES.get(draft.kind) or choice(Kind, draft.kind, "kind")
    role = choice(Role, draft.role, "role")
    trust = choice(Trust, draft.trust, "trust") if draft.trust else _TRUST[role]
    text = clean(draft.text)
    _check_text(text, kind, limits)
    at = _check_time(draft.at, now, limits, kept="time" in draft.marks) if draft.at else now
    importance = IMPORTANCE[kind] if draft.importance is None else draft.importance
    if not 0.0 <= importance <= 1.0:
        raise InvalidInput(f"importance {importance} is not between 0 and 1")
    data = _clean_data(draft.data) if draft.data else {}
    if draft.marks:
        data = {**data, "marks": list(draft.marks)}
    return Event(
        id=EventId(_uuid(draft.id) if draft.id else uuid7(now)),
        kind=kind,
        text=text,
        at=at.astimezone(UTC),
        recorded_at=now,
        session=SessionId(_name(draft.session, "session")) if draft.session else None,
        channel=_name(draft.channel, "channel"),
        role=role,
        actor=_name(draft.actor, "actor"),
        project=_name(draft.project, "project"),
        importance=float(importance),
        trust=trust,
        data=data,
    )


def clean(text: str) -> str:
    """The text with what cannot be stored everywhere replaced by U+FFFD."""
    if not isinstance(text, str):
        raise InvalidInput(f"the text is {type(text).__name__}, not str")
    return _UNSTORABLE.sub("\ufffd", text)


def uuid7(now: datetime) -> UUID:
    """A UUID of version 7 (RFC 9562): 48 bits of milliseconds, then the time's nanoseconds and random bits."""
    value = int(now.timestamp() * 1000) & (1 << 48) - 1
    value = value << 16 | 0x7000 | (time.monotonic_ns() >> 8) & 0xFFF
    value = value << 64 | 0x8000000000000000 | int.from_bytes(os.urandom(8)) >> 2
    return UUID(int=value)


def marked(draft: Draft, mark: str) -> Draft:
    return replace(draft, marks=(*draft.marks, mark))


def in_range(at: datetime, now: datetime, limits: Limits) -> bool:
    """Whether `record` takes this time: since 1970, at most a day ahead."""
    return _EARLIEST <= at <= now + timedelta(seconds=limits.future_tolerance_s)


def _check_text(text: str, kind: Kind, limits: Limits) -> None:
    if not text.strip() and kind not in (Kind.MARKER, Kind.EDIT):
        raise InvalidInput("the text is empty; there is nothing to remember")
    if len(text) > limits.max_bytes // 4:  # four bytes a character at most, so shorter texts need no encoding
        size = len(text.encode())
        if size > limits.max_bytes:
            raise InvalidInput(
                f"the text has {size:,} bytes, the limit is {limits.max_bytes:,} (record.max_bytes); split it, "
                "or `mnemic ingest` it as a document"
            )


def _check_time(at: datetime, now: datetime, limits: Limits, *, kept: bool) -> datetime:
    if at.tzinfo is None or at.utcoffset() is None:
        raise InvalidInput(f"{at!r} has no time zone; give an aware datetime, such as datetime.now(UTC)")
    if not kept and not in_range(at, now, limits):
        raise InvalidInput(f"the time {at.isoformat()} is before 1970 or more than a day in the future")
    return at


def choice(enum: type[E], value: str, what: str) -> E:
    """The member of that name. Errors: InvalidInput with the nearest name, or all of them."""
    try:
        return enum(value)
    except ValueError:
        known = [item.value for item in enum]
        near = get_close_matches(str(value), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are: {', '.join(known)}"
        raise InvalidInput(f"unknown {what} {value!r}; {hint}") from None


def _name(value: str, what: str) -> str:
    value = clean(value)
    if len(value) > _NAME_CHARS:
        raise InvalidInput(f"the {what} has {len(value)} characters, the limit is {_NAME_CHARS}")
    return value


def _uuid(value: UUID | str) -> UUID:
    if isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except ValueError:
        raise InvalidInput(f"the id {value!r} is no UUID (32 hexadecimal digits)") from None


def _clean_data(data: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {clean(key): _clean_value(value, 0) for key, value in data.items()}


def _clean_value(value: JsonValue, depth: int) -> JsonValue:
    if depth > 64:
        raise InvalidInput("data is nested more than 64 levels deep")
    match value:
        case str():
            return clean(value)
        case None | bool() | int():
            return value
        case float():
            if value != value or value in (float("inf"), float("-inf")):
                raise InvalidInput(f"data holds {value}, which JSON cannot express")
            return value
        case list() | tuple():
            return [_clean_value(item, depth + 1) for item in value]
        case dict():
            return {clean(str(key)): _clean_value(item, depth + 1) for key, item in value.items()}
    raise InvalidInput(f"data holds a {type(value).__name__}, which is no JSON value")
