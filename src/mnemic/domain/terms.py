"""Text to terms: one pipeline for what is stored and for what is asked.

A *term* is what the keyword index counts:

* a word: case-folded, compatibility forms unified (NFKC), diacritics of Latin and Greek letters stripped, irregular
  English forms reduced to their base ("went" is "go"), Porter-stemmed; English function words are dropped;
* scripts written without spaces (Han, Kana, Hangul, Thai, Lao, Khmer, Myanmar): every character and every pair of
  neighbouring characters. A question asks for the pairs only, unless it is a single character;
* an emoji;
* a *literal*: a token that holds symbols ("C++", "GB/s", "10.0.1.5", "foo_bar") is indexed by its words and also whole,
  marked by `LITERAL` in front. A literal the corpus has never seen asks for nothing: its words stand for it.

A *passage* is whole sentences packed to about `PASSAGE_WORDS` words, the unit of keyword scores.

Everything hangs on tokens between white space, and the work for one is remembered, so a turn costs a dictionary look-up
per token. Any string is legal, lone surrogates and NUL included; time and memory are linear in its length.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

PASSAGE_WORDS = 40  # short enough that a fact is not drowned by its neighbours: see docs on ranking
SENTENCE_WORDS = 80  # a "sentence" longer than this (code, tables, lists) is cut
TERM_CHARS = 64  # longer words (base64, hashes) are known by their first characters
LITERAL = "="  # in front of a whole token that holds symbols; no other term starts with it
_REMEMBERED = 50_000  # tokens; about 15 MB when full


class Flag(IntFlag):
    """What a text holds that a question may ask for; found once, at writing."""

    QUESTION = 1  # a question mark
    TIME = 2  # a date, a weekday, "yesterday", "two weeks ago"
    NUMBER = 4  # digits or a number word
    WISH = 8  # a standing wish: "always", "prefer", "make sure"
    SELF = 16  # the speaker speaks of themself: "I", "my", "we"
    ASKS = 32  # most of it asks, and nothing in it is about the speaker: a turn that answers nothing
    NAME = 64  # a capital inside a sentence


# Plain integers for the inner loop: arithmetic of `Flag` costs more than all the rest there.
_QUESTION, _WISH, _SELF, _ASKS = int(Flag.QUESTION), int(Flag.WISH), int(Flag.SELF), int(Flag.ASKS)
_NOT_NAME = ~int(Flag.NAME)


@dataclass(frozen=True, slots=True)
class Analysis:
    """`words`: words of the text (two characters of unspaced script count as one). `passages`: term -> count, the
    speaker's name counted once in each. `flags`: `Flag` bits of the whole text."""

    words: int
    passages: tuple[Mapping[str, int], ...]
    flags: int


class _Token(NamedTuple):
    terms: tuple[str, ...]  # as indexed
    asked: tuple[str, ...]  # as asked for
    words: int
    flags: int
    ends: bool  # a sentence ends here


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP = _listed(  # the last three are what "can't", "shan't" and "won't" leave
    """a about also am an and any are as at be because been being but by can could did do does doing done for from
    had has have having he her here hers him his how i if in into is it its itself just let me mine my myself no nor
    not of off on or our ours ourselves out own please quite rather really she should so some such than that the
    their theirs them themselves then there these they this those through to too until upon us very was we were what
    whatever when where whether which while who whom whose why will with would you your yours yourself ca sha wo"""
)

# Porter joins regular forms only; people tell their lives in irregular ones.
_IRREGULAR = """
    go went gone goes|buy bought|bring brought|think thought|teach taught|catch caught|fight fought|seek sought|
    make made|take took taken|give gave given|get got gotten|come came|become became|begin began begun|
    break broke broken|choose chose chosen|draw drew drawn|drink drank drunk|drive drove driven|eat ate eaten|
    fall fell fallen|feel felt|find found|fly flew flown|forget forgot forgotten|forgive forgave forgiven|
    freeze froze frozen|grow grew grown|hear heard|hold held|keep kept|know knew known|lead led|leave left|lend lent|
    lose lost|mean meant|meet met|pay paid|ride rode ridden|rise rose risen|run ran|say said|see saw seen|sell sold|
    send sent|shake shook shaken|sing sang sung|sit sat|sleep slept|speak spoke spoken|spend spent|stand stood|
    steal stole stolen|swim swam swum|tell told|throw threw thrown|understand understood|wake woke woken|
    wear wore worn|win won|write wrote written|build built|burn burnt|deal dealt|dream dreamt|feed fed|
    hide hid hidden|learn learnt|light lit|shoot shot|show shown|strike struck|child children|man men|woman women|
    person people|foot feet|tooth teeth|mouse mice|life lives|wife wives|knife knives|leaf leaves|half halves|
    self selves|good better best|bad worse worst"""
_BASE = {form: forms.split()[0] for forms in _IRREGULAR.split("|") for form in forms.split()[1:]}

_TIME_WORDS = _listed(
    """yesterday today tonight tomorrow ago week weeks weekend weekends month months year years day days night morning
    afternoon evening noon midnight hour hours minute minutes monday tuesday wednesday thursday friday saturday sunday
    january february march april may june july august september october november december jan feb mar apr jun jul aug
    sep sept oct nov dec summer autumn winter recently lately soon earlier birthday anniversary christmas
    thanksgiving easter halloween decade decades century"""
)
_TIME_IF_CAPITAL = _listed("may march mar sun sat")  # a verb or a noun as often as a month
_NUMBER_WORDS = _listed(
    """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen
    couple several once twice few both pair half"""
)
_SELF_WORDS = _listed("i me my mine myself we our ours")
_WISH_WORDS = _listed("always never prefer prefers preferably preference whenever")

# Sentence punctuation and Markdown around a token say nothing about it; other symbols are part of its literal.
_TRIM = ".,;:!?\"'()[]<>*`~\u2026\u00ab\u00bb\u2018\u2019\u201c\u201d\u2014\u2013\u00bf\u00a1\u3001\u3002\uff0c\uff0e"
_CLOSERS = "\"')]*`_\u00bb\u2019\u201d\u300d\u300f"
_STOPS = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f", "\uff61", "\u0964", "\u061f")
_INNER_STOP = re.compile("([\u3002\uff01\uff1f\uff61\u0964\u061f])")  # unspaced scripts end sentences inside a token
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]")
_ACCENTED = re.compile("([a-z\u0370-\u03ff\u1f00-\u1fff])[\u0300-\u036f]+")
_POINTS = re.compile("[\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0640]")  # Hebrew and Arabic vowel signs, tatweel
_LATIN = str.maketrans(
    {"\u00f8": "o", "\u0142": "l", "\u0111": "d", "\u00e6": "ae", "\u0153": "oe", "\u0131": "i"}
    | {"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-", "\u2013": "-", "\u2014": "-"}
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_CONTRACTION = re.compile(r"(.+?)(?:n't|'(?:s|m|re|ve|ll|d|t))", re.DOTALL)
_CLOCK = re.compile(
    r"(?:1[0-2]|0?[1-9])(?::[0-5]\d)?[ap]m|(?:[01]?\d|2[0-3]):[0-5]\d"  # times of day
    r"|(?:19|20)\d\d(?:-\d\d?){0,2}|\d\d?/\d\d?/\d{2,4}"  # years and dates
)
# Combining marks are no word characters to `re`, but Indic vowels, say, are written with them.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u0900-\u0963\u0966-\u0dff\u0f00-\u0fff"
)
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u3005-\u3007\u3041-\u3096\u3099-\u309a\u309d-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\u1100-\u11ff\uac00-\ud7a3\U00020000-\U000323af"
)
_EMOJI = (
    "\u203c\u2049\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u2500-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\U0001f000-\U0001faff"
)
_SEGMENT = re.compile(
    f"(?P<run>[{_UNSPACED}]+)|(?P<word>(?:(?![{_UNSPACED}])[^\\W_]|[{_MARKS}])+)|(?P<emoji>[{_EMOJI}])|(?P<symbol>.)",
    re.DOTALL,
)
_SKIN = re.compile("[\U0001f3fb-\U0001f3ff]")

_remembered: dict[str, _Token] = {}


def analyse(text: str, actor: str = "") -> Analysis:
    """Terms of `text` by passage, with the name of `actor`, who said it. About 1 us per word when tokens recur."""
    name = _name(actor)
    passages: list[Mapping[str, int]] = []
    packed: list[str] = []
    packed_words = words = asking = flags = 0
    for terms, count, held in _sentences(text):
        if packed and packed_words + count > PASSAGE_WORDS:
            passages.append(Counter(packed + name))
            packed, packed_words = [], 0
        packed += terms
        packed_words += count
        words += count
        asking += count if held & _QUESTION else 0
        flags |= held
    if packed or (name and not passages):
        passages.append(Counter(packed + name))
    if 2 * asking > words and not flags & _SELF:
        flags |= _ASKS
    if "make sure" in text.lower():
        flags |= _WISH
    return Analysis(words, tuple(passages), flags)


def query_terms(text: str) -> list[str]:
    """What a question asks for, each term once, in order. Empty when nothing but function words is in it."""
    return list(dict.fromkeys(term for token in _tokens(text) for term in token.asked))


@lru_cache(maxsize=_REMEMBERED)
def term_hash(term: str) -> int:
    """64 bits of BLAKE2b as a signed integer (what both databases store), the same in every process and release."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)


@lru_cache(maxsize=4096)
def name_words(text: str) -> frozenset[str]:
    """The words of a name or a text as names are compared: terms without literals."""
    return frozenset(term for term in query_terms(text) if term[0] != LITERAL)


def _sentences(text: str) -> Iterator[tuple[list[str], int, int]]:
    """Terms, number of words and flags of each sentence; a line's end ends a sentence, so does `SENTENCE_WORDS`."""
    remembered, make = _remembered.get, _token
    for line in _lines(text):
        terms: list[str] = []
        words = flags = 0
        for raw in line.split():
            token = remembered(raw) or make(raw)
            if token.words > SENTENCE_WORDS:
                yield from _pieces(token)
                continue
            terms += token.terms
            words += token.words
            flags |= token.flags if words > token.words else token.flags & _NOT_NAME
            if token.ends or words >= SENTENCE_WORDS:
                yield terms, words, flags
                terms, words, flags = [], 0, 0
        if words or flags or terms:
            yield terms, words, flags


def _pieces(token: _Token) -> Iterator[tuple[list[str], int, int]]:
    """A token as long as a page (unspaced script, a wall of emoji, a data blob), cut evenly."""
    count = -(-token.words // PASSAGE_WORDS)
    size = max(1, -(-len(token.terms) // count))
    for start in range(0, len(token.terms), size):
        yield list(token.terms[start : start + size]), PASSAGE_WORDS, token.flags


def _tokens(text: str) -> Iterator[_Token]:
    for line in _lines(text):
        for raw in line.split():
            yield _remembered.get(raw) or _token(raw)


def _lines(text: str) -> list[str]:
    return (text if text.isascii() else _INNER_STOP.sub("\\1\n", text)).splitlines()


def _token(raw: str) -> _Token:
    """Take a token between white space apart, and remember the result unless it is a freak."""
    text = raw.lower() if raw.isascii() else _plain(raw)
    bare = _THOUSANDS.sub("", text.strip(_TRIM))
    if match := _CONTRACTION.fullmatch(bare):
        bare = match[1]
    if bare.isascii() and bare.isalnum():
        token = _Token(_words([bare]), _words([bare]), 1, _flags(raw, text, [bare]), _ends(raw))
    else:
        token = _mixed(raw, text, bare)
    if len(raw) <= TERM_CHARS:
        if len(_remembered) >= _REMEMBERED:
            _remembered.clear()  # cheaper than keeping an order of use, and the living words are back within seconds
        _remembered[raw] = token
    return token


def _mixed(raw: str, text: str, bare: str) -> _Token:
    """A token that is not one plain word: symbols, unspaced scripts, emoji."""
    terms: list[str] = []
    asked: list[str] = []
    words: list[str] = []
    count, symbols, literal = 0, False, True
    for match in _SEGMENT.finditer(bare):
        part = match[0]
        match match.lastgroup:
            case "word":
                words.append(part)
                term = _words([part])
                terms += term
                asked += term
                count += 1
            case "run":
                pairs = [part[i : i + 2] for i in range(len(part) - 1)]
                terms += [*part, *pairs]
                asked += pairs or [part]
                count += (len(part) + 1) // 2
                literal = False
            case "emoji":
                terms.append(part)
                asked.append(part)
                count += 1
            case _:
                symbols = True
    if literal and symbols and words and len(bare) <= TERM_CHARS:
        terms.append(LITERAL + bare)
        asked.append(LITERAL + bare)
    return _Token(tuple(terms), tuple(asked), count, _flags(raw, text, words), _ends(raw))


def _words(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(_stem(word[:TERM_CHARS]) for word in words if word not in STOP)


def _flags(raw: str, text: str, words: Iterable[str]) -> int:
    flags = Flag.QUESTION if "?" in text else Flag(0)
    if len(raw) > 1 and raw[0].isupper():
        flags |= Flag.NAME
    for word in words:
        if word in _TIME_WORDS and (word not in _TIME_IF_CAPITAL or raw[:1].isupper()):
            flags |= Flag.TIME
        if word in _NUMBER_WORDS:
            flags |= Flag.NUMBER
        if word in _WISH_WORDS:
            flags |= Flag.WISH
        if word in _SELF_WORDS:
            flags = (flags | Flag.SELF) & ~Flag.NAME
    if any(c.isdigit() for c in text[:TERM_CHARS]):
        flags |= Flag.NUMBER
        if _CLOCK.search(text[:TERM_CHARS]):
            flags |= Flag.TIME
    return int(flags)


def _ends(raw: str) -> bool:
    return raw.rstrip(_CLOSERS).endswith(_STOPS)


def _plain(raw: str) -> str:
    """Case-folded, NFKC, without invisible characters; diacritics gone from Latin and Greek letters only: on others
    they make other letters."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", raw)).casefold().translate(_LATIN)
    text = _ACCENTED.sub(r"\1", unicodedata.normalize("NFD", text))
    return _POINTS.sub("", _SKIN.sub("", unicodedata.normalize("NFC", text)))


@lru_cache(maxsize=1024)
def _name(actor: str) -> list[str]:
    """The words of a speaker's name."""
    return [term for token in _tokens(actor) for term in token.terms if term[0] != LITERAL]


@lru_cache(maxsize=_REMEMBERED)
def _stem(word: str) -> str:
    base = _BASE.get(word, word)
    return _porter()(base) if len(base) > 2 and base.isascii() else base


@lru_cache(maxsize=1)
def _porter() -> Callable[[str], str]:
    import Stemmer  # late: doors that only record never need it

    return Stemmer.Stemmer("porter", 0).stemWord  # type: ignore[no-any-return]  # 0: `_stem` remembers already
