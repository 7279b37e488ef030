"""Small real things for tests: an embedder whose vectors are chosen, a clock that stands still."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from mnemic.domain.types import Space
from mnemic.errors import ModelUnavailable


class FakeEmbedder:
    """Vectors chosen by text: `chosen` where a key stands in the text, else made from a hash of it. Remembers every
    text it saw and refuses any longer than `max_tokens` characters."""

    def __init__(
        self,
        chosen: Mapping[str, Sequence[float]] | None = None,
        dimension: int = 8,
        *,
        model: str = "fake",
        provider: str = "fake",
        limit: int = 4_096,
    ) -> None:
        self._chosen = {key: np.asarray(value, np.float32) for key, value in (chosen or {}).items()}
        self._space = Space(provider, model, dimension)
        self._limit = limit
        self.seen: list[str] = []
        self.down = False
        self.before: Callable[[], object] = lambda: None
        self._lock = threading.Lock()

    @property
    def space(self) -> Space:
        return self._space

    @property
    def max_tokens(self) -> int:
        return self._limit

    def count(self, text: str) -> int:
        return len(text)

    def embed(self, texts: Sequence[str], *, query: bool = False) -> npt.NDArray[np.float32]:
        self.before()
        if self.down:
            raise ModelUnavailable("the fake embedder is down")
        assert all(len(text) <= self._limit for text in texts), "a text longer than the model takes"
        with self._lock:
            self.seen += texts
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> npt.NDArray[np.float32]:
        for key, vector in self._chosen.items():
            if key in text:
                return vector
        said = text.split(": ", 1)[-1]  # who said it does not matter here
        seed = int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "little")
        vector = np.random.default_rng(seed).standard_normal(self._space.dimension).astype(np.float32)
        return vector / np.float32(np.linalg.norm(vector))


class FixedClock:
    """2031-03-12T09:00Z, a Wednesday, until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2031, 3, 12, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)
