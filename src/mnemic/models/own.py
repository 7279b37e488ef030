"""An embedder of the caller's own, held to the same promises as ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mnemic.domain.types import Space
from mnemic.errors import MnemicError, ModelMisbehaved
from mnemic.models.vectors import checked
from mnemic.ports import Embedder, Matrix

_HALF_MAX = float(np.finfo(np.float16).max)  # vectors are stored as float16


class OwnEmbedder:
    """Whatever goes wrong inside is a ModelError, so that recall degrades and the worker tries again."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

    @property
    def space(self) -> Space:
        return self._inner.space

    @property
    def max_tokens(self) -> int:
        return self._inner.max_tokens

    def count(self, text: str) -> int:
        return self._inner.count(text)

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Matrix:
        who = f"the embedder {self.space.label}"
        try:
            answer = self._inner.embed(texts, query=query)
        except MnemicError:
            raise
        except Exception as error:
            raise ModelMisbehaved(f"{who} raised {type(error).__name__}: {error}") from error
        vectors = checked(answer, count=len(texts), dimension=self.space.dimension, who=who)
        if vectors.size and float(np.abs(vectors).max()) > _HALF_MAX:
            raise ModelMisbehaved(f"{who} answered numbers above {_HALF_MAX:g}; normalise its vectors")
        return vectors
