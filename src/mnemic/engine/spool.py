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
from mnemic.errors import MnemicError
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
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._anchor = store.events.anchor(self._key)
        self.failure = ""  # why the last attempt to apply failed; empty when it did not
        journal.check(self._anchor)

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
        return self.drain()

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

    def _behind(self) -> bool:
        head = self._journal.head()
        if head > self._anchor.seq:
            self._anchor = self._store.events.anchor(self._key)  # another process may have applied it
        return head > self._anchor.seq

    def _apply_batch(self, wait: bool) -> dict[EventId, int]:
        rows = self._journal.read(self._anchor.seq, BATCH)
        batch = []
        for row in rows:
            event = decode(row.entry.body)
            batch.append((row.seq, self._analyser.prepare(row.entry.namespace, event, row.entry.digest)))
        given = self._store.events.apply(self._key, batch, rows[-1].chain, wait=wait)
        self._anchor = Anchor(rows[-1].seq, rows[-1].chain)
        return given

    # -- the applier thread

    def _wake_applier(self) -> None:
        if self._thread is None:
            with self._applying:
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
        """Wait until nobody records for a moment, within limits; whether this spool is closing. Applying beside a
        recording caller would take the processor and the disk that the acknowledgements wait for."""
        until, seen = time.monotonic() + LAG_S, -1
        while True:
            if self._closing.wait(LAZY_S):
                return True
            head = self._journal.head()
            if head == seen or head - self._anchor.seq > LAG_ROWS or time.monotonic() > until:
                return False
            seen = head

    def close(self) -> None:
        """Apply what is pending if the store lets us, then stop. What is left is applied at the next start."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.drain(wait=False)
        except MnemicError as error:
            log.warning("%d events are left in the journal for the next start: %s", self.pending(), error)

    def wait_applied(self, seq: int, timeout_s: float) -> bool:
        """Whether the journal's row `seq` is in the store, at the latest after `timeout_s`."""
        end = time.monotonic() + timeout_s
        while self._anchor.seq < seq:
            try:
                self.drain()
            except MnemicError:
                if self._closing.wait(min(0.1, max(0.0, end - time.monotonic()))) or time.monotonic() >= end:
                    return False
        return True
