"""`Memory`: the same verbs for callers without an event loop. A thin door to `AsyncMemory`, never a second body: one
loop in a thread of its own runs the coroutines, and every method here only passes the question through."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import CancelledError
from typing import Any, Self, TypeVar, Unpack
from uuid import UUID

from mnemic.domain.drafts import Draft
from mnemic.domain.types import Event, EventId, Query, Recalled, Receipt
from mnemic.engine.asking import Asking, Listing, Said, note
from mnemic.engine.hygiene import Swept
from mnemic.engine.memory import AsyncMemory
from mnemic.engine.sources import Ingested, SourceText
from mnemic.engine.status import Status
from mnemic.engine.topics import NamedTopic
from mnemic.errors import StorageError
from mnemic.store.chunks import Archived
from mnemic.store.events import SessionSummary
from mnemic.store.sources import StoredSource

T = TypeVar("T")

CLOSED = "this memory is closed; open it again"


class Portal:
    """An event loop in a thread."""

    def __init__(self) -> None:
        # psycopg's async mode and subprocess pipes differ on Windows; the selector loop is what all we use runs on.
        self.loop = asyncio.SelectorEventLoop() if sys.platform == "win32" else asyncio.new_event_loop()
        self._lock = threading.Lock()  # a call is handed over before the loop stops, or refused
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="mnemic-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end. Errors: its own; StorageError when the loop stops first."""
        with self._lock:
            if self._stopped:
                coroutine.close()
                raise StorageError(CLOSED)
            future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result()
        except CancelledError:
            raise StorageError(CLOSED) from None

    def stop(self) -> None:
        """End what still runs, so that nobody waits for ever, then the loop. Idempotent."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
        asyncio.run_coroutine_threadsafe(_end_all(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


async def _end_all() -> None:
    running = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


class Memory:
    """One namespace of a memory. Thread-safe. Close it, or use it as a context manager."""

    def __init__(self, portal: Portal, memory: AsyncMemory) -> None:
        """Use `mnemic.Memory.open`."""
        self._portal, self._memory = portal, memory
        self._closed = False

    @property
    def namespace(self) -> str:
        return self._memory.namespace

    def record(self, what: str | Draft, **said: Unpack[Said]) -> Receipt:
        """Record that something happened; see `AsyncMemory.record`."""
        recording = self._memory.recording
        event, known = recording.prepare(what, said)
        return known if known is not None else recording.receipt(event, self._memory.submit(event).result())

    def remember(self, text: str, **said: Unpack[Said]) -> Receipt:
        """Keep a note; see `AsyncMemory.remember`."""
        return self.record(text, **note(said))

    def make(self, what: str | Draft, said: Said | None = None) -> Event:
        """The checked event that `record` would record. Errors: InvalidInput."""
        return self._memory.make(what, said)

    def record_many(self, drafts: Iterable[Draft]) -> list[Receipt]:
        """Record drafts in order, in large transactions; see `AsyncMemory.record_many`."""

        async def all_of_them() -> list[Receipt]:
            return [receipt async for receipt in self._memory.record_many(drafts)]

        return self._portal.call(all_of_them())

    def recall(self, text: str | Query, **asking: Unpack[Asking]) -> Recalled:
        """What the memory holds about a question, best first; see `AsyncMemory.recall`."""
        return self._portal.call(self._memory.recall(text, **asking))

    def get(self, ident: EventId | UUID | str | int) -> Event:
        """One event by its id or its seq. Errors: NotFound, InvalidInput."""
        return self._portal.call(self._memory.get(ident))

    def events(self, **listing: Unpack[Listing]) -> list[Event]:
        """Events in the order of the log, at most `limit` (1,000) after seq `after`."""
        return self._portal.call(self._memory.events(**listing))

    def sessions(self, limit: int = 100) -> list[SessionSummary]:
        """Sessions, the one with the latest event first."""
        return self._portal.call(self._memory.sessions(limit))

    def status(self) -> Status:
        """What is stored, what is missing, who works."""
        return self._portal.call(self._memory.status())

    def topics(self) -> list[NamedTopic]:
        """What the chunks of this namespace are about, most frequent first."""
        return self._portal.call(self._memory.topics())

    def rename_topic(self, old: str, new: str) -> Receipt:
        """Show a topic under another name, or merge it; see `AsyncMemory.rename_topic`."""
        return self._portal.call(self._memory.rename_topic(old, new))

    def undo_topic(self) -> Receipt:
        """Take back the latest rename or merge that stands. Errors: NotFound."""
        return self._portal.call(self._memory.undo_topic())

    def ingest(self, source: SourceText) -> Ingested:
        """Keep a document; see `AsyncMemory.ingest`."""
        return self._portal.call(self._memory.ingest(source))

    def source(self, name: str, first: int | None = None, last: int | None = None) -> Ingested:
        """Keep a stretch of the log under a name; see `AsyncMemory.source`."""
        return self._portal.call(self._memory.source(name, first, last))

    def sources(self, name: str = "") -> list[StoredSource]:
        """Sources whose name holds `name`, whatever its case, oldest first."""
        return self._portal.call(self._memory.sources(name))

    def restore_sources(self) -> int:
        """Note sources whose documents came into the log by an import; how many."""
        return self._portal.call(self._memory.restore_sources())

    def hygiene(self, *, dry_run: bool = True) -> Swept:
        """Take near-copies, what is old and what is too many out of the index; see `AsyncMemory.hygiene`."""
        return self._portal.call(self._memory.hygiene(dry_run=dry_run))

    def archived(self, limit: int = 1_000) -> list[Archived]:
        """Chunks that are out of the index, and why."""
        return self._portal.call(self._memory.archived(limit))

    def restore_archived(self, chunks: Sequence[int]) -> int:
        """Put chunks back into the index; how many."""
        return self._portal.call(self._memory.restore_archived(chunks))

    def refilter(self) -> int:
        """Let every chunk be judged again by the settings as they are now; see `AsyncMemory.refilter`."""
        return self._portal.call(self._memory.refilter())

    def settle(self, seconds: float | None = None) -> bool:
        """Apply what is pending and run the steps to rest; whether that was reached within `seconds`."""
        return self._portal.call(self._memory.settle(seconds))

    def reindex(self, provider: str = "", model: str = "") -> str:
        """Begin to move all vectors to another space; see `AsyncMemory.reindex`."""
        return self._portal.call(self._memory.reindex(provider, model))

    def backup(self, target: str) -> None:
        """A consistent copy of the database file at `target`."""
        self._portal.call(self._memory.backup(target))

    def usage(self) -> dict[str, tuple[int, int]]:
        """subject -> (times recalled, last day since 1970)."""
        return self._portal.call(self._memory.usage())

    def close(self) -> None:
        """Stop working, apply what is pending, let go of the files. Idempotent."""
        if not self._closed:
            self._closed = True
            self._portal.call(self._memory.close())
            self._portal.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
