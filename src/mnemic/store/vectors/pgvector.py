"""Nearest vectors by pgvector: one HNSW index a space, made when a namespace has grown past exact search.

A namespace of up to `EXACT_BELOW` vectors is searched exactly in the process (`exact.py`): no approximate index serves
a small tenant among large ones as well. Above, the index proposes with iterative scans, so that its filter on namespace
and chunks cannot run dry unnoticed: if it brings less than asked, an exact scan in the database answers. While the
index is being built (in the background, without blocking writers) that scan answers too.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from psycopg import sql

from mnemic.errors import ConfigError, MnemicError
from mnemic.store.arrays import Snapshot
from mnemic.store.driver import Driver, Row, Tx, named_queries
from mnemic.store.postgres import PostgresDriver, PostgresTx
from mnemic.store.vectors import Dense, Floats, MakeIndex, Metric
from mnemic.store.vectors.exact import ExactIndex
from mnemic.store.vectors.fetched import Fetched
from mnemic.store.vectors.proposed import Proposed

log = logging.getLogger("mnemic.pgvector")

EXACT_BELOW = 10_000
PROPOSED = (
    400  # candidates asked of the index: more re-enters its graph again and again, fewer lose some of the best ten
)
FEW = 20_000  # chunks to choose from that are scanned faster than the index is filtered
INDEXED_DIMENSIONS = 4_000  # the most that HNSW takes of halfvec
_QUERIES = named_queries("pgvector.sql")


@dataclass(frozen=True, slots=True)
class Indexed:
    """A space and the index on its vectors."""

    space: int
    dimension: int

    @property
    def index(self) -> str:
        return f"vectors_hnsw_{self.space}"

    def filled(self, query: str) -> sql.Composed:
        """The query with the space's own numbers as literals: two integers and a name made of one."""
        return sql.SQL(_QUERIES[query]).format(
            space=sql.Literal(self.space), dimension=sql.Literal(self.dimension), index=sql.Identifier(self.index)
        )


def build(driver: PostgresDriver, indexed: Indexed) -> None:
    """Make the index of a space, unless it is there or another node is at it. Blocking: minutes for a large space.

    Errors: StorageError; StorageReadOnly for a role that does not own the table.
    """
    valid, in_progress = _state(driver.read("", lambda tx: _fetch(tx, sql.SQL(_QUERIES["hnsw_state"]), indexed, {})))
    if valid or in_progress:
        return
    driver.alone(indexed.filled("hnsw_drop"))  # what an interrupted build left
    driver.alone(indexed.filled("hnsw_make"))
    driver.alone(indexed.filled("statistics"))  # without them the planner takes the table for tiny and sorts it all


@dataclass
class Builder:
    """Which indexes are ready; builds the others in the background, each once a process."""

    driver: PostgresDriver
    _ready: set[int] = field(default_factory=set)
    _threads: dict[int, threading.Thread] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ready(self, tx: Tx, indexed: Indexed) -> bool:
        if indexed.space in self._ready:
            return True
        if indexed.dimension > INDEXED_DIMENSIONS:
            return False
        if _state(_fetch(tx, sql.SQL(_QUERIES["hnsw_state"]), indexed, {}))[0]:
            self._ready.add(indexed.space)
            return True
        with self._lock:
            if indexed.space not in self._threads:
                thread = threading.Thread(target=self._build, args=(indexed,), name="mnemic-hnsw", daemon=True)
                self._threads[indexed.space] = thread
                thread.start()
        return False

    def _build(self, indexed: Indexed) -> None:
        try:
            build(self.driver, indexed)
        except MnemicError as error:
            statement = " ".join(indexed.filled("hnsw_make").as_string().split())
            log.warning("vectors are searched without an index, slowly: %s; the owner may run: %s", error, statement)

    def forget(self, space: int) -> None:
        """Rows went away, perhaps the whole table: look again."""
        with self._lock:
            self._ready.discard(space)
            self._threads.pop(space, None)


class PgvectorIndex:
    """Follows the vectors of one namespace and space."""

    def __init__(self, builder: Builder, namespace: str, indexed: Indexed, metric: Metric) -> None:
        self._builder, self._namespace, self._indexed, self._metric = builder, namespace, indexed, metric
        self._epoch = -1
        self._clear()

    def _clear(self) -> None:
        driver, space, dimension = self._builder.driver, self._indexed.space, self._indexed.dimension
        self._exact: ExactIndex | None = ExactIndex(driver, self._namespace, space, dimension, self._metric)
        self._number, self._count = 0, 0
        self._sum = np.zeros(dimension, np.float64)
        self._damaged: list[int] = []

    def follow(self, tx: Tx, snapshot: Snapshot) -> Dense:
        if snapshot.head.epoch != self._epoch:
            self._clear()
            self._builder.forget(self._indexed.space)
            self._epoch = snapshot.head.epoch
        if snapshot.head.vector > self._number:
            self._add(tx)
            self._number = snapshot.head.vector
        if self._count <= EXACT_BELOW and self._exact is not None:
            return self._exact.follow(tx, snapshot)
        self._exact = None  # it has outgrown the process
        mean = (self._sum / max(self._count, 1)).astype(np.float32)
        fetched = Fetched(self._builder.driver, self._namespace, self._indexed.space, snapshot, mean, self._metric)
        by_index = self._builder.ready(tx, self._indexed)

        def propose(centred: Floats, k: int, among: list[int] | None) -> Sequence[int]:
            return self._propose(centred, k, among, by_index)

        return Proposed(snapshot, fetched, propose, tuple(self._damaged))

    def _add(self, tx: Tx) -> None:
        """Number, mean and damage of what was written since."""
        params = {"dimension": self._indexed.dimension, "number": self._number}
        found = _fetch(tx, sql.SQL(_QUERIES["mean_after"]), self._indexed, params, self._namespace)
        count, mean, damaged = found[0]
        if count:
            self._count += int(count)
            self._sum += int(count) * np.array(json.loads(mean), np.float64)
        if damaged:
            self._damaged += json.loads(damaged)

    def _propose(self, centred: Floats, k: int, among: list[int] | None, by_index: bool) -> Sequence[int]:
        params = {"vector": centred.astype(np.float16).tobytes(), "ids": among, "limit": k}
        if by_index and (among is None or len(among) > FEW):
            wanted = min(k, PROPOSED)
            found = self._nearest("nearest_by_index", {**params, "limit": wanted})
            if len(found) >= min(wanted, self._count if among is None else len(among)):
                return found
        return self._nearest("nearest_by_scan", params)

    def _nearest(self, query: str, params: Mapping[str, object]) -> list[int]:
        asked = self._indexed.filled(query)
        rows = self._builder.driver.read(
            self._namespace, lambda tx: _fetch(tx, asked, self._indexed, params, self._namespace)
        )
        return [int(row[0]) for row in rows]


def _fetch(
    tx: Tx, query: sql.SQL | sql.Composed, indexed: Indexed, params: Mapping[str, object], namespace: str = ""
) -> list[Row]:
    if not isinstance(tx, PostgresTx):
        raise TypeError("pgvector needs a PostgreSQL transaction")
    own = {"namespace": namespace, "space": indexed.space, "index": indexed.index}
    return tx.fetch_composed(query, {**own, **params})


def _state(rows: list[Row]) -> tuple[bool, bool]:
    """Whether the index is ready, and whether somebody builds it."""
    return (bool(rows[0][0]), bool(rows[0][1])) if rows else (False, False)


def pgvector_index(metric: Metric) -> MakeIndex:
    """Errors of what it makes: ConfigError for a store that is not in PostgreSQL."""
    builders: dict[int, Builder] = {}

    def make(driver: Driver, namespace: str, space: int, dimension: int) -> PgvectorIndex:
        if not isinstance(driver, PostgresDriver):
            raise ConfigError(
                "vector.index_type pgvector needs store.url = postgresql://...; a file has exact or sqlite-vec"
            )
        builder = builders.setdefault(id(driver), Builder(driver))
        return PgvectorIndex(builder, namespace, Indexed(space, dimension), metric)

    return make
