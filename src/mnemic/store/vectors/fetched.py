"""Scores from vectors read row by row: for indexes that only propose candidates and hold no vectors in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mnemic.domain import ranking
from mnemic.store.arrays import Snapshot
from mnemic.store.codec import json_list
from mnemic.store.driver import Driver
from mnemic.store.vectors import Floats, Ints, Metric, closeness


@dataclass(frozen=True, slots=True)
class Fetched:
    """Where vectors lie and what their mean is."""

    driver: Driver
    namespace: str
    space: int
    snapshot: Snapshot
    mean: Floats
    metric: Metric

    def contextual(self, query: Floats, weights: ranking.Weights, rows: Ints) -> Floats:
        chunks = self.snapshot.view.chunks
        around = np.concatenate([rows, chunks.before[rows], chunks.after[rows]])
        need = np.unique(around[around >= 0])
        matrix, row = self._read(need)
        if not len(matrix):
            return np.zeros(len(rows), np.float32)
        after, between = np.zeros(len(row), np.float32), np.zeros(len(row), np.float32)
        after[need], between[need] = ranking.neighbour_dots(matrix, row, chunks, need)
        vectors = ranking.centre(matrix, row, self.mean, (after, between))
        return ranking.dense(query, vectors, self.snapshot.view, weights, rows)

    def similar(self, query: Floats, rows: Ints) -> Floats:
        matrix, row = self._read(np.asarray(rows), unit=False)
        out = np.zeros(len(rows), np.float32)
        have = row[rows] >= 0
        if have.any():
            out[have] = closeness(self.metric, matrix, query)[row[rows[have]]]
        return out

    def _read(self, rows: Ints, *, unit: bool = True) -> tuple[Floats, Ints]:
        """(vectors, row of each chunk's vector or -1) for these chunk indices."""
        params = {
            "namespace": self.namespace,
            "space": self.space,
            "ids": json_list(self.snapshot.ids[rows].tolist()),
        }
        found = self.driver.read(self.namespace, lambda tx: tx.fetch("vectors_by_chunk", params))
        row = np.full(len(self.snapshot.ids), -1, np.int32)
        size = len(self.mean) * 2
        found = [f for f in found if len(f[1]) == size]
        if not found:
            return np.zeros((0, len(self.mean)), np.float32), row
        matrix = np.frombuffer(b"".join(bytes(f[1]) for f in found), np.float16).reshape(len(found), -1)
        row[self.snapshot.index_of([f[0] for f in found])] = np.arange(len(found))
        full = matrix.astype(np.float32)
        return (unit_rows(full) if unit else full), row


def unit_rows(matrix: Floats) -> Floats:
    return np.asarray(matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9), np.float32)
