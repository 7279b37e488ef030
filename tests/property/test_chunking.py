"""Laws of chunking for arbitrary Unicode: nothing is lost, nothing is too long, offsets are exact."""

from __future__ import annotations

from itertools import pairwise

import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.config import ChunkerConfig
from mnemic.domain.chunking import Piece, sentences, split, split_semantic
from mnemic.models.tokens import count_cl100k

_WORDS = ["Hello world. ", "One two three", "- item\n", "你好。", "👩‍⚕️", "e\u0301", "3.14", "…", "x" * 50]
_PARTS = st.sampled_from([*_WORDS, " ", "\n", "\n\n", "# Head\n", "```\n"])
TEXTS = st.one_of(st.text(max_size=300), st.lists(_PARTS, max_size=80).map("".join))
SIZES = st.integers(4, 40).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


def _covers(text: str, pieces: list[Piece], limit: int) -> None:
    stop = 0
    for piece in pieces:
        assert piece.start <= stop < piece.stop
        assert piece.tokens <= limit
        assert count_cl100k(text[piece.start : piece.stop]) <= piece.tokens
        stop = piece.stop
    assert stop == len(text)


@settings(max_examples=400, deadline=None)
@given(TEXTS, SIZES)
def test_pieces_rebuild_the_text_within_the_limits(text: str, sizes: tuple[int, int]) -> None:
    limit, overlap = sizes
    pieces = split(text, ChunkerConfig(max_tokens=limit, overlap_tokens=overlap), count_cl100k)
    _covers(text, pieces, limit)
    for before, piece in pairwise(pieces):
        assert before.start < piece.start
        assert count_cl100k(text[piece.start : before.stop]) <= overlap


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.integers(4, 40), st.data())
def test_semantic_pieces_rebuild_the_text(text: str, limit: int, data: st.DataObject) -> None:
    spans = sentences(text)
    assert "".join(text[span.start : span.stop] for span in spans) == text
    similarities = data.draw(
        st.lists(st.floats(-1, 1), min_size=max(len(spans) - 1, 0), max_size=max(len(spans) - 1, 0))
    )
    config = ChunkerConfig(strategy="semantic", max_tokens=limit, min_tokens=data.draw(st.integers(0, limit)))
    pieces = split_semantic(text, spans, similarities, config, count_cl100k)
    _covers(text, pieces, limit)
    assert all(before.stop == piece.start for before, piece in pairwise(pieces))


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1, max_size=200))
def test_no_piece_starts_within_a_grapheme_or_word_that_would_fit(text: str) -> None:
    pieces = split(text, ChunkerConfig(max_tokens=24, overlap_tokens=6), count_cl100k)
    edges = {match.end() for match in regex.finditer(r"\X", text)} | {0}
    longest = max(count_cl100k(cluster) for cluster in regex.findall(r"\X", text))
    if longest < 24:
        assert {edge for piece in pieces for edge in (piece.start, piece.stop)} <= edges


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["alpha", "be", "gamma.", "delta,", "epsilon!"]), min_size=30, max_size=200))
def test_words_are_never_cut(words: list[str]) -> None:
    text = " ".join(words)
    for piece in split(text, ChunkerConfig(max_tokens=16, overlap_tokens=5), count_cl100k):
        assert piece.start == 0 or text[piece.start - 1] == " "
        assert piece.stop == len(text) or text[piece.stop - 1] == " "
