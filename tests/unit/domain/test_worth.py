"""What the filter keeps and refuses, and that nothing with a new value is ever taken for a repetition."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path

import pytest

from mnemic.config import FilterConfig
from mnemic.domain.novelty import says_the_same
from mnemic.domain.types import ChunkId
from mnemic.domain.worth import (
    WEIGHTS,
    Circumstances,
    Duplicate,
    Keep,
    Neighbour,
    Parts,
    Reason,
    Refuse,
    Rules,
    judge,
    rules,
)
from mnemic.errors import ConfigError

SMALL_TALK = (Path(__file__).parents[2] / "data" / "small_talk.txt").read_text(encoding="utf-8").splitlines()
DEFAULT = rules(FilterConfig())
ALONE = Circumstances()


def near(text: str, similarity: float = 0.99) -> Circumstances:
    return Circumstances(neighbours=(Neighbour(ChunkId(7), text, similarity),))


def by(**settings: object) -> Rules:
    return rules(FilterConfig(**settings))  # type: ignore[arg-type]


# --- the score --------------------------------------------------------------------------------------------------


def test_the_score_is_the_weighted_sum_of_the_parts() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    assert Parts(1, 1, 1, 1, 1).score == pytest.approx(1)
    assert Parts(0.5, 1, 0.5, 0, 1).score == pytest.approx(0.15 + 0.30 + 0.075 + 0.10)


def test_each_part_follows_its_formula() -> None:
    text = "The boiler needs a new valve, so we will call Marta by Friday."
    parts = judge(text, Circumstances(relevance=0.7, age_days=30), DEFAULT).parts
    # content: boiler, new, valve, call, marta, friday; cues: "we will", "by friday"; 13 words
    assert parts.density == pytest.approx(6 / 13)
    assert parts.novelty == 1
    assert parts.relevance == pytest.approx(0.85)
    assert parts.actionability == 1
    assert parts.recency == pytest.approx(0.5)


def test_repeating_words_is_not_density() -> None:
    assert judge("buy gold " * 500, ALONE, DEFAULT).parts.density == pytest.approx(2 / 40)
    assert judge(" ".join(f"word{n}" for n in range(500)), ALONE, DEFAULT).parts.density == 1


# --- small talk and statements ----------------------------------------------------------------------------------


def test_small_talk_is_refused() -> None:
    assert len(SMALL_TALK) >= 150
    kept = [text for text in SMALL_TALK if isinstance(judge(text, ALONE, DEFAULT), Keep)]
    assert len(kept) <= 0.1 * len(SMALL_TALK), kept


@pytest.mark.parametrize(
    "text",
    [
        "I'm vegan",
        "I'm 34",
        "My dog is Rex",
        "I love my job",
        "I quit smoking",
        "I work better at night",
        "Soy vegetariano",
        "Ich bin Arzt",
        "Je suis végétarien",
        "我是素食者",
        "I don’t eat pork",
        "The meeting moved to Thursday at 9.",
        "The rate limit is 800 requests a minute",
        "Paella needs bomba rice",
        "Juan se mudó a Valencia en marzo",
        "El servidor escucha en el puerto 7437",
        "会议改到星期四上午九点在三楼会议室",
        "明日の会議は三階の会議室で九時からです",
        "Error: connection refused at 10.0.1.5:5432",
        "Thanks! By the way, my sister moved to Oslo.",
    ],
)
def test_statements_are_kept(text: str) -> None:
    assert isinstance(judge(text, ALONE, DEFAULT), Keep)


def test_what_a_user_puts_in_on_purpose_is_kept_whatever_it_scores() -> None:
    strict = by(exclude_patterns=("ok",), autosave_threshold=1.0)
    assert isinstance(judge("ok", Circumstances(deliberate=True), strict), Keep)
    known = Circumstances(deliberate=True, neighbours=(Neighbour(ChunkId(1), "ok", 1.0),))
    assert isinstance(judge("ok", known, strict), Keep)


def test_without_the_filter_everything_is_kept_with_its_parts() -> None:
    verdict = judge("ok", ALONE, by(enabled=False))
    assert isinstance(verdict, Keep)
    assert verdict.score < 0.4


# --- cheap tests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("Rex: a brown dog now", False),
        ("Rex: a brown dog no", True),
        ("猫猫猫猫猫猫猫猫猫猫", False),
        ("猫猫猫猫猫猫猫猫猫", True),
        ("  Rex a dog           ", True),
    ],
)
def test_min_length_counts_columns(text: str, short: bool) -> None:
    verdict = judge(text, ALONE, by(autosave_threshold=0.0))
    assert isinstance(verdict, Refuse if short else Keep)
    assert not isinstance(verdict, Refuse) or verdict.reason is Reason.SHORT


def test_max_length_truncates_what_is_scored() -> None:
    text = "ok " * 10 + "Marta moved the boiler to the cellar of her house in Oslo"
    assert isinstance(judge(text, ALONE, DEFAULT), Keep)
    assert judge(text, ALONE, by(max_length=29)).parts.density == 0


def test_patterns_ignore_case_and_outer_space_and_name_themselves() -> None:
    patterned = by(exclude_patterns=(r"^\s*$", r"^(ok|thanks|got it|sure)$", "(?-i:SECRET)"), min_length=0)
    for text, pattern in (("OK ", 1), ("   ", 0), ("the SECRET plan of Marta for Oslo", 2)):
        verdict = judge(text, ALONE, patterned)
        assert isinstance(verdict, Refuse)
        assert (verdict.reason, verdict.pattern) == (Reason.EXCLUDED, patterned.config.exclude_patterns[pattern])
    assert isinstance(judge("the secret plan of Marta for Oslo", ALONE, patterned), Keep)


def test_a_pattern_sees_text_beyond_max_length() -> None:
    text = "Marta moved to Oslo. " * 600 + "password"
    assert isinstance(judge(text, ALONE, by(exclude_patterns=("password",))), Refuse)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"exclude_patterns": ("(unclosed",)}, r"'\(unclosed' is not a pattern RE2 accepts: missing \)"),
        ({"exclude_patterns": ("(?=a)",)}, "invalid perl operator"),
        ({"exclude_patterns": ("x" * 1025,)}, "longer than 1024 bytes"),
        ({"exclude_patterns": ("x",) * 201}, "201 patterns, at most 200"),
        ({"autosave_threshold": 1.5}, "autosave_threshold = 1.5"),
        ({"novelty_threshold": -0.1}, "novelty_threshold = -0.1"),
        ({"min_length": 30, "max_length": 20}, "min_length = 30"),
    ],
)
def test_bad_rules_are_configuration_errors(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        by(**settings)


def test_catastrophic_patterns_and_texts_take_linear_time() -> None:
    evil = by(exclude_patterns=(r"(a+)+$", r"(x|x|x)*y", r"(.*)(.*)(.*)=z"))
    began = time.process_time()
    for text in ("a" * 200_000 + "!", "x" * 200_000, "= " * 100_000, "ha" * 100_000, "\ud83d\x00 lone"):
        judge(text, ALONE, evil)
    assert time.process_time() - began < 3


# --- novelty ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("I live in Rome near the river", "i live in Rome, near the river!"),
        ("I'm a vegan since the summer", "I am vegan since summer."),
        ("Thanks, the boiler man comes on Friday", "The boiler man comes Friday"),
        ("I don’t eat pork or beef", "I do not eat pork or beef"),
        ("ＡＢＣ corporation pays", "ABC corporation pays"),
    ],
)
def test_the_same_words_are_a_duplicate_above_the_threshold_only(text: str, stored: str) -> None:
    assert says_the_same(text, stored)
    verdict = judge(text, near(stored, 0.86), DEFAULT)
    assert verdict == Duplicate(ChunkId(7), verdict.parts)
    assert not isinstance(judge(text, near(stored, 0.85), DEFAULT), Duplicate)
    assert verdict.parts.novelty == pytest.approx(0.14)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("The rate limit is 500 requests", "The rate limit is 800 requests"),
        ("I like coffee in the morning", "I do not like coffee in the morning"),
        ("I can eat peanuts again", "I can't eat peanuts again"),
        ("I lived in Rome near the river", "I live in Rome near the river"),
        ("I was vegan for a while", "I am vegan for a while"),
        ("Juan owes Maria forty euros", "Maria owes Juan forty euros"),
        ("The flight to Rome leaves at nine", "The flight from Rome leaves at nine"),
        ("The limit is -5 degrees today", "The limit is 5 degrees today"),
        ("We write the server in C++ now", "We write the server in C# now"),
        ("Switch the heating on at six", "Switch the heating off at six"),
        ("You live in Rome near the river?", "You live in Rome near the river."),
        ("The plan got a 👍 from Marta", "The plan got a 👎 from Marta"),
        ("会议在星期四", "会议不在星期四"),
        ("My birthday is on 3 May", "My birthday is on 3 June"),
        ("Her car is red and new", "His car is red and new"),
    ],
)
def test_a_difference_that_matters_is_novel_whatever_the_cosine(text: str, stored: str) -> None:
    verdict = judge(text, near(stored, 0.999), by(min_length=0))
    assert isinstance(verdict, Keep)
    assert verdict.parts.novelty > 0.3


def changes() -> list[tuple[str, str]]:
    """Two hundred pairs that differ in one value: numbers, names, dates, negations, units, states."""
    slots: dict[str, list[str]] = {
        "The rate limit of the gateway is {} requests": ["500", "800", "5,000", "500.5", "-500", "five hundred"],
        "My sister {} lives in the house by the lake": ["Ana", "Anna", "Marta", "José", "Jose Luis"],
        "The appointment with the dentist is on {}": [
            "3 May",
            "4 May",
            "Monday",
            "Tuesday",
            "2024-05-03",
            "May 3 at 9",
        ],
        "The server runs on {} in production": ["v1.2.3", "v1.2.4", "10.0.1.5", "10.0.1.6", "port 80", "C++", "C#"],
        "I {} eat meat these days": ["do", "don't", "never", "always", "rarely", "used to"],
        "The colour of the kitchen wall is {}": ["red", "blue", "light blue", "not red", "dark red"],
        "La cuota mensual es de {} euros": ["20", "25", "200", "veinte"],
        "{} owes money to the bank": ["Ana", "Nobody", "The firm", "She", "He"],
    }
    return [
        (frame.format(a), frame.format(b))
        for frame, values in slots.items()
        for a, b in product(values, values)
        if a != b
    ][:200]


def test_two_hundred_value_changes_are_all_kept() -> None:
    pairs = changes()
    assert len(pairs) == 200
    assert [pair for pair in pairs if not isinstance(judge(pair[0], near(pair[1], 0.999), DEFAULT), Keep)] == []


def test_the_nearest_of_several_neighbours_is_the_one_named() -> None:
    said = "The boiler man comes on Friday"
    neighbours = (
        Neighbour(ChunkId(1), "The boiler man comes on Monday", 0.99),
        Neighbour(ChunkId(2), said, 0.95),
        Neighbour(ChunkId(3), said, 0.97),
    )
    verdict = judge(said, Circumstances(neighbours=neighbours), DEFAULT)
    assert verdict == Duplicate(ChunkId(3), verdict.parts)
