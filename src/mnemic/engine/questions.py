"""The vector of a question: in the space that serves, within a time, or not at all and with a notice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from mnemic.domain.types import Query, Space
from mnemic.engine.parts import Engine
from mnemic.engine.worker import Worker
from mnemic.errors import ModelError, ModelUnavailable
from mnemic.ports import Embedder
from mnemic.store.vectors import Floats

MAX_ASKING = 16  # questions that wait for their vectors at one time
QUERY_CHARS = 4_000  # of a pasted page the beginning is the question; keyword search reads all of it


class Run(Protocol):
    """Runs blocking work in a thread."""

    async def __call__(self, work: Callable[..., Any], *arguments: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Serving:
    """Who answers for the serving space; nobody while there is none, or where its embedder cannot be made."""

    space: Space | None
    embedder: Embedder | None
    notice: str


class Questions:
    """Remembers who serves; `served_by` corrects it when a search has seen another space."""

    def __init__(self, engine: Engine, worker: Worker, run: Run) -> None:
        self._engine, self._worker, self._run = engine, worker, run
        self._serving: Serving | None = None
        self._asking = threading.BoundedSemaphore(MAX_ASKING)

    async def vector(self, query: Query, notices: list[str]) -> tuple[Floats | None, Space | None]:
        """(vector, its space), or (None, None)."""
        if not query.text.strip() or not self._engine.config.vector.enabled:
            return None, None
        if self._serving is None or self._serving.space is None:
            self._serving = await self._run(self._find)
        serving = self._serving
        if serving.notice:
            notices.append(serving.notice)
        if serving.embedder is None:
            return None, None
        limit = self._engine.config.recall.embed_timeout_ms / 1000
        try:
            matrix = await asyncio.wait_for(self._embedded(serving.embedder, query.text[:QUERY_CHARS]), limit)
        except (ModelError, TimeoutError) as error:
            why = str(error) or f"no vector within {limit:g} s"
            notices.append(f"keyword search only: {why}")
            return None, None
        return matrix[0], serving.space

    async def _embedded(self, embedder: Embedder, text: str) -> Floats:
        """In a thread of its own, which nobody waits for longer than the answer may take: a model that hangs must hold
        up neither the other verbs nor the end of the process. Errors: ModelError."""
        if not self._asking.acquire(blocking=False):
            raise ModelUnavailable(f"{MAX_ASKING} questions already wait for {embedder.space.label}")
        answer: Future[Floats] = Future()

        def work() -> None:
            try:
                answer.set_result(embedder.embed([text], query=True))
            except BaseException as error:  # noqa: BLE001 - handed to whoever waits
                answer.set_exception(error)
            finally:
                self._asking.release()

        threading.Thread(target=work, name="mnemic-question", daemon=True).start()
        return await asyncio.shield(asyncio.wrap_future(answer))

    def served_by(self, space: Space | None) -> bool:
        """Whether that is the space the vectors are made for; if not, it is looked up again at the next question."""
        if self._serving is not None and self._serving.space == space:
            return True
        self._serving = None
        return False

    def _find(self) -> Serving:
        serving = self._engine.store.upkeep.serving()
        if serving is None:
            failure = self._worker.failure
            return Serving(None, None, f"keyword search only: {failure}" if failure else "")
        choice = self._worker.embedders()
        if choice.serving is None or choice.serving.space != serving.space:
            self._worker.forget_choice()  # another process has reindexed
            choice = self._worker.embedders()
        if choice.serving is None or choice.serving.space != serving.space:
            why = choice.reason or f"no embedder for {serving.space.label}"
            return Serving(serving.space, None, f"keyword search only: {why}")
        return Serving(serving.space, choice.serving, choice.reason if choice.configured is not None else "")
