"""The ranking against its formulas, computed the long way, and the rules a reader relies on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
import numpy.typing as npt
import pytest

from mnemic.domain import ranking
from mnemic.domain.cues import ask
from mnemic.domain.ranking import Arms, Chunks, Fusion, Passages, Scores, Vectors, View, Weights
from mnemic.domain.terms import analyse, term_hash

W = Weights()
PLAIN = replace(W, context=0, session=0, person=0, self_told=0, only_asks=0, answer=0, date=0, centring=0, prior=0)
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Turn:
    text: str
    session: int = 0
    actor: int = -1
    role: int = 0
    time: str = "2023-05-08"


ACTORS = ("Ann", "Bea")
TALK = (
    Turn("Did you ever fire the big kiln?", actor=1),
    Turn("Yes, yesterday. It was scary.", actor=0),
    Turn("I painted a sunrise. " * 12, actor=0),
    Turn("The library lends telescopes for a week.", 1, actor=1),
    Turn("", 1, actor=-1),
    Turn("I saw Saturn from the roof in Lisbon!", 1, actor=0, time="2023-07-01"),
    Turn("Pottery glaze needs the kiln at 1,200 degrees.", -1),
)


def view_of(turns: Sequence[Turn], weights: Weights = W) -> View:
    found = [analyse(turn.text, ACTORS[turn.actor] if turn.actor >= 0 else "") for turn in turns]
    chunk = [n for n, analysis in enumerate(found) for _ in analysis.passages]
    passages = [passage for analysis in found for passage in analysis.passages]
    postings: dict[int, tuple[list[int], list[int]]] = {}
    for n, passage in enumerate(passages):
        for term, count in passage.items():
            index, counts = postings.setdefault(term_hash(term), ([], []))
            index.append(n)
            counts.append(count)
    table = {term: (np.array(i, np.int32), np.array(c, np.int32)) for term, (i, c) in postings.items()}
    before, after = [-1] * len(turns), [-1] * len(turns)
    for n, turn in enumerate(turns):
        earlier = [m for m in range(n) if turns[m].session == turn.session >= 0]
        if earlier:
            before[n], after[earlier[-1]] = earlier[-1], n
    chunks = Chunks(
        before=np.array(before, np.int32),
        after=np.array(after, np.int32),
        words=np.array([analysis.words for analysis in found], np.int32),
        session=np.array([turn.session for turn in turns], np.int32),
        actor=np.array([turn.actor for turn in turns], np.int32),
        role=np.array([turn.role for turn in turns], np.int8),
        flags=np.array([analysis.flags for analysis in found], np.int32),
        time=np.array([turn.time for turn in turns], "datetime64[us]").astype(np.int64),
    )
    lengths = np.array([sum(passage.values()) for passage in passages], np.int32)
    return ranking.look(chunks, Passages(np.array(chunk, np.int32), lengths, table.get), weights)


def operator(view: View, weights: Weights) -> tuple[Array, Array]:
    """A of the module's docstring, for vectors and, thinned, for words."""
    words, flags, size = np.maximum(view.chunks.words, 1), view.chunks.flags, len(view.chunks.words)
    lends = np.zeros((size, size))
    for i in range(size):
        for j in (view.chunks.before[i], view.chunks.after[i]):
            if j >= 0:
                g = weights.question if j < i and flags[j] & 1 else 1
                lends[i, j] = min(1, weights.context * g * min(words[j], weights.context_words) / words[i])
    return lends, lends * np.minimum(1, weights.lent_words / words)


def lexical_the_long_way(question: str, view: View, weights: Weights) -> Array:
    _, lends = operator(view, weights)
    chunk, own = view.passages.chunk, view.passages.length
    size, number = len(chunk), len(view.chunks.words)
    length = own + (lends @ np.bincount(chunk, own, number))[chunk]
    score, asked = np.zeros(size), 0.0
    question_asked = ask(question, ACTORS)
    for term, literal in zip(question_asked.hashes, question_asked.literal, strict=True):
        tf, found = np.zeros(size), view.passages.postings(term)
        if found is None and literal:
            continue
        used = 0 if found is None else len(found[0])
        idf = max(1e-6, log((size + weights.prior - used + 0.5) / (used + 0.5)))
        asked += idf
        if found is not None:
            tf[found[0]] = found[1]
            tf += (lends @ np.bincount(chunk, tf, number))[chunk]
        score += idf * tf / (tf + weights.k1 * (1 - weights.b + weights.b * length / length.mean()))
    best = np.zeros(number)
    np.maximum.at(best, chunk, score / asked)
    return best


@pytest.mark.parametrize(
    "question", ["When did Ann fire the kiln?", "telescopes on Saturn", "unheard-of words and a sunrise", "kiln"]
)
@pytest.mark.parametrize("weights", [W, PLAIN, replace(W, context=2.0, lent_words=5, question=4.0)])
def test_words_are_scored_as_the_formula_says(question: str, weights: Weights) -> None:
    view = view_of(TALK, weights)
    got = ranking.lexical(ask(question, ACTORS), view, weights)
    assert got.dtype == np.float32
    assert got == pytest.approx(lexical_the_long_way(question, view, weights), abs=1e-4)


def vectors_of(view: View, missing: Sequence[int] = (), dimension: int = 8) -> Vectors:
    draw = np.random.default_rng(7)
    have = [n for n in range(len(view.chunks.words)) if n not in missing]
    matrix = draw.normal(size=(len(have), dimension)) + 0.6
    matrix = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    row = np.full(len(view.chunks.words), -1, np.int32)
    row[have] = np.arange(len(have))[::-1]  # rows need not stand in the order of chunks
    dots = ranking.neighbour_dots(matrix, row, view.chunks, np.arange(len(row)))
    return ranking.centre(matrix, row, matrix.sum(0) / np.float32(max(len(matrix), 1)), dots)


def dense_the_long_way(query: Array, vectors: Vectors, view: View, weights: Weights) -> Array:
    lends, _ = operator(view, weights)
    size = len(vectors.row)
    mean = vectors.mean * weights.centring * size / (size + weights.centring_prior)
    unit = np.where(vectors.row[:, None] >= 0, vectors.matrix[vectors.row] - mean, 0)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    blended = np.where(vectors.row[:, None] >= 0, unit + lends @ unit, 0)
    blended /= np.maximum(np.linalg.norm(blended, axis=1, keepdims=True), 1e-12)
    asked = query - mean
    return np.asarray(blended @ (asked / np.linalg.norm(asked)))


@pytest.mark.parametrize("missing", [(), (1,), (0, 2, 6)])
@pytest.mark.parametrize("weights", [W, replace(W, centring=1.0, centring_prior=0.0), replace(W, context=0.0)])
def test_context_of_vectors_needs_only_raw_dots(missing: tuple[int, ...], weights: Weights) -> None:
    view = view_of(TALK, weights)
    vectors = vectors_of(view, missing)
    query = vectors.matrix[0] * 0.6 + vectors.matrix[1] * 0.8
    query = (query / np.linalg.norm(query)).astype(np.float32)
    expected = dense_the_long_way(query, vectors, view, weights)
    assert ranking.dense(query, vectors, view, weights) == pytest.approx(expected, abs=1e-5)
    rows = np.array([5, 1, 3])
    assert ranking.dense(query, vectors, view, weights, rows) == pytest.approx(expected[rows], abs=1e-5)


def test_nothing_to_compare_is_a_cosine_of_zero() -> None:
    view = view_of(TALK)
    vectors = vectors_of(view, missing=range(len(TALK)))
    assert ranking.dense(np.ones(8, np.float32), vectors, view, W).tolist() == [0.0] * 7
    vectors = vectors_of(view)
    assert ranking.dense(np.zeros(8, np.float32), vectors, view, W).tolist() == [0.0] * 7


def test_a_new_chunk_changes_the_dots_of_the_one_before_only() -> None:
    earlier, later = vectors_of(view_of(TALK[:5])), view_of(TALK[:6])
    matrix = np.concatenate([earlier.matrix, earlier.matrix[:1]])
    row = np.append(earlier.row, len(matrix) - 1)
    after, around = ranking.neighbour_dots(matrix, row, later.chunks, np.arange(6))
    assert np.flatnonzero(after[:5] != earlier.dot_after).tolist() == [4]
    assert np.flatnonzero(around[:5] != earlier.dot_around).tolist() == [4]


def scored(
    question: str, turns: Sequence[Turn] = TALK, weights: Weights = W, rows: Sequence[int] | None = None
) -> Scores:
    view, asked = view_of(turns, weights), ask(question, ACTORS)
    some = None if rows is None else np.array(rows)
    lexical = ranking.lexical(asked, view, weights)
    lexical = lexical if some is None else lexical[some]
    return ranking.fuse(asked, view, weights, Arms(lexical, np.zeros_like(lexical)), some)


def order(scores: Scores, k: int = 3) -> list[int]:
    return [int(n) for n in scores.rows[scores.top(k)]]


def test_an_answer_is_found_by_the_words_of_its_question() -> None:
    assert order(scored("When did Ann fire the kiln?"), 1) == [1]
    without = replace(W, context=0.0)
    assert order(scored("When did Ann fire the kiln?", weights=without), 1) != [1]


def test_words_nobody_used_lower_the_share_that_is_met() -> None:
    known = ranking.lexical(ask("telescopes", ()), view_of(TALK), W)[3]
    half = ranking.lexical(ask("telescopes blorp", ()), view_of(TALK), W)[3]
    assert 0 < half < 0.6 * known


def test_a_literal_nobody_used_asks_for_nothing() -> None:
    plain = ranking.lexical(ask("big kiln", ()), view_of(TALK), W)
    assert ranking.lexical(ask("big-kiln", ()), view_of(TALK), W).tolist() == plain.tolist()


def test_a_store_of_one_note_is_found() -> None:
    one = (Turn("The wifi password is on the fridge.", -1),)
    assert scored("wifi password", one).unit()[0] > 0.5
    assert scored("dentist", one).unit()[0] == 0.0


def test_an_empty_store_answers_nothing() -> None:
    scores = scored("anything", ())
    assert (order(scores), scores.unit().tolist()) == ([], [])


def test_a_filter_leaves_the_others_without_score_or_lift() -> None:
    whole, part = scored("kiln"), scored("kiln", rows=[2, 6])
    assert part.rows.tolist() == [2, 6]
    assert part.arms.lexical.tolist() == whole.arms.lexical[[2, 6]].tolist()
    assert part.lift[0] == pytest.approx(W.session * part.arms.lexical[0])  # turn 0, the session's best, is out


def test_each_cue_multiplies_and_says_so() -> None:
    scores = scored("When did Ann see Saturn, in July 2023?")
    assert {name: [round(float(x), 2) for x in factor] for name, factor in scores.factors.items()} == {
        "person": [1.0, 1.3, 1.3, 1.0, 1.0, 1.3, 1.0],
        "self": [1.0, 1.0, 1.3, 1.0, 1.0, 1.3, 1.0],
        "asks": [0.8, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        "answer": [1.0, 1.2, 1.0, 1.2, 1.0, 1.0, 1.0],
        "date": [1.0, 1.0, 1.0, 1.0, 1.0, 1.4, 1.0],
    }
    parts = ranking.explain(scores, 5)
    assert set(parts) == {"lexical", "cosine", "session", "person", "self", "asks", "answer", "date", "raw"}
    product = parts["person"] * parts["self"] * parts["asks"] * parts["answer"] * parts["date"]
    assert parts["raw"] == pytest.approx((parts["lexical"] + parts["session"]) * product, abs=1e-5)


def test_a_weight_of_zero_switches_a_feature_off() -> None:
    off = replace(W, session=0, person=0, self_told=0, only_asks=0, answer=0, date=0)
    scores = scored("When did Ann see Saturn, in July 2023?", weights=off)
    assert scores.factors == {}
    assert scores.raw == pytest.approx(scores.arms.lexical, abs=1e-6)


def test_my_standing_wishes_count_for_requests_and_nobody_elses() -> None:
    turns = (Turn("Always use tabs."), Turn("Always use tabs.", role=1), Turn("Use tabs."))
    assert [round(float(x), 2) for x in scored("Could you show me some code?", turns).factors["answer"]] == [1.2, 1, 1]


def test_questions_are_answers_to_what_was_asked() -> None:
    assert "asks" not in scored("What did Bea ask about the kiln?").factors


LEX = np.array([0.4, 0.0, 0.2, 0.4], np.float32)
COS = np.array([0.1, 0.95, -0.3, 0.1], np.float32)
UNRELATED = tuple(Turn("word", -1) for _ in range(4))


def fused(fusion: Fusion) -> Scores:
    weights = replace(W, fusion=fusion)
    return ranking.fuse(ask("", ()), view_of(UNRELATED, weights), weights, Arms(LEX, COS))


@pytest.mark.parametrize(
    ("fusion", "expected"),
    [
        (Fusion.KEYWORD, [3, 0, 2, 1]),
        (Fusion.VECTOR, [1, 3, 0, 2]),
        (Fusion.ABSOLUTE, [1, 3, 0, 2]),
        (Fusion.RRF, [3, 0, 1, 2]),
        (Fusion.WEIGHTED, [3, 0, 1, 2]),
    ],
)
def test_every_fusion_orders_by_its_rule_and_the_newer_of_equals_first(fusion: Fusion, expected: list[int]) -> None:
    assert order(fused(fusion), 4) == expected


def test_the_scale_of_each_fusion_is_zero_to_one() -> None:
    assert fused(Fusion.RRF).unit()[3] == pytest.approx((1 / 61 + 1 / 62) * 61 / 2, abs=1e-4)
    assert fused(Fusion.VECTOR).unit().tolist() == pytest.approx([0.1, 0.95, 0, 0.1])
    assert fused(Fusion.KEYWORD).unit().tolist() == pytest.approx([0.4, 0, 0.2, 0.4])
    assert fused(Fusion.WEIGHTED).unit().tolist() == pytest.approx([0.66, 0.5, 0.25, 0.66])
    raw = 1.3 * 0.45
    assert fused(Fusion.ABSOLUTE).unit()[0] == pytest.approx(raw**2 / (raw**2 + ranking.HALF**2))


def test_the_best_few_are_the_head_of_the_full_order() -> None:
    raw = np.round(np.random.default_rng(1).random(500), 2).astype(np.float32)  # many ties
    none = np.zeros(500, np.float32)
    scores = Scores(np.arange(500), raw, Arms(none, none), none, {}, Fusion.KEYWORD)
    expected = sorted(range(500), key=lambda n: (-raw[n], -n))
    for k in (0, 1, 7, 100, 499, 600):
        assert scores.top(k).tolist() == expected[:k]


def test_the_chunk_of_a_text_is_the_nearest_to_that_text() -> None:
    """Identical text scores near 1, unrelated text near 0."""
    turns = tuple(
        Turn(text, -1) for text in ("The wifi password is on the fridge.", "Dentist on Monday.", "Buy oat milk.")
    )
    view = view_of(turns)
    row = np.arange(3, dtype=np.int32)
    matrix = np.eye(3, 8, dtype=np.float32)
    dots = ranking.neighbour_dots(matrix, row, view.chunks, row)
    asked = ask(turns[0].text, ())
    cosine = ranking.dense(matrix[0], ranking.centre(matrix, row, matrix.mean(0), dots), view, W)
    unit = ranking.fuse(asked, view, W, Arms(ranking.lexical(asked, view, W), cosine)).unit()
    assert unit[0] > 0.9
    assert unit[1:].max() < 0.02
