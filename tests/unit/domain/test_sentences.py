"""Where sentences end, and what the structure of a text is."""

from __future__ import annotations

import time

import pytest

from mnemic.domain.markup import Break, Shape, blocks
from mnemic.domain.sentences import sentences


def cut(text: str) -> list[str]:
    return [text[span.start : span.stop].strip() for span in sentences(text)]


@pytest.mark.parametrize(
    "whole",
    [
        "Dr. Smith met Mrs. Jones at St. Mary's.",
        "It costs 3.14 euros, i.e. too much, e.g. for Prof. Meier.",
        "He moved to the U.S. Army base near Washington D.C. last year.",
        "J. R. R. Tolkien wrote it.",
        "Version v1.2.3 of app.py is at https://example.com/a.b?c=d.e now",
        "See Fig. 3 and p. 12, No. 5.",
        "Well... maybe not",
        "The meeting is at 5 p.m. on Monday.",
        "Es gibt z.B. drei, d.h. bzw. usw. mehr.",
        "Am 3. Oktober feiern wir.",
        "1. Buy milk",
        '"Really?" she asked.',
        "La Sra. García y el Dr. Pérez llegaron.",
        "Acme Inc. chairman Tim Cook spoke.",
        "192.168.0.1 is up",
        "a wrapped line of an e-mail that is long enough to have been wrapped by\nits program, Not by a person.",
    ],
)
def test_one_sentence_stays_one(whole: str) -> None:
    assert cut(whole) == [whole]


@pytest.mark.parametrize(
    "parts",
    [
        ["It rained.", "We stayed in."],
        ["i like it.", "we should go."],
        ["Really?!", "Yes!", "Good..."],
        ["He lives in the U.S.", "She does not."],
        ["We met at 5 p.m.", "It was late."],
        ["Bring bread, cheese, etc.", "The rest is there."],
        ["¿Cómo estás?", "¡Bien!", "Me llamo Ana."],
        ['He said "go."', "She went."],
        ["(It was late.)", "We left."],
        ["It grew by 2.5.", "That is 10% more."],
        ["Wait... No.", "Yes."],
        ["In 2023.", "Next."],
        ["- milk", "- eggs and flour", "1. bread"],
        ["Dear Ana", "I write to you because of the house."],
    ],
)
def test_sentences_are_told_apart(parts: list[str]) -> None:
    joined = ("\n" if parts[0].startswith(("-", "Dear")) else " ").join(parts)
    expected = [part for whole in parts for part in (whole.split("... ") if whole == "Wait... No." else [whole])]
    assert cut(joined) == ([f"{expected[0]}...", *expected[1:]] if parts[0] == "Wait... No." else expected)


def test_scripts_without_spaces_end_at_their_own_stops() -> None:
    assert cut("今天下雨。我们在家！好吗？好") == ["今天下雨。", "我们在家！", "好吗？", "好"]
    assert cut("「はい。」彼は行った。") == ["「はい。」", "彼は行った。"]
    assert cut("यह अच्छा है। हाँ।") == ["यह अच्छा है।", "हाँ।"]


def test_sentences_cover_the_text_without_gaps() -> None:
    text = "\n\n  One. Two!\n\n# Head\n\nThree\n```py\nx = 1. \ny\n```\nlast  "
    spans = sentences(text)
    assert "".join(text[span.start : span.stop] for span in spans) == text
    assert [(span.before, span.whole) for span in spans] == [
        (Break.SECTION, False),
        (Break.SENTENCE, False),
        (Break.SECTION, False),
        (Break.STUCK, False),
        (Break.PARAGRAPH, True),
        (Break.PARAGRAPH, False),
    ]


def test_blocks_know_the_headings_they_stand_under() -> None:
    text = "intro\n# A\ntext\n## B ##\nmore\n\n### C\n\nx\n## D\ny\n```\n# no heading\n```\nz"
    found = [(block.shape, block.heading) for block in blocks(text) if block.shape is not Shape.HEADING]
    assert found == [
        (Shape.PROSE, ()),
        (Shape.PROSE, ("A",)),
        (Shape.PROSE, ("A", "B")),
        (Shape.PROSE, ("A", "B", "C")),
        (Shape.PROSE, ("A", "D")),
        (Shape.FENCE, ("A", "D")),
        (Shape.PROSE, ("A", "D")),
    ]


def test_program_code_has_no_headings_and_is_cut_at_lines() -> None:
    code = "# a comment\nimport os\n\n\ndef f(x):\n    # Another. One\n    return os.x(x)\n\n    y = 1\n\n"
    code += "class A:\n    pass\n"
    assert {(block.shape, block.heading) for block in blocks(code)} == {(Shape.CODE, ())}
    assert [code[block.start : block.stop].split("\n")[0] for block in blocks(code)] == [
        "# a comment",
        "def f(x):",
        "    y = 1",
        "class A:",
    ]
    assert len(sentences(code)) == 8
    assert blocks("- a list\n  - of things\n  - and\n  - more, of\n  - them\n")[0].shape is Shape.PROSE


@pytest.mark.parametrize("unit", [".", ". ", "\n", "! \n", "a.", "```\n", "# x\n", "((. ", "。", '."', "\t", "Dr. "])
def test_time_is_linear_in_the_text(unit: str) -> None:
    text = unit * (150_000 // len(unit))
    began = time.process_time()
    assert sentences(text)[-1].stop == len(text)
    assert time.process_time() - began < 5
