"""Scores of chunks for a question: pure functions over NumPy arrays.

The default fusion adds two absolute numbers and lets cues multiply them:

    raw(i) = [ base(i) + session * max base(j), j in the session of i ] * product of the cues' factors
    base(i) = lex(i) + dense * cos(i)

`lex` is the share of the question's weight (idf) that the best passage of the chunk meets, 0 to 1; `cos` a cosine of
mean-centred vectors, -1 to 1. Nothing is scaled per question: where words match they lead, where none do the vectors
decide. The cues: whose turn, what kind of answer, when it was said, do speakers tell of themselves, does it only ask.

A turn of talk is understood with the turns around it. Both arms see chunk i with its neighbours j of the same session,
by a linear operator applied when reading, so a new chunk rewrites nothing:

    A_ij = min(1, context * g * min(words_j, context_words) / words_i)
    g    = `question` if j comes before i and asks, else 1

Shapes: N chunks, P passages, M vectors of D dimensions. Chunks stand in the order of their application: a higher index
is newer. Times: int64 microseconds since 1970, UTC. A filter is a choice of `rows`: other chunks get no score and lend
none, but their words are context, and they count in idf and mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from mnemic.domain.cues import USER, Question, said_on
from mnemic.domain.terms import Flag

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer[Any]]
Rows = Ints | slice
Postings = Callable[[int], tuple[Ints, Ints] | None]  # term hash -> (passage indices ascending, counts)

RRF_K = 60  # Cormack, Clarke and Buettcher 2009
NEGLIGIBLE = 0.002  # a term with less of the question's idf (a speaker's name, say) is not worth its many postings
HALF = 0.35  # raw score that reads as 0.5: medians of the best hit for a foreign question .2, of a tenth hit .55


class Fusion(StrEnum):
    """How two arms become one score, and what `Scores.unit` makes of it.

    ABSOLUTE: as above; raw^2 / (raw^2 + HALF^2), 0 below 0. The same text scores > .9, most others of a store < .1.
    RRF: 1/(60 + rank) summed over the arms that found the chunk; divided by 2/61, the most there can be.
    WEIGHTED: mean of both arms, each stretched to 0..1 over the chunks given. VECTOR, KEYWORD: one arm, cut to 0..1.
    """

    ABSOLUTE = "absolute"
    RRF = "rrf"
    WEIGHTED = "weighted"
    VECTOR = "vector"
    KEYWORD = "keyword"


@dataclass(frozen=True, slots=True)
class Weights:
    """Every number of the ranking; 0 switches a feature off. All lie on a flat top: +-30 % moves recall by a point."""

    fusion: Fusion = Fusion.ABSOLUTE
    k1: float = 1.2  # BM25: how soon repetition stops counting
    b: float = 0.75  # BM25: how much long passages are discounted
    prior: float = 20.0  # passages assumed beside those stored, so that idf means something in a store of three notes
    context: float = 0.5  # what a neighbour lends
    context_words: int = 15  # a neighbour counts as this long at most: turns of people lend, pages do not take over
    lent_words: int = 60  # a neighbour lends at most so many words to the keyword arm, thinned evenly
    question: float = 2.0  # a question before lends more: the answer seldom repeats its words
    dense: float = 0.5  # a cosine of 1 weighs as much as half of the question's words
    dense_hashed: float = 0.25  # instead of `dense` for feature-hashed vectors, whose cosines are keyword noise
    centring: float = 0.7  # share of the mean taken off; all of it favours whatever is unlike the rest
    centring_prior: float = 20.0  # the mean of few vectors is their content, not their background: it is shrunk
    session: float = 0.3  # a conversation that is about the question lifts all its turns
    person: float = 0.3  # the named person's turns; more finds less of what others said about that person
    self_told: float = 0.3  # asked about a person, who speaks of themself says more than who comments
    only_asks: float = 0.2  # taken off a turn that merely asks
    answer: float = 0.2  # holds a time, a number, a name, a standing wish, as asked for
    date: float = 0.4  # was said at the date named


@dataclass(frozen=True, slots=True)
class Chunks:
    """Per chunk, each (N,). Indices are -1 where there is none."""

    before: Ints  # index of the chunk before it in its session
    after: Ints
    words: Ints  # `Analysis.words`
    session: Ints  # index of the session
    actor: Ints  # index of the speaker's name
    role: Ints  # 0 user, 1 assistant, 2 system, 3 tool
    flags: Ints  # `Analysis.flags`
    time: npt.NDArray[np.int64]  # when it was said


@dataclass(frozen=True, slots=True)
class Passages:
    """Per passage, each (P,): its chunk, ascending, and the sum of its counts; and the postings by term hash."""

    chunk: Ints
    length: Ints
    postings: Postings


@dataclass(frozen=True, slots=True)
class View:
    """What one namespace looks like to a question. Made by `look`."""

    chunks: Chunks
    passages: Passages
    from_before: Floats  # (N,) A_ij of the chunk before, for vectors
    from_after: Floats  # (N,)
    terms_before: Floats  # (N,) the same for words, thinned by `lent_words`
    terms_after: Floats  # (N,)
    first: Ints  # (N + 1,) the first passage of each chunk
    norm: Floats  # (P,) k1 (1 - b + b * length / average), lengths with what is borrowed


@dataclass(frozen=True, slots=True)
class Vectors:
    """Raw unit vectors and what follows from them. Made by `centre`."""

    matrix: Floats  # (M, D)
    row: Ints  # (N,) row of the chunk's vector in `matrix`, -1 none
    mean: Floats  # (D,) of all rows
    to_mean: Floats  # (M,) matrix @ mean
    dot_after: Floats  # (N,) v_i . v_after(i)
    dot_around: Floats  # (N,) v_before(i) . v_after(i)


@dataclass(frozen=True, slots=True)
class Blend:
    """Chunks in their context, ready for `cosine`: w = sum of parts * (matrix[rows] - mean), itself and neighbours."""

    matrix: Floats  # (M, D)
    mean: Floats  # (D,) as much of it as is taken off
    rows: Ints  # (3, N) of the chunk, of the one before, of the one after; any row where the part is 0
    parts: Floats  # (3, N)
    whole: bool  # all chunks, so all vectors are read


@dataclass(frozen=True, slots=True)
class Arms:
    """The scores of both arms, for the same chunks in the same order."""

    lexical: Floats
    cosine: Floats


@dataclass(frozen=True, slots=True)
class Scores:
    """What `fuse` answers, aligned with `rows` (chunk indices). `raw` orders, rounded to 6 decimals."""

    rows: Ints
    raw: Floats
    arms: Arms
    lift: Floats  # what the session adds
    factors: Mapping[str, Floats]  # by cue
    fusion: Fusion

    def top(self, k: int) -> Ints:
        """Positions of the best `k`, best first; of equals the newer chunk first."""
        candidates = np.arange(len(self.raw))
        if 0 < k < len(self.raw) // 4:  # sort only what can be among them, ties at the border included
            candidates = np.flatnonzero(self.raw >= np.partition(self.raw, -k)[-k])
        return candidates[np.lexsort((-self.rows[candidates], -self.raw[candidates]))[:k]]

    def unit(self) -> Floats:
        """0 to 1, higher is better, monotone in `raw` and on one scale for all questions: see `Fusion`."""
        positive = np.maximum(self.raw, 0)
        match self.fusion:
            case Fusion.ABSOLUTE:
                return (positive**2 / (positive**2 + HALF**2)).astype(np.float32)
            case Fusion.RRF:
                return (positive * (RRF_K + 1) / 2).astype(np.float32)
            case _:
                return np.minimum(positive, 1)


def explain(scores: Scores, position: int) -> dict[str, float]:
    """Every number behind the score at `position`: both arms, the session's lift, each factor that applied, `raw`."""
    arms = {"lexical": scores.arms.lexical, "cosine": scores.arms.cosine, "session": scores.lift}
    return {name: float(part[position]) for name, part in {**arms, **scores.factors, "raw": scores.raw}.items()}


def look(chunks: Chunks, passages: Passages, weights: Weights) -> View:
    """Derive what neighbours lend each other: O(N + P), whenever chunks were added."""
    words = np.maximum(chunks.words, 1).astype(np.float32)
    lent = np.float32(weights.context) * np.minimum(words, weights.context_words)
    asks = np.where(chunks.flags & Flag.QUESTION, np.float32(weights.question), np.float32(1))
    before = np.where(chunks.before >= 0, np.minimum(1, (lent * asks)[chunks.before] / words), 0).astype(np.float32)
    after = np.where(chunks.after >= 0, np.minimum(1, lent[chunks.after] / words), 0).astype(np.float32)
    thin = np.minimum(1, weights.lent_words / words).astype(np.float32)
    terms_before, terms_after = before * thin[chunks.before], after * thin[chunks.after]
    own = np.bincount(passages.chunk, weights=passages.length, minlength=len(words))
    borrowed = terms_before * own[chunks.before] + terms_after * own[chunks.after]
    length = passages.length + borrowed[passages.chunk]
    average = max(float(length.mean()), 1e-9) if len(length) else 1.0
    norm = (weights.k1 * (1 - weights.b + weights.b * length / average)).astype(np.float32)
    first = np.searchsorted(passages.chunk, np.arange(len(words) + 1))
    return View(chunks, passages, before, after, terms_before, terms_after, first, norm)


def lexical(question: Question, view: View, weights: Weights) -> Floats:
    """(N,) the share of the question's idf that the best passage of each chunk meets, 0 to 1.

    BM25 (Robertson and Zaragoza 2009) over passages with tf' = tf + A tf, without its factor k1 + 1, and divided by
    the idf of all the question's terms, those nobody ever used included. The work is that of the terms' postings.
    """
    size = len(view.passages.chunk)
    score, scratch = np.zeros(size, np.float32), np.zeros(size, np.float32)
    found = [view.passages.postings(term) for term in question.hashes]
    # A literal nobody used asks for nothing: its words are asked for as well, and stand for it.
    some = [f for f, literal in zip(found, question.literal, strict=True) if f or not literal]
    total, used = size + weights.prior + 0.5, [len(f[0]) if f else 0 for f in some]
    idf = [max(1e-6, log((total - n) / (n + 0.5))) for n in used]
    asked = sum(idf)
    for postings, weight in zip(some, idf, strict=True):
        if postings and weight >= NEGLIGIBLE * asked:
            touched = _spread(postings, view, scratch)
            tf = scratch[touched]
            # An index that occurs twice computes the same sum twice, so there is nothing to make unique.
            score[touched] += np.float32(weight) * (tf / (tf + view.norm[touched]))
            scratch[touched] = 0
    best = np.zeros(len(view.chunks.words), np.float32)
    hit = np.flatnonzero(score)
    if len(hit):
        chunk = view.passages.chunk[hit]
        starts = np.flatnonzero(np.diff(chunk, prepend=-1))
        best[chunk[starts]] = np.maximum.reduceat(score[hit], starts) / np.float32(asked)
    return best


def _spread(found: tuple[Ints, Ints], view: View, scratch: Floats) -> Ints:
    """Add a term's counts, and what they lend to neighbours, to `scratch` (P,); answers the passages touched."""
    index, counts = found
    scratch[index] += counts
    chunk = view.passages.chunk[index]
    starts = np.flatnonzero(np.diff(chunk, prepend=-1))
    lender, lent = chunk[starts], np.add.reduceat(counts, starts).astype(np.float32)
    touched = [index]
    for neighbours, share in ((view.chunks.after, view.terms_before), (view.chunks.before, view.terms_after)):
        taker = neighbours[lender]
        some = taker >= 0
        taker, value = taker[some], lent[some] * share[taker[some]]
        first = view.first[taker]
        count = view.first[taker + 1] - first
        where = np.repeat(first - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
        scratch[where] += np.repeat(value, count)  # a chunk has one neighbour a side: no index occurs twice
        touched.append(where)
    return np.concatenate(touched)


def neighbour_dots(matrix: Floats, row: Ints, chunks: Chunks, rows: Ints) -> tuple[Floats, Floats]:
    """v_i . v_after(i) and v_before(i) . v_after(i) for the chunks i in `rows`; 0 where a vector is missing.

    A new chunk changes both numbers of the chunk before it, and of nothing else that exists.
    """
    before, after = chunks.before[rows], chunks.after[rows]
    return _pair_dots(matrix, row, rows, after), _pair_dots(matrix, row, before, after)


def _pair_dots(matrix: Floats, row: Ints, left: Ints, right: Ints) -> Floats:
    dots = np.zeros(len(left), np.float32)
    both = np.flatnonzero((left >= 0) & (right >= 0) & (row[left] >= 0) & (row[right] >= 0))
    for some in np.split(both, range(4096, len(both), 4096)):  # so that copies stay small
        dots[some] = np.einsum("ij,ij->i", matrix[row[left[some]]], matrix[row[right[some]]])
    return dots


def centre(matrix: Floats, row: Ints, mean: Floats, dots: tuple[Floats, Floats]) -> Vectors:
    """The vectors of a namespace with what follows from their mean: one pass over them. `dots`: `neighbour_dots`."""
    return Vectors(matrix, row, mean, matrix @ mean, dots[0], dots[1])


def dense(query: Floats, vectors: Vectors, view: View, weights: Weights, rows: Ints | None = None) -> Floats:
    """Cosine of the centred question with each centred chunk in its context, -1 to 1; 0 for a chunk without vector.

    u = unit(v - m), w_i = unit(u_i + sum_j A_ij u_j), m = centring * mean; the answer is w_i . unit(query - m). `query`
    (D,) is a unit vector. With `rows`, only their vectors and their neighbours' are read; without, all.
    """
    if not len(vectors.matrix):
        return np.zeros(len(view.chunks.words) if rows is None else len(rows), np.float32)
    return cosine(query, blend(vectors, view, weights, rows))


def blend(vectors: Vectors, view: View, weights: Weights, rows: Ints | None = None) -> Blend:
    """All of `dense` but the question, for M > 0: worth keeping as long as chunks and vectors stay the same.

    No w is ever made: |u_i + sum_j A_ij u_j| follows from v . mean and the stored dots.
    """
    at: Rows = slice(None) if rows is None else rows
    chunks, row, size = view.chunks, vectors.row, len(view.chunks.words)
    share = np.float32(weights.centring * size / (size + weights.centring_prior))
    mean, toward = vectors.mean * share, vectors.to_mean * share
    square = np.float32(mean @ mean)
    radius = np.sqrt(np.maximum(1 - 2 * toward + square, 0))  # |v - m|
    radius = np.where(radius > 1e-3, radius, np.float32(np.inf))  # at the mean itself there is no direction
    i, b, a = row[at], row[chunks.before[at]], row[chunks.after[at]]
    lend_b = np.where((chunks.before[at] >= 0) & (b >= 0), view.from_before[at], np.float32(0))
    lend_a = np.where((chunks.after[at] >= 0) & (a >= 0), view.from_after[at], np.float32(0))

    def angle(dot: Floats, x: Ints, y: Ints) -> Floats:  # u_x . u_y, from v_x . v_y
        return np.asarray((dot - toward[x] - toward[y] + square) / (radius[x] * radius[y]), np.float32)

    squared = 1 + lend_b**2 + lend_a**2
    squared += 2 * lend_b * angle(vectors.dot_after[chunks.before[at]], i, b)
    squared += 2 * lend_a * angle(vectors.dot_after[at], i, a)
    squared += 2 * lend_a * lend_b * angle(vectors.dot_around[at], b, a)
    scale = np.where(i >= 0, 1 / np.sqrt(np.maximum(squared, 1e-9)), 0).astype(np.float32)
    parts = np.stack([scale / radius[i], scale * lend_b / radius[b], scale * lend_a / radius[a]])
    return Blend(vectors.matrix, mean, np.stack([i, b, a]), parts.astype(np.float32), whole=rows is None)


def cosine(query: Floats, blended: Blend) -> Floats:
    """What `dense` answers, for the chunks blended: one product with the vectors and three look-ups a chunk."""
    matrix, mean = blended.matrix, blended.mean
    if not query.any():  # a text without a single feature points nowhere
        return np.zeros(blended.rows.shape[1], np.float32)
    asked = (query - mean).astype(np.float32)
    asked /= max(float(np.linalg.norm(asked)), 1e-9)
    need: Rows = slice(None) if blended.whole else np.unique(blended.rows)
    dots = np.zeros(len(matrix), np.float32)
    dots[need] = matrix[need] @ asked - mean @ asked
    return np.asarray((blended.parts * dots[blended.rows]).sum(0), np.float32)


def fuse(question: Question, view: View, weights: Weights, arms: Arms, rows: Ints | None = None) -> Scores:
    """Score the chunks `rows` (None: all). Without an embedder, or for a question without terms, an arm is zeros."""
    at: Rows = slice(None) if rows is None else rows
    base = _base(arms, weights)
    lift = np.zeros_like(base)
    factors: dict[str, Floats] = {}
    if weights.fusion is Fusion.ABSOLUTE:
        lift = np.float32(weights.session) * _best(base, view.chunks.session[at])
        factors = _factors(question, view.chunks, weights, at)
    raw = base + lift
    for factor in factors.values():
        raw = raw * factor
    index = np.arange(len(view.chunks.words)) if rows is None else rows
    return Scores(index, np.round(raw, 6), arms, lift, factors, weights.fusion)


def _base(arms: Arms, weights: Weights) -> Floats:
    match weights.fusion:
        case Fusion.ABSOLUTE:
            return arms.lexical + np.float32(weights.dense) * arms.cosine
        case Fusion.RRF:
            return _reciprocal(arms.lexical) + _reciprocal(arms.cosine)
        case Fusion.WEIGHTED:
            return np.float32(0.5) * (_stretched(arms.lexical) + _stretched(arms.cosine))
        case Fusion.VECTOR:
            return arms.cosine
        case Fusion.KEYWORD:
            return arms.lexical


def _reciprocal(score: Floats) -> Floats:
    places, out = np.arange(len(score)), np.zeros(len(score), np.float32)
    out[np.lexsort((-places, -np.round(score, 6)))] = 1 / (RRF_K + 1 + places)
    return np.where(score > 0, out, np.float32(0))


def _stretched(score: Floats) -> Floats:
    low, high = (float(score.min()), float(score.max())) if len(score) else (0.0, 0.0)
    return ((score - low) / (high - low)).astype(np.float32) if high > low else np.zeros_like(score)


def _best(base: Floats, session: Ints) -> Floats:
    """The best of each chunk's session among the chunks given; its own score for a chunk of no session."""
    inside = session >= 0
    if not inside.any():
        return base
    top = np.full(int(session.max()) + 1, -np.inf, np.float32)
    np.maximum.at(top, session[inside], base[inside])
    return np.where(inside, top[session], base)


def _factors(question: Question, chunks: Chunks, weights: Weights, at: Rows) -> dict[str, Floats]:
    flags, role = chunks.flags[at], chunks.role[at]
    held: dict[str, tuple[float, npt.NDArray[np.bool_]]] = {}
    if question.actors:
        held["person"] = weights.person, np.isin(chunks.actor[at], question.actors)
    elif question.role >= 0:
        held["person"] = weights.person, role == question.role
    if question.actors or question.role == USER:
        held["self"] = weights.self_told, (flags & Flag.SELF) != 0
    if not question.about_asking:
        held["asks"] = -weights.only_asks, (flags & Flag.ASKS) != 0
    if question.answer == Flag.WISH:
        held["answer"] = weights.answer, ((flags & Flag.WISH) != 0) & (role == USER)
    elif question.answer:
        held["answer"] = weights.answer, (flags & question.answer) != 0
    if question.days:
        held["date"] = weights.date, said_on(question.days, chunks.time[at])
    return {name: np.where(holds, np.float32(1 + w), np.float32(1)) for name, (w, holds) in held.items() if w}
