"""Scores of chunks for a question: pure functions over NumPy arrays.

The default fusion adds two absolute numbers and lets cues multiply them:

    score(i) = [ b(i) + session * max b(j, j in session of i) ] * (1 + person) * (1 + answer) * (1 + date)
    b(i)     = lex(i) + dense * cos(i)

`lex` is the share of the question's weight (idf) that the best passage of the chunk meets, 0 to 1; `cos` the cosine of
mean-centred vectors, -1 to 1. Nothing is scaled per question: where words match they lead, where none do the vectors
decide.

A turn of talk is understood with the turns around it. Both arms see chunk i together with its neighbours j in the same
session, as a linear operator applied when reading, so a new chunk rewrites nothing:

    A_ij = min(1, context * g * min(words_j, context_words) / words_i),  g = question if j comes before i and asks, else 1

Shapes: N chunks, P passages, M vectors of D dimensions. Times: int64 microseconds since 1970, UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from mnemic.domain.cues import USER, Day, Question
from mnemic.domain.terms import Flag

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer]
Postings = Callable[[int], tuple[Ints, Ints] | None]  # term hash -> (passage indices ascending, counts)


RRF_K = 60


class Fusion(StrEnum):
    """How the two arms become one order."""

    ABSOLUTE = "absolute"
    RRF = "rrf"
    WEIGHTED = "weighted"
    VECTOR = "vector"
    KEYWORD = "keyword"


@dataclass(frozen=True, slots=True)
class Weights:
    k1: float = 1.2
    b: float = 0.75
    prior: float = 10.0
    context: float = 0.5
    context_words: int = 20
    lent_words: int = 60
    question: float = 2.0
    dense: float = 0.5
    centring: float = 1.0
    centring_prior: float = 20.0
    session: float = 0.2
    person: float = 0.5
    answer: float = 0.2
    date: float = 0.4
    self_told: float = 0.3
    only_asks: float = 0.2
    fusion: Fusion = Fusion.ABSOLUTE


@dataclass(frozen=True, slots=True)
class Chunks:
    """Per chunk, all (N,)."""

    before: Ints  # index of the chunk before it in its session, -1 none
    after: Ints
    words: Ints
    session: Ints  # -1 none
    actor: Ints  # -1 none
    role: Ints
    flags: Ints
    time: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Passages:
    """Per passage, (P,): its chunk (ascending) and its number of terms; and the postings by term hash."""

    chunk: Ints
    length: Ints
    postings: Postings


@dataclass(frozen=True, slots=True)
class Context:
    """What neighbours lend, derived by `borrow`."""

    from_before: Floats  # (N,) A of the chunk before
    from_after: Floats  # (N,)
    terms_before: Floats  # (N,) the same for words: a long chunk lends `lent_words` words at most
    terms_after: Floats  # (N,)
    first: Ints  # (N + 1,) first passage of each chunk
    norm: Floats  # (P,) k1 (1 - b + b len' / average len')


@dataclass(frozen=True, slots=True)
class View:
    chunks: Chunks
    passages: Passages
    context: Context


@dataclass(frozen=True, slots=True)
class Vectors:
    """Raw unit vectors and what follows from them. `row` (N,) is the row of a chunk's vector in `matrix`, -1 none."""

    matrix: Floats  # (M, D)
    row: Ints  # (N,)
    mean: Floats  # (D,) mean of all rows
    to_mean: Floats  # (M,) matrix @ mean
    dot_after: Floats  # (N,) v_i . v_after(i)
    dot_around: Floats  # (N,) v_before(i) . v_after(i)


@dataclass(frozen=True, slots=True)
class Arms:
    """The scores of both arms for the same chunks."""

    lexical: Floats
    cosine: Floats


@dataclass(frozen=True, slots=True)
class Scores:
    rows: Ints  # chunk indices
    raw: Floats
    arms: Arms
    lift: Floats
    factors: dict[str, Floats]
    fusion: Fusion

    def top(self, k: int) -> Ints:
        """Positions in `rows` of the best k, best first; equal scores: the newer chunk first."""
        return np.lexsort((-self.rows, -self.raw))[:k]


def look(chunks: Chunks, passages: Passages, weights: Weights) -> View:
    """Derive what neighbours lend each other: O(N + P), after rows were added."""
    return View(chunks, passages, borrow(chunks, passages, weights))


def neighbour_dots(matrix: Floats, row: Ints, chunks: Chunks, rows: Ints) -> tuple[Floats, Floats]:
    """v_i . v_after(i) and v_before(i) . v_after(i) for the chunks i in `rows`; 0 where a vector is missing.

    A new chunk changes both numbers of the chunk before it, and nothing else that exists.
    """
    before, after = chunks.before[rows], chunks.after[rows]
    return _pair_dots(matrix, row, rows, after), _pair_dots(matrix, row, before, after)


def _pair_dots(matrix: Floats, row: Ints, left: Ints, right: Ints) -> Floats:
    out = np.zeros(len(left), np.float32)
    both = np.flatnonzero((left >= 0) & (right >= 0) & (row[left] >= 0) & (row[right] >= 0))
    for start in range(0, len(both), 4096):  # bounded copies
        some = both[start : start + 4096]
        out[some] = np.einsum("ij,ij->i", matrix[row[left[some]]], matrix[row[right[some]]])
    return out


def centre(matrix: Floats, row: Ints, mean: Floats, dots: tuple[Floats, Floats]) -> Vectors:
    """Vectors of a namespace with what follows from their mean: one pass over the matrix."""
    return Vectors(matrix, row, mean, matrix @ mean, dots[0], dots[1])


def borrow(chunks: Chunks, passages: Passages, weights: Weights) -> Context:
    n = len(chunks.words)
    words = np.maximum(chunks.words, 1).astype(np.float32)
    lent = weights.context * np.minimum(words, weights.context_words)
    asks = np.where(chunks.flags & Flag.QUESTION, np.float32(weights.question), np.float32(1))
    from_before = _lent(lent * asks, chunks.before, words)
    from_after = _lent(lent, chunks.after, words)
    first = np.searchsorted(passages.chunk, np.arange(n + 1)).astype(np.int64)
    own = np.bincount(passages.chunk, weights=passages.length, minlength=n).astype(np.float32)
    thin = np.minimum(1, np.float32(weights.lent_words) / words)
    terms_before = from_before * thin[chunks.before] if n else from_before
    terms_after = from_after * thin[chunks.after] if n else from_after
    extra = terms_before * own[chunks.before] + terms_after * own[chunks.after] if n else own
    length = passages.length + extra[passages.chunk]
    average = float(length.mean()) if len(length) else 1.0
    norm = weights.k1 * (1 - weights.b + weights.b * length / max(average, 1e-9))
    return Context(from_before, from_after, terms_before, terms_after, first, norm.astype(np.float32))


def _lent(lent: Floats, neighbour: Ints, words: Floats) -> Floats:
    share = np.minimum(1, lent[neighbour] / words) if len(words) else words
    return np.where(neighbour >= 0, share, 0).astype(np.float32)


def lexical(question: Question, view: View, weights: Weights) -> Floats:
    """(N,) share of the question's idf that the best passage of each chunk meets, 0 to 1."""
    size = len(view.passages.chunk)
    score = np.zeros(size, np.float32)
    scratch = np.zeros(size, np.float32)
    asked = 0.0
    for term, literal in zip(question.hashes, question.literal, strict=True):
        found = view.passages.postings(term)
        if found is None and literal:
            continue
        frequency = 0 if found is None else len(found[0])
        total = size + weights.prior
        idf = max(1e-6, float(np.log((total - frequency + 0.5) / (frequency + 0.5))))
        asked += idf
        if found is not None:
            touched = _spread(found, view, scratch)
            tf = scratch[touched]
            # Repeated indices compute the same sum, so the assignment needs no unique().
            score[touched] += np.float32(idf) * (tf / (tf + view.context.norm[touched]))
            scratch[touched] = 0
    best = np.zeros(len(view.chunks.words), np.float32)
    hit = np.flatnonzero(score)
    if len(hit):
        chunk = view.passages.chunk[hit]
        starts = np.flatnonzero(np.diff(chunk, prepend=-1))
        best[chunk[starts]] = np.maximum.reduceat(score[hit], starts) / np.float32(asked)
    return best


def _spread(found: tuple[Ints, Ints], view: View, scratch: Floats) -> Ints:
    """Add one term's counts, with what they lend to neighbours, to `scratch`; returns the passages touched."""
    index, counts = found
    scratch[index] += counts
    chunk = view.passages.chunk[index]
    starts = np.flatnonzero(np.diff(chunk, prepend=-1))
    sender = chunk[starts]
    sent = np.add.reduceat(counts, starts).astype(np.float32)
    touched = [index]
    lends = (view.chunks.after, view.context.terms_before), (view.chunks.before, view.context.terms_after)
    for neighbour, share in lends:
        receiver = neighbour[sender]
        some = receiver >= 0
        receiver, value = receiver[some], sent[some]
        value = value * share[receiver]
        first, count = view.context.first[receiver], view.context.first[receiver + 1] - view.context.first[receiver]
        where = np.repeat(first - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
        scratch[where] += np.repeat(value, count)  # a chunk has one neighbour a side: no index occurs twice
        touched.append(where)
    return np.concatenate(touched)


def dense(
    query: Floats, vectors: Vectors, view: View, weights: Weights, rows: Ints | None = None
) -> Floats:
    """Cosine of the centred question with each centred chunk in its context, -1 to 1; 0 for a chunk without a vector.

    With `rows`, only their vectors and those of their neighbours are read.
    """
    at: Ints | slice = slice(None) if rows is None else rows
    mean, square, toward = _centre(vectors, weights)
    asked = query - mean
    asked = (asked / max(float(np.linalg.norm(asked)), 1e-9)).astype(np.float32)
    row = vectors.row
    before, after = view.chunks.before[at], view.chunks.after[at]
    dots = _dots(vectors, asked, None if rows is None else (rows, before, after))
    radius = np.sqrt(np.maximum(1 - 2 * toward + square, 0))
    radius = np.where(radius > 1e-3, radius, np.inf).astype(np.float32)  # at the mean itself there is no direction
    dots = (dots - np.float32(mean @ asked)) / radius
    i, b, a = row[at], row[before], row[after]
    own = np.where(i >= 0, dots[i], 0)
    weight_b = np.where((before >= 0) & (b >= 0), view.context.from_before[at], 0)
    weight_a = np.where((after >= 0) & (a >= 0), view.context.from_after[at], 0)

    def angle(dot: Floats, x: Ints, y: Ints) -> Floats:  # u_x . u_y from v_x . v_y
        return (dot - toward[x] - toward[y] + square) / (radius[x] * radius[y])

    norm = 1 + weight_b**2 + weight_a**2 + 2 * (
        weight_b * angle(vectors.dot_after[before], i, b)
        + weight_a * angle(vectors.dot_after[at], i, a)
        + weight_a * weight_b * angle(vectors.dot_around[at], b, a)
    )
    total = own + weight_b * dots[b] + weight_a * dots[a]
    return np.where(i >= 0, total / np.sqrt(np.maximum(norm, 1e-9)), 0).astype(np.float32)


def _dots(vectors: Vectors, asked: Floats, chunks: tuple[Ints, Ints, Ints] | None) -> Floats:
    if chunks is None:
        return vectors.matrix @ asked
    need = np.unique(np.concatenate([vectors.row[c[c >= 0]] for c in chunks]))
    need = need[need >= 0]
    dots = np.zeros(len(vectors.matrix), np.float32)
    dots[need] = vectors.matrix[need] @ asked
    return dots


def _centre(vectors: Vectors, weights: Weights) -> tuple[Floats, float, Floats]:
    count = len(vectors.matrix)
    share = np.float32(weights.centring * count / (count + weights.centring_prior))
    mean = vectors.mean * share
    return mean, float(mean @ mean), vectors.to_mean * share


def fuse(question: Question, view: View, weights: Weights, arms: Arms, rows: Ints | None = None) -> Scores:
    """Score the chunks `rows` (None: all), for which `arms` holds the numbers of both arms."""
    at: Ints | slice = slice(None) if rows is None else rows
    index = np.arange(len(view.chunks.words)) if rows is None else rows
    session = view.chunks.session[at]
    base = _base(arms, weights)
    if weights.fusion is Fusion.ABSOLUTE:
        lift = np.float32(weights.session) * _best(base, session)
        factors = _cues(question, view.chunks, weights, at)
    else:
        lift, factors = np.zeros_like(base), {}
    raw = base + lift
    for factor in factors.values():
        raw = raw * factor
    return Scores(index, np.round(raw, 6), arms, lift, factors, weights.fusion)


def _base(arms: Arms, weights: Weights) -> Floats:
    lex, cos = arms.lexical, arms.cosine
    match weights.fusion:
        case Fusion.ABSOLUTE:
            return lex + np.float32(weights.dense) * cos
        case Fusion.KEYWORD:
            return lex
        case Fusion.VECTOR:
            return cos
        case Fusion.RRF:
            return _reciprocal(lex) + _reciprocal(cos)
        case Fusion.WEIGHTED:
            return (_scaled(lex) + _scaled(cos)) / 2


def _reciprocal(score: Floats) -> Floats:
    order = np.lexsort((-np.arange(len(score)), -np.round(score, 6)))
    out = np.empty(len(score), np.float32)
    out[order] = 1 / (RRF_K + 1 + np.arange(len(score)))
    return np.where(score > 0, out, 0).astype(np.float32)


def _scaled(score: Floats) -> Floats:
    low, high = (float(score.min()), float(score.max())) if len(score) else (0.0, 0.0)
    return (score - low) / (high - low) if high > low else np.zeros_like(score)


def _best(base: Floats, session: Ints) -> Floats:
    """The best base score of each chunk's session among the chunks given; its own when it stands alone."""
    inside = session >= 0
    if not inside.any():
        return base
    top = np.full(int(session.max()) + 1, -np.inf, np.float32)
    np.maximum.at(top, session[inside], base[inside])
    return np.where(inside, top[session], base)


def _cues(question: Question, chunks: Chunks, weights: Weights, at: Ints | slice) -> dict[str, Floats]:
    factors = {}
    if question.actors and weights.person:
        factors["person"] = _factor(weights.person, np.isin(chunks.actor[at], question.actors))
    elif question.role >= 0 and weights.person:
        factors["person"] = _factor(weights.person, chunks.role[at] == question.role)
    if question.answer and weights.answer:
        holds = (chunks.flags[at] & question.answer) != 0
        if question.answer == Flag.WISH:
            holds &= chunks.role[at] == USER
        factors["answer"] = _factor(weights.answer, holds)
    if question.days and weights.date:
        factors["date"] = _factor(weights.date, said_on(question.days, chunks.time[at]))
    flags = chunks.flags[at]
    if weights.self_told and (question.actors or question.role == USER):
        factors["self"] = _factor(weights.self_told, (flags & Flag.SELF) != 0)
    if weights.only_asks and not question.about_asking:
        factors["asks"] = _factor(-weights.only_asks, (flags & Flag.ASKS) != 0)
    return factors


def _factor(weight: float, holds: npt.NDArray[np.bool_]) -> Floats:
    return np.where(holds, np.float32(1 + weight), np.float32(1))


def said_on(days: tuple[Day, ...], time: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    date = time.astype("datetime64[us]").astype("datetime64[D]")
    month = date.astype("datetime64[M]").astype(np.int64)
    day = (date - date.astype("datetime64[M]")).astype(np.int64) + 1
    hit = np.zeros(len(time), bool)
    for d in days:
        one = month % 12 + 1 == d.month
        if d.year:
            one &= month // 12 + 1970 == d.year
        if d.day:
            one &= day == d.day
        hit |= one
    return hit
