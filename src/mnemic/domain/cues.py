"""What a question asks for beside its words: whose turn, what kind of answer, when it was said.

Word lists are English. In another language the cues stay silent and every factor of the ranking is 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mnemic.domain.terms import LITERAL, Flag, name_words, query_terms, term_hash

USER, ASSISTANT = 0, 1  # role codes; 2 is system, 3 tool


@dataclass(frozen=True, slots=True)
class Day:
    """A month a question names, with the day and the year where it names them (else 0)."""

    year: int
    month: int
    day: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question, analysed.

    `hashes`: its terms by `term_hash`; `literal`: which of them are whole tokens with symbols, asked for only where the
    corpus knows them. `actors`: indices of the speakers it names. `role`: whose turns it means when it names nobody
    (role code, -1 unknown). `answer`: the `Flag` that the answer's turn should hold, or 0. `days`: dates it names.
    `about_asking`: it is about what somebody asked, so turns that ask may be answers.
    """

    text: str
    terms: tuple[str, ...]
    hashes: tuple[int, ...]
    literal: tuple[bool, ...]
    actors: tuple[int, ...]
    role: int
    answer: int
    days: tuple[Day, ...]
    about_asking: bool


_HEAD = 4000  # cues stand in sentences, not in pasted pages
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?"
)
_ALSO_WORDS = frozenset({"may", "march", "mar", "jan", "sep", "dec"})  # months only with a capital
_DATE = re.compile(
    rf"(?:\b(?P<before>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? )?\b(?P<month>{_MONTH})\b\.?"
    r"(?: (?P<after>\d{1,2})(?:st|nd|rd|th)?\b(?!:))?(?:,? (?:of )?(?P<year>(?:19|20)\d\d)\b)?",
    re.IGNORECASE,
)
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d?)(?:-(\d\d?))?\b")


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_FIRST = _pattern(r"\b(?:i|me|my|mine|myself|we|us|our|ours|i'm|i've|i'd|i'll|we're|we've|we'd|we'll)\b")
_CAN_YOU = _pattern(r"\b(?:can|could|would|will|do)\s+you\b")  # a request, not a memory of what was said
_SECOND = _pattern(
    r"\byour?\b(?:\s+\w+){0,3}?\s+(?:told|tell|said|say|suggest\w*|recommend\w*|advis\w+|propos\w+|mention\w*|"
    r"explain\w*|gave|give|provid\w+|wrote|describ\w+|list\w*|help\w*)\b",
    r"\byour\s+(?:\w+\s+)?(?:suggestion|recommendation|advice|answer|explanation|proposal)s?\b",
)
_WHEN = _pattern(
    r"(?:^|[.,;:!?]\s*|\band\s+|\bsince\s+|\b(?:know|tell me|remember|recall|remind me)\s+)when\b",
    r"\bhow (?:long|old|recently|often)\b",
    r"\b(?:what|which) (?:date|day|month|year|time|week)\b",
    r"\bhow many (?:days|weeks|months|years|hours|minutes)\b",
)
_MANY = _pattern(r"\bhow (?:many|much)\b", r"\bwhat (?:number|percentage|amount)\b")
_WHICH = _pattern(
    r"\b(?:where|who|whose|which|names?|called)\b",
    r"\bwhat\b(?! (?:did|does|do|is|was|are|were|has|have|would|will)\b)",  # "what book", "what kind of"
)
_ASKING = _pattern(r"\b(?:ask(?:s|ed|ing)?|questions?|wonder(?:s|ed|ing)?|inquir\w+)\b")


def ask(text: str, actors: Sequence[str]) -> Question:
    """Analyse a question for a namespace whose speakers are `actors`, in the order of their indices."""
    terms = tuple(query_terms(text))
    head = text[:_HEAD].replace("\u2019", "'")
    named = _named(head, actors)
    return Question(
        text=text,
        terms=terms,
        hashes=tuple(term_hash(term) for term in terms),
        literal=tuple(term[0] == LITERAL for term in terms),
        actors=named,
        role=-1 if named else _role(head),
        answer=_answer(head, of_person=bool(named)),
        days=_days(head),
        about_asking=_ASKING.search(head) is not None,
    )


def _named(text: str, actors: Sequence[str]) -> tuple[int, ...]:
    words = name_words(text)
    return tuple(i for i, actor in enumerate(actors) if not words.isdisjoint(name_words(actor)))


def _role(text: str) -> int:
    if _SECOND.search(_CAN_YOU.sub(" ", text)):
        return ASSISTANT
    return USER if _FIRST.search(text) else -1


def _answer(text: str, *, of_person: bool) -> int:
    """What the answer should hold. A question of no known kind, about nobody, is a request: standing wishes apply."""
    if _WHEN.search(text):
        return int(Flag.TIME)
    if _MANY.search(text):
        return int(Flag.NUMBER)
    if of_person:  # in talk of people a capital inside a sentence is a name; in technical text it is everywhere
        return int(Flag.NAME) if _WHICH.search(text) else 0
    return int(Flag.WISH)


@lru_cache(maxsize=256)
def _days(text: str) -> tuple[Day, ...]:
    found: list[Day] = []
    for match in _DATE.finditer(text):
        name = match["month"]
        if name not in _ALSO_WORDS:
            day = int(match["before"] or match["after"] or 0)
            found.append(Day(int(match["year"] or 0), _MONTHS.index(name[:3].lower()) + 1, day))
    found += [Day(int(m[1]), int(m[2]), int(m[3] or 0)) for m in _ISO.finditer(text)]
    return tuple(d for d in dict.fromkeys(found) if 1 <= d.month <= 12 and d.day <= 31)


def said_on(days: tuple[Day, ...], time: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Was it said on one of these dates? `time` (N,) in microseconds since 1970, UTC; a year or day of 0 is any."""
    date = time.astype("datetime64[us]").astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    months, day = month.astype(np.int64), (date - month).astype(np.int64) + 1
    hit = np.zeros(len(time), np.bool_)
    for named in days:
        one = months % 12 + 1 == named.month
        if named.year:
            one &= months // 12 + 1970 == named.year
        if named.day:
            one &= day == named.day
        hit |= one
    return hit
