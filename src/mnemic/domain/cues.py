"""What a question asks for beside its words: whose turn, what kind of answer, when it was said.

Word lists are English. In another language the cues stay silent and every factor is 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mnemic.domain.terms import LITERAL, Flag, name_words, query_terms, term_hash

USER, ASSISTANT = 0, 1  # role codes; 2 system, 3 tool


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
    (role code, -1 unknown). `answer`: `Flag` bits of which the answer's turn should hold one. `days`: dates it names.
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


_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
_MONTH = "|".join(f"{m[:3]}(?:{m[3:]})?" if m != "september" else "sept?(?:ember)?" for m in _MONTHS)
_DATE = re.compile(
    rf"(?:\b(?P<before>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? )?\b(?P<month>{_MONTH})\b\.?"
    r"(?: (?P<after>\d{1,2})(?:st|nd|rd|th)?\b(?!:))?(?:,? (?:of )?(?P<year>(?:19|20)\d\d)\b)?",
    re.IGNORECASE,
)
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d?)(?:-(\d\d?))?\b")
_FIRST = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|me|my|mine|we|we're|we've|our|ours|us|myself)\b", re.IGNORECASE)
_SECOND = re.compile(
    r"\b(?:you|your)\b(?:\s+\w+){0,3}?\s+(?:told|tell|said|say|suggest\w*|recommend\w*|advis\w+|propos\w+|mention\w*|"
    r"explain\w*|gave|give|provid\w+|wrote|describ\w+|list\w*|help\w*)\b|\byour\s+(?:\w+\s+)?(?:suggestion|recommendation|advice|"
    r"answer|explanation|proposal)s?\b",
    re.IGNORECASE,
)
_CAN_YOU = re.compile(r"\b(?:can|could|would|will|do)\s+you\b", re.IGNORECASE)
_WHEN = re.compile(
    r"(?:^|[.,;:!?]\s*|\band\s+|\bsince\s+|\b(?:know|tell me|remember|recall|remind me)\s+)when\b|\bhow (?:long|old|recently|often)\b|"
    r"\b(?:what|which) (?:date|day|month|year|time|week)\b|\bhow many (?:days|weeks|months|years|hours|minutes)\b",
    re.IGNORECASE,
)
_MANY = re.compile(r"\bhow (?:many|much)\b|\bwhat (?:number|percentage|amount)\b", re.IGNORECASE)
_ASKING = re.compile(r"\b(?:ask(?:s|ed|ing)?|questions?|wonder(?:s|ed|ing)?|inquir\w+)\b", re.IGNORECASE)
_WHICH = re.compile(r"\b(?:where|who|whose|which|names?|called)\b|\bwhat\b(?! (?:did|does|do|is|was|are|were|has|have|would|will)\b)", re.IGNORECASE)
_REQUEST = re.compile(r"\b(?:could|can|would|will) you\b|\b(?:suggest|recommend|show me|give me|help me|advice)\b|\bhow (?:do|can|should) i\b", re.IGNORECASE)


def ask(text: str, actors: Sequence[str]) -> Question:
    """Analyse a question for a namespace whose speakers are `actors`, in the order of their indices."""
    terms = tuple(query_terms(text))
    head = text[:4000]  # cues stand in sentences, not in pasted pages
    named = _named(head, actors)
    return Question(
        text=text,
        terms=terms,
        hashes=tuple(term_hash(term) for term in terms),
        literal=tuple(term[0] == LITERAL for term in terms),
        actors=named,
        role=-1 if named else _role(head),
        answer=_answer(head, bool(named)),
        days=_days(head),
        about_asking=_ASKING.search(head) is not None,
    )


def _named(text: str, actors: Sequence[str]) -> tuple[int, ...]:
    words = name_words(text)
    return tuple(i for i, actor in enumerate(actors) if actor and not words.isdisjoint(name_words(actor)))


def _role(text: str) -> int:
    if _SECOND.search(_CAN_YOU.sub(" ", text)):
        return ASSISTANT
    return USER if _FIRST.search(text) else -1


def _answer(text: str, of_person: bool) -> int:
    if _WHEN.search(text):
        return int(Flag.TIME)
    if _MANY.search(text):
        return int(Flag.NUMBER)
    if of_person:
        return int(Flag.NAME) if _WHICH.search(text) else 0
    return int(Flag.WISH)


@lru_cache(maxsize=256)
def _days(text: str) -> tuple[Day, ...]:
    found = []
    for match in _DATE.finditer(text):
        name = match["month"]
        if name.islower() and name in {"may", "march", "mar", "dec", "sep", "jan"}:
            continue  # a verb or no month at all
        day = int(match["before"] or match["after"] or 0)
        found.append(Day(int(match["year"] or 0), [m[:3] for m in _MONTHS].index(name[:3].lower()) + 1, day))
    found += [Day(int(m[1]), int(m[2]), int(m[3] or 0)) for m in _ISO.finditer(text)]
    return tuple(d for d in dict.fromkeys(found) if 1 <= d.month <= 12 and d.day <= 31)
