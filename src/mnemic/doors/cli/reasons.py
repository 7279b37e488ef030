"""Why a hit surfaced, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mnemic.domain.terms import LITERAL, analyse, query_terms

if TYPE_CHECKING:
    from mnemic.domain.types import Event, Hit

_MOST_WORDS = 6
FAR = 0.2  # a cosine below this says little


def matched_words(question: str, text: str, actor: str = "") -> list[str]:
    """The words of the question, as it has them, that also stand in the text in some form."""
    found = {term for passage in analyse(text, actor).passages for term in passage}
    words: list[str] = []
    for word in question.split():
        terms = query_terms(word)
        hits = [term for term in terms if term in found]
        if not hits:
            continue
        if len(hits) == len(terms):
            words.append(word.strip("?!.,;:\"'()[]"))
        else:  # part of an unspaced word
            words += [term.removeprefix(LITERAL) for term in hits]
    return list(dict.fromkeys(word for word in words if word))


def nearness(similarity: float) -> str:
    """A cosine in words; the number says the rest."""
    for least, words in ((0.6, "very near in meaning"), (0.4, "near in meaning"), (FAR, "somewhat near in meaning")):
        if similarity >= least:
            return words
    return "far in meaning"


def reason(hit: Hit, question: str) -> str:
    """One line: which words matched, how near it is in meaning."""
    parts: list[str] = []
    words = matched_words(question, hit.chunk.text, hit.event.actor)
    if words:
        parts.append("words: " + ", ".join(words[:_MOST_WORDS]))
    elif "literal" in hit.found_by:
        parts.append("holds it to the letter")
    elif "keyword" in hit.found_by:
        parts.append("words in the turns around it")
    similarity = hit.parts.get("similarity")
    if similarity is not None and "vector" in hit.found_by:
        near = similarity >= FAR or parts
        parts.append(f"{nearness(similarity)} ({similarity:.2f})" if near else "stands beside what matches")
    return "; ".join(parts) or "nothing better was found"


def who(event: Event) -> str:
    """Who said it: the name if there is one, else the role."""
    return event.actor or ("you" if event.role == "user" else str(event.role))


def numbers(hit: Hit) -> Sequence[str]:
    """Every number that made the score, one a line."""
    width = max((len(name) for name in hit.parts), default=0)
    return [f"{name:<{width}}  {value:g}" for name, value in hit.parts.items()]
