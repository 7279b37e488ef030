"""SQLite and PostgreSQL give the same answers: equal ids, equal scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mnemic import Memory
from tests.conftest import OpenMemory
from tests.contract.corpus import QUESTIONS, conversation

ASKING: tuple[Mapping[str, object], ...] = (
    {},
    {"roles": ["assistant"]},
    {"sessions": ["s1", "s2", "s9"]},
    {"channels": ["api"], "k": 3},
    {"since": "2026-03-03", "until": "2026-03-06"},
)


def answers(memory: Memory) -> list[tuple[str, float, tuple[str, ...]]]:
    return [
        (hit.event.id.hex, hit.score, hit.found_by)
        for question in QUESTIONS
        for asking in ASKING
        for hit in memory.recall(question, **asking)  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("fusion", ["absolute", "rrf", "weighted", "vector", "keyword"])
def test_equal_ids_and_scores_on_both(
    both: Mapping[str, str], open_memory: OpenMemory, tmp_path: Path, fusion: str
) -> None:
    found = {}
    for name, url in both.items():
        memory = open_memory(url, home=tmp_path / name, recall__fusion=fusion)
        memory.record_many(conversation())
        memory.settle()
        found[name] = answers(memory)
    assert len(found["sqlite"]) > 100
    assert [(i, by) for i, _, by in found["postgres"]] == [(i, by) for i, _, by in found["sqlite"]]
    assert [s for _, s, _ in found["postgres"]] == pytest.approx([s for _, s, _ in found["sqlite"]], abs=1e-6)


def test_listings_sessions_and_counts_are_equal(
    both: Mapping[str, str], open_memory: OpenMemory, tmp_path: Path
) -> None:
    seen = {}
    for name, url in both.items():
        memory = open_memory(url, home=tmp_path / name)
        memory.record_many(conversation())
        memory.settle()
        status = memory.status()
        events = [(e.id, e.seq, e.text, e.at, e.actor, e.session, e.channel) for e in memory.events(limit=500)]
        seen[name] = (events, memory.sessions(), status.events, status.chunks, status.spaces, status.sessions)
    assert seen["sqlite"] == seen["postgres"]
    assert seen["sqlite"][2] == 200
