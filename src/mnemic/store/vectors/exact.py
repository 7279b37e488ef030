"""Exact search in the process, derived from the stored vectors: the embedded default.

Up to `EXACT_LIMIT` vectors of a namespace are held as float32 and every one is scored (100,000 x 384: about 6 ms).
Above it only the signs of the centred components are held (48 bytes a vector); the nearest by Hamming distance are
candidates, which are scored from the stored vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mnemic.domain import ranking
from mnemic.store.arrays import Grown, Snapshot
from mnemic.store.driver import Driver, Tx
from mnemic.store.vectors import Dense, Floats, Ints, Metric, closeness
from mnemic.store.vectors.fetched import Fetched, unit_rows

EXACT_LIMIT = 100_000
CANDIDATES = 1_000  # and one per thousand vectors: recall@10 of the signs alone stays above .99
_BATCH = 20_000  # vectors read at once
_ALL = 2**62  # after every chunk id
_BLOCK = 65_536  # sign rows compared at once, so that the intermediate stays in the cache


@dataclass(frozen=True, slots=True)
class Held:
    """All vectors in memory."""

    snapshot: Snapshot
    vectors: ranking.Vectors
    metric: Metric
    raw: Floats  # as stored; `vectors.matrix` holds them at length 1
    damaged: tuple[int, ...] = ()
    exhaustive: bool = True
    blends: dict[ranking.Weights, ranking.Blend] = field(default_factory=dict)  # made at the first question

    def nearest(self, query: Floats, k: int, rows: Ints | None) -> Ints:
        at = np.flatnonzero(self.vectors.row >= 0) if rows is None else rows[self.vectors.row[rows] >= 0]
        scores = self.vectors.matrix[self.vectors.row[at]] @ (query - self.vectors.mean)
        return at[np.argsort(-scores, kind="stable")[:k]]

    def contextual(self, query: Floats, weights: ranking.Weights, rows: Ints | None) -> Floats:
        if rows is not None or not len(self.vectors.matrix):
            return ranking.dense(query, self.vectors, self.snapshot.view, weights, rows)
        if weights not in self.blends:
            self.blends[weights] = ranking.blend(self.vectors, self.snapshot.view, weights)
        return ranking.cosine(query, self.blends[weights])

    def similar(self, query: Floats, rows: Ints | None) -> Floats:
        at = self.vectors.row if rows is None else self.vectors.row[rows]
        if not len(self.raw):
            return np.zeros(len(at), np.float32)
        if rows is None:
            return np.where(at >= 0, closeness(self.metric, self.raw, query)[at], 0).astype(np.float32)
        near = closeness(self.metric, self.raw[at], query)
        return np.where(at >= 0, near, 0).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Signs:
    """Sign bits in memory, vectors in the store."""

    snapshot: Snapshot
    bits: npt.NDArray[np.uint64]
    index: Ints  # chunk index of each row of `bits`
    fetched: Fetched
    damaged: tuple[int, ...] = ()
    exhaustive: bool = False

    def nearest(self, query: Floats, k: int, rows: Ints | None) -> Ints:
        asked = _signs((query - self.fetched.mean)[None, :])[0]
        bits, index = self.bits, self.index
        if rows is not None:
            keep = np.flatnonzero(np.isin(index, rows))
            bits, index = bits[keep], index[keep]
        apart = np.empty(len(bits), np.uint16)
        for start in range(0, len(bits), _BLOCK):
            block = bits[start : start + _BLOCK]
            apart[start : start + _BLOCK] = np.bitwise_count(block ^ asked).sum(axis=1, dtype=np.uint16)
        wanted = max(k, CANDIDATES + len(bits) // 1_000)
        if wanted >= len(bits):
            return index
        return np.sort(index[np.argpartition(apart, wanted)[:wanted]])

    def contextual(self, query: Floats, weights: ranking.Weights, rows: Ints | None) -> Floats:
        return self.fetched.contextual(query, weights, self._all(rows))

    def similar(self, query: Floats, rows: Ints | None) -> Floats:
        return self.fetched.similar(query, self._all(rows))

    def _all(self, rows: Ints | None) -> Ints:
        return np.arange(len(self.snapshot.ids)) if rows is None else rows


class ExactIndex:
    """Follows the vectors of one namespace and space."""

    def __init__(self, driver: Driver, namespace: str, space: int, dimension: int, metric: Metric = "cosine") -> None:
        self._driver, self._namespace, self._space, self._dimension = driver, namespace, space, dimension
        self._metric: Metric = metric
        self._dense: Held | Signs | None = None
        self._clear(-1)

    def _clear(self, epoch: int) -> None:
        self._epoch = epoch
        self._number, self._last_chunk = 0, 0
        self._ids = Grown(np.int64)
        self._matrix = Grown(np.float32, self._dimension)
        self._raw: Grown | None = None  # only where stored vectors are not of length 1
        self._bits: Grown | None = None
        self._bits_mean = np.zeros(self._dimension, np.float32)
        self._sum = np.zeros(self._dimension, np.float64)
        self._damaged: list[int] = []
        self._index = Grown(np.int64)  # chunk index of each vector
        self._dots = (np.zeros(0, np.float32), np.zeros(0, np.float32))
        self._dense = None

    def follow(self, tx: Tx, snapshot: Snapshot) -> Dense:
        if snapshot.head.epoch != self._epoch:
            self._clear(snapshot.head.epoch)
        while snapshot.head.vector > self._number:
            params = {
                "namespace": self._namespace,
                "space": self._space,
                "number": self._number,
                "chunk": self._last_chunk,
                "limit": _BATCH,
            }
            rows = tx.fetch("vectors_after", params)
            self._add([(r[0], bytes(r[2])) for r in rows])
            whole = len(rows) < _BATCH
            self._number, self._last_chunk = (snapshot.head.vector, _ALL) if whole else (rows[-1][1], rows[-1][0])
        return self._current(snapshot)

    def _current(self, snapshot: Snapshot) -> Held | Signs:
        if self._dense is None or self._dense.snapshot is not snapshot:
            self._dense = self._make(snapshot)
        return self._dense

    def _add(self, rows: list[tuple[int, bytes]]) -> None:
        size = self._dimension * 2
        self._damaged += [chunk for chunk, blob in rows if len(blob) != size]
        good = [(chunk, blob) for chunk, blob in rows if len(blob) == size]
        if not good:
            return
        stored = np.frombuffer(b"".join(blob for _, blob in good), np.float16).reshape(-1, self._dimension)
        raw = stored.astype(np.float32)
        matrix = unit_rows(raw)
        self._ids.extend([chunk for chunk, _ in good])
        self._sum += matrix.sum(axis=0, dtype=np.float64)
        if self._bits is not None:
            self._bits.extend(_signs(matrix - self._bits_mean))
            return
        if self._raw is None and not np.allclose(np.linalg.norm(raw, axis=1), 1, atol=1e-2):
            self._raw = Grown(np.float32, self._dimension)
            self._raw.extend(self._matrix.values)
        self._matrix.extend(matrix)
        if self._raw is not None:
            self._raw.extend(raw)
        if len(self._ids.values) > EXACT_LIMIT:
            self._fold()

    def _fold(self) -> None:
        """Keep signs instead of vectors."""
        self._bits_mean = self._mean()
        self._bits = Grown(np.uint64, _words(self._dimension))
        values = self._matrix.values
        for start in range(0, len(values), _BATCH):
            self._bits.extend(_signs(values[start : start + _BATCH] - self._bits_mean))
        self._matrix, self._raw = Grown(np.float32, self._dimension), None

    def _mean(self) -> Floats:
        return (self._sum / max(len(self._ids.values), 1)).astype(np.float32)

    def _make(self, snapshot: Snapshot) -> Held | Signs:
        mean, damaged = self._mean(), tuple(self._damaged)
        found = snapshot.places(self._ids.values[len(self._index.values) :])
        self._index.extend(found)
        index = self._index.values
        here = np.flatnonzero(index >= 0)  # the rest belong to chunks that are out of the index
        if self._bits is not None:
            fetched = Fetched(self._driver, self._namespace, self._space, snapshot, mean, self._metric)
            return Signs(snapshot, self._bits.values[here], index[here], fetched, damaged)
        matrix, size = self._matrix.values, len(snapshot.ids)
        row = np.full(size, -1, np.int32)
        row[index[here]] = here
        self._dots = self._neighbours(snapshot, matrix, row, found[found >= 0])
        vectors = ranking.centre(matrix, row, mean, self._dots)
        raw = matrix if self._raw is None else self._raw.values
        return Held(snapshot, vectors, self._metric, raw, damaged)

    def _neighbours(self, snapshot: Snapshot, matrix: Floats, row: Ints, fresh: Ints) -> tuple[Floats, Floats]:
        """Dots of neighbouring vectors; only those that the `fresh` ones take part in are computed."""
        chunks = snapshot.view.chunks
        around = np.concatenate([fresh, chunks.before[fresh], chunks.after[fresh]])
        changed = np.unique(around[around >= 0])
        after, between = (np.zeros(len(row), np.float32) for _ in range(2))
        after[: len(self._dots[0])], between[: len(self._dots[1])] = self._dots
        after[changed], between[changed] = ranking.neighbour_dots(matrix, row, chunks, changed)
        return after, between


def _words(dimension: int) -> int:
    return (dimension + 63) // 64


def _signs(vectors: Floats) -> npt.NDArray[np.uint64]:
    """(n, words) sign bits, padded with zeros."""
    packed = np.packbits(vectors > 0, axis=1)
    room = np.zeros((len(vectors), _words(vectors.shape[1]) * 8), np.uint8)
    room[:, : packed.shape[1]] = packed
    return room.view(np.uint64)
