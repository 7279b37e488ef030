"""The vector of a question: in the space that serves, within a time, or not at all and with a notice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from mnemic.domain.types import Query, Space
from mnemic.engine.parts import Engine
from mnemic.engine.worker import Worker
from mnemic.errors import ModelError
from mnemic.ports import Embedder
from mnemic.store.vectors import Floats

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
        texts = [query.text[:QUERY_CHARS]]
        try:
            matrix = await asyncio.wait_for(self._run(_embed, serving.embedder, texts), limit)
        except (ModelError, TimeoutError) as error:
            why = str(error) or f"no vector within {limit:g} s"
            notices.append(f"keyword search only: {why}")
            return None, None
        return matrix[0], serving.space

    def served_by(self, space: Space | None) -> bool:
        """Whether that is the space the vectors are made for; if not, it is looked up again at the next question."""
        if self._serving is not None and self._serving.space == space:
            return True
        self._serving = None
        return False

    def _find(self) -> Serving:
        serving = self._engine.store.upkeep.serving()
        if serving is None:
            return Serving(None, None, "")
        choice = self._worker.embedders()
        if choice.serving is None or choice.serving.space != serving.space:
            self._worker.forget_choice()  # another process has reindexed
            choice = self._worker.embedders()
        if choice.serving is None or choice.serving.space != serving.space:
            why = choice.reason or f"no embedder for {serving.space.label}"
            return Serving(serving.space, None, f"keyword search only: {why}")
        return Serving(serving.space, choice.serving, choice.reason if choice.configured is not None else "")


def _embed(embedder: Embedder, texts: list[str]) -> Floats:
    return embedder.embed(texts, query=True)
