"""Everything that is stored about one event: what was said, its chunks, why each may surface, where it has a vector."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from mnemic.domain.types import Event, EventId
from mnemic.engine.parts import Engine
from mnemic.errors import InvalidInput, NotFound


@dataclass(frozen=True, slots=True)
class SeenChunk:
    """Characters `start` to `stop` of the event. `kept`: whether it gets a vector; `verdict`: why not, or "".
    `spaces`: the embedding spaces in which it has one."""

    id: int
    start: int
    stop: int
    words: int
    text: str
    kept: bool
    verdict: str
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
    return SeenChunk(ident, detail.start, detail.stop, detail.words, text, detail.kept, detail.verdict, spaces)
