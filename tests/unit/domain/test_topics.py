"""Topics: labels by meaning and by words, new ones as needed, the same in any order."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.config import TopicsConfig
from mnemic.domain.subjects import SUBJECTS
from mnemic.domain.topics import Taxonomy, Topic, assign, key, prompts, taxonomy
from mnemic.errors import ConfigError

AUTO = taxonomy(TopicsConfig())
TEXTS = [
    "The recipe asks for rice, saffron and a hot kitchen",
    "Our flight to Lisbon leaves from the new airport",
    "The Aurora project slips. Aurora needs two engineers",
    "Tell Herrn Weber about the house in München",
    "ok thanks!",
    "Sourdough again: sourdough needs patience and warm hands",
    "The database query needs an index on the table",
]


def labels(topics: tuple[Topic, ...]) -> list[str]:
    return [topic.label for topic in topics]


def fixed(*custom: str, **settings: object) -> TopicsConfig:
    return TopicsConfig(taxonomy="fixed", custom_topics=custom, **settings)  # type: ignore[arg-type]


def embedded(config: TopicsConfig, dimension: int = 256) -> tuple[Taxonomy, np.ndarray]:
    """A taxonomy whose labels have random, nearly orthogonal vectors; and those vectors, in the order of its labels."""
    count = len(prompts(config)) // 2
    rows = np.random.default_rng(7).normal(size=(count, dimension)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return taxonomy(config, np.repeat(rows, 2, axis=0)), rows


# --- identity ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"), [("Sourdough", "sourdoughs"), ("Machine Learning", "machine learning"), ("Gardening", "garden")]
)
def test_forms_of_a_label_are_one_topic(one: str, other: str) -> None:
    assert key(one) == key(other)


def test_symbols_that_name_something_tell_topics_apart() -> None:
    assert len({key("C"), key("C++"), key("C#")}) == 3
    assert key("你好吗") == key("你好吗 ") != ""
    assert key("!?") == "!?"


@given(st.permutations(TEXTS), st.randoms(use_true_random=False))
def test_another_order_gives_the_same_topics_up_to_their_names(texts: list[str], chance: random.Random) -> None:
    expected = {text: {topic.key for topic in assign(text, None, {}, AUTO)} for text in TEXTS}
    known: dict[str, str] = {}
    for text in texts:
        found = assign(text, None, known, AUTO)
        assert {topic.key for topic in found} == expected[text]
        known.update(
            (topic.key, chance.choice([topic.label, topic.label.upper()])) for topic in found if not topic.known
        )


def test_a_known_topic_keeps_the_label_it_was_first_given() -> None:
    (topic,) = assign("Sourdough again: sourdoughs need patience", None, {"sourdough": "SOURDOUGH"}, AUTO)
    assert (topic.label, topic.known) == ("SOURDOUGH", True)


# --- auto -------------------------------------------------------------------------------------------------------


def test_auto_names_the_subject_by_its_words() -> None:
    assert labels(assign(TEXTS[0], None, {}, AUTO)) == ["cooking"]
    assert labels(assign(TEXTS[1], None, {}, AUTO))[0] == "travel"
    assert labels(assign(TEXTS[6], None, {}, AUTO))[0] == "databases"


def test_auto_makes_topics_of_key_phrases_only_as_needed() -> None:
    assert labels(assign("We met the Zeta Group about it. The Zeta Group agreed", None, {}, AUTO)) == ["Zeta Group"]
    assert labels(assign(TEXTS[5], None, {}, AUTO)) == ["sourdough"]
    assert assign(TEXTS[4], None, {}, AUTO) == ()
    assert assign("He waited for a long time", None, {}, AUTO) == ()
    assert labels(assign("Anna likes the recipe and her kitchen", None, {}, AUTO)) == ["cooking"]


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("so we saw Zeta there", 0.45 + 0.20),
        ("so we saw Zeta there and Zeta here", 0.45 + 0.20 + 0.15),
        ("zeta and zeta and zeta and zeta", 0.45 + 0.30),
        ("# Zeta\nso it went", 0.45 + 0.15),
        ("# Zeta\nso we saw Zeta, Zeta and Zeta", 1.0),
    ],
)
def test_confidence_of_a_key_phrase_follows_its_formula(text: str, confidence: float) -> None:
    (topic,) = assign(text, None, {}, AUTO)
    assert (topic.key, topic.confidence) == ("zeta", pytest.approx(confidence))


def test_at_most_so_many_topics_most_confident_first() -> None:
    text = "The recipe, the kitchen, the flight, the hotel, the doctor, the hospital, the password and the encryption"
    found = assign(text, None, {}, AUTO)
    assert len(found) == 3
    assert [topic.confidence for topic in found] == sorted((topic.confidence for topic in found), reverse=True)
    assert len(assign(text, None, {}, taxonomy(TopicsConfig(max_topics_per_entry=1)))) == 1
    assert assign(text, None, {}, taxonomy(TopicsConfig(max_topics_per_entry=0))) == ()
    assert assign(text, None, {}, taxonomy(TopicsConfig(enabled=False))) == ()


# --- fixed and hybrid -------------------------------------------------------------------------------------------


def test_fixed_assigns_custom_topics_only() -> None:
    by = taxonomy(fixed("travel", "Bees"))
    assert labels(assign("My bees swarmed in the garden", None, {}, by)) == ["Bees"]
    assert assign(TEXTS[0], None, {}, by) == ()
    assert assign(TEXTS[2], None, {}, by) == ()


def test_hybrid_prefers_custom_topics_and_else_makes_some() -> None:
    by = taxonomy(TopicsConfig(taxonomy="hybrid", custom_topics=("bees",)))
    assert labels(assign("My bees like the kitchen and its recipe", None, {}, by)) == ["bees"]
    assert labels(assign(TEXTS[0], None, {}, by)) == ["cooking"]
    assert labels(assign(TEXTS[2], None, {}, by))[0] == "Aurora"


def test_a_label_fits_by_meaning_without_a_common_word() -> None:
    by, rows = embedded(fixed("beekeeping", "knots"))
    text = "Paella needs bomba rice"
    assert labels(assign(text, rows[0], {}, by)) == ["beekeeping"]
    assert labels(assign(text, rows[1], {}, by)) == ["knots"]
    assert assign(text, rows[0], {}, by)[0].confidence > 0.9
    assert assign(text, -rows[0], {}, by) == ()


def test_what_resembles_every_subject_is_about_none() -> None:
    by, rows = embedded(fixed("beekeeping"), dimension=64)
    everything = rows.sum(0)
    assert assign("It went on", everything / np.linalg.norm(everything), {}, by) == ()


def test_confidence_follows_its_formula() -> None:
    by, rows = embedded(replace(fixed("beekeeping"), min_confidence=0.0))
    vector = (rows[0] + rows[1]) / np.linalg.norm(rows[0] + rows[1])
    likeness = (rows[0] @ vector - (rows[1:] @ vector).mean()) / np.std((rows @ rows.T)[np.triu_indices(len(rows), 1)])
    expected = 1 / (1 + np.exp(6.0 - 3.0 * likeness))
    assert assign("It went on", vector, {}, by)[0].confidence == pytest.approx(expected, abs=1e-3)


def test_confidence_lies_between_0_and_1() -> None:
    by, rows = embedded(replace(fixed("beekeeping", "knots"), min_confidence=0.0))
    for vector in (rows[0], -rows[0], 1000 * rows[1], -1000 * rows[1], np.zeros_like(rows[0])):
        assert all(0 <= topic.confidence <= 1 for topic in assign("bees", vector, {}, by))


# --- settings and cost ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (TopicsConfig(taxonomy="free"), "'free' is none of"),  # type: ignore[arg-type]
        (TopicsConfig(min_confidence=1.1), "min_confidence = 1.1"),
        (TopicsConfig(max_topics_per_entry=-1), "max_topics_per_entry = -1"),
        (fixed("  "), "not 1 to 80 characters"),
        (fixed("x" * 81), "not 1 to 80 characters"),
        (fixed("travel", "Travels"), "'travel' and 'Travels' are the same topic"),
        (fixed("travel", "travel"), "are the same topic"),
    ],
)
def test_contradictory_settings_are_configuration_errors(config: TopicsConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        taxonomy(config)


def test_vectors_must_match_the_prompts() -> None:
    with pytest.raises(ValueError, match="vectors, not 1"):
        taxonomy(TopicsConfig(), np.ones((1, 4), np.float32))


def test_every_subject_is_a_topic_of_its_own() -> None:
    assert len({key(label) for label in SUBJECTS}) == len(SUBJECTS)
    assert all(len(words) >= 8 for words in SUBJECTS.values())


@pytest.mark.parametrize("unit", ["Anna ", "a", "好", "👍", "# Head\n", "A A A. ", "\x00\ud83d", "Zeta's "])
def test_time_is_linear_in_the_text(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    began = time.process_time()
    assign(text, None, {}, AUTO)
    assert time.process_time() - began < 3
