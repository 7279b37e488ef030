"""The seam beside the driver: how the nearest vectors of a namespace are found. Which one is chosen in `app.py`.

Whatever the index, a score comes from the stored vectors (float16, the truth): an index that is approximate only
proposes candidates. Rows and indices are those of `store/arrays.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from mnemic.domain import ranking
from mnemic.store.arrays import Snapshot
from mnemic.store.driver import Driver, Tx

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer]
Metric = Literal["cosine", "dot_product", "euclidean"]


class VectorIndex(Protocol):
    """The vectors of one namespace in one space."""

    def follow(self, tx: Tx, snapshot: Snapshot) -> Dense:
        """The vectors as committed in this transaction."""
        ...


class Dense(Protocol):
    """Vectors as of one snapshot; immutable."""

    @property
    def exhaustive(self) -> bool:
        """Whether scoring every chunk is cheaper than asking for candidates."""
        ...

    @property
    def damaged(self) -> tuple[int, ...]:
        """Ids of chunks whose stored vector has the wrong length; they count as having none."""
        ...

    def nearest(self, query: Floats, k: int, rows: Ints | None) -> Ints:
        """Chunk indices of about the k nearest to the (centred) question among `rows` (None: all)."""
        ...

    def contextual(self, query: Floats, weights: ranking.Weights, rows: Ints | None) -> Floats:
        """`ranking.dense` for `rows`: the mean-centred cosine of each chunk in its context, -1 to 1."""
        ...

    def similar(self, query: Floats, rows: Ints | None) -> Floats:
        """The plain metric of each chunk of `rows`, mapped to 0..1; 0 for a chunk without a vector."""
        ...


MakeIndex = Callable[[Driver, str, int, int], VectorIndex]  # driver, namespace, space id, dimension


def closeness(metric: Metric, vectors: Floats, query: Floats) -> Floats:
    """The metric as 0..1, higher is nearer, so that one threshold means the same order for each.

    cosine: max(0, cos). dot_product: max(0, v.q) / (1 + max(0, v.q)) unless both are unit vectors, where it is the
    cosine. euclidean: 1 - d^2 / 2 for unit vectors (the cosine again), else 1 / (1 + d).
    """
    lengths = np.linalg.norm(vectors, axis=1)
    size = float(np.linalg.norm(query))
    dots = vectors @ query
    unit = abs(size - 1) < 1e-2 and bool(np.all(np.abs(lengths - 1) < 1e-2))
    if metric == "cosine" or unit:
        near = np.clip(dots / np.maximum(lengths * size, 1e-9), 0, 1)
    elif metric == "dot_product":
        near = np.maximum(dots, 0) / (1 + np.maximum(dots, 0))
    else:
        near = 1 / (1 + np.sqrt(np.maximum(lengths**2 - 2 * dots + size**2, 0)))
    return np.asarray(near, np.float32)
