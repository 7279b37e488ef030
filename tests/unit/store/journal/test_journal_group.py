"""Group commit by itself: who shares a commit, who waits, and that nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future

import pytest

from mnemic.errors import StorageError, StorageFull, StorageLocked
from mnemic.store.journal import Entry
from mnemic.store.journal.group import MAX_WAITING, Group, Outcome


def entry(number: int) -> Entry:
    return Entry(number.to_bytes(16, "big"), "home", b"d" * 32, b"")


class Gate:
    """A commit that says when it has begun and ends when it is let."""

    def __init__(self) -> None:
        self.begun, self.open = threading.Event(), threading.Event()
        self.batches: list[int] = []

    def commit(self, entries: Sequence[Entry]) -> list[Outcome]:
        self.begun.set()
        assert self.open.wait(30)
        self.batches.append(len(entries))
        return [int.from_bytes(each.id, "big") for each in entries]


def nothing() -> None:
    """No work when idle."""


def held(gate: Gate, patience_s: float = 0.01) -> tuple[Group, Future[int]]:
    """A group whose thread is in the middle of a commit."""
    group = Group(gate.commit, nothing, patience_s)
    first = group.submit(entry(1))
    assert gate.begun.wait(30)
    return group, first


def test_what_came_during_a_commit_shares_the_next() -> None:
    gate = Gate()
    group, first = held(gate)
    later = [group.submit(entry(n)) for n in range(2, 602)]
    assert not first.done()
    gate.open.set()
    assert [future.result(30) for future in (first, *later)] == list(range(1, 602))
    assert gate.batches == [1, 256, 256, 88]
    group.close()


def test_the_queue_is_bounded_and_takes_more_once_there_is_room() -> None:
    gate = Gate()
    group, first = held(gate)
    waiting = [group.submit(entry(n)) for n in range(2, 2 + MAX_WAITING)]
    with pytest.raises(StorageLocked, match="2000 events already wait"):
        group.submit(entry(9_000))
    gate.open.set()
    assert first.result(30) == 1
    assert group.submit(entry(9_000)).result(30) == 9_000
    assert [future.result(30) for future in waiting] == list(range(2, 2 + MAX_WAITING))
    group.close()


def test_a_submit_that_waits_for_room_gets_it() -> None:
    gate = Gate()
    group, _ = held(gate, patience_s=30)
    for n in range(2, 2 + MAX_WAITING):
        group.submit(entry(n))
    answers: list[int] = []
    late = threading.Thread(target=lambda: answers.append(group.submit(entry(7_000)).result(30)))
    late.start()
    gate.open.set()
    late.join(30)
    assert answers == [7_000]
    group.close()


def test_close_answers_everybody_and_refuses_the_next() -> None:
    gate = Gate()
    group, first = held(gate)
    later = [group.submit(entry(n)) for n in range(2, 10)]
    gate.open.set()
    group.close()
    assert [future.result(0) for future in (first, *later)] == list(range(1, 10))
    with pytest.raises(StorageError, match="closed"):
        group.submit(entry(10))


def test_a_failed_commit_refuses_its_batch_with_one_error_each_and_the_next_may_succeed() -> None:
    failing = [StorageFull("no space")]

    def commit(entries: Sequence[Entry]) -> list[Outcome]:
        if failing:
            raise failing.pop()
        return [1] * len(entries)

    group = Group(commit, nothing, 1.0)
    error = group.submit(entry(1)).exception(30)
    assert isinstance(error, StorageFull) and str(error) == "no space"
    assert group.submit(entry(2)).result(30) == 1
    group.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_bug_in_the_commit_leaves_nobody_waiting() -> None:
    gate = Gate()

    def commit(entries: Sequence[Entry]) -> list[Outcome]:
        gate.commit(entries)
        raise ZeroDivisionError

    group = Group(commit, nothing, 0.01)
    first = group.submit(entry(1))
    assert gate.begun.wait(30)
    second = group.submit(entry(2))
    gate.open.set()
    for future in (first, second):
        with pytest.raises(StorageError, match="writer stopped"):
            future.result(30)
    with pytest.raises(StorageError):
        group.submit(entry(3))
    group.close()


def test_a_cancelled_entry_is_left_out() -> None:
    gate = Gate()
    group, first = held(gate)
    second, third = group.submit(entry(2)), group.submit(entry(3))
    assert second.cancel()
    gate.open.set()
    assert (first.result(30), third.result(30)) == (1, 3)
    group.close()
    assert sum(gate.batches) == 2
