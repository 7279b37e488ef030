"""What callers say and ask, from keyword arguments to values: events to record, queries, listings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from difflib import get_close_matches
from typing import Any, TypedDict
from uuid import UUID

from mnemic.config import Config
from mnemic.domain.dates import parse_moment
from mnemic.domain.drafts import KIND_ALIASES, Draft, Limits, choice, make_event
from mnemic.domain.types import Event, JsonValue, Kind, Query, Role, SessionId
from mnemic.errors import InvalidInput
from mnemic.ports import Clock
from mnemic.store.events import EventFilter


class Said(TypedDict, total=False):
    """What may be said of an event beside its text; `domain/drafts.py` states the defaults."""

    role: str
    kind: str
    session: str | None
    channel: str
    actor: str
    project: str
    at: datetime | str | None
    importance: float | None
    trust: str | None
    data: Mapping[str, JsonValue]
    id: UUID | str | None


class Asking(TypedDict, total=False):
    """How a question may be narrowed. Texts are read as at the command line: "user", "2026-03-01", "yesterday"."""

    k: int
    kinds: Sequence[str]
    roles: Sequence[str]
    topics: Sequence[str]
    sessions: Sequence[str]
    channels: Sequence[str]
    projects: Sequence[str]
    since: datetime | str | None
    until: datetime | str | None
    rerank: bool


class Listing(TypedDict, total=False):
    """Which events to list."""

    session: str | None
    kinds: Sequence[str]
    roles: Sequence[str]
    since: datetime | str | None
    until: datetime | str | None
    after: int
    last: int | None
    limit: int


def note(said: Said) -> Said:
    """The same about a note: something a person or an agent chose to remember."""
    given: Said = {"kind": "note"}
    given.update(said)
    return given


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads arguments with the settings, the clock and the zone of a memory. Errors: InvalidInput."""

    config: Config
    clock: Clock
    zone: tzinfo

    def event(self, what: str | Draft, said: Said) -> Event:
        _check_names(said, Said)
        draft = what if isinstance(what, Draft) else Draft(what)
        if said:
            given: dict[str, Any] = dict(said)
            if "at" in given:
                given["at"] = self.moment(said.get("at"))
            draft = replace(draft, **given)
        limits = Limits(self.config.record.max_bytes, self.config.record.future_tolerance_s)
        return make_event(draft, self.clock(), limits)

    def query(self, text: str, asking: Asking) -> Query:
        _check_names(asking, Asking)
        return Query(
            text=text,
            k=asking.get("k", self.config.vector.top_k),
            kinds=_kinds(asking.get("kinds", ())),
            roles=_roles(asking.get("roles", ())),
            topics=tuple(asking.get("topics", ())),
            sessions=tuple(SessionId(s) for s in asking.get("sessions", ())),
            channels=tuple(asking.get("channels", ())),
            projects=tuple(asking.get("projects", ())),
            since=self.moment(asking.get("since")),
            until=self.moment(asking.get("until"), end=True),
            rerank=asking.get("rerank", self.config.vector.rerank),
        )

    def listing(self, listing: Listing) -> EventFilter:
        _check_names(listing, Listing)
        session = listing.get("session")
        return EventFilter(
            session=SessionId(session) if session is not None else None,
            kinds=_kinds(listing.get("kinds", ())),
            roles=_roles(listing.get("roles", ())),
            since=self.moment(listing.get("since")),
            until=self.moment(listing.get("until"), end=True),
            after=listing.get("after", 0),
            last=listing.get("last"),
            limit=listing.get("limit", 1_000),
        )

    def moment(self, at: datetime | str | None, *, end: bool = False) -> datetime | None:
        """An aware time as it is; text as at a text door, in the configured zone."""
        if at is None:
            return None
        if isinstance(at, datetime):
            if at.tzinfo is None:
                raise InvalidInput(f"{at!r} has no time zone; give an aware datetime, such as datetime.now(UTC)")
            return at
        return parse_moment(at, self.zone, now=self.clock(), end=end).at


def _check_names(given: Mapping[str, Any], known: type) -> None:
    """A misspelt filter must be an error and never "no filter"."""
    for name in given:
        if name not in known.__annotations__:
            near = get_close_matches(name, known.__annotations__, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are: {', '.join(known.__annotations__)}"
            raise InvalidInput(f"unknown argument {name!r}; {hint}")


def _kinds(values: Sequence[str]) -> tuple[Kind, ...]:
    return tuple(KIND_ALIASES.get(value) or choice(Kind, value, "kind") for value in values)


def _roles(values: Sequence[str]) -> tuple[Role, ...]:
    return tuple(choice(Role, value, "role") for value in values)
