"""What goes on while a memory is open: applying, the steps, usage counts. Nobody waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mnemic.engine.parts import Engine
from mnemic.engine.worker import Worker
from mnemic.errors import LeaseLost, MnemicError, StorageError
from mnemic.store.codec import micros

log = logging.getLogger("mnemic.worker")
T = TypeVar("T")

GATHER_S = 0.1  # who records goes on recording; a round takes all of it
DAY = 86_400_000_000  # microseconds


class Usage:
    """Counts of what was recalled, kept until somebody else is writing anyway."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        self._engine, self._namespace = engine, namespace
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def count(self, subject: str) -> None:
        with self._lock:
            self._counts[subject] = self._counts.get(subject, 0) + 1

    def flush(self) -> None:
        """In one batch, and only if nobody else is writing; else they are dropped: no answer rests on them."""
        with self._lock:
            counts, self._counts = self._counts, {}
        if counts:
            with contextlib.suppress(StorageError):
                day = micros(self._engine.clock()) // DAY
                self._engine.store.upkeep.count_use(self._namespace, counts, day)


class Background:
    """The worker of an open memory: in its own task, one round at a time."""

    def __init__(self, engine: Engine, worker: Worker, usage: Usage) -> None:
        self._engine, self._worker, self._usage = engine, worker, usage
        self._one = threading.Lock()  # a round, or `settle`
        self._stop = False
        self._nudge = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, run: Callable[[Callable[[], bool]], Awaitable[bool]]) -> None:
        """Begin, on the running loop. `run` takes a blocking call to a thread."""
        self._task = asyncio.get_running_loop().create_task(self._loop(run))

    def nudge(self, _: object = None) -> None:
        """There is work; from any thread. Costs nothing while an earlier nudge waits."""
        if self._task is not None and not self._nudge.is_set() and not self._task.get_loop().is_closed():
            self._task.get_loop().call_soon_threadsafe(self._nudge.set)

    async def stop(self) -> None:
        """No further round begins; waits for the one that runs."""
        self._stop = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def release(self) -> None:
        """Give the lease back. Blocking; waits for a running round."""
        with self._one, contextlib.suppress(MnemicError):
            self._worker.release()

    def exclusively(self, work: Callable[[], T]) -> T:
        """Run blocking work while no round runs."""
        with self._one:
            return work()

    async def _loop(self, run: Callable[[Callable[[], bool]], Awaitable[bool]]) -> None:
        poll_s = self._engine.config.worker.poll_ms / 1000
        while not self._stop:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._nudge.wait(), poll_s)
                await asyncio.sleep(GATHER_S)
            self._nudge.clear()
            try:
                while await run(self._round):
                    pass
            except MnemicError as error:
                if not self._stop:
                    log.warning("the worker tries again later: %s", error)
            except Exception:
                log.exception("a step failed")  # a bug in one step must not end all the others; it is on record
                await asyncio.sleep(poll_s)

    def _round(self) -> bool:
        """Apply what is pending, one batch of each step; whether there is more to do."""
        self._usage.flush()
        with contextlib.suppress(StorageError):
            self._engine.spool.drain(wait=False)
        with self._one:
            if self._stop or not self._worker.holds_lease():
                return False
            try:
                return bool(self._worker.run_once(lambda: self._stop))
            except LeaseLost:
                return False
