"""Group commit: one thread takes what waits, commits it as one, then answers. Knows nothing of files."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from mnemic.errors import MnemicError, StorageError, StorageLocked
from mnemic.store.journal.seal import Entry

MAX_ROWS = 256
MAX_WAITING = 2_000
MAX_PAUSE_S = 0.002
IDLE_S = 1.0

Outcome = int | MnemicError  # the seq, or why this entry alone was refused
Waiting = tuple[Entry, "Future[int]"]


class Group:
    """The queue in front of `commit`, which writes a batch durably or raises MnemicError for all of it.

    `idle` is called once after a second without work. Nothing is answered before `commit` returned.
    """

    def __init__(
        self, commit: Callable[[Sequence[Entry]], list[Outcome]], idle: Callable[[], None], patience_s: float
    ) -> None:
        self._commit = commit
        self._idle = idle
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._queue: deque[Waiting] = deque()
        self._wanted = 1  # how many must wait before the thread is woken
        self._crowd = 1  # how many are likely to come: answered last time or waiting since
        self._last_s = 0.0  # what the last commit took
        self._closing = False
        self._thread: threading.Thread | None = None

    def submit(self, entry: Entry) -> Future[int]:
        """Errors: StorageLocked if the queue stays full for `patience_s`, StorageError after `close`."""
        future: Future[int] = Future()
        with self._lock:
            if len(self._queue) >= MAX_WAITING and not self._closing:
                self._room.wait_for(lambda: len(self._queue) < MAX_WAITING or self._closing, self._patience_s)
            if self._closing:
                raise StorageError("the journal is closed; open it again")
            if len(self._queue) >= MAX_WAITING:
                raise StorageLocked(f"{MAX_WAITING} events already wait for the journal; try again in a moment")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mnemic-journal", daemon=True)
                self._thread.start()
            self._queue.append((entry, future))
            if len(self._queue) >= self._wanted:
                self._wanted = MAX_WAITING + 1  # woken once is enough
                self._work.notify()
        return future

    def close(self) -> None:
        """Commits and answers what was submitted, then ends the thread. Idempotent."""
        with self._lock:
            self._closing = True
            self._work.notify()
            self._room.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        try:
            while (batch := self._take()) is not None:
                if batch:
                    self._settle(batch)
                else:
                    self._idle()
        finally:  # nobody may wait for ever on a thread that is gone
            with self._lock:
                self._closing = True
                left, self._queue = list(self._queue), deque()
                self._room.notify_all()
            _refuse(left, StorageError("the journal's writer stopped; restart this process"))

    def _take(self) -> list[Waiting] | None:
        """The next batch; empty when there was nothing for a while, None at the end."""
        with self._lock:
            if not self._queue and not self._closing:
                self._wanted = 1
                self._work.wait(IDLE_S if self._last_s else None)
                if not self._queue and not self._closing:
                    self._last_s, self._crowd = 0.0, 1
                    return []
            if not self._queue:
                return None
            # One client is never kept waiting. Several come back together after an answer: give them a moment,
            # shorter than a commit, so that they share the next one.
            wanted = min(self._crowd, MAX_ROWS)
            if len(self._queue) < wanted and not self._closing:
                self._wanted = wanted
                self._work.wait(min(MAX_PAUSE_S, self._last_s))
            self._wanted = MAX_WAITING + 1
            batch = [self._queue.popleft() for _ in range(min(MAX_ROWS, len(self._queue)))]
            self._room.notify_all()
        return batch

    def _settle(self, batch: list[Waiting]) -> None:
        batch = [waiting for waiting in batch if waiting[1].set_running_or_notify_cancel()]
        started = time.perf_counter()
        try:
            outcomes = self._commit([entry for entry, _ in batch])
        except MnemicError as error:
            _refuse(batch, error)
            return
        except BaseException as error:
            _refuse(batch, StorageError(f"the journal's writer stopped: {type(error).__name__}; restart this process"))
            raise
        self._last_s = time.perf_counter() - started
        self._crowd = len(batch) + len(self._queue)
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, MnemicError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


def _refuse(batch: Sequence[Waiting], error: MnemicError) -> None:
    for _, future in batch:
        own = type(error)(str(error))  # one each: a shared exception would gather everyone's tracebacks
        own.__cause__ = error.__cause__
        if not future.done():
            future.set_exception(own)
