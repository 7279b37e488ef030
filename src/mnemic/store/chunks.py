"""Chunks and their vectors: mechanics, derived from events and rebuilt from them at any time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mnemic.store.codec import json_list
from mnemic.store.driver import Driver, Row, Tx
from mnemic.store.events import NewChunk, add_chunks
from mnemic.store.upkeep import Lease, check_lease

F32 = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Head:
    """The counters of a namespace. A reader whose copy has the same head is up to date."""

    namespace: str
    seq: int = 0
    chunk: int = 0
    vector: int = 0
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a chunk stands."""

    id: int
    seq: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A chunk that has no vector yet, with what its vector is made from."""

    id: int
    text: str
    actor: str
    role: str


@dataclass(frozen=True, slots=True)
class ChunkDetail:
    """All that is stored about a chunk but its text and terms."""

    id: int
    seq: int
    start: int
    stop: int
    words: int
    flags: int
    kept: bool
    verdict: str


class Chunks:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def heads(self) -> list[Head]:
        return [Head(*row) for row in self._driver.read("", lambda tx: tx.fetch("heads"))]

    def head(self, namespace: str) -> Head:
        return self._driver.read(namespace, lambda tx: _head(tx, namespace))

    def placed(self, namespace: str, ids: Iterable[int]) -> dict[int, Placed]:
        params = {"namespace": namespace, "ids": json_list(list(ids))}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("chunks_by_id", params))
        return {row[0]: Placed(*row) for row in rows}

    def detail(self, namespace: str, ident: int) -> ChunkDetail | None:
        params = {"namespace": namespace, "id": ident}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("chunk", params))
        if not rows:
            return None
        number, seq, start, stop, words, flags, kept, verdict = rows[0]
        return ChunkDetail(number, seq, start, stop, words, flags, bool(kept), verdict)

    def of_event(self, namespace: str, seq: int) -> list[Placed]:
        params = {"namespace": namespace, "seq": seq}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("chunks_of_event", params))
        return [Placed(row[0], seq, row[1], row[2]) for row in rows]

    def add(self, namespace: str, rows: Sequence[tuple[int, NewChunk]], lease: Lease | None = None) -> None:
        """Chunks of events that are in the log but had none (their table was dropped, or a rule changed).

        Errors: LeaseLost when `lease` is no longer the holder's: nothing is written.
        """

        def work(tx: Tx) -> None:
            check_lease(tx, lease)
            head = _head_locked(tx, namespace)
            have = {seq for seq, _ in rows if tx.fetch("chunks_of_event", {"namespace": namespace, "seq": seq})}
            last = add_chunks(tx, namespace, head.chunk + 1, [(s, c) for s, c in rows if s not in have])
            _put_head(tx, Head(namespace, head.seq, last, head.vector, head.epoch))

        self._driver.write(namespace, work)


class Vectors:
    """Vectors as float16, one row a chunk and space: the truth that every index is derived from."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def missing(self, namespace: str, space: int, limit: int) -> list[Unembedded]:
        params = {"namespace": namespace, "space": space, "limit": limit}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("chunks_without_vector", params))
        return [Unembedded(r[0], r[3][r[1] : r[2]], r[4], r[5]) for r in rows]

    def missing_count(self, namespace: str, space: int) -> int:
        params = {"namespace": namespace, "space": space}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("chunks_without_vector_count", params))
        return int(rows[0][0])

    def count(self, namespace: str, space: int) -> int:
        params = {"namespace": namespace, "space": space}
        return int(self._driver.read(namespace, lambda tx: tx.fetch("vectors_count", params))[0][0])

    def put(self, namespace: str, space: int, ids: Sequence[int], vectors: F32, lease: Lease | None = None) -> None:
        """Store the vectors of these chunks, `vectors` (len(ids), dimension). One that is there already stays.

        Errors: LeaseLost when `lease` is no longer the holder's: nothing is written.
        """
        halves = vectors.astype(np.float16)

        def work(tx: Tx) -> None:
            check_lease(tx, lease)
            head = _head_locked(tx, namespace)
            number = head.vector + 1
            tx.execute_many(
                "vector_put",
                [
                    {"namespace": namespace, "space": space, "chunk": c, "number": number, "vector": v.tobytes()}
                    for c, v in zip(ids, halves, strict=True)
                ],
            )
            _put_head(tx, Head(namespace, head.seq, head.chunk, number, head.epoch))

        self._driver.write(namespace, work)

    def drop(self, namespace: str, space: int, ids: Sequence[int]) -> None:
        """Forget vectors (damaged ones, say); the worker makes them again."""

        def work(tx: Tx) -> None:
            head = _head_locked(tx, namespace)
            tx.execute("vectors_drop", {"namespace": namespace, "space": space, "ids": json_list(list(ids))})
            _put_head(tx, Head(namespace, head.seq, head.chunk, head.vector, head.epoch + 1))

        self._driver.write(namespace, work)

    def prune(self, namespace: str, space: int) -> None:
        params = {"namespace": namespace, "space": space}
        self._driver.write(namespace, lambda tx: tx.execute("vectors_prune", params))

    def some(self, namespace: str, space: int, ids: Iterable[int]) -> dict[int, F32]:
        params = {"namespace": namespace, "space": space, "ids": json_list(list(ids))}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("vectors_by_chunk", params))
        return {row[0]: np.frombuffer(row[1], np.float16).astype(np.float32) for row in rows}


def _head(tx: Tx, namespace: str) -> Head:
    rows = tx.fetch("head", {"namespace": namespace})
    return Head(namespace, *rows[0]) if rows else Head(namespace)


def _head_locked(tx: Tx, namespace: str) -> Head:
    tx.execute("head_make", {"namespace": namespace})
    row: Row = tx.fetch("head_locked", {"namespace": namespace})[0]
    return Head(namespace, *row)


def _put_head(tx: Tx, head: Head) -> None:
    params: Mapping[str, object] = {
        "namespace": head.namespace,
        "seq": head.seq,
        "chunk": head.chunk,
        "vector": head.vector,
        "epoch": head.epoch,
    }
    tx.execute("head_put", params)
