"""Nearest vectors by the SQLite extension sqlite-vec, for those who ask for it (`exact.py` is several times faster).

Its table is derived from the stored vectors and lives in memory, one a namespace and space: nothing of it is on disk,
so nothing deleted can stay there, and it follows the commits of other processes like every other index. sqlite-vec has
no float16: its table holds float32 and only proposes.
"""

from __future__ import annotations

import threading

import apsw
import numpy as np

from mnemic.errors import ConfigError
from mnemic.store.arrays import Snapshot
from mnemic.store.codec import json_list
from mnemic.store.driver import Driver, Tx, named_queries
from mnemic.store.vectors import Dense, Floats, MakeIndex, Metric
from mnemic.store.vectors.fetched import Fetched, unit_rows
from mnemic.store.vectors.proposed import Proposed

OLDEST = (0, 1, 6)
MOST = 4_096  # the largest k that vec0 takes
_BATCH = 20_000
_ALL = 2**62  # after every chunk id
_INSTALL = "vector.index_type sqlite-vec needs its extension: pip install 'mnemic[sqlite-vec]'"
_QUERIES = named_queries("sqlite_vec.sql")


def connect() -> apsw.Connection:
    """A database in memory with the extension. Errors: ConfigError when that is missing, too old or not loadable."""
    try:
        import sqlite_vec
    except ImportError as error:
        raise ConfigError(_INSTALL) from error
    connection = apsw.Connection(":memory:")
    try:
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.enable_load_extension(False)
        version = str(connection.execute(_QUERIES["version"]).get).lstrip("v")
    except (apsw.Error, AttributeError) as error:
        raise ConfigError(f"{_INSTALL} (this SQLite does not load it: {error}); or use exact") from error
    if tuple(int(part) for part in version.partition("-")[0].split(".")) < OLDEST:
        raise ConfigError(f"sqlite-vec {version} is too old: pip install -U 'mnemic[sqlite-vec]'")
    return connection


class SqliteVecIndex:
    """Follows the vectors of one namespace and space."""

    def __init__(self, driver: Driver, namespace: str, space: int, dimension: int, metric: Metric = "cosine") -> None:
        self._driver, self._namespace, self._space, self._dimension = driver, namespace, space, dimension
        self._metric: Metric = metric
        self._lock = threading.Lock()  # one connection serves all threads
        self._clear(-1)

    def _clear(self, epoch: int) -> None:
        self._epoch = epoch
        self._table = connect()
        self._table.execute(_QUERIES["make"].format(dimension=int(self._dimension))).fetchall()
        self._number, self._chunk, self._count = 0, 0, 0  # counter and id of the last vector read; how many
        self._sum = np.zeros(self._dimension, np.float64)
        self._damaged: list[int] = []

    def follow(self, tx: Tx, snapshot: Snapshot) -> Dense:
        with self._lock:
            if snapshot.head.epoch != self._epoch:
                self._clear(snapshot.head.epoch)
            while snapshot.head.vector > self._number:
                rows = tx.fetch("vectors_after", self._asked())
                self._add([(row[0], bytes(row[2])) for row in rows])
                whole = len(rows) < _BATCH
                self._number, self._chunk = (snapshot.head.vector, _ALL) if whole else (rows[-1][1], rows[-1][0])
            mean = (self._sum / max(self._count, 1)).astype(np.float32)
        fetched = Fetched(self._driver, self._namespace, self._space, snapshot, mean, self._metric)
        return Proposed(snapshot, fetched, self._propose, tuple(self._damaged))

    def _asked(self) -> dict[str, object]:
        return {
            "namespace": self._namespace,
            "space": self._space,
            "number": self._number,
            "chunk": self._chunk,
            "limit": _BATCH,
        }

    def _add(self, rows: list[tuple[int, bytes]]) -> None:
        good = [(chunk, blob) for chunk, blob in rows if len(blob) == self._dimension * 2]
        self._damaged += [chunk for chunk, blob in rows if len(blob) != self._dimension * 2]
        if not good:
            return
        stored = np.frombuffer(b"".join(blob for _, blob in good), np.float16).reshape(-1, self._dimension)
        matrix = unit_rows(stored.astype(np.float32))
        self._sum += matrix.sum(axis=0, dtype=np.float64)
        self._count += len(good)
        with self._table:
            self._table.executemany(
                _QUERIES["put"],
                ({"chunk": chunk, "vector": row.tobytes()} for (chunk, _), row in zip(good, matrix, strict=True)),
            )

    def _propose(self, centred: Floats, k: int, among: list[int] | None) -> list[int]:
        params = {"vector": centred.astype(np.float32).tobytes(), "limit": min(k, MOST)}
        with self._lock:
            if among is None:
                rows = self._table.execute(_QUERIES["nearest"], params).fetchall()
            else:
                rows = self._table.execute(_QUERIES["nearest_among"], {**params, "ids": json_list(among)}).fetchall()
        return [int(str(row[0])) for row in rows]


def sqlite_vec_index(metric: Metric) -> MakeIndex:
    """Errors: ConfigError, at once, when the extension cannot be used."""
    connect().close()
    return lambda driver, namespace, space, dimension: SqliteVecIndex(driver, namespace, space, dimension, metric)
