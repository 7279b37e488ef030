"""Token counts: known values of cl100k_base, offline, in linear time."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import ConfigError
from mnemic.models import tokens
from mnemic.models.tokens import count_cl100k, counter


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("hello world", 2),
        ("tiktoken is great!", 6),
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        ("お誕生日おめでとう", 9),
        ("<|endoftext|>", 7),
        ("\ud83d", 1),
    ],
)
def test_the_published_examples_count_as_published(text: str, expected: int) -> None:
    assert count_cl100k(text) == expected


def test_an_unknown_tokenizer_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=r"o200k_base.*cl100k_base"):
        counter("o200k_base")


def test_nothing_is_loaded_before_the_first_count() -> None:
    code = (
        "import sys; from mnemic.models.tokens import counter; counter('cl100k_base'); print('tiktoken' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


@given(st.lists(st.sampled_from(["word", " ", "  ", "\n", "don't", "你好", "😀", "3.14", "_", " (x)"]), max_size=60))
def test_a_long_text_counts_the_same_in_slices(parts: list[str]) -> None:
    text = "".join(parts)
    whole = count_cl100k(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "_SLICE", 40)
        slices = tokens._slices(text)
        assert "".join(text[start:stop] for start, stop in slices) == text
        at_spaces = all(text[a] == " " and not text[a - 1].isspace() for a, _ in slices[1:])
        assert not at_spaces or count_cl100k(text) == whole


@pytest.mark.parametrize("text", ["x" * 2_000_000, " " * 2_000_000, "😀" * 200_000, "=" * 2_000_000])
def test_endless_words_count_in_linear_time(text: str) -> None:
    count_cl100k("warm")
    began = time.process_time()
    assert 0 < count_cl100k(text) <= len(text.encode())
    assert time.process_time() - began < 5
