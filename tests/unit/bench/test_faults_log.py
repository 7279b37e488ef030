from __future__ import annotations

from pathlib import Path

from mnemic import Memory


def test_what_is_missing_is_lost_and_what_is_there_twice_is_doubled() -> None:
    from faults import Log, ident

    log = Log()
    for number in range(3):
        log.heard((0, 1), number)
    log.seen[ident((0, 1), 0)] = 1
    log.seen[ident((0, 1), 2)] = 2
    assert (log.lost(), log.doubled(), log.total()) == (1, 1, 3)


def test_after_a_kill_a_writer_repeats_what_was_answered_last() -> None:
    from faults import REPEATED, Log

    log = Log()
    assert log.start_of((0, 0)) == 0
    log.heard((0, 0), 9)
    assert log.start_of((0, 0)) == 10 - REPEATED


def test_repeated_events_are_there_once_and_in_order(tmp_path: Path) -> None:
    from faults import Log, opened, said, text

    log, stream = Log(), (1, 2)
    memory: Memory
    with opened(tmp_path, None, "default", worker__enabled=False) as memory:
        for number in (0, 1, 2, 1, 2, 3):
            memory.record(text(stream, number), **said(stream, number))
            log.heard(stream, number)
        log.read(memory)
    assert (log.lost(), log.doubled(), log.unordered, log.after) == (0, 0, 0, 4)
