"""Vectors that live as long as the process (`vector.index_type = "memory"`): for tests and passing sessions. Nothing
about them is written; the next start makes them again."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import numpy as np

from mnemic.store.arrays import Snapshot
from mnemic.store.chunks import F32, Filled, Raw, Vectors, name_topics
from mnemic.store.driver import Driver, Tx
from mnemic.store.upkeep import Lease
from mnemic.store.vectors import Dense, Metric
from mnemic.store.vectors.exact import ExactIndex

_NO_SPACE = 0  # no vector is stored in it, so the store names every chunk that should have one


class MemoryVectors(Vectors):
    """In place of the table of vectors."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._held: dict[tuple[str, int], dict[int, F32]] = {}
        self._lock = threading.Lock()
        self.version = 0  # moves with every change

    def of(self, namespace: str, space: int) -> dict[int, F32]:
        with self._lock:
            return dict(self._held.get((namespace, space), {}))

    def missing(self, namespace: str, space: int, after: int, limit: int) -> list[Raw]:
        held = self.of(namespace, space)
        raws = super().missing(namespace, _NO_SPACE, after, limit + len(held))
        return [raw for raw in raws if raw.id not in held][:limit]

    def missing_count(self, namespace: str, space: int) -> int:
        return max(0, super().missing_count(namespace, _NO_SPACE) - len(self.of(namespace, space)))

    def count(self, namespace: str, space: int) -> int:
        return len(self.of(namespace, space))

    def twins(self, namespace: str, space: int, raws: Sequence[Raw]) -> dict[int, int]:
        return {}

    def some(self, namespace: str, space: int, ids: Iterable[int]) -> dict[int, F32]:
        held = self.of(namespace, space)
        return {i: held[i] for i in ids if i in held}

    def put(self, namespace: str, filled: Filled, lease: Lease | None = None) -> None:
        name_topics(self._driver, namespace, filled.topics, lease)
        with self._lock:
            held = self._held.setdefault((namespace, filled.space), {})
            held.update(zip(filled.ids, filled.vectors.astype(np.float16).astype(np.float32), strict=True))
            self.version += 1

    def drop(self, namespace: str, space: int, ids: Sequence[int]) -> None:
        with self._lock:
            for ident in ids:
                self._held.get((namespace, space), {}).pop(ident, None)
            self.version += 1

    def prune(self, namespace: str, space: int) -> None:
        with self._lock:
            self._held.pop((namespace, space), None)
            self.version += 1


class MemoryIndex(ExactIndex):
    """Exact search over `MemoryVectors`."""

    def __init__(self, vectors: MemoryVectors, namespace: str, space: int, dimension: int, metric: Metric) -> None:
        super().__init__(vectors._driver, namespace, space, dimension, metric)
        self._vectors = vectors
        self._version = -1

    def follow(self, tx: Tx, snapshot: Snapshot) -> Dense:
        version = self._vectors.version
        if snapshot.head.epoch != self._epoch or version != self._version:
            self._clear(snapshot.head.epoch)
            held = self._vectors.of(self._namespace, self._space)
            self._add([(chunk, held[chunk].astype(np.float16).tobytes()) for chunk in sorted(held)])
            self._version = version
        return self._current(snapshot)
