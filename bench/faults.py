"""What is left of acknowledged events when the process is killed, or the database goes away: all of them, once.

    python bench/faults.py --kill 100 [--url postgresql://...]    kill -9 at random times, one writer or two
    python bench/faults.py --kill 20 --control                    a writer that answers too early must be caught
    python bench/faults.py --database-down 60 [--restarts 50]     a real PostgreSQL stopped and restarted under load

Through the public API only. A writer records from several threads under ids of its own and says each acknowledged one
into a pipe, which outlives it. After a kill it begins a few events before its last answer: what is repeated must not be
doubled. One line a figure; the exit code is 1 when one is not met.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

import apsw

from mnemic import Event, Memory, MnemicError

THREADS = 4
REPEATED = 3  # events recorded again after a kill
LONGEST_S = 0.8  # a writer lives at most this long after its first answer
PAIR_EVERY = 4  # each so many cycles two writers work at once
YOUNG_EVERY = 5  # each so many cycles the kill may come while the writer still opens and replays
LOAD_THREADS = 16
_START = datetime(2024, 1, 1, tzinfo=UTC)

Stream = tuple[int, int]  # writer, thread


def main() -> None:
    options = _options()
    if options.writer is not None:
        _write(options)
        return
    if options.database_down:
        found = database_down(options.database_down, options.restarts)
    else:
        found = kill_loop(options.kill, options.url, random.Random(options.seed), control=options.control)
    for line in found.lines:
        print(line)
    sys.exit(0 if found.met else 1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kill", type=int, default=100, help="how many times to kill (100)")
    parser.add_argument("--control", action="store_true", help="with a writer that answers before it has recorded")
    parser.add_argument("--database-down", type=float, metavar="SECONDS", help="stop PostgreSQL that long under load")
    parser.add_argument("--restarts", type=int, default=50, help="and restart it so many times (50)")
    parser.add_argument("--url", help="kill writers to a database server instead of a file")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the times of the kills")
    parser.add_argument("--writer", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--namespace", help=argparse.SUPPRESS)
    parser.add_argument("--starts", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


@dataclass(frozen=True, slots=True)
class Found:
    lines: list[str]
    met: bool


# -- what is recorded: all of an event follows from its stream and number, so that it can be repeated word for word


def ident(stream: Stream, number: int) -> UUID:
    return uuid5(NAMESPACE_OID, f"{stream[0]} {stream[1]} {number}")


def said(stream: Stream, number: int) -> dict[str, Any]:
    return {
        "id": ident(stream, number),
        "session": f"w{stream[0]}t{stream[1]}",
        "at": _START + timedelta(seconds=number),
        "data": {"stream": list(stream), "number": number},
    }


def text(stream: Stream, number: int) -> str:
    return f"writer {stream[0]} thread {stream[1]} says {number}"


def opened(home: Path, url: str | None, namespace: str, **settings: object) -> Memory:
    quiet = {
        "embeddings.provider": "hashing",
        "journal.key": "file",
        **{k.replace("__", "."): v for k, v in settings.items()},
    }
    return Memory.open(home=home, url=url, namespace=namespace, settings=quiet)


# -- the writer: a process that will be killed


def _write(options: argparse.Namespace) -> None:
    starts = [int(n) for n in options.starts.split(",")]
    memory = opened(options.home, options.url, options.namespace)
    threads = [
        threading.Thread(target=_say, args=(memory, (options.writer, t), start, options.control), daemon=True)
        for t, start in enumerate(starts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _say(memory: Memory, stream: Stream, number: int, control: bool) -> None:
    while True:
        line = f"{stream[1]} {number}\n".encode()
        if control:
            os.write(1, line)  # before it is durable: a lie
        memory.record(text(stream, number), **said(stream, number))
        if not control:
            os.write(1, line)  # one write of a few bytes: whole or not at all
        number += 1


# -- the judge


@dataclass(slots=True)
class Log:
    """What was acknowledged, and what the memory holds."""

    acknowledged: dict[Stream, int] = field(default_factory=dict)  # the last number of each stream
    seen: Counter[UUID] = field(default_factory=Counter)
    after: int = 0  # the last seq that was read
    last_of: dict[Stream, int] = field(default_factory=dict)
    unordered: int = 0

    def heard(self, stream: Stream, number: int) -> None:
        self.acknowledged[stream] = max(number, self.acknowledged.get(stream, -1))

    def start_of(self, stream: Stream) -> int:
        return max(0, self.acknowledged.get(stream, -1) + 1 - REPEATED)

    def read(self, memory: Memory) -> None:
        """Take in what is new."""
        while events := memory.events(after=self.after, limit=10_000):
            for event in events:
                self._take(event)
            self.after = int(events[-1].seq)

    def _take(self, event: Event) -> None:
        self.seen[event.id] += 1
        writer, thread = event.data["stream"]  # type: ignore[misc]
        stream, number = (int(writer), int(thread)), int(event.data["number"])  # type: ignore[arg-type]
        self.unordered += number <= self.last_of.get(stream, -1)
        self.last_of[stream] = number

    def lost(self) -> int:
        return sum(
            self.seen[ident(stream, number)] == 0
            for stream, last in self.acknowledged.items()
            for number in range(last + 1)
        )

    def doubled(self) -> int:
        return sum(count > 1 for count in self.seen.values())

    def total(self) -> int:
        return sum(last + 1 for last in self.acknowledged.values())


def kill_loop(times: int, url: str | None, chance: random.Random, *, control: bool = False) -> Found:
    log, damaged, pairs, refused = Log(), 0, 0, 0
    namespace = f"bench-{uuid4().hex}" if url else "default"
    with tempfile.TemporaryDirectory(prefix="mnemic-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        for cycle in range(times):
            pair = cycle % PAIR_EVERY == PAIR_EVERY - 1
            young = cycle % YOUNG_EVERY == YOUNG_EVERY - 1 and cycle > 0
            pairs += pair
            writers = [_Writer(w, home, url, namespace, log, control) for w in range(1 + pair)]
            _kill(writers, chance, young=young)
            refused += sum(writer.failed for writer in writers)
            with opened(home, url, namespace, worker__enabled=False) as memory:
                log.read(memory)
            damaged += sum(_damage(path) for path in home.rglob("*.db"))
    lost, doubled = log.lost(), log.doubled()
    lines = [
        f"kills: {times} ({pairs} with two writers at once), events acknowledged: {log.total():,}",
        f"acknowledged events lost / doubled: {lost} / {doubled}",
        f"out of their order: {log.unordered}; damaged files: {damaged}; writers that failed by themselves: {refused}",
    ]
    if control:
        caught = "caught" if lost else "NOT caught"
        return Found([*lines, f"control, a writer that answers too early: {caught}"], lost > 0)
    return Found(lines, not (lost or doubled or log.unordered or damaged or refused) and log.total() > 0)


class _Writer:
    """A child process and the thread that hears its answers."""

    def __init__(self, number: int, home: Path, url: str | None, namespace: str, log: Log, control: bool) -> None:
        self._number, self._log = number, log
        starts = ",".join(str(log.start_of((number, t))) for t in range(THREADS))
        command = [sys.executable, __file__, "--writer", str(number), "--home", str(home), "--namespace", namespace]
        command += ["--starts", starts, *(["--url", url] if url else []), *(["--control"] if control else [])]
        self.first = threading.Event()
        self.failed = 0
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self._ear = threading.Thread(target=self._hear)
        self._ear.start()

    def kill(self) -> None:
        self.failed = int(self._process.poll() is not None)
        self._process.kill()
        self._process.wait()
        self._ear.join()

    def _hear(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            for line in answers:
                thread, number = line.split()
                self._log.heard((self._number, int(thread)), int(number))
                self.first.set()
        self.first.set()


def _kill(writers: list[_Writer], chance: random.Random, *, young: bool) -> None:
    if not young:
        for writer in writers:
            writer.first.wait()
    time.sleep(chance.uniform(0, 2 * LONGEST_S if young else LONGEST_S))
    for writer in writers:
        writer.kill()


def _damage(path: Path) -> int:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(db.execute("PRAGMA integrity_check").fetchall() != [("ok",)])
    finally:
        db.close()


# -- the database goes away


def database_down(seconds: float, restarts: int) -> Found:
    """Load on a real server that is away for `seconds`, then restarted again and again, by turns decently and not."""
    logging.getLogger("mnemic").setLevel(logging.ERROR)  # that the database does not answer is no news here
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from tests.postgres import Server

    log = Log()
    with tempfile.TemporaryDirectory(prefix="mb-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder)).start()
        try:
            home, namespace = Path(folder) / "home", "bench"
            memory = opened(home, server.url(), namespace, journal__spool_wait_ms=200)
            load = Load(memory, log)
            time.sleep(2)
            server.stop("immediate")
            time.sleep(seconds)
            server.start()
            away = load.spooled
            for number in range(restarts):
                time.sleep(0.5)
                server.stop("immediate" if number % 2 else "fast")
                server.start()
            time.sleep(2)
            load.end()
            started = time.perf_counter()
            memory.settle(120)
            drained = time.perf_counter() - started
            log.read(memory)
            memory.close()
        finally:
            server.stop()
    lost, doubled = log.lost(), log.doubled()
    lines = [
        f"database down {seconds:g} s under load, then {restarts} restarts: {log.total():,} events acknowledged, "
        f"{load.spooled:,} of them spooled; refused and tried again: {load.refused:,} (none should be)",
        f"acknowledged while it was down: {away:,}; drained at the end in {drained:.1f} s",
        f"acknowledged events lost / doubled / out of order: {lost} / {doubled} / {log.unordered}",
    ]
    return Found(lines, not (lost or doubled or log.unordered or load.refused) and away > 0)


class Load:
    """Threads that record all the time, each under its own stream."""

    def __init__(self, memory: Memory, log: Log) -> None:
        self._memory, self._log = memory, log
        self._end = threading.Event()
        self.spooled = self.refused = 0
        self._threads = [threading.Thread(target=self._run, args=((0, t),)) for t in range(LOAD_THREADS)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _run(self, stream: Stream) -> None:
        number = 0
        while not self._end.is_set():
            try:
                receipt = self._memory.record(text(stream, number), **said(stream, number))
            except MnemicError:
                self.refused += 1  # not acknowledged: the same event is tried again
                time.sleep(0.05)
                continue
            self.spooled += receipt.spooled
            self._log.heard(stream, number)
            number += 1


if __name__ == "__main__":
    main()
