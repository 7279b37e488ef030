"""Is a text worth a vector, and may it be injected by itself? Five scored parts against a threshold, cheap tests first.

    score = .30 density + .30 novelty + .15 relevance + .15 actionability + .10 recency
            (documented as High, High, Medium, Medium, Low)

    density        unique content words / min(words, 40): words that are neither function words nor courtesies. Beyond
                   40 words a text cannot be asked to keep up its share of new words.
    novelty        fullness x newness. fullness = min(1, unique content words / 2), and 1 for a statement in the first
                   person; newness = 1 unless a stored text says the same in the same words, then 1 - its similarity.
    relevance      (1 + cosine) / 2 of the text and the interests, intent and active topics; .5 while that is unknown.
    actionability  min(1, cues / 2): commitments, decisions, tasks, deadlines, standing wishes.
    recency        2 ** (-age / 30 days), the age against the newest event of the session, so that an old transcript
                   is not refused for being imported late.

A refusal keeps the text in the log and in keyword search; it is stored with its parts and can be decided again.
What a user puts in on purpose is kept whatever it scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from mnemic.config import FilterConfig
from mnemic.domain.courtesies import Weighed, weigh
from mnemic.domain.novelty import says_the_same
from mnemic.domain.types import ChunkId
from mnemic.errors import ConfigError

if TYPE_CHECKING:
    import re2

WEIGHTS = {"density": 0.30, "novelty": 0.30, "relevance": 0.15, "actionability": 0.15, "recency": 0.10}
HALF_LIFE_DAYS = 30.0
DENSE_WORDS = 40
FULL_WORDS = 2
FULL_CUES = 2
MAX_PATTERNS = 200
MAX_PATTERN_BYTES = 1024


class Reason(StrEnum):
    EXCLUDED = "excluded"  # a pattern of `exclude_patterns` matches
    SHORT = "short"  # fewer columns than `min_length`, and no statement in the first person
    UNWORTHY = "unworthy"  # the score is below `autosave_threshold`


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored chunk near the text. `similarity`: cosine, or any likeness of 0 to 1 where there are no vectors."""

    id: ChunkId
    text: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known besides the text. `deliberate`: a user put it in on purpose (a note, a document, an import).

    `age_days`: how much older it is than the newest event of its session. `relevance`: cosine to
    the nearest of interests, intent and active topics, None if unknown.
    """

    deliberate: bool = False
    neighbours: Sequence[Neighbour] = ()
    relevance: float | None = None
    age_days: float = 0.0


@dataclass(frozen=True, slots=True)
class Parts:
    """Each 0 to 1; the module's docstring has the formulas."""

    density: float
    novelty: float
    relevance: float
    actionability: float
    recency: float

    @property
    def score(self) -> float:
        return sum(weight * float(getattr(self, name)) for name, weight in WEIGHTS.items())


@dataclass(frozen=True, slots=True)
class Keep:
    parts: Parts

    @property
    def score(self) -> float:
        return self.parts.score


@dataclass(frozen=True, slots=True)
class Refuse:
    """`pattern`: the one that matched, for EXCLUDED."""

    reason: Reason
    parts: Parts
    pattern: str = ""

    @property
    def score(self) -> float:
        return self.parts.score


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Chunk `of` says the same."""

    of: ChunkId
    parts: Parts

    @property
    def score(self) -> float:
        return self.parts.score


Verdict = Keep | Refuse | Duplicate


@dataclass(frozen=True, slots=True)
class Rules:
    """A checked configuration with its patterns compiled."""

    config: FilterConfig
    patterns: tuple[re2._Regexp, ...]


def rules(config: FilterConfig) -> Rules:
    """The rules of a configuration; make them once. Errors: ConfigError for a bad pattern or number, saying why."""
    for name in ("autosave_threshold", "novelty_threshold"):
        if not 0 <= getattr(config, name) <= 1:
            raise ConfigError(f"filter.{name} = {getattr(config, name)} must lie in 0 to 1")
    if not 0 <= config.min_length <= config.max_length:
        raise ConfigError(f"filter.min_length = {config.min_length} must lie in 0 to filter.max_length")
    if len(config.exclude_patterns) > MAX_PATTERNS:
        raise ConfigError(
            f"filter.exclude_patterns has {len(config.exclude_patterns)} patterns, at most {MAX_PATTERNS}"
        )
    return Rules(config, tuple(_compiled(pattern) for pattern in config.exclude_patterns))


def _compiled(pattern: str) -> re2._Regexp:
    if len(pattern.encode("utf-8", "replace")) > MAX_PATTERN_BYTES:
        raise ConfigError(f"filter.exclude_patterns: {pattern[:40]!r}... is longer than {MAX_PATTERN_BYTES} bytes")
    import re2  # late: most configurations have no patterns

    options = re2.Options()
    options.case_sensitive = False  # "^(ok|thanks)$" means "OK" too; (?-i) in a pattern undoes it
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else error
        raise ConfigError(f"filter.exclude_patterns: {pattern!r} is not a pattern RE2 accepts: {why}") from error


def judge(text: str, known: Circumstances, by: Rules) -> Verdict:
    """Whether to keep `text`. Linear in the text; patterns see all of it, scores its first `max_length` characters."""
    config = by.config
    bare = text.strip()
    weighed = weigh(bare[: config.max_length])
    nearest = _said_before(bare, known.neighbours)
    parts = _scored(weighed, known, nearest)
    if known.deliberate or not config.enabled:
        return Keep(parts)
    if by.patterns:
        raw = bare.encode("utf-8", "replace")
        for source, pattern in zip(config.exclude_patterns, by.patterns, strict=True):
            if pattern.search(raw):
                return Refuse(Reason.EXCLUDED, parts, source)
    if _columns(bare, config.min_length) < config.min_length and not weighed.of_self:
        return Refuse(Reason.SHORT, parts)
    if nearest is not None and nearest.similarity > config.novelty_threshold:
        return Duplicate(nearest.id, parts)
    return Keep(parts) if parts.score >= config.autosave_threshold - 1e-9 else Refuse(Reason.UNWORTHY, parts)


def _said_before(text: str, neighbours: Sequence[Neighbour]) -> Neighbour | None:
    """The most similar of the neighbours that say the same."""
    same = [near for near in neighbours if says_the_same(text, near.text)]
    return max(same, key=lambda near: near.similarity, default=None)


def _scored(weighed: Weighed, known: Circumstances, nearest: Neighbour | None) -> Parts:
    newness = 1.0 if nearest is None else 1.0 - _share(nearest.similarity)
    fullness = 1.0 if weighed.of_self else min(1.0, weighed.content / FULL_WORDS)
    return Parts(
        density=min(1.0, weighed.content / max(1, min(weighed.words, DENSE_WORDS))),
        novelty=fullness * newness,
        relevance=_share((1.0 + (known.relevance or 0.0)) / 2.0),
        actionability=min(1.0, weighed.cues / FULL_CUES),
        recency=2.0 ** (-max(0.0, known.age_days) / HALF_LIFE_DAYS),
    )


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def _columns(text: str, enough: int) -> int:
    """The width of `text` on a terminal, where wide characters take two columns; counted no further than `enough`."""
    if len(text) >= enough or text.isascii():
        return len(text)
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
