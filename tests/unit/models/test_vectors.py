"""The one place where the answers of models are checked, and the texts they get are cleaned."""

import numpy as np
import pytest

from mnemic.errors import ModelMisbehaved
from mnemic.models.vectors import checked, clean, token_bound, unit


def test_a_good_answer_passes_as_float32() -> None:
    vectors = checked([[3, 4], [0.5, 0]], count=2, dimension=2, who="m")
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[3, 4], [0.5, 0]]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([[1.0, 2.0]], "answered 1 vectors for 2 texts"),
        ([[1.0, 2.0]] * 3, "answered 3 vectors for 2 texts"),
        ([[1.0], [2.0]], "answered 1 numbers a text where 2 are stored"),
        ([[1.0, 2.0], [1.0]], "different lengths"),
        ([[1.0, 2.0], [1.0, float("nan")]], "NaN or infinite"),
        ([[1.0, 2.0], [1.0, float("inf")]], "NaN or infinite"),
        ([[1.0, 2.0], [1.0, 1e300]], "NaN or infinite"),
        ([[1.0, 2.0], [0.0, 0.0]], "vector of zeros"),
        ([["1", "2"], ["3", "4"]], "something else than vectors"),
        ([[1.0, None], [1.0, 2.0]], "something else than vectors"),
        ([[], []], "something else than vectors"),
        ("hello", "answered no vectors"),
        (None, "answered no vectors"),
        ({"a": 1}, "answered no vectors"),
    ],
)
def test_a_bad_answer_says_what_is_wrong(answer: object, says: str) -> None:
    with pytest.raises(ModelMisbehaved, match=says):
        checked(answer, count=2, dimension=2, who="m")


def test_an_unknown_dimension_accepts_any() -> None:
    assert checked([[1.0, 2.0, 3.0]], count=1, dimension=0, who="m").shape == (1, 3)


def test_unit_leaves_zeros_alone() -> None:
    assert unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == pytest.approx(np.array([[0.6, 0.8], [0.0, 0.0]]))


def test_clean_gives_every_tokenizer_what_it_can_read() -> None:
    assert clean("a\x00b\ud83dc é 🐝") == "a b?c é 🐝"


def test_the_token_bound_is_above_what_a_tokenizer_finds() -> None:
    texts = [
        "The spare key is under the third beehive.",
        "def f(x: int) -> int: return x**2",
        "10.0.1.5:8080",
        "蜂の巣",
        "🐝🐝",
    ]
    tiktoken = pytest.importorskip("mnemic.models.tokens")
    assert all(token_bound(text) >= tiktoken.count_cl100k(text) for text in texts)
