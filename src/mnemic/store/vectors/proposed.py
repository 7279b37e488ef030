"""What an index outside the process answers: it proposes candidates, their scores come from the stored vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mnemic.domain import ranking
from mnemic.store.arrays import Snapshot
from mnemic.store.vectors import Floats, Ints
from mnemic.store.vectors.fetched import Fetched

# (centred question, k, ids of the chunks to choose from or None for all) -> ids of the nearest chunks, nearest first
Propose = Callable[[Floats, int, list[int] | None], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Proposed:
    snapshot: Snapshot
    fetched: Fetched
    propose: Propose
    damaged: tuple[int, ...] = ()
    exhaustive: bool = False

    def nearest(self, query: Floats, k: int, rows: Ints | None) -> Ints:
        among = None if rows is None else self.snapshot.ids[rows].tolist()
        return self.snapshot.index_of(self.propose(query - self.fetched.mean, k, among))

    def contextual(self, query: Floats, weights: ranking.Weights, rows: Ints | None) -> Floats:
        return self.fetched.contextual(query, weights, self._all(rows))

    def similar(self, query: Floats, rows: Ints | None) -> Floats:
        return self.fetched.similar(query, self._all(rows))

    def _all(self, rows: Ints | None) -> Ints:
        return np.arange(len(self.snapshot.ids)) if rows is None else rows
