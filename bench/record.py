"""How long `record` takes until it is acknowledged, against one sync of the disk and a bare writer.

    python bench/record.py [--url postgresql://...] [--json]

Rounds of each take turns, and the median round counts: the disk of a shared machine has moods. The worker is off, so
that what is timed is recording alone; applying to the store goes on behind it, as always.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from uuid import uuid4

from baselines import GroupWriter, sync_seconds
from mnemic import Memory

ROUNDS = 5
ALONE = 200  # records of the single client in a round
CLIENTS = 128
EACH = 20  # records of each of the many clients in a round
TEXT = "We moved the staging server to the second rack, and the old address stops working on Friday at noon. "


def figures(folder: Path, url: str | None = None) -> dict[str, float]:
    """Milliseconds and records per second, and the two ratios the issue asks for."""
    number = count()
    home = folder / "home"
    settings = {"worker.enabled": False, "embeddings.provider": "hashing", "journal.key": "file"}
    namespace = f"bench-{uuid4().hex}" if url else "bench"
    url = url or f"sqlite:///{home / 'mnemic.db'}"
    with Memory.open(home=home, url=url, namespace=namespace, settings=settings) as memory:
        bare = GroupWriter(folder / "bare.db")
        body = TEXT.encode() * 2  # about what an event weighs with everything said about it

        def ours() -> None:
            memory.record(f"{TEXT}{next(number)}", session="s1")

        def theirs() -> None:
            bare.submit(body).result()

        ours(), theirs()
        rounds = [_round(folder, ours, theirs) for _ in range(ROUNDS)]
        bare.close()
    out = {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
    return out | {
        "one_client_fsyncs": statistics.median(r["one_client_ms"] / r["fsync_ms"] for r in rounds),
        "bare_one_client_fsyncs": statistics.median(r["bare_one_client_ms"] / r["fsync_ms"] for r in rounds),
        "many_clients_ratio": statistics.median(r["many_per_s"] / r["bare_many_per_s"] for r in rounds),
    }


def _round(folder: Path, ours: Callable[[], None], theirs: Callable[[], None]) -> dict[str, float]:
    return {
        "fsync_ms": 1000 * statistics.median(sync_seconds(folder / "sync", ALONE)),
        "one_client_ms": _alone(ours),
        "bare_one_client_ms": _alone(theirs),
        "many_per_s": _together(ours),
        "bare_many_per_s": _together(theirs),
    }


def _alone(work: Callable[[], None]) -> float:
    """Median milliseconds."""
    took = []
    for _ in range(ALONE):
        started = time.perf_counter()
        work()
        took.append(time.perf_counter() - started)
    return 1000 * statistics.median(took)


def _together(work: Callable[[], None]) -> float:
    """Calls per second of many clients, each of which waits for its answer before it goes on."""
    start = threading.Barrier(CLIENTS + 1)

    def client() -> None:
        start.wait()
        for _ in range(EACH):
            work()

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    start.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    return CLIENTS * EACH / (time.perf_counter() - started)


def lines(found: dict[str, float]) -> list[str]:
    return [
        f"acknowledgement, 1 client: {found['one_client_ms']:.2f} ms = {found['one_client_fsyncs']:.2f} x one fsync "
        f"({found['fsync_ms']:.2f} ms; bare writer {found['bare_one_client_fsyncs']:.2f} x)  bar 2, ambition 1.2",
        f"acknowledgement, {CLIENTS} clients: {found['many_per_s']:,.0f}/s = {found['many_clients_ratio']:.2f} x the "
        f"bare writer ({found['bare_many_per_s']:,.0f}/s)  bar 0.7, ambition 0.9",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="a database server instead of a file")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mnemic-bench-", ignore_cleanup_errors=True) as folder:
        found = figures(Path(folder), options.url)
    print(json.dumps(found, indent=1) if options.json else "\n".join(lines(found)))


if __name__ == "__main__":
    main()
