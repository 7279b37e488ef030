"""One store into another, whichever databases they are in: `mnemic db copy URL URL`.

Everything is copied as it is stored: the log with its numbers, judgements about chunks, vectors, usage. The target
keeps an identity of its own, because journals belong to a store: apply what is pending in the source's journal first.
Each batch is one transaction, so an interrupted copy is taken up where it was by calling it again, and a later call
brings over what has changed since (what was erased in the source since is not erased in the target).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mnemic.errors import StorageError
from mnemic.store.chunks import Head
from mnemic.store.driver import Driver, Row, Tx
from mnemic.store.upkeep import StoredSpace, Upkeep, spaces_in

BATCH = 2_000  # rows of a transaction
ORIGIN = "copied_from"

# fmt: off
EVENT = ("seq", "id", "kind", "text", "session", "channel", "role", "actor", "project", "at", "recorded_at",
         "importance", "trust", "data", "digest")
CHUNK = ("id", "seq", "start", "stop", "words", "flags", "kept", "decided", "verdict", "same_as", "signature", "digest",
         "archived", "terms")
SOURCE = ("id", "name", "type", "uri", "digest", "version", "session", "first", "last", "summary", "created_at")
# fmt: on


@dataclass(frozen=True, slots=True)
class Copied:
    """What the target holds of a namespace afterwards."""

    namespace: str
    events: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Small:
    """A table of a namespace that is read whole."""

    read: str
    put: str
    columns: tuple[str, ...]


SMALL = (
    Small("topic_labels", "topic_label_new", ("key", "label")),
    Small("sources", "source_put", SOURCE),
    Small("copy_quarantine", "quarantine_put", ("id", "digest", "reason", "at", "body")),
    Small("copy_usage", "copy_usage_put", ("subject", "day", "count")),
)


def copy(source: Driver, target: Driver, progress: Callable[[Copied], None] = lambda _: None) -> list[Copied]:
    """Copy all namespaces; `progress` hears of each when it is done. Blocking.

    Errors: StorageError when the target holds another store's events, or holds fewer rows afterwards than it should.
    """
    _claim(source, target)
    spaces = _copy_spaces(source, target)
    heads = [Head(*row) for row in source.read("", lambda tx: tx.fetch("heads"))]
    done = []
    for head in heads:
        _copy_namespace(source, target, head, spaces)
        done.append(_compared(source, target, head.namespace))
        progress(done[-1])
    return done


def _claim(source: Driver, target: Driver) -> None:
    """Mark the target as a copy of this source. Errors: StorageError when it is a store of its own already."""
    origin = Upkeep(source).identity().hex
    Upkeep(target).identity()

    def work(tx: Tx) -> str:
        if not tx.fetch("heads"):
            tx.execute("meta_put", {"key": ORIGIN, "value": origin})
        rows = tx.fetch("meta", {"key": ORIGIN})
        return str(rows[0][0]) if rows else ""

    if target.write("", work) != origin:
        raise StorageError("the target holds another store; copy into an empty database or a new file")


def _copy_spaces(source: Driver, target: Driver) -> dict[int, int]:
    """Embedding spaces with their states; the target's id by the source's."""
    theirs: Sequence[StoredSpace] = source.read("", spaces_in)

    def work(tx: Tx) -> dict[str, int]:
        tx.fetch("exclusive", {"name": "spaces"})
        for stored in theirs:
            space = stored.space
            params = {
                "label": space.label,
                "provider": space.provider,
                "model": space.model,
                "dimension": space.dimension,
                "scheme": space.scheme,
                "state": stored.state,
            }
            tx.execute("space_put", params)
        return {s.space.label: s.id for s in spaces_in(tx)}

    ids = target.write("", work)
    return {stored.id: ids[stored.space.label] for stored in theirs}


def _copy_namespace(source: Driver, target: Driver, head: Head, spaces: Mapping[int, int]) -> None:
    name = head.namespace
    reached = target.read(name, lambda tx: tx.fetch("head", {"namespace": name}))
    for window in _windows(reached[0][0] if reached else 0, head.seq):
        _copy_events(source, target, name, window)
    for window in _windows(0, head.chunk):
        chunks = _read(source, name, "copy_chunks", window, CHUNK)
        topics = _read(source, name, "copy_chunk_topics", window, ("topic", "chunk", "confidence"))
        vectors = [
            {**row, "space": ours}
            for theirs, ours in spaces.items()
            for row in _read(source, name, "copy_vectors", {**window, "space": theirs}, ("chunk", "number", "vector"))
        ]
        _put(target, name, {"copy_chunk_put": chunks, "topic_add": topics, "vector_put": vectors})
    for table in SMALL:
        rows = _read(source, name, table.read, {}, table.columns)
        for start in range(0, len(rows), BATCH):
            _put(target, name, {table.put: rows[start : start + BATCH]})
    _finish(target, head)


def _copy_events(source: Driver, target: Driver, namespace: str, window: Mapping[str, int]) -> None:
    """Events and the number they reach to in one transaction: where the next call goes on."""
    rows = _read(source, namespace, "copy_events", window, EVENT)

    def work(tx: Tx) -> None:
        tx.execute("head_make", {"namespace": namespace})
        seq, *rest = tx.fetch("head_locked", {"namespace": namespace})[0]
        if seq != window["after"]:
            raise StorageError("somebody else writes to the target; stop that and copy again")
        tx.execute_many("event_put", rows)
        counters = dict(zip(("chunk", "vector", "epoch"), rest, strict=True))
        tx.execute("head_put", {"namespace": namespace, "seq": window["last"], **counters})

    target.write(namespace, work)


def _finish(target: Driver, head: Head) -> None:
    """The counters of the source; one epoch more than before, so that open readers of the target start over."""

    def work(tx: Tx) -> None:
        tx.execute("head_make", {"namespace": head.namespace})
        epoch = tx.fetch("head_locked", {"namespace": head.namespace})[0][3]
        counters = {"seq": head.seq, "chunk": head.chunk, "vector": head.vector, "epoch": max(epoch, head.epoch) + 1}
        tx.execute("head_put", {"namespace": head.namespace, **counters})

    target.write(head.namespace, work)


def _compared(source: Driver, target: Driver, namespace: str) -> Copied:
    """Errors: StorageError when the target has not got everything."""
    counted = [d.read(namespace, lambda tx: tx.fetch("counts", {"namespace": namespace}))[0] for d in (source, target)]
    if counted[1][:2] < counted[0][:2]:
        raise StorageError(f"{namespace!r}: {counted[1][0]} of {counted[0][0]} events arrived; copy again")
    return Copied(namespace, counted[1][0], counted[1][1])


def _windows(after: int, last: int) -> Iterator[dict[str, int]]:
    for start in range(after, last, BATCH):
        yield {"after": start, "last": min(start + BATCH, last)}


def _read(
    driver: Driver, namespace: str, query: str, params: Mapping[str, object], columns: Sequence[str]
) -> list[dict[str, object]]:
    rows: list[Row] = driver.read(namespace, lambda tx: tx.fetch(query, {"namespace": namespace, **params}))
    return [{"namespace": namespace, **dict(zip(columns, row, strict=True))} for row in rows]


def _put(target: Driver, namespace: str, rows: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
    def work(tx: Tx) -> None:
        for query, some in rows.items():
            if some:
                tx.execute_many(query, some)

    target.write(namespace, work)
