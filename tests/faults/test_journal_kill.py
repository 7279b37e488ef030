"""kill -9 at random times: what was acknowledged is there, once, and in its place."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from mnemic.store.journal import Journal

STORE = UUID(int=1)
WRITER = Path(__file__).with_name("writer.py")
CYCLES = 20
REPEATED = 20  # of what was acknowledged before the kill, sent again as a client would that got no answer
SEED = 20_260_101

pytestmark = pytest.mark.faults


@dataclass(frozen=True, slots=True)
class Found:
    """What the checker holds against the journal after one kill."""

    acknowledged: int
    lost: list[int]
    doubled: list[int]
    misplaced: list[int]


def run_until_killed(folder: Path, first: int, mode: str, chance: random.Random) -> list[tuple[int, int]]:
    """Starts a writer, kills it after some acknowledgements and up to 8 ms more; every line it has said."""
    command = [sys.executable, str(WRITER), str(folder), str(STORE), str(first), mode]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    assert child.stdout is not None and child.stderr is not None
    heard = b""
    wanted = chance.randint(1, 200)
    while heard.count(b"\n") < wanted:
        piece = child.stdout.read(4_096)
        assert piece, child.stderr.read().decode()
        heard += piece
    try:
        child.wait(timeout=chance.random() * 0.008)
    except subprocess.TimeoutExpired:
        child.kill()
    heard += child.stdout.read()
    child.wait()
    child.stdout.close()
    child.stderr.close()
    return [(int(number), int(seq)) for number, seq in (line.split() for line in heard.splitlines())]


def compare(folder: Path, acknowledged: dict[int, int]) -> Found:
    with Journal.open(folder, STORE) as journal:
        assert journal.verify().ok
        rows = journal.read(0, 1_000_000)
    stored = [int.from_bytes(row.entry.id, "big") for row in rows]
    place = {number: row.seq for number, row in zip(stored, rows, strict=True)}
    assert all(row.entry.body == b"what was said, number %d" % number for number, row in zip(stored, rows, strict=True))
    return Found(
        acknowledged=len(acknowledged),
        lost=[number for number in acknowledged if number not in place],
        doubled=[number for number in place if stored.count(number) > 1] if len(place) < len(stored) else [],
        misplaced=[number for number, seq in acknowledged.items() if seq and place.get(number, seq) != seq],
    )


def test_nothing_acknowledged_is_lost_or_doubled(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    acknowledged: dict[int, int] = {}
    for cycle in range(CYCLES):
        first = max(1, max(acknowledged, default=0) + 1 - REPEATED)
        for number, seq in run_until_killed(tmp_path, first, "honest", chance):
            assert acknowledged.setdefault(number, seq) == seq, "a repeat gets the seq of its first"
        found = compare(tmp_path, acknowledged)
        assert (found.lost, found.doubled, found.misplaced) == ([], [], []), f"cycle {cycle}, seed {SEED}"
    assert len(acknowledged) > CYCLES * 20


def test_the_same_checker_catches_a_writer_that_acknowledges_too_early(tmp_path: Path) -> None:
    """The positive control: without it, the test above might be looking the other way."""
    chance = random.Random(SEED)
    lost: list[int] = []
    for cycle in range(5):
        heard = run_until_killed(tmp_path / str(cycle), 1, "early", chance)
        lost += compare(tmp_path / str(cycle), dict(heard)).lost
    assert len(lost) >= 5
