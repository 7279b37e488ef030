"""From the journal to the store. Recording waits for the journal alone; applying follows at once when somebody reads,
and otherwise in batches, so that an acknowledgement costs one sync of the disk and not two."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future

from mnemic.domain.types import Event, EventId
from mnemic.engine.analysis import Analyser
from mnemic.errors import DeadlineExceeded, JournalError, MnemicError, StorageLocked, Unreachable
from mnemic.store import Store
from mnemic.store.codec import decode, encode
from mnemic.store.journal import Anchor, Entry, Journal

log = logging.getLogger("mnemic.spool")

BATCH = 500
LAZY_S = 0.05  # between looks whether anybody still records
LAG_S, LAG_ROWS = 1.0, 2_000  # how far the store may lag behind while they do and nobody reads
RETRY_S = 1.0


class Spool:
    """Thread-safe. One per journal and process; processes are told apart by the anchor in the store."""

    def __init__(self, journal: Journal, store: Store, analyser: Analyser) -> None:
        self._journal, self._store, self._analyser = journal, store, analyser
        self._key = journal.id.bytes
        self._applying = threading.Lock()
        self._starting = threading.Lock()
        self._wake = threading.Event()
        self._hurry = threading.Event()  # somebody waits for the store: do not gather more first
        self._moved = threading.Condition()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._anchor = Anchor(0, b"")
        self._reached = False  # whether the store was asked for the anchor, and the journal found to agree with it
        self.failure = ""  # why the last attempt to apply failed; empty when it did not
        try:
            self._reach()
        except Unreachable as error:  # a database server that is down: record all the same
            self.failure = str(error)

    def submit(self, namespace: str, event: Event) -> Future[int]:
        """The future gives the journal's seq once the event is durable. Errors: as `Journal.submit`."""
        digest, body = encode(event)
        future = self._journal.submit(Entry(event.id.bytes, namespace, digest, body))
        self._wake_applier()
        return future

    def append(self, namespace: str, events: Sequence[Event]) -> dict[EventId, int]:
        """Record many at once and apply them; the seq of each in the store. Errors: Conflict (nothing is written)."""
        entries = []
        for event in events:
            digest, body = encode(event)
            entries.append(Entry(event.id.bytes, namespace, digest, body))
        self._journal.append(entries)
        try:
            return self.drain()
        except (Unreachable, StorageLocked, DeadlineExceeded):  # durable in the journal; applied later
            self._wake_applier()
            return {}

    def pending(self) -> int:
        """Events that are durable but not in the store, as far as this process knows."""
        return max(0, self._journal.head() - self._anchor.seq)

    def drain(self, *, wait: bool = True) -> dict[EventId, int]:
        """Apply everything that is pending; the seqs given. Without `wait`, StorageLocked at once when the store is
        held by another writer. Errors: StorageError, JournalDamaged; what is pending stays so."""
        given: dict[EventId, int] = {}
        with self._applying:
            try:
                while self._behind():
                    given |= self._apply_batch(wait)
                self.failure = ""
            except MnemicError as error:
                self.failure = str(error)
                raise
        return given

    def _reach(self) -> None:
        anchor = self._store.events.anchor(self._key)
        if not self._reached:
            if self._store.upkeep.identity() != self._journal.store:
                raise JournalError(f"{self._journal.path} belongs to another store than the one at this URL now")
            self._journal.check(anchor)
            self._reached = True
        self._move(anchor)

    def _move(self, anchor: Anchor) -> None:
        with self._moved:
            self._anchor = anchor
            self._moved.notify_all()

    def _behind(self) -> bool:
        head = self._journal.head()
        if head > self._anchor.seq:
            self._reach()  # another process may have applied it
        return head > self._anchor.seq

    def _apply_batch(self, wait: bool) -> dict[EventId, int]:
        rows = self._journal.read(self._anchor.seq, BATCH)
        batch = []
        for row in rows:
            event = decode(row.entry.body)
            batch.append((row.seq, self._analyser.prepare(row.entry.namespace, event, row.entry.digest)))
        given = self._store.events.apply(self._key, batch, rows[-1].chain, wait=wait)
        self._move(Anchor(rows[-1].seq, rows[-1].chain))
        return given

    # -- the applier thread

    def _wake_applier(self) -> None:
        if self._thread is None:
            with self._starting:  # not `_applying`: that may be held by an apply that hangs
                if self._thread is None and not self._closing.is_set():
                    self._thread = threading.Thread(target=self._apply_behind, name="mnemic-apply", daemon=True)
                    self._thread.start()
        if not self._wake.is_set():
            self._wake.set()

    def _apply_behind(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            if self._still():
                return
            self._wake.clear()
            try:
                self.drain()
            except MnemicError as error:
                log.warning("events stay in the journal for now: %s", error)
                if self._closing.wait(RETRY_S):
                    return
                self._wake.set()

    def _still(self) -> bool:
        """Wait until nobody records for a moment, or somebody waits; whether this spool is closing. Applying beside a
        recording caller would take the processor and the disk that the acknowledgements wait for."""
        until, seen = time.monotonic() + LAG_S, -1
        while True:
            hurry = self._hurry.wait(LAZY_S)
            self._hurry.clear()
            if hurry or self._closing.is_set():
                return self._closing.is_set()
            head = self._journal.head()
            if head == seen or head - self._anchor.seq > LAG_ROWS or time.monotonic() > until:
                return False
            seen = head

    def close(self) -> None:
        """Apply what is pending if the store lets us, then stop. What is left is applied at the next start."""
        self._closing.set()
        self._hurry.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.drain(wait=False)
        except StorageLocked:  # another process applies just now; everything is durable, and nobody need do anything
            log.debug("the journal is left to whoever holds the store")
        except MnemicError as error:
            log.warning("%d events are left in the journal for the next start: %s", self.pending(), error)

    def wait_applied(self, seq: int, timeout_s: float) -> bool:
        """Whether the journal's row `seq` is in the store, at the latest after `timeout_s`."""
        self._hurry.set()
        self._wake_applier()
        with self._moved:  # only waits: whatever hangs, hangs in the applier's thread
            return self._moved.wait_for(lambda: self._anchor.seq >= seq, timeout_s)
