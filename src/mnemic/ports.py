"""What the engine asks of the outside: five ports, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mnemic.domain.tokens import TokenCounter
from mnemic.domain.types import Space

__all__ = ["Clock", "Embedder", "Matrix", "Reranker", "TokenCounter"]

Matrix = npt.NDArray[np.float32]  # one row a text
Clock = Callable[[], datetime]  # aware, UTC


class Embedder(Protocol):
    """Turns texts into vectors of one space. Safe to call from several threads.

    Errors: ModelUnavailable (no answer: try later), ModelMisbehaved (unusable answer), ModelMissing.
    """

    @property
    def space(self) -> Space: ...

    @property
    def max_tokens(self) -> int:
        """The longest text, in the model's own tokens, that `embed` takes whole; longer texts are split before."""
        ...

    def count(self, text: str) -> int:
        """The model's tokens in `text`, or an upper bound of them."""
        ...

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Matrix:
        """float32 (len(texts), space.dimension). Blocking: the engine calls it in a thread."""
        ...


class Reranker(Protocol):
    """Scores each text against the query, 0 to 1, higher is better. Blocking: the engine calls it in a thread."""

    @property
    def name(self) -> str: ...

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]: ...
