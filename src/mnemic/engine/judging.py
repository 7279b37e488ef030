"""Which chunks are worth a vector, which say what was said before, and what they are about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from mnemic.config import FilterConfig, TopicsConfig
from mnemic.domain import topics, worth
from mnemic.domain.novelty import signature
from mnemic.domain.types import ChunkId, Kind, Space, Trust
from mnemic.domain.worth import Circumstances, Duplicate, Keep, Neighbour, Refuse
from mnemic.ports import Embedder, Matrix
from mnemic.store.chunks import Decision, Raw, Saying
from mnemic.store.upkeep import Upkeep

DELIBERATE = frozenset({Kind.NOTE.value, Kind.DOCUMENT.value, Kind.EDIT.value})
KNOWS_NO_MEANING = frozenset({"hashing"})


@dataclass(frozen=True, slots=True)
class Known:
    """What a namespace knows of topics: `labels` by key, and where vectors of labels are kept."""

    labels: Mapping[str, str]
    upkeep: Upkeep


class Judge:
    """The filter and the topics of a configuration. Pure but for the taxonomies, embedded once a space."""

    def __init__(self, worth_config: FilterConfig, topics_config: TopicsConfig) -> None:
        self._rules = worth.rules(worth_config)
        topics.check(topics_config)
        self._topics = topics_config
        self._taxonomies: dict[str, topics.Taxonomy] = {}

    def decide(
        self,
        raws: Sequence[Raw],
        said_before: Sequence[Saying],
        about: Mapping[int, tuple[topics.Topic, ...]],
    ) -> list[Decision]:
        """A decision for each chunk, in order; earlier chunks of `raws` count as said before. `about`: topics of
        those chunks for which they are known."""
        known: dict[int, list[Saying]] = {}
        for saying in said_before:
            known.setdefault(saying.signature, []).append(saying)
        decisions = []
        for raw in raws:
            same = [s for s in known.get(raw.signature, ()) if s.id < raw.id]
            decision = self._decide(raw, same, about.get(raw.id))
            if decision.kept and raw.signature:
                known.setdefault(raw.signature, []).append(Saying(raw.id, raw.signature, raw.text))
            decisions.append(decision)
        return decisions

    def _decide(self, raw: Raw, same: Sequence[Saying], about: tuple[topics.Topic, ...] | None) -> Decision:
        # Whoever says the same in the same words lies next to it in any space, so no vector is asked for.
        neighbours = [Neighbour(ChunkId(s.id), s.text, 1.0) for s in same[:1]]
        deliberate = raw.kind in DELIBERATE or raw.trust == Trust.IMPORT.value
        verdict = worth.judge(raw.text, Circumstances(deliberate, neighbours), self._rules)
        shown = written(verdict)
        match verdict:
            case Keep():
                return Decision(raw.id, True, shown, None, about)
            case Refuse():
                return Decision(raw.id, False, shown, None, about)
            case Duplicate(of=first):
                return Decision(raw.id, False, shown, int(first), about)

    # -- topics

    def about(
        self, raws: Sequence[Raw], vectors: Matrix | None, embedder: Embedder | None, known: Known
    ) -> dict[int, tuple[topics.Topic, ...]]:
        """What chunks are about. `vectors`: theirs, one a row; None where meaning is not known."""
        if not self._topics.enabled:
            return {}
        taxonomy = self._taxonomy(embedder if vectors is not None else None, known.upkeep)
        found = {}
        for n, raw in enumerate(raws):
            vector = None if vectors is None else np.asarray(vectors[n], np.float32)
            found[raw.id] = topics.assign(raw.text, vector, known.labels, taxonomy)
        return found

    def _taxonomy(self, embedder: Embedder | None, upkeep: Upkeep) -> topics.Taxonomy:
        name = embedder.space.label if embedder is not None else ""
        if name not in self._taxonomies:
            vectors = self._label_vectors(embedder, upkeep) if embedder is not None else None
            self._taxonomies[name] = topics.taxonomy(self._topics, vectors)
        return self._taxonomies[name]

    def _label_vectors(self, embedder: Embedder, upkeep: Upkeep) -> Matrix:
        prompts = topics.prompts(self._topics)
        name = f"{embedder.space.label} {_hash(chr(0).join(prompts))}"
        vectors = upkeep.kept_vectors(name)
        if vectors is None:
            vectors = embedder.embed(prompts)
            upkeep.keep_vectors(name, vectors)
        return vectors


def understands(space: Space | None) -> bool:
    """Whether the vectors of a space say something about meaning."""
    return space is not None and space.provider not in KNOWS_NO_MEANING


def signature_of(text: str) -> int:
    """Signed 64-bit hash of what a text says (`domain/novelty.py`); 0 when it says nothing of its own."""
    words = signature(text)
    return _hash("\x00".join(words)) if words else 0


def digest_of(text: str) -> int:
    """Signed 64-bit hash of a text to the letter."""
    return _hash(text)


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def written(verdict: worth.Verdict) -> str:
    """A verdict as it is stored with the chunk: JSON, shown by `mnemic show`."""
    parts = {name: round(float(getattr(verdict.parts, name)), 3) for name in worth.WEIGHTS}
    told: dict[str, object] = {"score": round(verdict.score, 3), "parts": parts}
    match verdict:
        case Keep():
            told["decision"] = "keep"
        case Refuse(reason=reason, pattern=pattern):
            told |= {"decision": "refuse", "reason": reason.value} | ({"pattern": pattern} if pattern else {})
        case Duplicate(of=first):
            told |= {"decision": "duplicate", "of": int(first)}
    return json.dumps(told, separators=(",", ":"))
