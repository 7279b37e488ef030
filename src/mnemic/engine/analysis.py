"""From an event to what is searched: pieces, terms, and the text that a vector is made from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mnemic.config import ChunkerConfig
from mnemic.domain import chunking, sentences, terms
from mnemic.domain.tokens import surely_fits
from mnemic.domain.types import Event, Kind
from mnemic.engine.judging import digest_of, signature_of
from mnemic.ports import Embedder, Matrix, TokenCounter
from mnemic.store.events import NewChunk, Prepared
from mnemic.store.postings import pack

FADE = 0.5  # a chunk says what it is about early: on long turns this beats an even mean (docs/benchmarks.md)
UNSEARCHED = frozenset({Kind.MARKER, Kind.EDIT})


class Analyser:
    """Pure but for the token counter, which loads its table at the first long text."""

    def __init__(self, config: ChunkerConfig, count: TokenCounter) -> None:
        chunking.check(config)
        self._config, self._count = config, count

    def prepare(self, namespace: str, event: Event, digest: bytes) -> Prepared:
        return Prepared(namespace, event, digest, tuple(self.chunks(event)))

    def chunks(self, event: Event) -> list[NewChunk]:
        """By tokens. Under the semantic strategy these are provisional where meaning could cut otherwise."""
        if event.kind in UNSEARCHED or not event.text.strip():
            return []
        pieces = chunking.split(event.text, self._config, self._count)
        whole = self._config.strategy == "token" or surely_fits(event.text, self._config.min_tokens)
        return [self._chunk(event, piece, 0 if whole else -1) for piece in pieces]

    def chunks_by_meaning(self, event: Event, embedder: Embedder | None) -> list[NewChunk]:
        """By the semantic strategy: sentences are embedded, and a chunk ends where neighbours are unlike each other.
        Without an embedder the pieces by tokens stand."""
        if embedder is None:
            pieces = chunking.split(event.text, self._config, self._count)
        else:
            spans = sentences.sentences(event.text)
            vectors = embed_whole(embedder, [event.text[s.start : s.stop] for s in spans])
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
            near = np.einsum("ij,ij->i", vectors[:-1], vectors[1:]).tolist()
            pieces = chunking.split_semantic(event.text, spans, near, self._config, self._count)
        return [self._chunk(event, piece, 0) for piece in pieces]

    def _chunk(self, event: Event, piece: chunking.Piece, decided: int) -> NewChunk:
        text = event.text[piece.start : piece.stop]
        found = terms.analyse(text, event.actor)
        return NewChunk(
            start=piece.start,
            stop=piece.stop,
            words=found.words,
            flags=int(found.flags),
            kept=True,
            decided=decided,
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
    windows, and its vector is their mean by length, later ones counting less by `FADE`; nothing is cut off."""
    windows: list[str] = []
    owner: list[int] = []
    for n, text in enumerate(texts):
        parts = _windows(embedder, text)
        windows += parts
        owner += [n] * len(parts)
    vectors = np.asarray(embedder.embed(windows), np.float32)
    if len(windows) == len(texts):
        return vectors
    places = [n - owner.index(o) for n, o in enumerate(owner)]
    weights = np.array([len(w) * FADE**p for w, p in zip(windows, places, strict=True)], np.float32)
    total = np.zeros((len(texts), vectors.shape[1]), np.float32)
    np.add.at(total, np.array(owner), vectors * weights[:, None])
    lengths = np.linalg.norm(total, axis=1, keepdims=True)
    return np.asarray(total / np.where(lengths > 0, lengths, 1), np.float32)


def _windows(embedder: Embedder, text: str) -> list[str]:
    limit = embedder.max_tokens
    # A token covers at least a character but for the model's own marks, so very short texts need not be counted.
    if len(text) < limit // 2 or embedder.count(text) <= limit:
        return [text]
    config = ChunkerConfig(max_tokens=limit, overlap_tokens=0)
    return [text[p.start : p.stop] for p in chunking.split(text, config, embedder.count)]
