"""The log: events in the order in which they were applied."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from mnemic.domain.types import Event, EventId, Kind, Role, SessionId
from mnemic.store.codec import encode, event_of, event_params, json_list, micros, moment
from mnemic.store.driver import Driver, Row, Tx
from mnemic.store.journal import Anchor


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk as it is derived from an event, before it has an id. `terms`: see `store/arrays.py`."""

    start: int
    stop: int
    words: int
    flags: int
    kept: bool
    decided: int  # 0: to be judged; -1: to be cut anew by meaning
    verdict: str
    signature: int
    digest: int
    terms: bytes


@dataclass(frozen=True, slots=True)
class Prepared:
    """An event ready to be applied: analysed outside the transaction, so that the lock is held briefly."""

    namespace: str
    event: Event
    digest: bytes
    chunks: tuple[NewChunk, ...]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events to list. `since` included, `until` excluded."""

    session: SessionId | None = None
    kinds: tuple[Kind, ...] = ()
    roles: tuple[Role, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    after: int = 0
    last: int | None = None
    limit: int = 1_000


@dataclass(frozen=True, slots=True)
class SessionSummary:
    session: SessionId
    first: int
    last: int
    events: int
    began: datetime
    ended: datetime


class Events:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    # -- writing

    def anchor(self, journal: bytes) -> Anchor:
        rows = self._driver.read("", lambda tx: tx.fetch("anchor", {"journal": journal}))
        return Anchor(rows[0][0], bytes(rows[0][1])) if rows else Anchor(0, b"")

    def apply(
        self, journal: bytes, batch: Sequence[tuple[int, Prepared]], chain: bytes, *, wait: bool = True
    ) -> dict[EventId, int]:
        """Apply rows of a journal, (journal seq, event) in order, exactly once; the seq of every event in the batch.

        `chain`: the journal's chain after the last of them. Rows that another process applied meanwhile are
        skipped by the anchor; an id that is already in the log by its id. Other content under a taken id goes to
        the quarantine (a caller who waits was told `Conflict` before).
        """

        def work(tx: Tx) -> dict[EventId, int]:
            tx.execute("anchor_make", {"journal": journal})
            reached = tx.fetch("anchor_locked", {"journal": journal})[0][0]
            fresh = [prepared for seq, prepared in batch if seq > reached]
            seqs: dict[EventId, int] = {}
            for namespace in sorted({p.namespace for _, p in batch}):
                tx.scope(namespace)
                group = [p for _, p in batch if p.namespace == namespace]
                seqs |= _insert(tx, namespace, [p for p in fresh if p.namespace == namespace], group)
            if fresh:
                tx.execute("anchor_put", {"journal": journal, "seq": batch[-1][0], "chain": chain})
            return seqs

        return self._driver.write("", work, wait=wait)

    # -- reading

    def get(self, namespace: str, ident: EventId) -> Event | None:
        params = {"namespace": namespace, "id": ident.bytes}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("event_by_id", params))
        return event_of(rows[0]) if rows else None

    def by_seq(self, namespace: str, seqs: Iterable[int]) -> dict[int, Event]:
        return self._driver.read(namespace, lambda tx: events_in(tx, namespace, set(seqs)))

    def digests(self, namespace: str, ids: Iterable[EventId]) -> dict[EventId, tuple[bytes, int]]:
        """(digest, seq) of those ids that are in the log."""
        params = {"namespace": namespace, "ids": json_list([i.hex for i in ids])}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("digests", params))
        return {_event_id(row): (bytes(row[1]), row[2]) for row in rows}

    def select(self, namespace: str, wanted: EventFilter) -> list[Event]:
        params = {
            "namespace": namespace,
            "after": wanted.after,
            "last": wanted.last,
            "session": wanted.session,
            "since": micros(wanted.since) if wanted.since else None,
            "until": micros(wanted.until) if wanted.until else None,
            "kinds": json_list(wanted.kinds) if wanted.kinds else None,
            "roles": json_list(wanted.roles) if wanted.roles else None,
            "limit": wanted.limit,
        }
        return [event_of(row) for row in self._driver.read(namespace, lambda tx: tx.fetch("events", params))]

    def edits(self, namespace: str, verb: str) -> list[Event]:
        """The edits of a verb, in order: what people changed in the views."""
        rows = self._driver.read(namespace, lambda tx: tx.fetch("edits", {"namespace": namespace}))
        return [event for event in map(event_of, rows) if event.data.get("verb") == verb]

    def holding(self, namespace: str, needle: str, limit: int) -> list[int]:
        """seqs of events whose text holds the needle in any case, newest first: a scan, for what has no terms."""
        params = {"namespace": namespace, "needle": needle.lower(), "limit": limit}
        return [row[0] for row in self._driver.read(namespace, lambda tx: tx.fetch("events_holding", params))]

    def without_chunks(self, namespace: str, limit: int) -> list[Event]:
        params = {"namespace": namespace, "limit": limit}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("events_without_chunks", params))
        return [event_of(row) for row in rows]

    def provisional(self, namespace: str, limit: int) -> list[Event]:
        """Events whose chunks the worker will cut anew by meaning."""
        params = {"namespace": namespace, "limit": limit}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("events_provisional", params))
        return [event_of(row) for row in rows]

    def sessions(self, namespace: str, limit: int = 100) -> list[SessionSummary]:
        params = {"namespace": namespace, "limit": limit}
        rows = self._driver.read(namespace, lambda tx: tx.fetch("sessions", params))
        return [SessionSummary(SessionId(r[0]), r[1], r[2], r[3], moment(r[4]), moment(r[5])) for r in rows]

    def counts(self, namespace: str) -> tuple[int, int, int]:
        """(events, chunks, chunks that get a vector)."""
        row = self._driver.read(namespace, lambda tx: tx.fetch("counts", {"namespace": namespace}))[0]
        return row[0], row[1], row[2]

    def quarantined(self, namespace: str) -> int:
        rows = self._driver.read(namespace, lambda tx: tx.fetch("quarantine_count", {"namespace": namespace}))
        return int(rows[0][0])


def events_in(tx: Tx, namespace: str, seqs: Collection[int]) -> dict[int, Event]:
    """Events by seq, inside a transaction."""
    rows = tx.fetch("events_by_seq", {"namespace": namespace, "seqs": json_list(sorted(seqs))})
    return {row[0]: event_of(row) for row in rows}


def add_chunks(tx: Tx, namespace: str, first_id: int, rows: Iterable[tuple[int, NewChunk]]) -> int:
    """Insert (seq, chunk) rows with ids from `first_id`; the last id given."""
    params: list[Mapping[str, object]] = [
        {
            "namespace": namespace,
            "id": first_id + n,
            "seq": seq,
            "start": chunk.start,
            "stop": chunk.stop,
            "words": chunk.words,
            "flags": chunk.flags,
            "kept": int(chunk.kept),
            "decided": chunk.decided,
            "verdict": chunk.verdict,
            "signature": chunk.signature,
            "digest": chunk.digest,
            "terms": chunk.terms,
        }
        for n, (seq, chunk) in enumerate(rows)
    ]
    if params:
        tx.execute_many("chunk_put", params)
    return first_id + len(params) - 1


def _insert(tx: Tx, namespace: str, fresh: Sequence[Prepared], group: Sequence[Prepared]) -> dict[EventId, int]:
    """Give seqs, write events and chunks of one namespace, move its head."""
    if fresh:
        tx.execute("head_make", {"namespace": namespace})
    ids = {"namespace": namespace, "ids": json_list([p.event.id.hex for p in group])}
    head = tx.fetch("head_locked", {"namespace": namespace}) if fresh else []
    known = {_event_id(row): (bytes(row[1]), row[2]) for row in tx.fetch("digests", ids)}
    if not fresh:
        return {ident: seq for ident, (_, seq) in known.items()}
    seq, chunk, vector, epoch = head[0]
    events: list[Mapping[str, object]] = []
    chunks: list[tuple[int, NewChunk]] = []
    for prepared in fresh:
        ident = prepared.event.id
        if ident in known:
            if known[ident][0] != prepared.digest:
                _quarantine(tx, prepared)
            continue
        seq += 1
        known[ident] = (prepared.digest, seq)
        events.append(event_params(namespace, prepared.event, seq, prepared.digest))
        chunks += [(seq, c) for c in prepared.chunks]
    if events:
        tx.execute_many("event_put", events)
    last = add_chunks(tx, namespace, chunk + 1, chunks)
    tx.execute("head_put", {"namespace": namespace, "seq": seq, "chunk": last, "vector": vector, "epoch": epoch})
    return {ident: given for ident, (_, given) in known.items()}


def _quarantine(tx: Tx, prepared: Prepared) -> None:
    tx.execute(
        "quarantine_put",
        {
            "namespace": prepared.namespace,
            "id": prepared.event.id.bytes,
            "digest": prepared.digest,
            "reason": "another event has this id",
            "at": micros(prepared.event.recorded_at),
            "body": encode(prepared.event)[1].decode(),
        },
    )


def _event_id(row: Row) -> EventId:
    return EventId(UUID(bytes=bytes(row[0])))
