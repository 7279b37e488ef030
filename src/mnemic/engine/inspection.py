"""Everything that is stored about one event: what was said, its chunks, why each may surface, where it has a vector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from mnemic.domain.types import Event, EventId, JsonValue
from mnemic.engine.parts import Engine
from mnemic.engine.topics import names
from mnemic.errors import InvalidInput, NotFound


@dataclass(frozen=True, slots=True)
class SeenChunk:
    """Characters `start` to `stop` of the event. `kept`: whether it gets a vector; `verdict`: what the filter decided
    and from which parts, empty before it did. `same_as`: the chunk that said the same first. `archived`: why it is out
    of the index, or "". `spaces`: the embedding spaces in which it has a vector. `topics`: label and confidence."""

    id: int
    start: int
    stop: int
    words: int
    text: str
    kept: bool
    decided: bool
    verdict: Mapping[str, JsonValue]
    same_as: int | None
    archived: str
    topics: tuple[tuple[str, float], ...]
    spaces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    event: Event
    chunks: tuple[SeenChunk, ...]


def look_at(engine: Engine, namespace: str, ident: str) -> Seen:
    """`ident`: an id, a seq, or `chunk:N`. Blocking. Errors: NotFound, InvalidInput."""
    kind, colon, number = ident.partition(":")
    if colon and kind == "chunk" and number.isascii() and number.isdigit():
        detail = engine.store.chunks.detail(namespace, int(number[:18]))
        if detail is None:
            raise NotFound(f"there is no chunk {number} in namespace {namespace!r}")
        event = engine.store.events.by_seq(namespace, [detail.seq])[detail.seq]
        return Seen(event, (_chunk(engine, namespace, event, detail.id),))
    event = _event(engine, namespace, ident)
    placed = engine.store.chunks.of_event(namespace, int(event.seq))
    return Seen(event, tuple(_chunk(engine, namespace, event, place.id) for place in placed))


def _event(engine: Engine, namespace: str, ident: str) -> Event:
    events = engine.store.events
    if ident.isascii() and ident.isdigit() and len(ident) < 19:
        found = events.by_seq(namespace, [int(ident)]).get(int(ident))
    else:
        try:
            found = events.get(namespace, EventId(UUID(ident)))
        except ValueError:
            raise InvalidInput(
                f"{ident!r} is neither a number, nor an id (32 hexadecimal digits), nor `chunk:N`"
            ) from None
    if found is None:
        raise NotFound(f"there is no event {ident} in namespace {namespace!r}")
    return found


def _chunk(engine: Engine, namespace: str, event: Event, ident: int) -> SeenChunk:
    store = engine.store
    detail = store.chunks.detail(namespace, ident)
    if detail is None:
        raise NotFound(f"there is no chunk {ident} in namespace {namespace!r}")
    spaces = tuple(s.space.label for s in store.upkeep.spaces() if store.vectors.some(namespace, s.id, [ident]))
    text = event.text[detail.start : detail.stop]
    named = names(store, namespace)
    topics = store.chunks.topics(namespace, [ident]).get(ident, [])
    return SeenChunk(
        id=ident,
        start=detail.start,
        stop=detail.stop,
        words=detail.words,
        text=text,
        kept=detail.kept,
        decided=detail.decided == 1,
        verdict=json.loads(detail.verdict) if detail.verdict else {},
        same_as=detail.same_as,
        archived=detail.archived,
        topics=tuple((named.label(key), confidence) for key, confidence in topics),
        spaces=spaces,
    )
