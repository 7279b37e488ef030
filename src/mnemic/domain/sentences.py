"""Where sentences end, in several languages, by a few rules in linear time.

A full stop ends a sentence unless it belongs to an abbreviation, an initial, an ordinal or a list number; numbers,
versions, file names and URLs are safe because a stop needs white space behind it. `。！？` and their like need none.
A line ends a sentence when the next one starts an item, or when it is too short to have been wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mnemic.domain.markup import Block, Break, Shape, blocks

_WRAPPED = 50  # columns; a shorter line was ended on purpose
_WORD_BACK = 24  # characters looked at before a full stop

_CLOSERS = "\"'”’»)]}」』）】》›*_"
_WIDE = "。！？｡।॥؟۔።։။"  # they end a sentence without a space behind them
_STOP = re.compile(rf"\n|[.!?…{_WIDE}]+[{re.escape(_CLOSERS)}]*")
_LINE_END = re.compile(r"\n(?=[^\S\n]*\S)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•–—][ \t]|\d{1,3}[.)][ \t]|[>|#])")
_OPENERS = "\"'“‘«(¿¡[{「『（*_"
_NEXT = re.compile(rf"(\s*)[{re.escape(_OPENERS)}]*([^\W\d_]{{0,24}})")  # the start and first word of what follows
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]", re.UNICODE)  # J  U.S  e.g  a.m


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# Abbreviations that something always follows.
_NEVER = _words(
    """dr mr mrs ms prof st sr sra srta dña hr fr mme mlle sig dott ing lic gen col capt lt sgt rev hon pres gov sen
    rep vs cf approx ca bzw evtl ggf inkl vgl zb bsp abb esp ej p.ej z.b d.h e.g i.e u.a s.u n.b incl excl resp ud uds
    vds mt ft"""
)
_BEFORE_NUMBER = _words("no nr nos núm num p pp pg pág fig figs art sec abs kap cap ch vol eq tel ext ver v")
# Abbreviations that may also stand last: only a word that opens sentences tells.
_EITHER = _words(
    """inc ltd co corp jr al dept univ assn bros hrs jan feb apr jul aug sept oct nov dec ave blvd rd usw etc"""
)
_STARTERS = _words(
    """a after all also an and as at because before but by can do did does each even for he her his how however i if in
    is it its let many maybe most my no not now of on one our please she since so some that the their then there these
    they this those to today we well what when where which while who why with yes yesterday you your
    el la los las un una yo él ella ellos pero y en es no si cuando como esto ese luego después también mi su
    der die das ein eine ich du er sie es wir und aber wenn dann heute auch mein
    le les un une je tu il elle nous vous ils mais et si quand ce cette"""
)
_MONTHS = _words("januar februar märz april mai juni juli august september oktober november dezember")


@dataclass(frozen=True, slots=True)
class Sentence:
    """Characters `start` to `stop`, the white space behind included; `before` rates a cut at `start`.

    `whole`: fenced code, which no cut and no overlap should enter.
    """

    start: int
    stop: int
    before: Break
    whole: bool = False


def sentences(text: str) -> list[Sentence]:
    """The sentences of `text`, in order and without gaps. A fence is one; in program code every line is one."""
    return [sentence for block in blocks(text) for sentence in of_block(text, block)]


def of_block(text: str, block: Block) -> Iterator[Sentence]:
    """The sentences of one block, see `sentences`."""
    match block.shape:
        case Shape.HEADING:
            yield Sentence(block.start, block.stop, block.before)
            return
        case Shape.FENCE:
            yield Sentence(block.start, block.stop, block.before, whole=True)
            return
        case Shape.CODE:
            ends = lines(text, block.start, block.stop)
        case Shape.PROSE:
            ends = _ends(text, block.start, block.stop)
    start, before = block.start, block.before
    for end in ends:
        yield Sentence(start, end, before)
        start, before = end, Break.SENTENCE
    if start < block.stop:
        yield Sentence(start, block.stop, before)


def lines(text: str, start: int, stop: int) -> Iterator[int]:
    """Where lines that are not blank start between `start` and `stop`, both excluded."""
    return (end.end() for end in _LINE_END.finditer(text, start, stop))


def _ends(text: str, start: int, stop: int) -> Iterator[int]:
    """The first characters of the sentences after the first one, between `start` and `stop`."""
    line = start
    at, word = _following(text, start, stop)
    last = at
    for mark in _STOP.finditer(text, start, stop):
        if mark.end() > at:  # else: the same white space as before, looked at once
            at, word = _following(text, mark.end(), stop)
        if text[mark.start()] == "\n":
            ended = _line_ends(text, line, mark.start(), at, stop)
            line = mark.end()
        else:
            ended = _sentence_ends(text, (line, mark.start(), mark.end()), at, word)
        if ended and last < at < stop:
            yield at
            last = at


def _following(text: str, position: int, stop: int) -> tuple[int, str]:
    """Where the next character that is no white space stands, and the word there, "" for none."""
    found = _NEXT.match(text, position, stop)
    return (found.end(1), found.group(2)) if found else (stop, "")


def _line_ends(text: str, start: int, end: int, following: int, stop: int) -> bool:
    if following < stop and _ITEM.match(text, following, stop):
        return True
    return end - start < _WRAPPED and not text[following : following + 1].islower()


def _sentence_ends(text: str, mark: tuple[int, int, int], at: int, word: str) -> bool:
    """Whether the stop at mark = (start of its line, start, end) ends a sentence; the next one would start at `at`
    and `word` is its first word."""
    line, start, end = mark
    stop = text[start:end].rstrip(_CLOSERS)
    if any(sign in _WIDE for sign in stop):
        return True
    if at == end:  # no white space: 3.14, v1.2, example.com, Yahoo!'s
        return False
    if "!" in stop or "?" in stop:
        return not (end - start > len(stop) and word.islower())  # "Really?" she asked
    if len(stop) > 1 or stop == "…":
        return not word.islower()
    before = text[max(line, start - _WORD_BACK) : start].split()
    return _full_stop_ends(before[-1].lstrip(_OPENERS) if before else "", len(before) == 1, word, text[at : at + 1])


def _full_stop_ends(before: str, opens_line: bool, word: str, sign: str) -> bool:
    known, following = before.casefold(), word.casefold()
    if known in _NEVER or (known in _BEFORE_NUMBER and sign.isdigit()):
        return False
    if known.isdigit():
        return not (len(known) <= 3 and (opens_line or following in _MONTHS))
    if known in _EITHER or _INITIALS.fullmatch(before):
        return following in _STARTERS and not word.islower()
    return True
