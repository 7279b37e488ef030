"""The verbs. `AsyncMemory` is the one body; `Memory` (engine/portal.py) is the same for callers without an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any, Self, TypedDict, TypeVar, Unpack
from uuid import UUID

from mnemic.config import Config
from mnemic.domain import ranking
from mnemic.domain.dates import parse_moment
from mnemic.domain.drafts import KIND_ALIASES, Draft, Limits, choice, make_event
from mnemic.domain.types import Event, EventId, JsonValue, Kind, Query, Recalled, Receipt, Role, Seq, SessionId
from mnemic.engine.analysis import Analyser
from mnemic.engine.embedding import Models
from mnemic.engine.recall import Asked, search
from mnemic.engine.spool import Spool
from mnemic.engine.status import Status, read_status
from mnemic.engine.worker import Pace, Worker
from mnemic.errors import Conflict, InvalidInput, MnemicError, ModelError, NotFound, StorageError
from mnemic.ports import Clock
from mnemic.store import Store
from mnemic.store.codec import encode, micros
from mnemic.store.events import EventFilter, SessionSummary
from mnemic.store.journal import Journal

log = logging.getLogger("mnemic")
T = TypeVar("T")

DAY = 86_400_000_000  # microseconds
BULK = 1_000  # events recorded in one transaction


class Said(TypedDict, total=False):
    """What may be said of an event beside its text; `domain/drafts.py` states the defaults."""

    role: str
    kind: str
    session: str | None
    channel: str
    actor: str
    project: str
    at: datetime | str | None
    importance: float | None
    trust: str | None
    data: Mapping[str, JsonValue]
    id: UUID | str | None


class Asking(TypedDict, total=False):
    """How a question may be narrowed. Texts are read as at the command line: "user", "2026-03-01", "yesterday"."""

    k: int
    kinds: Sequence[str]
    roles: Sequence[str]
    topics: Sequence[str]
    sessions: Sequence[str]
    channels: Sequence[str]
    projects: Sequence[str]
    since: datetime | str | None
    until: datetime | str | None
    rerank: bool


class Listing(TypedDict, total=False):
    """Which events to list."""

    session: str | None
    kinds: Sequence[str]
    roles: Sequence[str]
    since: datetime | str | None
    until: datetime | str | None
    after: int
    last: int | None
    limit: int


@dataclass(frozen=True, slots=True)
class Engine:
    """What a memory is made of; put together in `app.py`."""

    config: Config
    store: Store
    journal: Journal
    spool: Spool
    models: Models
    analyser: Analyser
    clock: Clock
    zone: tzinfo
    weights: ranking.Weights
    waits_for_database: bool  # an acknowledgement means the database has committed (PostgreSQL)


class AsyncMemory:
    """One namespace of a memory. Close it, or use it as an async context manager."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        """Use `mnemic.AsyncMemory.open`."""
        self._engine = engine
        self._namespace = namespace
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="mnemic")
        pace = Pace(engine.config.worker.batch, engine.config.worker.lease_s)
        self._worker = Worker(engine.store, engine.analyser, engine.models, engine.clock, pace)
        self._working = threading.Lock()
        self._task: asyncio.Task[None] | None = None
        self._nudge: asyncio.Event | None = None
        self._used: dict[str, int] = {}
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
        event, known = await self._run(self._event, what, said)
        if known:
            return known
        return await asyncio.wrap_future(self.submit(event))

    async def remember(self, text: str, **said: Unpack[Said]) -> Receipt:
        """Keep a note: something a person or an agent chose to remember."""
        return await self.record(text, **{**_NOTE, **said})

    def submit(self, event: Event) -> Future[Receipt]:
        """Record a made event from any thread; the future gives its receipt."""
        self._check_open()
        answer: Future[Receipt] = Future()
        journaled = self._engine.spool.submit(self._namespace, event)
        if self._engine.waits_for_database:
            journaled.add_done_callback(lambda done: self._threads.submit(self._confirm, done, event, answer))
        else:
            journaled.add_done_callback(lambda done: _pass_on(done, answer, Receipt(event.id, Seq(0), False)))
        self._wake_worker()
        return answer

    async def record_many(self, drafts: Iterable[Draft]) -> AsyncIterator[Receipt]:
        """Record drafts in order, in large transactions; receipts as they become durable. Repeating a call with the
        same ids adds nothing. Errors: as `record`; what was yielded before is recorded."""
        batch: list[Draft] = []
        for draft in drafts:
            batch.append(draft)
            if len(batch) == BULK:
                for receipt in await self._run(self._record_batch, batch):
                    yield receipt
                batch = []
        for receipt in await self._run(self._record_batch, batch):
            yield receipt
        self._wake_worker()

    def make(self, what: str | Draft, said: Said | None = None) -> Event:
        """The checked event that `record` would record. Errors: InvalidInput."""
        engine = self._engine
        draft = what if isinstance(what, Draft) else Draft(what)
        if said:
            given: dict[str, Any] = dict(said)
            if "at" in given:
                given["at"] = self._moment(said.get("at"))
            draft = replace(draft, **given)
        limits = Limits(engine.config.record.max_bytes, engine.config.record.future_tolerance_s)
        return make_event(draft, engine.clock(), limits)

    def _event(self, what: str | Draft, said: Said) -> tuple[Event, Receipt | None]:
        """The event to record; with a receipt when it is in the log already, word for word."""
        event = self.make(what, said)
        named = said.get("id") or (what.id if isinstance(what, Draft) else None)
        if not named:
            return event, None
        known = self._engine.store.events.digests(self._namespace, [event.id]).get(event.id)
        if known is None:
            return event, None
        if known[0] != encode(event)[0]:
            raise Conflict(f"the id {event.id} was recorded before with other content; use a new id")
        return event, Receipt(event.id, Seq(known[1]), False)

    def _record_batch(self, drafts: Sequence[Draft]) -> list[Receipt]:
        events = [self.make(draft) for draft in drafts]
        if not events:
            return []
        spool = self._engine.spool
        spool_seqs = spool.append(self._namespace, events)
        known = self._engine.store.events.digests(self._namespace, [e.id for e in events if e.id not in spool_seqs])
        seqs = {ident: seq for ident, (_, seq) in known.items()} | spool_seqs
        return [Receipt(e.id, Seq(seqs.get(e.id, 0)), e.id not in seqs) for e in events]

    def _confirm(self, journaled: Future[int], event: Event, answer: Future[Receipt]) -> None:
        """Wait until the database has the event, or say that it is spooled."""
        try:
            wait_s = self._engine.config.journal.spool_wait_ms / 1000
            applied = self._engine.spool.wait_applied(journaled.result(), wait_s)
            seq = 0
            if applied:
                seq = self._engine.store.events.digests(self._namespace, [event.id])[event.id][1]
            answer.set_result(Receipt(event.id, Seq(seq), not applied))
        except MnemicError as error:
            answer.set_exception(error)

    # -- reading

    async def recall(self, text: str | Query, **asking: Unpack[Asking]) -> Recalled:
        """What the memory holds about a question, best first. Any text is a legal question.

        Without a working embedder it is a keyword search and says so. Errors: InvalidInput (unknown kind or role,
        unreadable time), StorageError, DeadlineExceeded.
        """
        query = text if isinstance(text, Query) else self._query(text, asking)
        notices: list[str] = []
        pending = await self._run(self._catch_up, notices)
        vector = await self._query_vector(query, notices)
        floor = self._engine.config.vector.similarity_threshold
        engine = self._engine
        hits = await self._run(search, engine.store, self._namespace, Asked(query, vector), engine.weights, floor)
        for hit in hits:
            self._count_use(f"chunk:{hit.chunk.id}")
        return Recalled(tuple(hits), pending, tuple(notices))

    async def get(self, ident: EventId | UUID | str | int) -> Event:
        """One event by its id or its seq. Errors: NotFound, InvalidInput."""
        await self._run(self._catch_up, [])
        return await self._run(self._get, ident)

    async def events(self, **listing: Unpack[Listing]) -> list[Event]:
        """Events in the order of the log, at most `limit` (1,000) after seq `after`."""
        wanted = self._filter(listing)
        await self._run(self._catch_up, [])
        return await self._run(self._engine.store.events.select, self._namespace, wanted)

    async def sessions(self, limit: int = 100) -> list[SessionSummary]:
        """Sessions, the one with the latest event first."""
        await self._run(self._catch_up, [])
        return await self._run(self._engine.store.events.sessions, self._namespace, limit)

    async def status(self) -> Status:
        """What is stored, what is missing, who works."""
        return await self._run(read_status, self._engine, self._worker, self._namespace)

    # -- upkeep

    async def settle(self, seconds: float | None = None) -> bool:
        """Apply what is pending and run the steps to rest; whether that was reached within `seconds`."""
        await self._run(self._engine.spool.drain)
        return await self._run(self._locked, self._worker.settle, seconds)

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
        await self._run(self._flush_usage)
        return await self._run(self._engine.store.upkeep.usage, self._namespace)

    def start_worker(self) -> None:
        """Run the steps in the background of the running loop until closed."""
        if self._task is None and self._engine.config.worker.enabled:
            self._nudge = asyncio.Event()
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Stop working, apply what is pending, let go of the files. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
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

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError("this memory is closed; open it again")

    def _shut(self) -> None:
        engine = self._engine
        with self._working:
            with contextlib.suppress(MnemicError):
                self._worker.release()
        engine.spool.close()
        with contextlib.suppress(MnemicError):
            self._flush_usage()
        engine.journal.close()
        engine.store.close()

    def _locked(self, work: Callable[..., T], *arguments: Any) -> T:
        with self._working:
            return work(*arguments)

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

    async def _query_vector(self, query: Query, notices: list[str]) -> Any:
        """The question's vector in the serving space, or None with a notice."""
        if not query.text.strip() or not self._engine.config.vector.enabled:
            return None
        serving = await self._run(self._engine.store.upkeep.serving)
        if serving is None:
            return None
        embedders = await self._run(self._worker.embedders)
        embedder = embedders.serving
        if embedder is None or embedder.space != serving.space:
            await self._run(self._worker.forget_choice)
            embedders = await self._run(self._worker.embedders)
            embedder = embedders.serving
        if embedder is None or embedder.space != serving.space:
            notices.append(f"keyword search only: {embedders.reason or 'no embedder for ' + serving.space.label}")
            return None
        if embedders.configured is not None:
            notices.append(embedders.reason)
        try:
            limit = self._engine.config.recall.embed_timeout_ms / 1000
            text = _asked_text(query.text)
            matrix = await asyncio.wait_for(self._run(lambda: embedder.embed([text], query=True)), limit)
            return matrix[0]
        except (ModelError, TimeoutError) as error:
            why = str(error) or f"no vector within {limit:g} s"
            notices.append(f"keyword search only: {why}")
            return None

    def _begin_reindex(self, provider: str, model: str) -> str:
        engine = self._engine
        if provider:
            space = engine.models.make(provider, model).space
        else:
            choice = self._worker.embedders()
            better = choice.configured.space if choice.configured else choice.better
            space = better or (choice.serving.space if choice.serving else None)
            if space is None:
                raise ModelError(f"there is no embedder to reindex with: {choice.reason}")
        serving = engine.store.upkeep.serving()
        if serving is None or serving.space != space:
            engine.store.upkeep.put_space(space, "building" if serving else "serving")
        self._worker.forget_choice()
        return space.label

    def _get(self, ident: EventId | UUID | str | int) -> Event:
        store = self._engine.store
        if isinstance(ident, int) or (isinstance(ident, str) and ident.isdigit() and len(ident) < 19):
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

    def _query(self, text: str, asking: Asking) -> Query:
        return Query(
            text=text,
            k=asking.get("k", self._engine.config.vector.top_k),
            kinds=_kinds(asking.get("kinds", ())),
            roles=_roles(asking.get("roles", ())),
            topics=tuple(asking.get("topics", ())),
            sessions=tuple(SessionId(s) for s in asking.get("sessions", ())),
            channels=tuple(asking.get("channels", ())),
            projects=tuple(asking.get("projects", ())),
            since=self._moment(asking.get("since")),
            until=self._moment(asking.get("until"), end=True),
        )

    def _filter(self, listing: Listing) -> EventFilter:
        session = listing.get("session")
        return EventFilter(
            session=SessionId(session) if session is not None else None,
            kinds=_kinds(listing.get("kinds", ())),
            roles=_roles(listing.get("roles", ())),
            since=self._moment(listing.get("since")),
            until=self._moment(listing.get("until"), end=True),
            after=listing.get("after", 0),
            last=listing.get("last"),
            limit=listing.get("limit", 1_000),
        )

    def _moment(self, at: datetime | str | None, *, end: bool = False) -> datetime | None:
        """An aware time as it is; text as at a text door, in the configured zone."""
        if at is None:
            return None
        if isinstance(at, datetime):
            if at.tzinfo is None:
                raise InvalidInput(f"{at!r} has no time zone; give an aware datetime, such as datetime.now(UTC)")
            return at
        return parse_moment(at, self._engine.zone, now=self._engine.clock(), end=end).at

    def _count_use(self, subject: str) -> None:
        self._used[subject] = self._used.get(subject, 0) + 1

    def _flush_usage(self) -> None:
        """Usage goes in one batch, and only if nobody else is writing; else it is dropped: it is no condition for
        anything."""
        used, self._used = self._used, {}
        if used:
            day = micros(self._engine.clock()) // DAY
            with contextlib.suppress(StorageError):
                self._engine.store.upkeep.count_use(self._namespace, used, day)

    def _wake_worker(self) -> None:
        task, nudge = self._task, self._nudge
        if task is not None and nudge is not None:
            loop = task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(nudge.set)

    async def _work(self) -> None:
        """The background loop: steps, then usage, then wait for a nudge or the poll interval."""
        assert self._nudge is not None
        poll = self._engine.config.worker.poll_ms / 1000
        while True:
            try:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._nudge.wait(), poll)
                self._nudge.clear()
                while await self._run(self._step):
                    pass
            except MnemicError as error:
                if self._closed:
                    return
                log.warning("the worker tries again later: %s", error)
            except Exception:  # noqa: BLE001 - a bug in a step must not end all the others; it is on record
                log.exception("a step failed")
                await asyncio.sleep(poll)

    def _step(self) -> bool:
        """One round of the steps; whether there is more to do."""
        self._catch_up([])
        with self._working:
            more = self._worker.holds_lease() and bool(self._worker.run_once(lambda: self._closed))
        self._flush_usage()
        return more and not self._closed


_NOTE = Said(kind="note")
QUERY_CHARS = 4_000  # of a pasted page the beginning is the question; keyword search reads all of it


def _asked_text(text: str) -> str:
    return text[:QUERY_CHARS]


def _kinds(values: Sequence[str]) -> tuple[Kind, ...]:
    return tuple(KIND_ALIASES.get(value) or choice(Kind, value, "kind") for value in values)


def _roles(values: Sequence[str]) -> tuple[Role, ...]:
    return tuple(choice(Role, value, "role") for value in values)


def _pass_on(done: Future[int], answer: Future[Receipt], receipt: Receipt) -> None:
    error = done.exception()
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(receipt)
