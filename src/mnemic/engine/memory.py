"""The verbs. `AsyncMemory` is the one body; `Memory` (engine/portal.py) serves callers without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Self, TypeVar, Unpack
from uuid import UUID

from mnemic.domain.drafts import Draft, clean
from mnemic.domain.types import Event, EventId, Query, Recalled, Receipt, Space
from mnemic.engine.asking import Asking, Listing, Reader, Said, note
from mnemic.engine.background import Background, Usage
from mnemic.engine.hygiene import Swept, audit, sweep
from mnemic.engine.parts import Engine
from mnemic.engine.questions import Questions
from mnemic.engine.recall import Asked, Found, search
from mnemic.engine.recording import BULK, Recording
from mnemic.engine.reranking import reranked
from mnemic.engine.sources import Ingested, Sources, SourceText
from mnemic.engine.status import Status, read_status
from mnemic.engine.topics import NamedTopic, listed, rename, undo
from mnemic.engine.worker import Worker
from mnemic.errors import InvalidInput, MnemicError, ModelError, NotFound, StorageError
from mnemic.store.chunks import Archived
from mnemic.store.events import SessionSummary
from mnemic.store.sources import StoredSource

T = TypeVar("T")


class AsyncMemory:
    """One namespace of a memory. Close it, or use it as an async context manager."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        """Use `mnemic.AsyncMemory.open`."""
        self._engine = engine
        self._namespace = namespace
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="mnemic")
        self._reader = Reader(engine.config, engine.clock, engine.zone)
        self._worker = Worker(engine)
        self._usage = Usage(engine, namespace)
        self._questions = Questions(engine, self._worker, self._run)
        self._recording = Recording(engine, namespace, self._reader)
        self._sources = Sources(engine.store, namespace, self._recording, engine.clock)
        self._background = Background(engine, self._worker, self._usage)
        self._closed = False

    @property
    def namespace(self) -> str:
        return self._namespace

    # -- recording

    async def record(self, what: str | Draft, **said: Unpack[Said]) -> Receipt:
        """Record that something happened. Durable when this returns; it never waits for a model.

        Errors: InvalidInput (empty, too long, unknown role or kind, naive or impossible time), Conflict (the id was
        recorded before with other content), StorageError, JournalError.
        """
        event, known = await self._run(self._recording.prepare, what, said)
        if known is not None:
            return known
        row = await asyncio.wrap_future(self.submit(event))
        if self._recording.waits:
            return await self._run(self._recording.receipt, event, row)
        return self._recording.receipt(event, row)

    async def remember(self, text: str, **said: Unpack[Said]) -> Receipt:
        """Keep a note: something a person or an agent chose to remember."""
        return await self.record(text, **note(said))

    def submit(self, event: Event) -> Future[int]:
        """Put a made event into the journal, from any thread; the future gives its row there."""
        self._check_open()
        journaled = self._recording.submit(event)
        journaled.add_done_callback(self._background.nudge)
        return journaled

    @property
    def recording(self) -> Recording:
        """The write path, for callers in threads of their own."""
        return self._recording

    async def record_many(self, drafts: Iterable[Draft]) -> AsyncIterator[Receipt]:
        """Record drafts in order, in large transactions; receipts as they become durable. Repeating a call with the
        same ids adds nothing. Errors: as `record`; what was yielded before is recorded."""
        batch: list[Draft] = []
        for draft in drafts:
            batch.append(draft)
            if len(batch) == BULK:
                for receipt in await self._run(self._recording.batch, batch):
                    yield receipt
                batch = []
        for receipt in await self._run(self._recording.batch, batch):
            yield receipt
        self._background.nudge()

    def make(self, what: str | Draft, said: Said | None = None) -> Event:
        """The checked event that `record` would record. Errors: InvalidInput."""
        return self._reader.event(what, said or Said())

    # -- reading

    async def recall(self, text: str | Query, **asking: Unpack[Asking]) -> Recalled:
        """What the memory holds about a question, best first. Any text is a legal question.

        Without a working embedder it is a keyword search and says so. Errors: InvalidInput (unknown kind or role,
        unreadable time), StorageError, DeadlineExceeded.
        """
        query = text if isinstance(text, Query) else self._reader.query(text, asking)
        query = replace(query, text=clean(query.text))
        notices: list[str] = []
        pending = await self._pending(notices)
        found = await self._search(query, notices)
        hits = found.hits
        if query.rerank:
            timeout_s = self._engine.config.recall.rerank_timeout_ms / 1000
            hits, notice = await reranked(self._engine.reranker, query.text, hits, timeout_s, self._run)
            notices += [notice] if notice else []
        for hit in hits:
            self._usage.count(f"chunk:{hit.chunk.id}")
        if hits and all(hit.weak for hit in hits):
            notices.append("nothing matches well: every hit is weak")
        return Recalled(hits, pending, tuple(notices))

    async def get(self, ident: EventId | UUID | str | int) -> Event:
        """One event by its id or its seq. Errors: NotFound, InvalidInput."""
        await self._pending([])
        return await self._run(self._get, ident)

    async def events(self, **listing: Unpack[Listing]) -> list[Event]:
        """Events in the order of the log, at most `limit` (1,000) after seq `after`."""
        wanted = self._reader.listing(listing)
        await self._pending([])
        return await self._run(self._engine.store.events.select, self._namespace, wanted)

    async def sessions(self, limit: int = 100) -> list[SessionSummary]:
        """Sessions, the one with the latest event first."""
        await self._pending([])
        return await self._run(self._engine.store.events.sessions, self._namespace, limit)

    async def status(self) -> Status:
        """What is stored, what is missing, who works."""
        return await self._run(read_status, self._engine, self._worker, self._namespace)

    # -- topics, sources, hygiene

    async def topics(self) -> list[NamedTopic]:
        """What the chunks of this namespace are about, most frequent first."""
        return await self._run(listed, self._engine.store, self._namespace)

    async def rename_topic(self, old: str, new: str) -> Receipt:
        """Show a topic under another name; where that is a topic already, merge into it. An event, undoable.

        Errors: NotFound, InvalidInput.
        """
        return await self._edit(await self._run(rename, self._engine.store, self._namespace, old, new))

    async def undo_topic(self) -> Receipt:
        """Take back the latest rename or merge that stands. Errors: NotFound."""
        return await self._edit(await self._run(undo, self._engine.store, self._namespace))

    async def ingest(self, source: SourceText) -> Ingested:
        """Keep a document: verbatim chunks, whatever the filter thinks. Unchanged, it is a no-op; changed, the new
        version takes the place of the old and only what changed is embedded again. Errors: InvalidInput."""
        await self._run(self._engine.spool.drain)
        done = await self._run(self._sources.ingest, source, self._engine.config.record.max_bytes)
        self._background.nudge()
        return done

    async def source(self, name: str, first: int | None = None, last: int | None = None) -> Ingested:
        """Keep a stretch of the log, seq `first` to `last` (default: since the last such source), under a name.

        Errors: InvalidInput (nothing in that span).
        """
        await self._run(self._engine.spool.drain)
        text, _ = await self._run(self._sources.span, name, first, last)
        return await self.ingest(text)

    async def sources(self, name: str = "") -> list[StoredSource]:
        """Sources whose name holds `name`, whatever its case, oldest first."""
        return await self._run(self._sources.all, name)

    async def restore_sources(self) -> int:
        """Note sources whose documents came into the log by an import; how many."""
        return await self._run(self._sources.restore)

    async def hygiene(self, *, dry_run: bool = True) -> Swept:
        """Take near-copies, what is old and what is too many out of the index (settings `hygiene`); never what a person
        wrote or kept. The log is untouched, and `restore_archived` puts back. A dry run only lists."""
        engine = self._engine
        await self._run(engine.spool.drain)
        now = engine.clock()
        found = await self._run(sweep, engine, self._namespace, engine.config.hygiene, now)
        if found and not dry_run:
            await self._edit(audit(found))
            for reason in {c.reason for c in found}:
                ids = [c.chunk for c in found if c.reason == reason]
                await self._run(engine.store.chunks.archive, self._namespace, ids, reason)
        return Swept(len(found), tuple(found), bool(found) and not dry_run)

    async def archived(self, limit: int = 1_000) -> list[Archived]:
        """Chunks that are out of the index, and why."""
        return await self._run(self._engine.store.chunks.archived, self._namespace, limit)

    async def restore_archived(self, chunks: Sequence[int]) -> int:
        """Put chunks back into the index; how many."""
        return await self._run(self._engine.store.chunks.archive, self._namespace, list(chunks), "")

    async def refilter(self) -> int:
        """Let every chunk be judged again by the settings as they are now; how many there are. `settle` does it."""
        count = await self._run(self._engine.store.chunks.undecide, self._namespace)
        self._background.nudge()
        return count

    # -- upkeep

    async def settle(self, seconds: float | None = None) -> bool:
        """Apply what is pending and run the steps to rest; whether that was reached within `seconds`."""
        await self._run(self._engine.spool.drain)
        return await self._run(self._background.exclusively, lambda: self._worker.settle(seconds))

    async def reindex(self, provider: str = "", model: str = "") -> str:
        """Begin to move all vectors to another embedder's space (default: the best there is here); its label.

        The old space serves until the new one is complete; `settle` completes it, and so does any worker. Interrupted,
        it goes on where it was. Errors: ModelError, ConfigError.
        """
        return await self._run(self._begin_reindex, provider, model)

    async def backup(self, target: str) -> None:
        """A consistent copy of the database file at `target`. Errors: StorageError."""
        await self._run(self._engine.spool.drain)
        await self._run(self._engine.store.driver.backup, target)

    async def usage(self) -> dict[str, tuple[int, int]]:
        """subject -> (times recalled, last day since 1970)."""
        await self._run(self._usage.flush)
        return await self._run(self._engine.store.upkeep.usage, self._namespace)

    def start_worker(self) -> None:
        """Run the steps in the background of the running loop until closed."""
        if self._engine.config.worker.enabled:
            self._background.start(self._run)

    async def close(self) -> None:
        """Stop working, apply what is pending, let go of the files. Idempotent."""
        if self._closed:
            return
        self._closed = True
        await self._background.stop()
        await asyncio.get_running_loop().run_in_executor(self._threads, self._shut)
        self._threads.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- inside

    async def _run(self, work: Callable[..., T], *arguments: Any) -> T:
        self._check_open()
        try:
            future = asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        except RuntimeError as error:  # the interpreter is going down with this memory still open
            self._closed = True
            raise StorageError("this memory is closed; the process is ending") from error
        return await future

    async def _edit(self, draft: Draft) -> Receipt:
        """Record an edit and have it applied: what follows from edits is read from the log."""
        receipt = await self.record(draft)
        await self._run(self._engine.spool.drain)
        return receipt

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError("this memory is closed; open it again")

    def _shut(self) -> None:
        self._background.release()
        self._engine.spool.close()
        self._usage.flush()
        self._engine.journal.close()
        self._engine.store.close()

    async def _search(self, query: Query, notices: list[str]) -> Found:
        engine = self._engine
        floor = engine.config.vector.similarity_threshold
        vector, space = await self._questions.vector(query, notices)
        found: Found = await self._run(search, engine, self._namespace, Asked(query, vector, space, floor))
        if not self._questions.served_by(found.space) and found.space is not None:
            notices.clear()  # a reindex has finished between two questions: ask in the space that serves now
            vector, space = await self._questions.vector(query, notices)
            found = await self._run(search, engine, self._namespace, Asked(query, vector, space, floor))
        return found

    async def _pending(self, notices: list[str]) -> int:
        """Apply what is pending; how much stays so. Costs microseconds when nothing is."""
        return await self._run(self._catch_up, notices) if self._engine.spool.pending() else 0

    def _catch_up(self, notices: list[str]) -> int:
        """Apply what is pending unless the store is held by another writer; how much stays pending."""
        spool = self._engine.spool
        if not spool.pending():
            return 0
        try:
            spool.drain(wait=False)
        except MnemicError as error:
            notices.append(f"{spool.pending()} recorded events are not searchable yet: {error}")
        return spool.pending()

    def _begin_reindex(self, provider: str, model: str) -> str:
        engine = self._engine
        space = engine.models.make(provider, model).space if provider else self._best_space()
        serving = engine.store.upkeep.serving()
        if serving is None or serving.space != space:
            engine.store.upkeep.put_space(space, "building" if serving else "serving")
        self._worker.forget_choice()
        return space.label

    def _best_space(self) -> Space:
        """What the settings name, else the best there is here, else the one that serves."""
        choice = self._worker.embedders()
        for embedder in (choice.configured, choice.better and self._engine.models.of(choice.better), choice.serving):
            if embedder:
                return embedder.space
        raise ModelError(f"there is no embedder to reindex with: {choice.reason}")

    def _get(self, ident: EventId | UUID | str | int) -> Event:
        store = self._engine.store
        if isinstance(ident, int) or (
            isinstance(ident, str) and ident.isascii() and ident.isdecimal() and len(ident) < 19
        ):
            found = store.events.by_seq(self._namespace, [int(ident)]).get(int(ident))
        else:
            try:
                event_id = ident if isinstance(ident, UUID) else UUID(ident)
            except ValueError:
                raise InvalidInput(f"{ident!r} is neither a seq (a number) nor an id (32 hexadecimal digits)") from None
            found = store.events.get(self._namespace, EventId(event_id))
        if found is None:
            raise NotFound(f"there is no event {ident} in namespace {self._namespace!r}")
        return found
