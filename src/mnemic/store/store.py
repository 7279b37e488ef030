"""One concrete class over a small driver; the seam is SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mnemic.domain import ranking
from mnemic.domain.types import Event
from mnemic.store.chunks import Chunks, Placed, Vectors, placed_in, topics_in
from mnemic.store.driver import Driver, Tx
from mnemic.store.events import Events, events_in
from mnemic.store.indexes import Indexes
from mnemic.store.sources import Sources
from mnemic.store.upkeep import Upkeep
from mnemic.store.vectors import MakeIndex

Choose = Callable[[Mapping[int, Placed]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Shown:
    """Events by seq, and topics (key, confidence) by chunk."""

    events: Mapping[int, Event]
    topics: Mapping[int, Sequence[tuple[str, float]]]


class Store:
    """Blocking and thread-safe. Every call names its namespace; no query crosses it."""

    def __init__(
        self, driver: Driver, make_index: MakeIndex, weights: ranking.Weights, vectors: Vectors | None = None
    ) -> None:
        self.driver = driver
        self.indexes = Indexes(driver, make_index, weights)
        self.events = Events(driver)
        self.chunks = Chunks(driver)
        self.vectors = vectors or Vectors(driver)
        self.sources = Sources(driver)
        self.upkeep = Upkeep(driver)

    def hydrate(self, namespace: str, ids: Sequence[int], choose: Choose) -> Shown:
        """The rows behind chunk ids, all of one moment: where the chunks stand (and those that said the same first),
        then for the chunks that `choose` picks their events and topics."""

        def work(tx: Tx) -> Shown:
            placed = placed_in(tx, namespace, ids)
            firsts = {p.same_as for p in placed.values() if p.same_as is not None} - placed.keys()
            if firsts:
                placed |= placed_in(tx, namespace, firsts)
            chosen = [placed[i] for i in choose(placed)]
            events = events_in(tx, namespace, {p.seq for p in chosen})
            return Shown(events, topics_in(tx, namespace, [p.id for p in chosen]))

        return self.driver.read(namespace, work)

    def close(self) -> None:
        self.driver.close()
