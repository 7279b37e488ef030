"""What is recorded is there, once, in order, and as it was said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from mnemic import Memory
from mnemic.domain.drafts import Draft
from mnemic.errors import Conflict, NotFound
from tests.conftest import OpenMemory
from tests.fakes import FakeEmbedder

pytestmark = pytest.mark.usefixtures("back_end")
MAY = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_every_field_comes_back_as_it_was_said(memory: Memory) -> None:
    ident = uuid4()
    memory.record(
        "Ana moved to Porto",
        id=ident,
        role="assistant",
        kind="note",
        session="s1",
        channel="tui",
        actor="Ana",
        project="house",
        at=MAY,
        importance=0.25,
        trust="web",
        data={"a": [1, 2.5, None, True, {"ü": "日本"}]},
    )
    event = memory.get(ident)
    assert (event.text, event.role, event.kind, event.session) == ("Ana moved to Porto", "assistant", "note", "s1")
    assert (event.channel, event.actor, event.project, event.at) == ("tui", "Ana", "house", MAY)
    assert (event.importance, event.trust, event.seq) == (0.25, "web", 1)
    assert event.data == {"a": [1, 2.5, None, True, {"ü": "日本"}]}
    assert memory.get(1) == event


def test_seq_counts_in_the_order_of_recording(memory: Memory) -> None:
    for n in range(20):
        memory.record(f"turn {n}")
    events = memory.events()
    assert [e.seq for e in events] == list(range(1, 21))
    assert [e.text for e in events] == [f"turn {n}" for n in range(20)]


def test_repeating_an_id_adds_nothing_and_other_content_is_a_conflict(memory: Memory) -> None:
    ident = uuid4()
    memory.record("one", id=ident, at=MAY)
    assert memory.get(ident).seq == 1
    again = memory.record("one", id=ident, at=MAY)
    assert (again.id, again.seq) == (ident, 1)
    with pytest.raises(Conflict):
        memory.record("two", id=ident, at=MAY)
    assert [e.text for e in memory.events()] == ["one"]


def test_record_many_gives_receipts_in_order_and_is_idempotent(memory: Memory) -> None:
    drafts = [Draft(f"line {n}", id=UUID(int=n + 1), session="s", at=MAY) for n in range(2_500)]
    first = memory.record_many(drafts)
    assert [(r.id.int, r.seq, r.spooled) for r in first] == [(n, n, False) for n in range(1, 2_501)]
    assert memory.record_many(drafts) == first
    assert memory.status().events == 2_500


def test_an_id_taken_in_another_namespace_is_free_here(open_memory: OpenMemory, memory: Memory) -> None:
    ident = uuid4()
    memory.record("mine", id=ident, at=MAY)
    other = open_memory(namespace="other")
    other.record("theirs", id=ident, at=MAY)
    assert (memory.get(ident).text, other.get(ident).text) == ("mine", "theirs")


def test_listing_filters(memory: Memory) -> None:
    for n in range(10):
        memory.record(
            f"turn {n}",
            session="even" if n % 2 == 0 else "odd",
            role="user" if n < 5 else "assistant",
            kind="note" if n == 3 else "message",
            at=MAY + timedelta(days=n),
        )

    def texts(**listing: object) -> list[str]:
        return [e.text for e in memory.events(**listing)]  # type: ignore[arg-type]

    assert texts(session="odd") == ["turn 1", "turn 3", "turn 5", "turn 7", "turn 9"]
    assert texts(kinds=["note"]) == ["turn 3"]
    assert texts(roles=["assistant"], session="even") == ["turn 6", "turn 8"]
    assert texts(since=MAY + timedelta(days=7), until=MAY + timedelta(days=9)) == ["turn 7", "turn 8"]
    assert texts(after=4, last=6) == ["turn 4", "turn 5"]
    assert texts(limit=2) == ["turn 0", "turn 1"]
    assert texts(session="none such") == []


def test_sessions_latest_first(memory: Memory) -> None:
    for session in ("a", "b", "a"):
        memory.record("x", session=session, at=MAY)
    memory.record("no session", at=MAY)
    assert [(s.session, s.first, s.last, s.events) for s in memory.sessions()] == [("a", 1, 3, 2), ("b", 2, 2, 1)]


def test_what_is_not_there_is_not_found(memory: Memory) -> None:
    memory.record("x")
    for ident in (99, str(uuid4())):
        with pytest.raises(NotFound):
            memory.get(ident)


def test_closing_and_opening_again_keeps_all(open_memory: OpenMemory) -> None:
    first = open_memory()
    first.record("the pears in the garden are ripe since Monday", session="s")
    first.settle()
    first.close()
    first.close()
    second = open_memory(embedder=FakeEmbedder())
    assert [h.text for h in second.recall("pears")] == ["the pears in the garden are ripe since Monday"]
    assert second.status().spaces[0].vectors == 1


def test_two_homes_share_a_store(open_memory: OpenMemory, tmp_path: Path) -> None:
    """Each has its own journal and its own anchor."""
    homes = [open_memory(home=tmp_path / name) for name in ("node1", "node2")]
    for n in range(20):
        homes[n % 2].record(f"turn {n}")
        homes[n % 2].events(limit=1)  # applies what its own journal holds
    for memory in homes:
        assert [e.text for e in memory.events()] == [f"turn {n}" for n in range(20)]
        assert [e.seq for e in memory.events()] == list(range(1, 21))


def test_usage_is_counted_by_day(memory: Memory) -> None:
    memory.record("pears are ripe", at=MAY)
    for _ in range(3):
        assert len(memory.recall("pears")) == 1
    assert [(k, n) for k, (n, _) in memory.usage().items()] == [("chunk:1", 3)]
    memory.recall("pears")
    assert memory.usage()["chunk:1"][0] == 4
