"""The write path of one namespace: a checked event goes into the journal, and the caller knows when it is durable."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from mnemic.domain.drafts import Draft
from mnemic.domain.types import Event, Receipt, Seq
from mnemic.engine.asking import Reader, Said
from mnemic.engine.parts import Engine
from mnemic.errors import Conflict, StorageError, Unreachable
from mnemic.store.codec import encode

BULK = 1_000  # events recorded in one transaction


class Recording:
    """Thread-safe. `submit` does not block for longer than the journal's queue is full."""

    def __init__(self, engine: Engine, namespace: str, reader: Reader) -> None:
        self._engine, self._namespace, self._reader = engine, namespace, reader

    def prepare(self, what: str | Draft, said: Said) -> tuple[Event, Receipt | None]:
        """The event to record; with a receipt when it is in the log already, word for word.

        Errors: InvalidInput; Conflict when the id is in the log with other content.
        """
        event = self._reader.event(what, said)
        if not (said.get("id") or (isinstance(what, Draft) and what.id)):
            return event, None  # a fresh id needs no look-up
        known = self._known(event)
        if known is None:
            return event, None
        if known[0] != encode(event)[0]:
            raise Conflict(f"the id {event.id} was recorded before with other content; use a new id")
        return event, Receipt(event.id, Seq(known[1]), False)

    def _known(self, event: Event) -> tuple[bytes, int] | None:
        """(digest, seq) of the event in the log. A database that is down cannot tell; applying settles it later."""
        try:
            return self._engine.store.events.digests(self._namespace, [event.id]).get(event.id)
        except StorageError:
            if self._engine.waits_for_database:
                return None
            raise

    def submit(self, event: Event) -> Future[int]:
        """The future gives the journal's row once the event is durable. Errors: as `Journal.submit`."""
        return self._engine.spool.submit(self._namespace, event)

    def receipt(self, event: Event, row: int) -> Receipt:
        """What the caller is told about a durable event. Blocking where the database has to answer first; if it does
        not within `journal.spool_wait_ms`, the event is spooled. Errors: Conflict (another node was first)."""
        if not self._engine.waits_for_database:
            return Receipt(event.id, Seq(0), False)
        if not self._engine.spool.wait_applied(row, self._engine.config.journal.spool_wait_ms / 1000):
            return Receipt(event.id, Seq(0), True)
        try:
            digest, seq = self._engine.store.events.digests(self._namespace, [event.id])[event.id]
        except Unreachable:  # lost between its commit and this look
            return Receipt(event.id, Seq(0), True)
        if digest != encode(event)[0]:
            raise Conflict(f"another node recorded the id {event.id} with other content first; use a new id")
        return Receipt(event.id, Seq(seq), False)

    @property
    def waits(self) -> bool:
        """Whether `receipt` blocks."""
        return self._engine.waits_for_database

    def batch(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """Record many in order, in one transaction. Errors: as `prepare`; nothing of the batch is recorded then."""
        events = [self._reader.event(draft, Said()) for draft in drafts]
        if not events:
            return []
        named = [event for event, draft in zip(events, drafts, strict=True) if draft.id]
        self._refuse_others(named)
        seqs = {ident: int(seq) for ident, seq in self._engine.spool.append(self._namespace, events).items()}
        rest = [event.id for event in events if event.id not in seqs]
        try:
            known = self._engine.store.events.digests(self._namespace, rest) if rest else {}
        except Unreachable:  # durable in the journal, applied later
            known = {}
        seqs |= {ident: seq for ident, (_, seq) in known.items()}
        self._refuse_others(named)  # another node may have come between
        return [Receipt(e.id, Seq(seqs.get(e.id, 0)), e.id not in seqs) for e in events]

    def _refuse_others(self, events: Sequence[Event]) -> None:
        """Errors: Conflict when the log has one of these ids with other content."""
        if not events:
            return
        try:
            known = self._engine.store.events.digests(self._namespace, [event.id for event in events])
        except Unreachable:  # applying settles it later
            return
        for event in events:
            if event.id in known and known[event.id][0] != encode(event)[0]:
                raise Conflict(f"the id {event.id} was recorded before with other content; use a new id")
