"""Pieces of texts: sizes, boundaries, overlaps, headings, code, and texts that are hard on a chunker."""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import replace
from itertools import pairwise

import pytest
import regex

from mnemic.config import ChunkerConfig
from mnemic.domain.chunking import Piece, sentences, split, split_semantic
from mnemic.errors import ConfigError
from mnemic.models.tokens import count_cl100k

SMALL = ChunkerConfig(max_tokens=40, overlap_tokens=10)
PROSE = " ".join(f"Sentence number {n} tells that the boat {n} left harbour {n} at noon." for n in range(40))


def texts(source: str, pieces: list[Piece]) -> list[str]:
    return [source[piece.start : piece.stop] for piece in pieces]


def rebuilt(source: str, pieces: list[Piece]) -> str:
    stops = [0, *(piece.stop for piece in pieces)]
    return "".join(source[stop : piece.stop] for stop, piece in zip(stops, pieces, strict=False))


def refuse(text: str) -> int:
    raise AssertionError("counted")


def test_a_text_that_fits_by_its_bytes_is_one_piece_without_counting() -> None:
    assert split("Boiler man comes Friday ✓", ChunkerConfig(), refuse) == [Piece(0, 25, 27, ())]
    assert split("x" * 512, ChunkerConfig(), refuse) == [Piece(0, 512, 512, ())]
    assert split("", ChunkerConfig(), refuse) == []
    with pytest.raises(AssertionError):
        split("é" * 512, ChunkerConfig(), refuse)


def test_pieces_end_at_sentences_and_overlap_by_sentences() -> None:
    pieces = split(PROSE, SMALL, count_cl100k)
    assert rebuilt(PROSE, pieces) == PROSE
    assert all(text.rstrip().endswith("noon.") for text in texts(PROSE, pieces))
    assert all(piece.tokens == count_cl100k(PROSE[piece.start : piece.stop]) <= 40 for piece in pieces)


def test_the_overlap_starts_at_a_sentence_or_a_word_and_is_at_least_half_of_what_was_asked() -> None:
    for asked in (10, 16, 24):
        pieces = split(PROSE, replace(SMALL, overlap_tokens=asked), count_cl100k)
        for before, piece in pairwise(pieces):
            overlap = PROSE[piece.start : before.stop]
            assert asked / 2 <= count_cl100k(overlap) <= asked
            assert PROSE[piece.start - 1] == " "
    assert texts(PROSE, split(PROSE, replace(SMALL, overlap_tokens=24), count_cl100k))[1].startswith("Sentence")


def test_without_overlap_pieces_are_adjacent() -> None:
    pieces = split(PROSE, replace(SMALL, overlap_tokens=0), count_cl100k)
    assert all(before.stop == piece.start for before, piece in pairwise(pieces))


def test_a_paragraph_is_a_better_place_than_a_sentence_and_a_section_better_still() -> None:
    text = (
        "One two three four five six. " * 3
        + "\n\n"
        + "Seven eight nine. " * 2
        + "\n\n# Ten\n\nEleven. "
        + "Twelve. " * 40
    )
    pieces = split(text, ChunkerConfig(max_tokens=48, overlap_tokens=0), count_cl100k)
    assert texts(text, pieces)[0].endswith("nine. \n\n")
    text = text.replace("nine. \n\n# Ten\n\n", "nine. Ten. ")
    assert texts(text, split(text, ChunkerConfig(max_tokens=34, overlap_tokens=0), count_cl100k))[0].endswith(
        "six. \n\n"
    )


def test_headings_are_kept_beside_the_pieces_and_never_end_one() -> None:
    text = "# Boat\n\n" + PROSE[:400] + "\n\n## Engine\n\n" + PROSE[:900] + "\n\n## Sails\n\n" + PROSE[:240]
    pieces = split(text, SMALL, count_cl100k)
    assert {piece.heading for piece in pieces} == {("Boat",), ("Boat", "Engine"), ("Boat", "Sails")}
    assert pieces[-1].heading == ("Boat", "Sails")
    assert not any(shown.rstrip().split("\n")[-1].startswith("#") for shown in texts(text, pieces))
    assert rebuilt(text, pieces) == text


def test_a_fence_is_torn_only_if_it_alone_is_too_long() -> None:
    fence = "```python\n" + "".join(f"x{n} = {n}\n" for n in range(5)) + "```\n"
    text = PROSE[:150] + "\n\n" + fence + "\n" + PROSE[:150] + "\n\n" + fence
    pieces = split(text, replace(SMALL, max_tokens=48), count_cl100k)
    assert sum(shown.count("```") == 2 for shown in texts(text, pieces)) >= 2
    assert all(shown.count("```") % 2 == 0 for shown in texts(text, pieces))
    long = "```\n" + "".join(f"value_{n} = {n}\n" for n in range(60)) + "```\n"
    shown = texts(long, split(long, replace(SMALL, overlap_tokens=0), count_cl100k))
    assert len(shown) > 3
    assert all(part.endswith("\n") for part in shown)


def test_code_is_cut_between_definitions() -> None:
    code = "".join(f"def f{n}(x):\n    y = x + {n}\n\n    return y\n\n\n" for n in range(12))
    shown = texts(code, split(code, ChunkerConfig(max_tokens=64, overlap_tokens=0), count_cl100k))
    assert all(part.startswith("def ") for part in shown)


def test_an_endless_sentence_is_cut_at_words() -> None:
    text = "lorem ipsum dolor " * 400
    for part in texts(text, split(text, SMALL, count_cl100k)):
        assert part[:5] in ("lorem", "ipsum", "dolor")
        assert part.endswith(" ")
    json = '{"name":"Juan","age":3},' * 200
    for part in texts(json, split(json, replace(SMALL, overlap_tokens=0), count_cl100k)):
        assert not (part[0].isalpha() and part[:4] not in ("name", "Juan")) or part.startswith("age")


@pytest.mark.parametrize("cluster", ["👩‍⚕️", "🇪🇸", "e\u0301", "नि", "👍🏽", "한"])
def test_an_endless_word_is_cut_between_graphemes(cluster: str) -> None:
    text = cluster * 300
    for part in texts(text, split(text, SMALL, count_cl100k)):
        assert regex.findall(r"\X", part) == [cluster] * (len(part) // len(cluster))


def test_a_grapheme_longer_than_a_piece_is_cut_at_characters() -> None:
    text = "a" + "\u0301" * 500
    pieces = split(text, SMALL, count_cl100k)
    assert rebuilt(text, pieces) == text
    assert max(piece.tokens for piece in pieces) <= 40


@pytest.mark.parametrize(
    "text",
    ["x" * 5_000_000, "😀" * 200_000, '{"a":12,"b":[1,2]},' * 20_000, " " * 400_000, "a. " * 60_000, "- a\n" * 60_000],
    ids=["one line", "emoji", "json", "space", "short sentences", "list"],
)
def test_monstrous_texts_take_linear_time(text: str) -> None:
    count_cl100k("warm")
    began = time.process_time()
    pieces = split(text, ChunkerConfig(), count_cl100k)
    assert time.process_time() - began < 20
    assert (pieces[0].start, pieces[-1].stop) == (0, len(text))
    assert max(piece.tokens for piece in pieces) <= 512


@pytest.mark.parametrize("unit", ["x", "😀", "One two three. "])
def test_memory_is_linear_in_the_text(unit: str) -> None:
    text = unit * (300_000 // len(unit))
    count_cl100k("warm")
    tracemalloc.start()
    split(text, ChunkerConfig(), count_cl100k)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60 * len(text)


def test_the_last_paragraph_of_a_long_text_is_in_a_piece() -> None:
    text = "\n\n".join([PROSE] * 30) + "\n\nThe spare key is under the third beehive."
    assert "third beehive" in texts(text, split(text, ChunkerConfig(), count_cl100k))[-1]


# --- by meaning -------------------------------------------------------------------------------------------------

SEMANTIC = ChunkerConfig(strategy="semantic", max_tokens=64, min_tokens=8, breakpoint_threshold=0.3)


def test_a_drop_of_similarity_ends_a_piece() -> None:
    text = "The boat left the harbour at noon. It sailed west with the wind. "
    text += "My tax return is due in May. The tax office is slow."
    spans = sentences(text)
    assert texts(text, split_semantic(text, spans, [0.6, 0.1, 0.5], SEMANTIC, count_cl100k)) == [
        "The boat left the harbour at noon. It sailed west with the wind. ",
        "My tax return is due in May. The tax office is slow.",
    ]
    assert len(split_semantic(text, spans, [0.6, 0.3, 0.5], SEMANTIC, count_cl100k)) == 1


def test_a_short_piece_joins_the_neighbour_it_resembles_more() -> None:
    text = "The boat left the harbour at noon today. Aye aye. My tax return is due in the month of May."
    spans = sentences(text)
    assert len(spans) == 3
    nearer_left = split_semantic(text, spans, [0.2, 0.1], SEMANTIC, count_cl100k)
    assert texts(text, nearer_left)[0].endswith("aye. ")
    nearer_right = split_semantic(text, spans, [0.1, 0.2], SEMANTIC, count_cl100k)
    assert texts(text, nearer_right)[1].startswith("Aye")


def test_semantic_pieces_are_capped_and_never_overlap() -> None:
    spans = sentences(PROSE)
    pieces = split_semantic(PROSE, spans, [0.9] * (len(spans) - 1), SEMANTIC, count_cl100k)
    assert rebuilt(PROSE, pieces) == PROSE
    assert max(piece.tokens for piece in pieces) <= 64
    assert all(before.stop == piece.start for before, piece in pairwise(pieces))


def test_a_heading_stays_with_what_it_heads() -> None:
    text = (
        "The boat left the harbour at noon today.\n\n## Taxes and more of them\n\nMy return is due in the month of May."
    )
    pieces = split_semantic(text, sentences(text), [0.1, 0.0], replace(SEMANTIC, min_tokens=0), count_cl100k)
    assert [shown[:4] for shown in texts(text, pieces)] == ["The ", "## T"]


def test_similarities_must_match_the_sentences() -> None:
    with pytest.raises(ValueError, match="2 sentences need 1 similarities, not 0"):
        split_semantic("One. Two.", sentences("One. Two."), [], SEMANTIC, count_cl100k)


# --- settings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ChunkerConfig(max_tokens=64, overlap_tokens=64), "overlap_tokens = 64 .*less than chunker.max_tokens = 64"),
        (ChunkerConfig(overlap_tokens=-1), "overlap_tokens = -1"),
        (ChunkerConfig(max_tokens=3, overlap_tokens=0), "max_tokens = 3"),
        (ChunkerConfig(strategy="semantic", max_tokens=64, min_tokens=65), "min_tokens = 65"),
        (ChunkerConfig(strategy="semantic", breakpoint_threshold=1.5), "breakpoint_threshold = 1.5"),
        (ChunkerConfig(strategy="lines"), "'lines' is neither 'token' nor 'semantic'"),  # type: ignore[arg-type]
    ],
)
def test_contradictory_settings_are_configuration_errors(config: ChunkerConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        split("text", config, refuse)


def test_settings_of_the_other_strategy_do_not_matter() -> None:
    assert split("text", ChunkerConfig(max_tokens=32, overlap_tokens=0, min_tokens=64), refuse)
    assert split("text", ChunkerConfig(strategy="semantic", max_tokens=64, overlap_tokens=64), refuse)
