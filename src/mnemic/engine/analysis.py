"""From an event to what is searched: pieces, terms, and the text that a vector is made from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mnemic.config import ChunkerConfig
from mnemic.domain import chunking, terms
from mnemic.domain.types import Event, Kind
from mnemic.engine.judging import digest_of, signature_of
from mnemic.ports import Embedder, Matrix, TokenCounter
from mnemic.store.events import NewChunk, Prepared
from mnemic.store.postings import pack

UNSEARCHED = frozenset({Kind.MARKER, Kind.EDIT})


class Analyser:
    """Pure but for the token counter, which loads its table at the first long text."""

    def __init__(self, config: ChunkerConfig, count: TokenCounter) -> None:
        chunking.check(config)
        self._config, self._count = config, count

    def prepare(self, namespace: str, event: Event, digest: bytes) -> Prepared:
        return Prepared(namespace, event, digest, tuple(self.chunks(event)))

    def chunks(self, event: Event) -> list[NewChunk]:
        if event.kind in UNSEARCHED or not event.text.strip():
            return []
        pieces = chunking.split(event.text, self._config, self._count)
        return [self._chunk(event, piece.start, piece.stop) for piece in pieces]

    def _chunk(self, event: Event, start: int, stop: int) -> NewChunk:
        text = event.text[start:stop]
        found = terms.analyse(text, event.actor)
        return NewChunk(
            start=start,
            stop=stop,
            words=found.words,
            flags=int(found.flags),
            kept=True,
            decided=False,
            verdict="",
            signature=signature_of(text),
            digest=digest_of(embedded_text(text, event.actor, event.role.value)),
            terms=pack(found.passages),
        )


def embedded_text(text: str, actor: str, role: str) -> str:
    """What the vector of a chunk is made from: a named speaker belongs to what was said."""
    return f"{actor}: {text}" if actor else f"{role}: {text}"


def embed_whole(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """Vectors of texts of any length, (len(texts), dimension): a text longer than the model takes is embedded in
    windows, and its vector is their mean by length; nothing is cut off."""
    windows: list[str] = []
    owner: list[int] = []
    for n, text in enumerate(texts):
        parts = _windows(embedder, text)
        windows += parts
        owner += [n] * len(parts)
    vectors = np.asarray(embedder.embed(windows), np.float32)
    if len(windows) == len(texts):
        return vectors
    weights = np.array([max(len(w), 1) for w in windows], np.float32)
    total = np.zeros((len(texts), vectors.shape[1]), np.float32)
    np.add.at(total, np.array(owner), vectors * weights[:, None])
    lengths = np.linalg.norm(total, axis=1, keepdims=True)
    return np.asarray(total / np.where(lengths > 0, lengths, 1), np.float32)


def _windows(embedder: Embedder, text: str) -> list[str]:
    limit = embedder.max_tokens
    if len(text) < limit or embedder.count(text) <= limit:
        return [text]
    config = ChunkerConfig(max_tokens=limit, overlap_tokens=0)
    return [text[p.start : p.stop] for p in chunking.split(text, config, embedder.count)]
