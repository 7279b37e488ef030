"""The embedder without a model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.domain.terms import term_hash
from mnemic.models.hashing import DIMENSION, HashingEmbedder

EMBEDDER = HashingEmbedder()


def cosine(left: str, right: str) -> float:
    a, b = EMBEDDER.embed([left, right])
    return float(a @ b)


def test_the_space_says_what_makes_its_vectors_comparable() -> None:
    assert EMBEDDER.space.label == "hashing/tf/256/terms-signed-l2"


def test_one_word_is_one_signed_bucket() -> None:
    (vector,) = EMBEDDER.embed(["beehive"])
    code = term_hash("beehiv")
    assert np.flatnonzero(vector).tolist() == [code & 0xFF]
    assert vector[code & 0xFF] == (1.0 if code & 0x100 else -1.0)


def test_frequency_counts_sublinearly() -> None:
    (vector,) = EMBEDDER.embed(["key key key beehive"])
    key, hive = (abs(vector[term_hash(term) & 0xFF]) for term in ("kei", "beehiv"))
    assert key / hive == pytest.approx(1 + np.log(3), rel=1e-6)


def test_texts_that_share_words_are_near_and_others_are_not() -> None:
    assert cosine("the spare key is under the beehive", "Spare keys? Under beehives!") == pytest.approx(1.0)
    assert cosine("the spare key", "quarterly revenue") == pytest.approx(0.0)
    assert 0.3 < cosine("the spare key", "the spare tyre") < 0.8


def test_a_text_without_terms_gives_zeros() -> None:
    assert not EMBEDDER.embed(["", "   ", "the of and"]).any()


def test_no_text_gives_no_row() -> None:
    assert EMBEDDER.embed([]).shape == (0, DIMENSION)


@given(st.text(st.characters(codec=None, exclude_categories=[])))
def test_any_text_gives_a_finite_unit_or_zero_vector_the_same_for_questions(text: str) -> None:
    stored, asked = EMBEDDER.embed([text])[0], EMBEDDER.embed([text], query=True)[0]
    assert stored.dtype == np.float32
    assert float(np.linalg.norm(stored)) == pytest.approx(1.0, abs=1e-5) or not stored.any()
    assert np.array_equal(stored, asked)
