"""Whether a text says what another one said already, however near their vectors are.

Vectors of "limit 500" and "limit 800" have a cosine of .965, those of "I live in Rome" and "I lived in Rome" .9: a
cosine can propose a duplicate, never decide one. Two texts say the same if the same words stand in the same order,
apart from case, final punctuation, articles, first persons, the present of "to be", and politeness. Numbers, names,
dates, negations, tenses, symbols ("C++", "-5", a thumb up or down) and questions all make a difference.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_TRIM = ".,;:!?\"'()[]{}<>*_`~…«»‘’“”¿¡、。，．！？；："
_QUESTION = "?？؟"
_APOSTROPHES = str.maketrans("’ʼ", "''")

# Words that change nothing when they come or go. Each opposite of a dropped word stays: "from", "off", "or", "your".
_EMPTY_WORDS = """
a an the i me my mine we us our am is are be been being do does to of in at on for and that this it its there so well
just really very quite also too oh ok okay yes yeah please thanks thank you hi hello hey
el la los las lo un una unos unas yo mi mis es soy son de en y que por favor gracias hola pues muy sí
der den dem ein eine einen ich mein meine ist bin sind und ja bitte danke sehr auch
le les une je mon ma mes est suis et oui merci très aussi
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
_OPENED = {
    "n't": "not", "'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'s": "is",
}  # fmt: skip
_IRREGULAR = {"can't": "can not", "won't": "will not", "shan't": "shall not", "cannot": "can not"}


def says_the_same(text: str, other: str) -> bool:
    """Whether neither text holds a word, number, negation, symbol or question that the other lacks, in order."""
    return signature(text) == signature(other)


@lru_cache(maxsize=256)  # one text is compared with several neighbours, and neighbours come again
def signature(text: str) -> tuple[str, ...]:
    """The words that make a difference, in order; "?" last for a question. Linear in the text."""
    words: list[str] = []
    for raw in unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).casefold().split():
        bare = raw.strip(_TRIM)
        if raw.startswith(("-", "+")) and bare[1:2].isdigit():
            bare = raw.rstrip(_TRIM)
        words += _opened(bare) if "'" in bare or bare == "cannot" else (bare,)
    telling = [word for word in words if word and word not in _EMPTY]
    return (*telling, "?") if text.rstrip().rstrip(_TRIM.replace("?", "")).endswith(tuple(_QUESTION)) else (*telling,)


def _opened(word: str) -> list[str]:
    """A contraction as its words: "don't" as "do", "not"."""
    if word in _IRREGULAR:
        return _IRREGULAR[word].split()
    for ending, full in _OPENED.items():
        if word.endswith(ending) and len(word) > len(ending):
            return [word[: -len(ending)], full]
    return [word]
