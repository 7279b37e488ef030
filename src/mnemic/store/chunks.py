"""Chunks and their vectors: mechanics, derived from events and rebuilt from them at any time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mnemic.domain.topics import Topic
from mnemic.store.codec import json_list
from mnemic.store.driver import Driver, Row, Tx
from mnemic.store.events import NewChunk, add_chunks
from mnemic.store.upkeep import Lease, check_lease

F32 = npt.NDArray[np.float32]
Topics = Sequence[Topic]


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
    same_as: int | None  # the chunk that said the same first


@dataclass(frozen=True, slots=True)
class Raw:
    """A chunk that lacks something, with what it is made from."""

    id: int
    seq: int
    text: str
    actor: str
    role: str
    kind: str
    trust: str
    decided: bool
    signature: int
    digest: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What a step found out about a chunk: whether it is kept, why, which chunk says the same, and what it is about
    (None: not known yet)."""

    id: int
    kept: bool
    verdict: str
    same_as: int | None
    topics: Topics | None


@dataclass(frozen=True, slots=True)
class Saying:
    """A kept chunk and what it says."""

    id: int
    signature: int
    text: str


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
    decided: int
    verdict: str
    same_as: int | None
    archived: str


@dataclass(frozen=True, slots=True)
class Archived:
    """A chunk that hygiene took out of the index."""

    id: int
    seq: int
    reason: str
    text: str


class Chunks:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def heads(self) -> list[Head]:
        return [Head(*row) for row in self._driver.read("", lambda tx: tx.fetch("heads"))]

    def head(self, namespace: str) -> Head:
        return self._driver.read(namespace, lambda tx: _head(tx, namespace))

    def placed(self, namespace: str, ids: Iterable[int]) -> dict[int, Placed]:
        return self._driver.read(namespace, lambda tx: placed_in(tx, namespace, ids))

    def detail(self, namespace: str, ident: int) -> ChunkDetail | None:
        params = {"namespace": namespace, "id": ident}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("chunk", params))
        if not rows:
            return None
        number, seq, start, stop, words, flags, kept, decided, verdict, same_as, archived = rows[0]
        return ChunkDetail(number, seq, start, stop, words, flags, bool(kept), decided, verdict, same_as, archived)

    def of_event(self, namespace: str, seq: int) -> list[Placed]:
        params = {"namespace": namespace, "seq": seq}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("chunks_of_event", params))
        return [Placed(*row) for row in rows]

    # -- what is decided about them

    def undecided(self, namespace: str, after: int, limit: int) -> list[Raw]:
        """Chunks with ids beyond `after` that have not been judged."""
        params = {"namespace": namespace, "after": after, "limit": limit}
        return [_raw(r) for r in self._driver.read(namespace, lambda tx: tx.fetch("chunks_undecided", params))]

    def saying(self, namespace: str, signatures: Iterable[int]) -> list[Saying]:
        """Kept chunks that say what these signatures stand for, oldest first."""
        params = {"namespace": namespace, "signatures": json_list(sorted({s for s in signatures if s}))}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("chunks_saying", params))
        return [Saying(r[1], r[0], r[4][r[2] : r[3]]) for r in rows]

    def topics(self, namespace: str, ids: Iterable[int]) -> dict[int, list[tuple[str, float]]]:
        """chunk -> (key of a topic, confidence), most confident first."""
        return self._driver.read(namespace, lambda tx: topics_in(tx, namespace, ids))

    def about(self, namespace: str, topics: Iterable[str]) -> list[int]:
        """Chunks that are about any of these topics, by key."""
        params = {"namespace": namespace, "topics": json_list(sorted(topics))}
        return [row[0] for row in self._driver.read(namespace, lambda tx: tx.fetch("chunks_of_topics", params))]

    def labels(self, namespace: str, keys: Iterable[str] | None = None) -> dict[str, str]:
        """key -> label of topics (None: of every one), as they were written first."""
        query, params = "topic_labels", dict[str, object](namespace=namespace)
        if keys is not None:
            query, params = "topic_labels_of", params | {"keys": json_list(sorted(keys))}
        return dict(self._driver.read(namespace, lambda tx: tx.fetch(query, params)))

    def topic_counts(self, namespace: str) -> dict[str, int]:
        """key -> how many chunks are about it."""
        return dict(self._driver.read(namespace, lambda tx: tx.fetch("topic_counts", {"namespace": namespace})))

    def decide(self, namespace: str, decisions: Sequence[Decision], lease: Lease | None = None) -> None:
        """Errors: LeaseLost."""

        def work(tx: Tx) -> None:
            check_lease(tx, lease)
            _decide(tx, namespace, decisions)

        self._driver.write(namespace, work)

    def undecide(self, namespace: str) -> int:
        """Let every chunk be judged again; how many there are."""

        def work(tx: Tx) -> int:
            _bump(tx, namespace)
            return tx.execute("chunks_undecide", {"namespace": namespace})

        return self._driver.write(namespace, work)

    def archive(self, namespace: str, ids: Sequence[int], reason: str) -> int:
        """Take chunks out of the index, or put them back (`reason` ""); the log is untouched. How many it were."""

        def work(tx: Tx) -> int:
            _bump(tx, namespace)
            params = {"namespace": namespace, "ids": json_list(list(ids)), "reason": reason}
            return tx.execute("chunks_archive", params)

        return self._driver.write(namespace, work)

    def archived(self, namespace: str, limit: int) -> list[Archived]:
        params = {"namespace": namespace, "limit": limit}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("chunks_archived", params))
        return [Archived(r[0], r[1], r[4], r[5][r[2] : r[3]]) for r in rows]

    def replace(self, namespace: str, rows: Sequence[tuple[int, NewChunk]], lease: Lease | None = None) -> None:
        """Put chunks in the place of all that these events had. Errors: LeaseLost."""

        def work(tx: Tx) -> None:
            check_lease(tx, lease)
            head = _head_locked(tx, namespace)
            seqs = sorted({seq for seq, _ in rows})
            tx.execute("chunks_delete", {"namespace": namespace, "seqs": json_list(seqs)})
            last = add_chunks(tx, namespace, head.chunk + 1, rows)
            _put_head(tx, Head(namespace, head.seq, last, head.vector, head.epoch + 1))

        self._driver.write(namespace, work)

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


@dataclass(frozen=True, slots=True)
class Filled:
    """What a step made: `vectors` (len(ids), dimension) of chunks in a space, and what some of them are about."""

    space: int
    ids: Sequence[int]
    vectors: F32
    topics: Mapping[int, Topics] = field(default_factory=dict)


class Vectors:
    """Vectors as float16, one row a chunk and space: the truth that every index is derived from."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def missing(self, namespace: str, space: int, after: int, limit: int) -> list[Raw]:
        """Kept chunks with ids beyond `after` that have no vector in a space."""
        params = {"namespace": namespace, "space": space, "after": after, "limit": limit}
        return [_raw(r) for r in self._driver.read(namespace, lambda tx: tx.fetch("chunks_without_vector", params))]

    def twins(self, namespace: str, space: int, raws: Sequence[Raw]) -> dict[int, int]:
        """digest -> a chunk that has a vector of the very same text, so that it need not be made again."""
        params = {
            "namespace": namespace,
            "space": space,
            "signatures": json_list([r.signature for r in raws]),
            "digests": json_list([r.digest for r in raws]),
        }
        return dict(self._driver.read(namespace, lambda tx: tx.fetch("vectors_by_digest", params)))

    def missing_count(self, namespace: str, space: int) -> int:
        params = {"namespace": namespace, "space": space}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("chunks_without_vector_count", params))
        return int(rows[0][0])

    def count(self, namespace: str, space: int) -> int:
        params = {"namespace": namespace, "space": space}
        return int(self._driver.read(namespace, lambda tx: tx.fetch("vectors_count", params))[0][0])

    def put(self, namespace: str, filled: Filled, lease: Lease | None = None) -> None:
        """Store vectors and decisions together. A vector that is there already stays.

        Errors: LeaseLost when `lease` is no longer the holder's: nothing is written.
        """
        space, ids, vectors = filled.space, filled.ids, filled.vectors
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
            _name(tx, namespace, filled.topics)
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


def placed_in(tx: Tx, namespace: str, ids: Iterable[int]) -> dict[int, Placed]:
    """Where chunks stand, inside a transaction."""
    rows = tx.fetch("chunks_by_id", {"namespace": namespace, "ids": json_list(list(ids))})
    return {row[0]: Placed(*row) for row in rows}


def topics_in(tx: Tx, namespace: str, ids: Iterable[int]) -> dict[int, list[tuple[str, float]]]:
    found: dict[int, list[tuple[str, float]]] = {}
    rows = tx.fetch("topics_of_chunks", {"namespace": namespace, "ids": json_list(list(ids))})
    for chunk, key, confidence in rows:
        found.setdefault(chunk, []).append((key, confidence))
    return found


def _raw(row: Row) -> Raw:
    ident, start, stop, decided, signature, digest, seq, text, actor, role, kind, trust = row
    return Raw(ident, seq, text[start:stop], actor, role, kind, trust, bool(decided), signature, digest)


def _decide(tx: Tx, namespace: str, decisions: Sequence[Decision]) -> None:
    params = [
        {"namespace": namespace, "id": d.id, "kept": int(d.kept), "verdict": d.verdict, "same_as": d.same_as}
        for d in decisions
    ]
    if params:
        tx.execute_many("chunk_decide", params)
    _name(tx, namespace, {d.id: d.topics for d in decisions if d.topics is not None})


def name_topics(driver: Driver, namespace: str, topics: Mapping[int, Topics], lease: Lease | None) -> None:
    """Write what chunks are about. Errors: LeaseLost."""

    def work(tx: Tx) -> None:
        check_lease(tx, lease)
        _name(tx, namespace, topics)

    driver.write(namespace, work)


def _name(tx: Tx, namespace: str, topics: Mapping[int, Topics]) -> None:
    """Write what chunks are about, in place of what was written before."""
    if not topics:
        return
    tx.execute("topics_drop", {"namespace": namespace, "ids": json_list(list(topics))})
    labels = {t.key: t.label for found in topics.values() for t in found}
    if labels:
        tx.execute_many(
            "topic_label_new", [{"namespace": namespace, "key": k, "label": v} for k, v in sorted(labels.items())]
        )
        rows = [
            {"namespace": namespace, "topic": t.key, "chunk": chunk, "confidence": t.confidence}
            for chunk, found in topics.items()
            for t in found
        ]
        tx.execute_many("topic_add", rows)


def _head(tx: Tx, namespace: str) -> Head:
    rows = tx.fetch("head", {"namespace": namespace})
    return Head(namespace, *rows[0]) if rows else Head(namespace)


def _head_locked(tx: Tx, namespace: str) -> Head:
    tx.execute("head_make", {"namespace": namespace})
    row: Row = tx.fetch("head_locked", {"namespace": namespace})[0]
    return Head(namespace, *row)


def _bump(tx: Tx, namespace: str) -> None:
    """Rows that readers hold in memory change: they start over."""
    head = _head_locked(tx, namespace)
    _put_head(tx, Head(namespace, head.seq, head.chunk, head.vector, head.epoch + 1))


def _put_head(tx: Tx, head: Head) -> None:
    params: Mapping[str, object] = {
        "namespace": head.namespace,
        "seq": head.seq,
        "chunk": head.chunk,
        "vector": head.vector,
        "epoch": head.epoch,
    }
    tx.execute("head_put", params)
