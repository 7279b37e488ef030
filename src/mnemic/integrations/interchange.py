"""Events as lines of JSON and back, without loss: the format of `mnemic export`.

Each line is one event. `seq` tells the order; a store that reads the line gives a number of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

from mnemic.domain.drafts import Draft
from mnemic.domain.types import Event, JsonValue
from mnemic.errors import InvalidInput

T = TypeVar("T")

FORMAT = "mnemic-event/1"


def is_own(head: bytes) -> bool:
    """Whether a file that begins with `head` is an export of ours."""
    line = head.lstrip().split(b"\n", 1)[0]
    if not line.startswith(b"{") or b'"format"' not in line[:2_000]:
        return False
    return FORMAT.encode() in line[:2_000]


def line_of(event: Event) -> str:
    """One line of JSON, ASCII only, so that no pipe or editor can break it."""
    fields = {
        "format": FORMAT,
        "id": str(event.id),
        "seq": int(event.seq),
        "at": _time(event.at),
        "recorded_at": _time(event.recorded_at),
        "kind": event.kind.value,
        "role": event.role.value,
        "actor": event.actor,
        "session": event.session,
        "channel": event.channel,
        "project": event.project,
        "importance": event.importance,
        "trust": event.trust.value,
        "text": event.text,
        "data": event.data,
    }
    return json.dumps(fields, allow_nan=False)


def draft_of(line: str | bytes) -> tuple[Draft, datetime | None]:
    """The event of a line as a draft, and when it was recorded. Errors: InvalidInput."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"not valid JSON: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InvalidInput(f'not a line of an export: it has no "format": "{FORMAT}"')
    try:
        recorded = found.get("recorded_at")
        data: Mapping[str, JsonValue] = _of(dict, found.get("data", {}))
        draft = Draft(
            text=_of(str, found["text"]),
            role=_of(str, found["role"]),
            kind=_of(str, found["kind"]),
            session=None if found.get("session") is None else _of(str, found["session"]),
            channel=_of(str, found.get("channel", "")),
            actor=_of(str, found.get("actor", "")),
            project=_of(str, found.get("project", "")),
            at=_moment(found["at"]),
            importance=float(found["importance"]) if "importance" in found else None,
            trust=_of(str, found.get("trust", "import")),
            data=data,
            id=UUID(found["id"]),
            marks=tuple(_of(str, mark) for mark in _of(list, data.get("marks", []))),
        )
        return draft, _moment(recorded) if recorded else None
    except KeyError as error:
        raise InvalidInput(f"{error} is missing") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"a value is not as exported: {error}") from error


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _moment(text: object) -> datetime:
    at = datetime.fromisoformat(_of(str, text))
    if at.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return at


def _of(kind: type[T], value: object) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is not {kind.__name__}")
    return value
