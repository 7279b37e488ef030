"""The visible structure of a text: sections under Markdown headings, fenced code, paragraphs, program code.

Blocks are contiguous and cover the text, so that whatever is built of them gives the text back. One pass over lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum, auto

HEADING_CHARS = 160  # a "heading" longer than this is a paragraph that starts with a hash sign
_CODE_SAMPLE = 200  # lines looked at to tell program code from prose
_CODE_SHARE = 0.5  # of lines that look like code at all
_CODE_SURE = 0.2  # of lines that do so by more than their indentation

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`\n]*$)|~{3,})")  # indented at will: a list item may hold one
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_INDENTED = re.compile(r"(?:\t| {2,})(?![-*+•>|] |\d+[.)] )\S")
_CODE_LINE = re.compile(
    r"\s*(?:(?:def|class|import|from|return|async|fn|func|function|const|let|var|public|private|static|struct|package|"
    r"namespace|interface|elif|else|try|except|#include)\b|#!|//|/\*|\*/|@\w)"
)
_CODE_END = re.compile(r"[{}\[(;=]\s*$")


class Break(IntEnum):
    """How good a place is to cut, worst first."""

    INSIDE = 0  # within a word
    STUCK = 1  # between a heading and what it heads
    WORD = 2
    SENTENCE = 3  # also the end of a line of code, a list item, a row
    PARAGRAPH = 4
    SECTION = 5


class Shape(Enum):
    PROSE = auto()
    HEADING = auto()
    FENCE = auto()  # fenced code with its fences: kept whole where that is possible
    CODE = auto()  # lines of a text that is program code


@dataclass(frozen=True, slots=True)
class Block:
    """Characters `start` to `stop`; `before` rates a cut at `start`; `heading` is the path of headings over it."""

    start: int
    stop: int
    shape: Shape
    before: Break
    heading: tuple[str, ...]


def blocks(text: str) -> list[Block]:
    """The blocks of `text` in order, without gaps; blank lines belong to the block before them."""
    if _is_code(text):
        return list(_code(text))
    return list(_markdown(text))


def _markdown(text: str) -> Iterator[Block]:
    path: list[tuple[int, str]] = []
    start, shape, before, blank = 0, Shape.PROSE, Break.SECTION, True  # of the block that is open
    fence = ""
    for line in _LINE.finditer(text):
        at, words = line.start(), line.group()
        if fence:
            if words.strip().startswith(fence) and not words.strip(f" \t\r\n{fence[0]}"):
                fence, blank = "", True
            continue
        opening, heading = _FENCE.match(words), _heading(words)
        if words.isspace():
            blank = True
        elif opening or heading or blank or shape is Shape.HEADING:
            if at and not (start == 0 and text[:at].isspace()):  # blank lines at the very start open no block
                yield Block(start, at, shape, before, tuple(title for _, title in path))
                before = Break.STUCK if shape is Shape.HEADING else Break.SECTION if heading else Break.PARAGRAPH
                start = at
            if heading:
                path = [(level, title) for level, title in path if level < heading[0]] + [heading]
            shape = Shape.HEADING if heading else Shape.FENCE if opening else Shape.PROSE
            fence = opening.group(1) if opening else ""
            blank = False
    if start < len(text):
        yield Block(start, len(text), shape, before, tuple(title for _, title in path))


def _heading(line: str) -> tuple[int, str] | None:
    found = _HEADING.match(line) if len(line) <= HEADING_CHARS else None
    return (len(found.group(1)), found.group(2).rstrip().rstrip("#").rstrip()) if found else None


def _code(text: str) -> Iterator[Block]:
    start, before, blank = 0, Break.SECTION, False
    for line in _LINE.finditer(text):
        if line.group().isspace():
            blank = True
        elif blank and line.start():
            yield Block(start, line.start(), Shape.CODE, before, ())
            start = line.start()
            before = Break.PARAGRAPH if line.group()[0].isspace() else Break.SECTION  # a new definition
            blank = False
    yield Block(start, len(text), Shape.CODE, before, ())


def _is_code(text: str) -> bool:
    """Whether most lines look like a program's: indented, opened by a keyword, or ended by a bracket or separator."""
    seen = code = sure = position = 0
    while seen < _CODE_SAMPLE and (line := _LINE.match(text, position)):
        position = line.end()
        words = line.group()
        if _FENCE.match(words):
            return False
        if not words.isspace():
            seen += 1
            plain = bool(_CODE_LINE.match(words) or _CODE_END.search(words[-8:]))
            sure += plain
            code += plain or bool(_INDENTED.match(words))
    return seen >= 5 and code > seen * _CODE_SHARE and sure > seen * _CODE_SURE
