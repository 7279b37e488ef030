"""Keeping an index lean: near-copies, what is old, what is too many. It takes chunks out of the index only; the log
keeps everything, and whatever was taken out is listed and can be put back.

Never touched: what a person wrote or kept on purpose (role user, notes, documents, edits) and what is important.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from mnemic.config import HygieneConfig
from mnemic.domain.drafts import Draft
from mnemic.domain.novelty import says_the_same
from mnemic.domain.types import JsonValue, Kind, Role
from mnemic.engine.judging import DELIBERATE
from mnemic.engine.parts import Engine
from mnemic.store.codec import micros
from mnemic.store.indexes import State

PROTECTED_IMPORTANCE = 0.7
DUPLICATE, OLD, TOO_MANY = "near-copy", "old", "too many"
SCHEDULES: Mapping[str, timedelta] = {
    "hourly": timedelta(hours=1),
    "daily": timedelta(days=1),
    "weekly": timedelta(days=7),
}
_NEAR = 16  # neighbours looked at for a near-copy


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that would leave the index. `because`: the chunk it copies, or its age."""

    chunk: int
    seq: int
    reason: str
    because: str
    text: str


@dataclass(frozen=True, slots=True)
class Swept:
    """`looked_at`: chunks that may be touched at all. `done`: whether they were taken out, or it was a dry run."""

    looked_at: int
    candidates: tuple[Candidate, ...]
    done: bool

    @property
    def counts(self) -> Mapping[str, int]:
        return Counter(c.reason for c in self.candidates)


def sweep(engine: Engine, namespace: str, config: HygieneConfig, now: datetime) -> list[Candidate]:
    """What hygiene would take out now, each chunk once. Blocking; reads only."""
    state = engine.store.indexes.state(namespace)
    loose = _loose(engine, namespace, state)
    found: dict[int, Candidate] = {}
    for candidate in (*_copies(engine, namespace, state, loose, config), *_old(state, loose, config, now)):
        found.setdefault(candidate.chunk, candidate)
    rest = [index for index in loose if int(state.snapshot.ids[index]) not in found]
    surplus = len(state.snapshot.ids) - len(found) - config.max_entries
    for index in rest[: max(0, surplus)]:  # oldest first
        found[int(state.snapshot.ids[index])] = _candidate(state, index, TOO_MANY, f"more than {config.max_entries}")
    texts = _texts(engine, namespace, found)
    return [Candidate(c.chunk, c.seq, c.reason, c.because, texts.get(c.chunk, "")) for c in found.values()]


def audit(candidates: Sequence[Candidate]) -> Draft:
    """The entry of the log that says what was taken out."""
    counts = Counter(c.reason for c in candidates)
    told = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    chunks: list[JsonValue] = [c.chunk for c in candidates]
    reasons: dict[str, JsonValue] = dict(counts)
    data: dict[str, JsonValue] = {"verb": "hygiene", "chunks": chunks, "reasons": reasons}
    text = f"hygiene took {len(candidates)} chunks out of the index: {told}"
    return Draft(text, kind=Kind.EDIT.value, channel="edit", data=data)


def _loose(engine: Engine, namespace: str, state: State) -> list[int]:
    """Indices of the chunks that hygiene may touch, oldest first."""
    kinds = [n for n, kind in enumerate(Kind) if kind.value not in DELIBERATE]
    chunks = state.snapshot.view.chunks
    may = np.isin(state.snapshot.kinds, kinds) & (chunks.role != list(Role).index(Role.USER))
    index = np.flatnonzero(may)
    index = index[np.argsort(chunks.time[index], kind="stable")]
    seqs = state.snapshot.seqs[index].tolist()
    events = engine.store.events.by_seq(namespace, seqs)
    return [i for i, s in zip(index.tolist(), seqs, strict=True) if events[s].importance < PROTECTED_IMPORTANCE]


def _copies(
    engine: Engine, namespace: str, state: State, loose: Sequence[int], config: HygieneConfig
) -> list[Candidate]:
    """Chunks that say what a newer one says too: near in meaning and alike in every telling word."""
    if state.space is None or not loose:
        return []
    ids = state.snapshot.ids
    vectors = engine.store.vectors.some(namespace, state.space.id, [int(ids[i]) for i in loose])
    have = [i for i in loose if int(ids[i]) in vectors]
    if len(have) < 2:
        return []
    matrix = np.stack([vectors[int(ids[i])] for i in have])
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)
    texts = _texts(engine, namespace, [int(ids[i]) for i in have])
    found = []
    for n in range(len(have) - 1):
        near = matrix[n + 1 :] @ matrix[n]
        for m in np.argsort(-near)[:_NEAR]:
            if near[m] < config.dedup_similarity_threshold:
                break
            newer = int(ids[have[n + 1 + int(m)]])
            if says_the_same(texts[int(ids[have[n]])], texts[newer]):
                found.append(_candidate(state, have[n], DUPLICATE, f"chunk {newer} says the same"))
                break
    return found


def _old(state: State, loose: Sequence[int], config: HygieneConfig, now: datetime) -> list[Candidate]:
    limit = micros(now - timedelta(days=config.prune_after_days))
    times = state.snapshot.view.chunks.time
    because = f"older than {config.prune_after_days} days"
    return [_candidate(state, i, OLD, because) for i in loose if int(times[i]) < limit]


def _candidate(state: State, index: int, reason: str, because: str) -> Candidate:
    return Candidate(int(state.snapshot.ids[index]), int(state.snapshot.seqs[index]), reason, because, "")


def _texts(engine: Engine, namespace: str, ids: Sequence[int] | Mapping[int, object]) -> dict[int, str]:
    places = engine.store.chunks.placed(namespace, ids)
    events = engine.store.events.by_seq(namespace, (p.seq for p in places.values()))
    return {p.id: events[p.seq].text[p.start : p.stop] for p in places.values() if p.seq in events}
