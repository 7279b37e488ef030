"""Talk without an author: text, questions and vectors for measuring size. The same seed gives the same, everywhere.

Words follow Zipf's law over a vocabulary of 30,000 with English function words at its head; turns are short or long as
people's and assistants' are; sessions keep to a topic. A vector is the topic's direction plus those of the words, so
that what shares rare words lies close, as it does with a trained model; making one costs microseconds.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from mnemic import Draft, Space
from mnemic.ports import Matrix

DIMENSION = 384
WORDS = 30_000
TOPICS = 400
PER_TOPIC = 60  # words that a topic favours
SESSION_TURNS = 24
DIRECTIONS = 4_096  # of words; more words share one
READ = 32  # content words of a text that make its vector
SPACE = Space("local", "all-MiniLM-L6-v2-int8", DIMENSION, "mean-l2")  # the default's: the command line embeds for it
FUNCTION = tuple(
    re.findall(
        r"\w+",
        """the to and a of i in it you that is for on my have with was but this so be at are we not me do as just like
        what about if or can your from all they there when one had out how up an get will would their more she he""",
    )
)
_START = datetime(2005, 1, 3, 8, tzinfo=UTC)  # a million turns end before today
_CONSONANTS, _VOWELS = "bcdfghklmnprstvz", "aeiou"
_BLOCK = 4_096  # turns made at once


@dataclass(frozen=True, slots=True)
class Turn:
    text: str
    session: str
    role: str
    at: datetime

    def draft(self) -> Draft:
        return Draft(self.text, role=self.role, session=self.session, at=self.at)


def word(number: int) -> str:
    """A pronounceable word, its own for each number."""
    out, rest = "", number + 400  # three letters at least: no clash with function words worth a thought
    while rest:
        rest, consonant = divmod(rest, len(_CONSONANTS))
        rest, vowel = divmod(rest, len(_VOWELS))
        out += _CONSONANTS[consonant] + _VOWELS[vowel]
    return out + "x"


class Talk:
    """A corpus of any size: `turns(n)` begins with `turns(m)` for every m < n."""

    def __init__(self, seed: int = 7) -> None:
        self._seed = seed
        self.vocabulary = [*FUNCTION, *(word(n) for n in range(WORDS - len(FUNCTION)))]
        weight = 1 / np.arange(1, WORDS + 1)
        self._edges = np.cumsum(weight / weight.sum())
        self._topic_words = np.random.default_rng(seed).integers(300, WORDS, (TOPICS, PER_TOPIC))

    def turns(self, count: int) -> Iterator[Turn]:
        for start in range(0, count, _BLOCK):
            yield from self._block(start)[: count - start]

    def questions(self, count: int, corpus: int) -> list[str]:
        """Questions about turns of a corpus of that many: some of one turn's content words and a topic word."""
        rng = np.random.default_rng(self._seed + 1)
        blocks = {b: self._block(b * _BLOCK) for b in rng.integers(0, -(-corpus // _BLOCK), 16).tolist()}
        asked = []
        for n in range(count):
            block = list(blocks.values())[n % len(blocks)]
            turn = block[int(rng.integers(0, min(len(block), corpus)))]
            content = [w for w in dict.fromkeys(turn.text.replace(".", "").split()) if w not in FUNCTION]
            some = [content[i] for i in sorted(rng.permutation(len(content))[: int(rng.integers(2, 6))].tolist())]
            asked.append(f"what was it about {' and '.join(some)}" if some else turn.text)
        return asked

    def _block(self, start: int) -> list[Turn]:
        rng = np.random.default_rng((self._seed, start))
        long = rng.random(_BLOCK) < 0.3
        lengths = np.clip(rng.lognormal(np.where(long, 4.3, 2.9), 0.5), 3, 400).astype(int)
        drawn = np.searchsorted(self._edges, rng.random(int(lengths.sum())))
        topical = rng.random(len(drawn)) < 0.15
        topics = np.repeat(self._topic_of(np.arange(start, start + _BLOCK)), lengths)
        favoured = self._topic_words[topics, rng.integers(0, PER_TOPIC, len(drawn))]
        picked = np.where(topical & (drawn >= len(FUNCTION)), favoured, drawn).tolist()
        turns, at = [], 0
        for n, length in enumerate(lengths.tolist()):
            number = start + n
            words = [self.vocabulary[i] for i in picked[at : at + length]]
            at += length
            when = _START + timedelta(minutes=7 * number)
            role = "assistant" if long[n] else "user"
            turns.append(Turn(_sentences(words), f"s{number // SESSION_TURNS}", role, when))
        return turns

    def _topic_of(self, numbers: np.ndarray) -> np.ndarray:
        return numbers // SESSION_TURNS * 2_654_435_761 % 2**32 % TOPICS


def _sentences(words: Sequence[str]) -> str:
    return ". ".join(" ".join(words[i : i + 14]) for i in range(0, len(words), 14)) + "."


class FakeEmbedder:
    """Vectors of `Talk`'s texts and of any other, from their words alone."""

    space = SPACE
    max_tokens = 10**9

    def __init__(self, seed: int = 7) -> None:
        rng = np.random.default_rng(seed)
        self._directions = rng.standard_normal((DIRECTIONS, DIMENSION), np.float32)
        self._directions += 0.1 * rng.standard_normal(DIMENSION, np.float32)  # trained vectors share a direction too
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int:
        return len(text) // 4

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Matrix:
        sums = np.empty((len(texts), DIMENSION), np.float32)
        for n, text in enumerate(texts):
            rows = [row for token in text.replace(".", "").split() if (row := self._row(token)) >= 0]
            np.add.reduce(self._directions[rows[:READ] or [0]], axis=0, out=sums[n])
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)

    def _row(self, token: str) -> int:
        """The direction of a word; -1 for a function word, which says nothing."""
        known = self._known.get(token)
        if known is None:
            known = -1 if token in FUNCTION else zlib.crc32(token.encode("utf-8", "surrogatepass")) % DIRECTIONS
            if len(self._known) < 100_000:
                self._known[token] = known
        return known
