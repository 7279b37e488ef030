"""The verbs on one file, with a fake embedder."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mnemic import AsyncMemory, Draft, Memory
from mnemic.domain import perception
from mnemic.domain.types import Kind, Role
from mnemic.errors import Conflict, InvalidInput, NotFound, StorageError
from tests.fakes import FakeEmbedder, FixedClock

QUIET = {"worker.enabled": False, "timezone": "UTC"}


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def memory(tmp_path: Path, embedder: FakeEmbedder) -> Iterator[Memory]:
    with Memory.open(home=tmp_path, embedder=embedder, clock=FixedClock(), settings=QUIET) as opened:
        yield opened


def test_what_was_recorded_is_found_at_once_by_its_words(memory: Memory, embedder: FakeEmbedder) -> None:
    memory.record("The staging server moved to 10.0.1.5", session="s")
    hits = memory.recall("where is staging?")
    assert [h.text for h in hits] == ["The staging server moved to 10.0.1.5"]
    assert hits[0].found_by == ("keyword",)
    assert 0 < hits[0].score <= 1
    assert embedder.seen == []  # nothing waited for a model


def test_after_settling_it_is_found_by_meaning_too(tmp_path: Path) -> None:
    near = FakeEmbedder({"puppy": [1, 0, 0, 0], "hound": [0.9, 0.1, 0, 0], "tax": [0, 0, 1, 0]}, dimension=4)
    with Memory.open(home=tmp_path, embedder=near, settings=QUIET) as memory:
        memory.record("We got a puppy")
        memory.record("The tax office wrote")
        assert memory.settle() is True
        hits = memory.recall("hound")
        assert [h.text for h in hits] == ["We got a puppy"]
        assert hits[0].found_by == ("vector",)
        assert hits[0].parts["similarity"] == pytest.approx(0.9939, abs=1e-3)


def test_a_receipt_names_the_event_and_the_log_gives_it_a_number(memory: Memory) -> None:
    receipt = memory.record("one")
    memory.record("two")
    assert memory.get(receipt.id).seq == 1
    assert memory.get(2).text == "two"
    assert [e.text for e in memory.events(after=1)] == ["two"]


def test_the_same_id_again_is_harmless_and_with_other_content_a_conflict(memory: Memory) -> None:
    ident = "01234567-89ab-7def-8123-456789abcdef"
    at = "2031-03-01"
    memory.record("once", id=ident, at=at)
    assert memory.record("once", id=ident, at=at).id.hex == ident.replace("-", "")
    with pytest.raises(Conflict, match="with other content"):
        memory.record("twice", id=ident, at=at)
    memory.settle()
    assert memory.record("once", id=ident, at=at).seq == 1
    with pytest.raises(Conflict, match="with other content"):
        memory.record("twice", id=ident, at=at)
    assert [e.text for e in memory.events()] == ["once"]


def test_many_are_recorded_in_order_and_repeating_adds_nothing(memory: Memory) -> None:
    drafts = [Draft(f"line {n}", id=f"{n:032x}", at=datetime(2031, 1, 1, tzinfo=UTC)) for n in range(1, 2_501)]
    assert [r.seq for r in memory.record_many(drafts)] == list(range(1, 2_501))
    assert [r.seq for r in memory.record_many(drafts)] == list(range(1, 2_501))
    assert memory.status().events == 2_500


def test_a_bad_draft_among_many_records_nothing_of_its_batch(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="nothing to remember"):
        memory.record_many([Draft("fine"), Draft(" ")])
    assert memory.events() == []


@pytest.mark.parametrize(
    ("asking", "expected"),
    [
        ({}, {"u1", "a1", "u2", "n1"}),
        ({"roles": ["assistant"]}, {"a1"}),
        ({"kinds": ["note"]}, {"n1"}),
        ({"sessions": ["s2"]}, {"u2"}),
        ({"sessions": ["s1", "s2"]}, {"u1", "a1", "u2"}),
        ({"sessions": ["none such"]}, set()),
        ({"channels": ["tui"]}, {"u2"}),
        ({"projects": ["p"]}, {"n1"}),
        ({"since": "2031-02-01"}, {"u2", "n1"}),
        ({"until": "2031-01-31"}, {"u1", "a1"}),
        ({"since": "2031-02-01", "until": "2031-02-01"}, {"u2"}),
    ],
)
def test_filters_apply_inside_the_arms(memory: Memory, asking: dict[str, object], expected: set[str]) -> None:
    memory.record("apple u1", session="s1", at="2031-01-01")
    memory.record("apple a1", session="s1", role="assistant", at="2031-01-01")
    memory.record("apple u2", session="s2", channel="tui", at="2031-02-01T23:59:59")
    memory.remember("apple n1", project="p", at="2031-03-01")
    memory.settle()
    assert {h.text.split()[1] for h in memory.recall("apple", **asking)} == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asking", "words"),
    [({"roles": ["bot"]}, "unknown role"), ({"kinds": ["nots"]}, "did you mean note"), ({"since": "soon"}, "accepted")],
)
def test_a_wrong_filter_is_an_error_and_never_no_filter(memory: Memory, asking: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        memory.recall("x", **asking)  # type: ignore[arg-type]


def test_an_unknown_filter_is_an_error(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="unknown argument 'userid'"):
        memory.recall("x", userid="u1")  # type: ignore[call-arg]
    with pytest.raises(InvalidInput, match=r"'session'; did you mean sessions\?"):
        memory.recall("x", session="s")  # type: ignore[call-arg]
    with pytest.raises(InvalidInput, match=r"'roles'; did you mean role\?"):
        memory.record("x", roles=["user"])  # type: ignore[call-arg]


def test_a_long_event_is_one_hit_that_names_its_other_chunks(memory: Memory) -> None:
    memory.record(" ".join(f"Paragraph {n} speaks of beehives and honey." for n in range(400)))
    memory.record("A short one on beehives.")
    hits = memory.recall("beehives honey")
    assert len(hits) == 2
    assert max(len(h.others) for h in hits) >= 2


def test_u68_the_tail_of_a_long_text_is_embedded_and_the_model_never_gets_more_than_it_takes(tmp_path: Path) -> None:
    small = FakeEmbedder(limit=256)
    text = "Chapter. " * 3_000 + "The spare key is under the third beehive."
    with Memory.open(home=tmp_path, embedder=small, settings=QUIET) as memory:
        memory.record(text)
        memory.settle()
        assert any("third beehive" in seen for seen in small.seen)
        assert max(map(len, small.seen)) <= 256
        assert memory.recall("where is the spare key?")[0].text.endswith("under the third beehive.")


def test_u68_endless_texts_without_spaces_are_stored(memory: Memory) -> None:
    memory.record("x" * 4_000_000)
    memory.record("🦔" * 200_000)
    assert [len(e.text) for e in memory.events()] == [4_000_000, 200_000]
    assert memory.recall("🦔")[0].event.seq == 2


def test_a_question_of_any_shape_is_legal(memory: Memory) -> None:
    memory.record("nothing special")
    for question in (
        "",
        " ",
        "\x00",
        "\ud800",
        "'",
        '"',
        "a" * 100_000,
        "NEAR(",
        "%",
        "مرحبا",
        "🦔",
        "\\",
        "* OR 1=1 --",
    ):
        assert isinstance(memory.recall(question).hits, tuple)


def test_u60_without_an_embedder_recall_is_by_keyword_and_says_so(memory: Memory, embedder: FakeEmbedder) -> None:
    memory.record("The zyxgloop is broken")
    memory.settle()
    embedder.down = True
    answer = memory.recall("zyxgloop")
    assert [h.text for h in answer] == ["The zyxgloop is broken"]
    assert answer.notices == ("keyword search only: the fake embedder is down",)


def test_a_question_does_not_wait_for_a_model_that_hangs(tmp_path: Path) -> None:
    slow, let_go = FakeEmbedder(), threading.Event()
    settings = QUIET | {"recall.embed_timeout_ms": 50}
    with Memory.open(home=tmp_path, embedder=slow, settings=settings) as memory:
        memory.record("The zyxgloop is broken")
        memory.settle()
        slow.before = lambda: let_go.wait(20)
        answer = memory.recall("zyxgloop")
        let_go.set()
        assert [h.text for h in answer] == ["The zyxgloop is broken"]
        assert answer.notices == ("keyword search only: no vector within 0.05 s",)


def test_chunks_that_waited_for_a_model_get_their_vectors_later(memory: Memory, embedder: FakeEmbedder) -> None:
    embedder.down = True
    memory.record("The first thing I ever told you")
    memory.settle()
    assert memory.status().work.missing == 1
    assert memory.status().work.failure == "the fake embedder is down"
    embedder.down = False
    memory.settle()
    status = memory.status()
    assert (status.work.missing, status.work.failure, status.spaces[0].vectors) == (0, "", 1)


def test_perceptions_are_recorded_like_anything_else(memory: Memory) -> None:
    memory.record(perception.body_bash("pytest -q", output="3 failed", exit_code=1), session="s")
    event = memory.events()[0]
    assert (event.kind, event.role, event.session) == (Kind.BODY_BASH, Role.TOOL, "s")
    assert memory.recall("pytest")[0].event.data["exit_code"] == 1


def test_notes_of_no_session_lend_each_other_no_context(memory: Memory) -> None:
    memory.remember("My bicycle is red.")
    memory.remember("Where is the zoo?")
    assert [h.text for h in memory.recall("bicycle")] == ["My bicycle is red."]


def test_times_typed_are_read_in_the_configured_zone(tmp_path: Path) -> None:
    settings = QUIET | {"timezone": "Asia/Kolkata"}
    with Memory.open(home=tmp_path, embedder=FakeEmbedder(), clock=FixedClock(), settings=settings) as memory:
        memory.record("x", at="2031-03-01")
        assert memory.events()[0].at == datetime(2031, 2, 28, 18, 30, tzinfo=UTC)


def test_a_missing_event_is_not_found(memory: Memory) -> None:
    with pytest.raises(NotFound, match="no event 7"):
        memory.get(7)
    with pytest.raises(InvalidInput, match="neither a seq"):
        memory.get("seven")


def test_usage_is_counted_by_subject_and_day(memory: Memory) -> None:
    memory.record("apple")
    memory.recall("apple")
    memory.recall("apple")
    assert memory.usage() == {"chunk:1": (2, 22_350)}


def test_u51_one_memory_serves_many_threads(memory: Memory) -> None:
    def speak(n: int) -> None:
        for i in range(5):
            memory.record(f"thread {n} says word{n}x{i}")
        assert memory.recall(f"word{n}x4")[0].text == f"thread {n} says word{n}x4"

    threads = [threading.Thread(target=speak, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(memory.events()) == 80


def test_the_async_memory_is_the_same(tmp_path: Path) -> None:
    async def story() -> list[str]:
        async with await AsyncMemory.open(home=tmp_path, embedder=FakeEmbedder(), settings=QUIET) as memory:
            await memory.record("apple pie")
            await memory.settle()
            return [hit.text for hit in await memory.recall("apple")]

    assert asyncio.run(story()) == ["apple pie"]


def test_the_background_worker_makes_vectors_without_being_asked(tmp_path: Path) -> None:
    embedder, seen = FakeEmbedder(), threading.Event()
    embedder.before = seen.set
    with Memory.open(home=tmp_path, embedder=embedder, settings={"worker.poll_ms": 10_000}) as memory:
        memory.record("We baked an apple pie today")
        assert seen.wait(10)


def test_a_closed_memory_says_so_and_closing_twice_is_safe(tmp_path: Path) -> None:
    memory = Memory.open(home=tmp_path, embedder=FakeEmbedder(), settings=QUIET)
    memory.record("kept")
    memory.close()
    memory.close()
    with pytest.raises(StorageError, match="closed"):
        memory.record("lost")
    with Memory.open(home=tmp_path, embedder=FakeEmbedder(), settings=QUIET) as again:
        assert [e.text for e in again.events()] == ["kept"]


def test_u70_another_dimension_keeps_everything_and_says_what_to_do(tmp_path: Path) -> None:
    old, new = FakeEmbedder(dimension=8, model="old"), FakeEmbedder(dimension=16, model="new")
    with Memory.open(home=tmp_path, embedder=old, settings=QUIET) as memory:
        memory.record("The first apple was a red one")
        memory.settle()
    with Memory.open(home=tmp_path, embedder=new, settings=QUIET) as memory:
        memory.record("The second apple was a green one")
        memory.settle()
        answer = memory.recall("apple")
        assert {h.text for h in answer} == {"The first apple was a red one", "The second apple was a green one"}
        assert "fake/old/8" in answer.notices[0]
        assert "fake/new/16" in answer.notices[0]
        memory.reindex()
        memory.settle()
        states = {s.label: (s.state, s.vectors) for s in memory.status().spaces}
        assert states == {"fake/old/8": ("retired", 1), "fake/new/16": ("serving", 2)}
        assert memory.recall("apple").notices == ()
    with Memory.open(home=tmp_path, embedder=old, settings=QUIET) as memory:
        memory.reindex()
        memory.settle()
        states = {s.label: (s.state, s.vectors) for s in memory.status().spaces}
        assert states == {"fake/old/8": ("serving", 2), "fake/new/16": ("retired", 2)}


def test_u56_a_question_about_something_else_has_only_weak_hits(tmp_path: Path) -> None:
    sails = {"sail": [1, 0.1, 0, 0], "cheese": [0, 0.15, 1, 0]}
    with Memory.open(home=tmp_path, embedder=FakeEmbedder(sails, dimension=4), settings=QUIET) as memory:
        for n in range(15):
            memory.remember(f"The sail number {n} needs care")
        memory.settle()
        nothing = memory.recall("tax rate on imported cheese")
        assert all(hit.weak for hit in nothing)
        assert not nothing.hits or nothing.notices == ("nothing matches well: every hit is weak",)
        found = memory.recall("sail number 7")
        assert (found[0].text, found[0].weak, found.notices) == ("The sail number 7 needs care", False, ())


def test_u55_a_rare_word_surfaces_whatever_the_vector_says(tmp_path: Path) -> None:
    near = {"Fennel": [1, 0, 0, 0], "fennel": [0.46, 0.888, 0, 0]}
    settings = QUIET | {"vector.similarity_threshold": 0.5}
    with Memory.open(home=tmp_path, embedder=FakeEmbedder(near, dimension=4), settings=settings) as memory:
        memory.remember("The Fennel relay needs TLS off on port 1993.")
        memory.settle()
        assert [h.text for h in memory.recall("fennel relay")] == ["The Fennel relay needs TLS off on port 1993."]


def test_closing_ends_what_other_threads_wait_for(tmp_path: Path) -> None:
    slow, let_go, asked = FakeEmbedder(), threading.Event(), threading.Event()
    settings = QUIET | {"recall.embed_timeout_ms": 60_000}
    memory = Memory.open(home=tmp_path, embedder=slow, settings=settings)
    memory.remember("The boat lies at the pier")
    memory.settle()

    def hang() -> None:
        asked.set()
        let_go.wait(60)

    slow.before = hang
    ended: list[str] = []

    def ask() -> None:
        try:
            memory.recall("boat")
        except StorageError as error:
            ended.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert asked.wait(30)
    memory.close()
    for thread in threads:
        thread.join(30)
    let_go.set()
    assert ended == ["this memory is closed; open it again"] * 4
    for use in (memory.events, memory.settle, memory.status):
        with pytest.raises(StorageError, match="closed"):
            use()


def test_a_model_that_hangs_holds_up_nothing_else(tmp_path: Path) -> None:
    slow, let_go = FakeEmbedder(), threading.Event()
    with Memory.open(home=tmp_path, embedder=slow, settings=QUIET | {"recall.embed_timeout_ms": 50}) as memory:
        memory.remember("The boat lies at the pier")
        memory.settle()
        slow.before = lambda: let_go.wait(60)
        answers = [memory.recall("boat") for _ in range(20)]  # more than may wait at one time
        assert {a[0].text for a in answers} == {"The boat lies at the pier"}
        assert all(a.notices[0].startswith("keyword search only") for a in answers)
        assert len(memory.events()) == 1
        let_go.set()


def test_many_under_taken_ids_are_refused_whole(memory: Memory) -> None:
    ident, at = "0" * 31 + "7", datetime(2031, 1, 1, tzinfo=UTC)
    memory.record("content A", id=ident, at=at)
    memory.settle()
    with pytest.raises(Conflict, match="with other content"):
        memory.record_many([Draft("something else"), Draft("content B", id=ident, at=at)])
    assert [e.text for e in memory.events()] == ["content A"]


@pytest.mark.parametrize("answer", [[[float("nan")] * 8], [[1e30] * 8], [[0.0] * 8], [[1.0] * 5], None, []])
def test_an_embedder_of_ones_own_that_misbehaves_degrades_and_stores_nothing(tmp_path: Path, answer: object) -> None:
    wrong = FakeEmbedder()
    wrong.embed = lambda texts, query=False: answer  # type: ignore[assignment, method-assign, misc, return-value]
    with Memory.open(home=tmp_path, embedder=wrong, settings=QUIET) as memory:
        memory.remember("The boat lies at the pier")
        memory.settle()
        assert "the embedder fake/fake/8" in memory.status().work.failure
        found = memory.recall("boat")
        assert [h.text for h in found] == ["The boat lies at the pier"]
        assert found.notices[0].startswith("keyword search only: the embedder fake/fake/8")
        assert memory.status().spaces == ()
