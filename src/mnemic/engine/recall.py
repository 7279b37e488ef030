"""One question down, one answer up: candidates of both arms, exact scores of their union, the best with reasons."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mnemic.domain import cues, ranking
from mnemic.domain.types import Chunk, ChunkId, Event, Hit, Query, Space
from mnemic.engine.floors import floor_of
from mnemic.engine.judging import understands
from mnemic.engine.parts import Engine
from mnemic.engine.topics import chunks_about, names
from mnemic.store import Store
from mnemic.store.chunks import Placed
from mnemic.store.indexes import State
from mnemic.store.vectors import Floats, Ints

log = logging.getLogger("mnemic.recall")

LEXICAL_CANDIDATES = 1_000  # of a namespace too large to score every vector
LIFTING = 10  # of whose sessions every chunk becomes a candidate
LITERAL_LIMIT = 1_000
TOO_DEEP = 4  # chunks looked at per hit wanted, because several may stand in one event


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its vector and the space that is in, where there is one.

    `floor`: the least plain similarity (0..1) of a chunk that only the vector arm proposes; None: the space's own.
    """

    query: Query
    vector: Floats | None
    space: Space | None
    floor: float | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, best first, and the space that served when they were found."""

    hits: tuple[Hit, ...]
    space: Space | None


@dataclass(frozen=True, slots=True)
class Scored:
    """Chunk indices in order, each with its score (0 to 1), the arms that found it, and a way to explain it."""

    indices: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    found_by: tuple[tuple[str, ...], ...] = ()
    parts: Callable[[int], Mapping[str, float]] = lambda position: {"literal": 1.0}


def search(engine: Engine, namespace: str, asked: Asked) -> Found:
    """The hits of a question. Blocking; numpy and SQL only."""
    store = engine.store
    state = store.indexes.state(namespace)
    space = state.space.space if state.space else None
    if space != asked.space:
        asked = replace(asked, vector=None, space=None)
    rows = _allowed(store, namespace, state, asked.query)
    if not len(state.snapshot.ids) or (rows is not None and not len(rows)) or asked.query.k <= 0:
        return Found((), space)
    question = cues.ask(asked.query.text, state.snapshot.actors)
    scored = Scored()
    if question.terms or asked.vector is not None:
        scored = _rank(state, question, asked, rows, engine.weights)
    if not question.terms:
        scored = _joined(_literal(store, namespace, state, asked.query, rows), scored)
    return Found(tuple(_hits(store, namespace, state, asked.query, scored)), space)


def _allowed(store: Store, namespace: str, state: State, query: Query) -> Ints | None:
    """Indices of the chunks that the filters let through; None: all."""
    rows = state.snapshot.rows(query)
    if not query.topics:
        return rows
    about = np.sort(state.snapshot.index_of(chunks_about(store, namespace, query.topics)))
    return about if rows is None else about[np.isin(about, rows)]


def _rank(state: State, question: cues.Question, asked: Asked, rows: Ints | None, weights: ranking.Weights) -> Scored:
    if asked.space is not None and not understands(asked.space):
        weights = replace(weights, dense=weights.dense_hashed)
    lexical = ranking.lexical(question, state.snapshot.view, weights)
    scores = _scores(state, question, asked, (lexical, _candidates(state, lexical, asked, rows)), weights)
    if len(scores.rows) < (len(lexical) if rows is None else len(rows)):
        more = np.union1d(scores.rows, _lifted(state, scores, rows))
        scores = _scores(state, question, asked, (lexical, more), weights)
    picked, cosine = scores.arms.lexical, scores.arms.cosine
    order = scores.top(asked.query.k * TOO_DEEP)
    order = order[(scores.raw[order] > 0) & ((picked[order] > 0) | (cosine[order] > 0))]
    similar = _similar(state, asked, scores.rows[order])
    keep = (picked[order] > 0) | (similar >= _floor(asked))
    order, similar = order[keep], similar[keep]
    by_words, by_meaning = (picked[order] > 0).tolist(), (cosine[order] > 0).tolist()

    def parts(position: int) -> Mapping[str, float]:
        told = dict(ranking.explain(scores, int(order[position])))
        if asked.vector is not None:
            told["similarity"] = round(float(similar[position]), 6)
        return told

    return Scored(
        indices=tuple(scores.rows[order].tolist()),
        scores=tuple(scores.unit()[order].tolist()),
        found_by=tuple(_ARMS[words, meaning] for words, meaning in zip(by_words, by_meaning, strict=True)),
        parts=parts,
    )


def _scores(
    state: State,
    question: cues.Question,
    asked: Asked,
    over: tuple[Floats, Ints | None],
    weights: ranking.Weights,
) -> ranking.Scores:
    """Exact scores of both arms. `over`: the lexical scores of all chunks, and the chunks to score (None: all)."""
    lexical, rows = over
    cosine = _cosine(state, asked, weights, rows)
    arms = ranking.Arms(lexical if rows is None else lexical[rows], cosine)
    return ranking.fuse(question, state.snapshot.view, weights, arms, rows)


_ARMS: Mapping[tuple[bool, bool], tuple[str, ...]] = {
    (True, True): ("keyword", "vector"),
    (True, False): ("keyword",),
    (False, True): ("vector",),
}


def _floor(asked: Asked) -> float:
    if asked.floor is not None:
        return asked.floor
    return floor_of(asked.space) if asked.space is not None else 0.0


def _candidates(state: State, lexical: Floats, asked: Asked, rows: Ints | None) -> Ints | None:
    """The union of both arms' best where scoring every vector would be slow; else `rows` as they are."""
    if state.dense is None or state.dense.exhaustive or asked.vector is None:
        return rows
    allowed = np.arange(len(lexical)) if rows is None else rows
    worded = allowed[lexical[allowed] > 0]
    if len(worded) > LEXICAL_CANDIDATES:
        worded = worded[np.argpartition(-lexical[worded], LEXICAL_CANDIDATES)[:LEXICAL_CANDIDATES]]
    near = state.dense.nearest(asked.vector, LEXICAL_CANDIDATES, rows)
    chunks = state.snapshot.view.chunks
    around = np.concatenate([near, chunks.before[near], chunks.after[near]])  # who may borrow from the nearest
    united = np.unique(np.concatenate([worded, around[around >= 0]]))
    return united if rows is None else united[np.isin(united, rows)]


def _lifted(state: State, scores: ranking.Scores, rows: Ints | None) -> Ints:
    """Chunks of the sessions of the best that were proposed: the session lifts them all."""
    chunks = state.snapshot.view.chunks
    sessions = np.unique(chunks.session[scores.rows[scores.top(LIFTING)]])
    members = np.flatnonzero(np.isin(chunks.session, sessions[sessions >= 0]))
    return members if rows is None else members[np.isin(members, rows)]


def _cosine(state: State, asked: Asked, weights: ranking.Weights, rows: Ints | None) -> Floats:
    if state.dense is None or asked.vector is None:
        return np.zeros(len(state.snapshot.ids) if rows is None else len(rows), np.float32)
    if weights.fusion is ranking.Fusion.VECTOR:
        return state.dense.similar(asked.vector, rows)
    return state.dense.contextual(asked.vector, weights, rows)


def _similar(state: State, asked: Asked, rows: Ints) -> Floats:
    if state.dense is None or asked.vector is None or not len(rows):
        return np.zeros(len(rows), np.float32)
    return state.dense.similar(asked.vector, rows)


def _literal(store: Store, namespace: str, state: State, query: Query, rows: Ints | None) -> Scored:
    """A question without words ("C++", "AND", a lone bracket): texts that hold it to the letter, newest first."""
    needle = query.text.strip()
    if not needle:
        return Scored()
    seqs = store.events.holding(namespace, needle, LITERAL_LIMIT)
    allowed = np.isin(state.snapshot.seqs, seqs)
    if rows is not None:
        mask = np.zeros(len(allowed), bool)
        mask[rows] = True
        allowed &= mask
    index = np.flatnonzero(allowed)[::-1][: query.k * TOO_DEEP].tolist()
    return Scored(tuple(index), (1.0,) * len(index), (("literal",),) * len(index))


def _joined(first: Scored, then: Scored) -> Scored:
    seen, size = set(first.indices), len(first.indices)
    rest = [n for n, index in enumerate(then.indices) if index not in seen]
    return Scored(
        first.indices + tuple(then.indices[n] for n in rest),
        first.scores + tuple(then.scores[n] for n in rest),
        first.found_by + tuple(then.found_by[n] for n in rest),
        lambda position: first.parts(position) if position < size else then.parts(rest[position - size]),
    )


def _hits(store: Store, namespace: str, state: State, query: Query, scored: Scored) -> list[Hit]:
    """One hit for what was said: its best chunk, which names the others of its event, and those that say the same."""
    ids = [int(state.snapshot.ids[index]) for index in scored.indices]
    if not ids:
        return []
    best: dict[int, tuple[int, Placed]] = {}  # seq -> position in `scored`, chunk shown
    others: dict[int, list[ChunkId]] = {}

    def choose(placed: Mapping[int, Placed]) -> list[int]:
        """The chunks to show, once it is known where each stands."""
        for position, ident in enumerate(ids):
            place = placed.get(ident)
            if place is None:  # erased since the snapshot was taken
                continue
            first = placed.get(place.same_as, place) if place.same_as is not None else place
            if first.seq in best:
                if ident != best[first.seq][1].id:
                    others.setdefault(first.seq, []).append(ChunkId(ident))
            elif len(best) < query.k:
                best[first.seq] = (position, first)
                if first is not place:
                    others.setdefault(first.seq, []).append(ChunkId(ident))
        return [place.id for _, place in best.values()]

    shown = store.hydrate(namespace, ids, choose)
    about = {key for found in shown.topics.values() for key, _ in found}
    named = names(store, namespace, about) if about else None
    return [
        Hit(
            chunk=chunk_of(
                shown.events[seq],
                place,
                [named.label(key) for key, _ in shown.topics.get(place.id, ())] if named else (),
            ),
            event=shown.events[seq],
            score=round(float(scored.scores[position]), 6),
            found_by=scored.found_by[position],
            parts=scored.parts(position),
            others=tuple(others.get(seq, ())),
        )
        for seq, (position, place) in best.items()
        if seq in shown.events
    ]


def chunk_of(event: Event, place: Placed, topics: Sequence[str] = ()) -> Chunk:
    text = event.text[place.start : place.stop]
    return Chunk(ChunkId(place.id), event.id, text, place.start, place.stop, tuple(topics))
