"""An embedder behind an endpoint. What differs between vendors is a `Dialect`; the rest is here once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from mnemic.domain.types import Space
from mnemic.errors import ModelMisbehaved
from mnemic.models.http import QUERY_TRIES, TRIES, Client, State, Timing
from mnemic.models.secrets import Secret
from mnemic.models.vectors import checked, clean, token_bound, unit
from mnemic.ports import Matrix

BLANK = "."  # endpoints refuse an empty input, and with it the whole batch


@dataclass(frozen=True, slots=True)
class Options:
    """`dimension`: what the vectors must have, 0 for the model's own. `asked`: the user set it."""

    model: str = ""
    dimension: int = 0
    asked: bool = False
    base_url: str = ""
    key: Secret = field(default_factory=lambda: Secret("", {}))
    timeout_s: float = 30.0
    batch: int = 64
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True, slots=True)
class Model:
    """What is known of a model without asking: numbers of a vector, longest text in tokens, words put in front."""

    dimension: int
    window: int
    document: str = ""
    query: str = ""


def shortened(options: Options, model: Model) -> int:
    """The dimension to put into a request, 0 for none: many servers refuse the word, so only where it is needed."""
    if model.dimension:
        return options.dimension if options.dimension != model.dimension else 0
    return options.dimension if options.asked else 0


@dataclass(frozen=True, slots=True)
class Dialect:
    """`body` makes a request of texts (True: questions); `vectors` reads the answer and may raise anything a wrong
    shape raises (KeyError, TypeError, ...). `items`, `tokens`: the most of a request."""

    path: str
    body: Callable[[Sequence[str], bool], Mapping[str, object]]
    vectors: Callable[[object], Sequence[object]]
    items: int
    tokens: int = 300_000


class RemoteEmbedder:
    """Opening calls nobody. `space.dimension` is 0 until the first answer when neither settings nor tables know it."""

    def __init__(self, space: Space, dialect: Dialect, client: Client, *, model: Model, batch: int) -> None:
        self._space = space
        self._dialect = dialect
        self._client = client
        self._model = model
        self._items = max(1, min(batch, dialect.items))
        self._lock = Lock()

    @property
    def space(self) -> Space:
        return self._space

    @property
    def max_tokens(self) -> int:
        return self._model.window

    @property
    def breaker(self) -> State:
        """ "open": the endpoint did not answer several times and is left alone for a while."""
        return self._client.breaker.state

    def count(self, text: str) -> int:
        """An upper bound for natural text and code, prefix included."""
        return token_bound(self._model.document + text)

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Matrix:
        prefix = self._model.query if query else self._model.document
        ready = [prefix + (clean(text) if text.strip() else BLANK) for text in texts]
        found = [self._ask(batch, query) for batch in self._batches(ready)]
        return np.concatenate(found) if found else np.zeros((0, self._space.dimension), dtype=np.float32)

    def close(self) -> None:
        self._client.close()

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        tokens = 0
        for text in texts:
            size = token_bound(text)
            if batch and (len(batch) == self._items or tokens + size > self._dialect.tokens):
                yield batch
                batch, tokens = [], 0
            batch.append(text)
            tokens += size
        if batch:
            yield batch

    def _ask(self, texts: list[str], query: bool) -> Matrix:
        who = self._client.target.name
        answer = self._client.post(
            self._dialect.path, self._dialect.body(texts, query), tries=QUERY_TRIES if query else TRIES
        )
        try:
            rows = self._dialect.vectors(answer)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise ModelMisbehaved(f"{who} answered JSON of another shape; check embeddings.base_url") from error
        vectors = checked(rows, count=len(texts), dimension=self._space.dimension, who=who)
        if not self._space.dimension:
            self._learn(vectors.shape[1])
        return unit(vectors)

    def _learn(self, dimension: int) -> None:
        with self._lock:
            if self._space.dimension not in (0, dimension):
                raise ModelMisbehaved(
                    f"{self._client.target.name} answers {self._space.dimension} and {dimension} numbers"
                )
            old = self._space
            self._space = Space(old.provider, old.model, dimension, old.scheme)
