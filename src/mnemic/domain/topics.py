"""Which topics a text is about: labels by meaning and by words, and key phrases where no label fits.

The same texts in another order get the same topics: what is assigned depends on the text and on the taxonomy alone,
never on the texts before it (a running centroid would). What was known before only lends its spelling: a topic *is* its
key, the stems of its label, so "Sourdoughs" and "sourdough" are one topic, shown as it was first written.

    taxonomy   auto    the common subjects of `subjects.py`, else key phrases of the text
               fixed   `custom_topics` only
               hybrid  `custom_topics`; if none fits, as `auto`

Confidence of a label, 0 to 1, with the text's vector v and the label's vector l (both of one space, length 1):

    1 / (1 + exp(-(BIAS + MEANING c + WORDS h)))     c = (l.v - mean over all subjects of l.v) / spread
                                                     h = min(2, different words of the label in the text), its name: 2

The mean makes a text compete with itself: what resembles everything a little is about nothing. `spread` is the standard
deviation of the cosines between labels, which makes spaces comparable. BIAS and MEANING give the best F1 at .6, the
default of `min_confidence`, for ten labels and eighty short sentences with MiniLM; on eleven other labels and 88
sentences they find .82 of the labels with a precision of .77. Without vectors h decides alone (`_BY_WORDS`).

Confidence of a key phrase: .45, +.20 for a name (capitals within a sentence), +.15 for each further time it is said, up
to two, +.15 in a heading, 1 at most; -.15 beside a subject that fits: a new topic is made as needed only.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mnemic.config import TopicsConfig
from mnemic.domain.courtesies import carries_content
from mnemic.domain.subjects import SUBJECTS
from mnemic.domain.terms import LITERAL, Flag, analyse, query_terms
from mnemic.errors import ConfigError

Vector = npt.NDArray[np.float32]  # (dimension,), length 1
Matrix = npt.NDArray[np.float32]  # (labels, dimension), rows of length 1

BIAS, MEANING, WORDS = -6.0, 3.0, 1.36
_BY_WORDS = (0.0, 0.62, 0.85)  # by words alone: none, one, two or the name; .72 and 1.0 were right on those sentences
_SHARED = 0.5  # one word that speaks of several subjects
PHRASE, NAME, AGAIN, HEADED, BESIDE = 0.45, 0.20, 0.15, 0.15, 0.15  # of key phrases
MAX_LABEL_CHARS = 80

_PHRASE = re.compile(r"[^\W\d_][\w'’+#-]*(?:[ ][A-Z][\w'’+#-]*){0,2}")
_OPENS = frozenset('.!?…:;\n"“«¿¡([*>-#•')


@dataclass(frozen=True, slots=True)
class Topic:
    """`key`: its identity. `label`: as shown. `confidence`: 0 to 1. `known`: the namespace has it already."""

    key: str
    label: str
    confidence: float
    known: bool


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """A checked configuration with its labels: make it once per embedding space. Custom labels come first.

    `labels`: (key, label). `words`: term -> the places of the labels it speaks of. `names`: terms of each label.
    `custom`: how many labels are the user's. `likeness`: one row a label, (l - mean over all subjects) / spread, so
    that its product with a text's vector is c; None without an embedder.
    """

    config: TopicsConfig
    labels: tuple[tuple[str, str], ...]
    custom: int
    words: Mapping[str, tuple[int, ...]]
    names: tuple[frozenset[str], ...]
    likeness: Matrix | None


@lru_cache(maxsize=20_000)
def key(label: str) -> str:
    """The identity of a topic: the stems of its label in order, symbols only where they name it ("C++", "C#")."""
    if any(sign in label for sign in "+#"):
        return label.strip().casefold()
    return " ".join(term for term in query_terms(label) if not term.startswith(LITERAL)) or label.strip().casefold()


def prompts(config: TopicsConfig) -> list[str]:
    """The texts to embed for `taxonomy`, two for each label; the same for every text of a space."""
    texts: list[str] = []
    for label in _labels(config):
        words = SUBJECTS.get(label.casefold(), ())
        texts += [
            f"This text is about {label}.",
            f"This text is about {label}{': ' if words else ''}{' '.join(words)}.",
        ]
    return texts


def taxonomy(config: TopicsConfig, vectors: Matrix | None = None) -> Taxonomy:
    """`vectors`: of `prompts(config)`, float32 (texts, dimension). Errors: ConfigError for contradicting settings."""
    check(config)
    labels = _labels(config)
    words: defaultdict[str, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        for term in query_terms(" ".join([label, *SUBJECTS.get(label.casefold(), ())])):
            words[term].append(place)
    return Taxonomy(
        config,
        tuple((key(label), label) for label in labels),
        0 if config.taxonomy == "auto" else len(config.custom_topics),
        {term: tuple(places) for term, places in words.items()},
        tuple(frozenset(query_terms(label)) for label in labels),
        None if vectors is None else _likeness(labels, vectors),
    )


def assign(text: str, vector: Vector | None, known: Mapping[str, str], by: Taxonomy) -> tuple[Topic, ...]:
    """The topics of a piece of text, most confident first, at most `max_topics_per_entry`.

    `vector`: of the text, in the space of the taxonomy; None without an embedder, or with one that knows no meaning.
    `known`: key -> label of the namespace's topics. Linear in the text.
    """
    config = by.config
    if not config.enabled:
        return ()
    confidences = _confidences(text, vector, by)
    found = _fitting(confidences, range(by.custom), by)
    if config.taxonomy != "fixed" and not found:
        found = _fitting(confidences, range(by.custom, len(by.labels)), by)
        found += _made(text, config.min_confidence, {name for name, _, _ in found})
    found.sort(key=lambda topic: (-topic[2], topic[0]))
    return tuple(
        Topic(name, known.get(name, label), round(confidence, 4), name in known)
        for name, label, confidence in found[: config.max_topics_per_entry]
    )


def check(config: TopicsConfig) -> None:
    """Errors: ConfigError for settings that contradict each other."""
    if config.taxonomy == "fixed" and not config.custom_topics:
        raise ConfigError("topics.taxonomy = 'fixed' assigns only topics.custom_topics, and that list is empty")
    if config.taxonomy not in ("auto", "fixed", "hybrid"):
        raise ConfigError(f"topics.taxonomy = {config.taxonomy!r} is none of 'auto', 'fixed', 'hybrid'")
    if not 0 <= config.min_confidence <= 1:
        raise ConfigError(f"topics.min_confidence = {config.min_confidence} must lie in 0 to 1")
    if config.max_topics_per_entry < 0:
        raise ConfigError(f"topics.max_topics_per_entry = {config.max_topics_per_entry} must not be negative")
    seen: dict[str, str] = {}
    for label in config.custom_topics if config.taxonomy != "auto" else ():
        if not label.strip() or len(label) > MAX_LABEL_CHARS:
            raise ConfigError(f"topics.custom_topics: {label[:40]!r} is not 1 to {MAX_LABEL_CHARS} characters long")
        if (other := seen.setdefault(key(label), label)) != label or list(config.custom_topics).count(label) > 1:
            raise ConfigError(f"topics.custom_topics: {other!r} and {label!r} are the same topic")


def _labels(config: TopicsConfig) -> list[str]:
    """Custom labels, then subjects that are not among them: they are what a text may be about instead."""
    custom = [] if config.taxonomy == "auto" else [label.strip() for label in config.custom_topics]
    own = {key(label) for label in custom}
    return custom + [label for label in SUBJECTS if key(label) not in own]


def _likeness(labels: Sequence[str], vectors: Matrix) -> Matrix:
    if len(vectors) != 2 * len(labels):
        raise ValueError(f"{len(labels)} labels need {2 * len(labels)} vectors, not {len(vectors)}")
    rows = vectors[::2] + vectors[1::2]
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(norms > 0, norms, 1)
    spread = (rows @ rows.T)[np.triu_indices(len(rows), 1)].std()
    common = rows[[place for place, label in enumerate(labels) if label.casefold() in SUBJECTS]].mean(axis=0)
    return np.asarray((rows - common) / (spread or 1.0), np.float32)


# --- labels -----------------------------------------------------------------------------------------------------


def _confidences(text: str, vector: Vector | None, by: Taxonomy) -> list[float]:
    """One confidence for each label."""
    terms = frozenset(query_terms(text))
    hits: Counter[int] = Counter()
    sure: set[int] = set()  # labels that a word speaks of which speaks of no other
    for term in terms:
        places = by.words.get(term, ())
        hits.update(places)
        if len(places) == 1:
            sure.add(places[0])
    for place in list(hits):
        if by.names[place] and by.names[place] <= terms:
            hits[place] = 2
    if vector is None or by.likeness is None:
        return [
            _SHARED if hits[place] == 1 and place not in sure else _BY_WORDS[min(2, hits[place])]
            for place in range(len(by.labels))
        ]
    evidence = BIAS + MEANING * (by.likeness @ vector)
    for place, count in hits.items():
        evidence[place] += WORDS * min(2, count)
    confidences: list[float] = (0.5 + 0.5 * np.tanh(evidence / 2)).tolist()  # 1 / (1 + exp(-evidence)), no overflow
    return confidences


def _fitting(confidences: Sequence[float], places: range, by: Taxonomy) -> list[tuple[str, str, float]]:
    """(key, label, confidence) of the labels at `places` that reach the least confidence and have some."""
    least = by.config.min_confidence
    return [(*by.labels[place], confidences[place]) for place in places if 0 < confidences[place] >= least]


# --- key phrases ------------------------------------------------------------------------------------------------


def _made(text: str, least: float, taken: set[str]) -> list[tuple[str, str, float]]:
    """(key, label, confidence) of new topics, beside those of the keys `taken`."""
    forms: Counter[str] = Counter()
    names: set[str] = set()
    headed: set[str] = set()
    for phrase, is_name, heads in _phrases(text):
        forms[phrase] += 1
        if is_name:
            names.add(phrase)
        if heads:
            headed.add(phrase)
    shown: defaultdict[str, list[str]] = defaultdict(list)
    for phrase in forms:
        shown[key(phrase)].append(phrase)
    made = []
    for name, same in shown.items():
        again = AGAIN * min(2, sum(forms[form] for form in same) - 1)
        confidence = PHRASE + NAME * (not names.isdisjoint(same)) + again + HEADED * (not headed.isdisjoint(same))
        confidence = min(1.0, confidence) - (BESIDE if taken else 0.0)
        if confidence >= least and name not in taken:
            made.append((name, min(same, key=lambda form: (-forms[form], not form.islower(), form)), confidence))
    return made


def _phrases(text: str) -> Iterator[tuple[str, bool, bool]]:
    """(phrase, is a name, stands in a heading): words with content, neighbours with capitals joined. A name has
    capitals where no sentence starts."""
    for line in text.splitlines():
        heads = line.startswith("#")
        for found in _PHRASE.finditer(line):
            first, _, rest = found.group().partition(" ")
            capital = first[0].isupper()
            if rest and not all(map(_tells, rest.split(" "))):
                rest = ""
            if not _tells(first):
                first = ""
            if first and rest and capital:
                yield _bare(f"{first} {rest}"), True, heads
                continue
            if first:
                yield _bare(first), capital and not _opens(line, found.start()), heads
            if rest:
                yield _bare(rest), True, heads


def _opens(line: str, start: int) -> bool:
    before = line[max(0, start - 4) : start].rstrip(" ")
    return not before or before[-1] in _OPENS


def _bare(phrase: str) -> str:
    return phrase.rstrip("'’-").removesuffix("'s").removesuffix("’s")


@lru_cache(maxsize=20_000)
def _tells(word: str) -> bool:
    """Whether a word could name a topic: content, three characters, no date and no number."""
    if len(word) < 3 or not carries_content(word.casefold()):
        return False
    return not analyse(word).flags & (Flag.TIME | Flag.NUMBER)
