"""Taking over events that happened elsewhere: once each, however often they are brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mnemic.domain.types import Event, EventId
from mnemic.engine.parts import Engine
from mnemic.store.codec import encode


@dataclass(frozen=True, slots=True)
class Taken:
    """`new` and `known`: how many were recorded now, and how many were there. `conflicts`: ids that are there with
    other content; what is there stays."""

    new: int
    known: int
    conflicts: tuple[EventId, ...]


def take(engine: Engine, namespace: str, events: Sequence[Event]) -> Taken:
    """Record events as they are, in order, in one transaction. Blocking.

    An event is known by its id. Its time and what an importer noted about it may have been read differently before
    (an unknown time is the time of the import), so what counts as its content is who said what.
    Errors: StorageError, JournalError; nothing of this batch is recorded then.
    """
    if engine.spool.pending():
        engine.spool.drain()
    there = _in_the_log(engine, namespace, events)
    fresh: dict[EventId, Event] = {}
    known, conflicts = 0, list[EventId]()
    for event in events:
        other = there.get(event.id) or fresh.get(event.id)
        if other is None:
            fresh[event.id] = event
        elif _content(other) == _content(event):
            known += 1
        else:
            conflicts.append(event.id)
    if fresh:
        engine.spool.append(namespace, list(fresh.values()))
    return Taken(len(fresh), known, tuple(conflicts))


def _in_the_log(engine: Engine, namespace: str, events: Sequence[Event]) -> Mapping[EventId, Event]:
    """Those of the ids that are in the log, with what is there."""
    digests = engine.store.events.digests(namespace, [event.id for event in events])
    there = {event.id: event for event in events if event.id in digests and digests[event.id][0] == encode(event)[0]}
    rest = [seq for ident, (_, seq) in digests.items() if ident not in there]
    stored = engine.store.events.by_seq(namespace, rest) if rest else {}
    return there | {event.id: event for event in stored.values()}


def _content(event: Event) -> tuple[object, ...]:
    return event.kind, event.role, event.actor, event.text
