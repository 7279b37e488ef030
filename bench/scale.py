"""How figures grow with the store, from a thousand chunks to a million.

    python bench/scale.py [--sizes 1000,10000,100000,1000000] [--url postgresql://...] [--json]

Text, questions and vectors are synthetic (`synthetic.py`), so that no time goes into a model. Every size is built and
then asked in a process of its own: memory and cold starts are those of a process that only recalls. Questions go in
turn to mnemic, to FTS5 alone and to exact NumPy search: read the ratios, the machine may be busy.

All sizes go through `Memory.record_many` and `settle`. What bounds a million: events are generated and recorded 20,000
at a time, vectors are made 2,000 at a time above 10,000 events (`worker.batch`), and above 200,000 topics are off.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import record
from baselines import FullText, exact
from mnemic import Memory, Query
from synthetic import FUNCTION, FakeEmbedder, Talk

SIZES = (1_000, 10_000, 100_000, 1_000_000)
K = 10
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # unless told otherwise
PART = 20_000  # events generated and recorded at once
COLD = 5  # cold starts of the command line; the median counts
COLD_AT = 10_000
# What a recall spends its time in: module, owner ("" for the module itself), function.
PARTS = {
    "state": ("mnemic.store.indexes", "Indexes", "state"),
    "lexical": ("mnemic.domain.ranking", "", "lexical"),
    "candidates": ("mnemic.engine.recall", "", "_candidates"),
    "dense": ("mnemic.engine.recall", "", "_cosine"),
    "similar": ("mnemic.engine.recall", "", "_similar"),
    "fuse": ("mnemic.domain.ranking", "", "fuse"),
    "sql": ("mnemic.engine.recall", "", "_hits"),
    "search": ("mnemic.engine.memory", "", "search"),
}


def main() -> None:
    options = _options()
    if options.stage:
        stage = build if options.stage == "build" else ask
        print(json.dumps(stage(options.size, options.home, options.url, options.namespace)))
        return
    results: dict[str, Any] = {"load": os.getloadavg()[0], "sizes": {}}
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory(
            prefix="mnemic-bench-", dir=options.folder, ignore_cleanup_errors=True
        ) as home:
            results["sizes"][size] = measured(size, Path(home), options.url)
        if not options.json:
            print("\n".join(lines(size, results["sizes"][size])), flush=True)
    with folder_in(options.folder) as folder:
        results["record"] = record.figures(Path(folder), options.url)
    print(json.dumps(results, indent=1) if options.json else "\n".join(record.lines(results["record"])))


def folder_in(parent: Path | None) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="mnemic-bench-", dir=parent, ignore_cleanup_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of chunks, comma-separated")
    parser.add_argument("--url", help="a database server instead of a file, postgresql://...")
    parser.add_argument("--folder", type=Path, help="where stores are made (default: the system's temporary folder)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--stage", choices=("build", "ask"), help=argparse.SUPPRESS)
    for name, kind in (("size", int), ("home", Path), ("namespace", str)):
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    return parser.parse_args()


def measured(size: int, home: Path, url: str | None) -> dict[str, Any]:
    namespace = f"bench-{uuid4().hex}" if url else "default"
    found: dict[str, Any] = {}
    for stage in ("build", "ask"):
        command = [sys.executable, __file__, "--stage", stage, "--size", str(size), "--home", str(home)]
        command += ["--namespace", namespace, *(["--url", url] if url else [])]
        answer = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=ONE_THREAD | os.environ)
        found |= json.loads(answer.stdout.splitlines()[-1])
    if size == COLD_AT and not url and find_spec("mnemic.doors.main"):
        found |= cold_command(home, Talk().questions(1, size)[0])
    return found


def opened(size: int, home: Path, url: str | None, namespace: str) -> Memory:
    batch = 2_000 if size > 10_000 else 128
    settings = {
        "worker.enabled": False,
        "worker.batch": batch,
        "journal.key": "file",
        "topics.enabled": size <= 200_000,
    }
    return Memory.open(home=home, url=url, namespace=namespace, embedder=FakeEmbedder(), settings=settings)


# -- building


def build(size: int, home: Path, url: str | None, namespace: str) -> dict[str, Any]:
    turns = Talk().turns(size)
    took = cpu = 0.0
    with opened(size, home, url, namespace) as memory:
        while drafts := [turn.draft() for turn in islice(turns, PART)]:
            started, started_cpu = time.perf_counter(), time.process_time()
            memory.record_many(drafts)
            took += time.perf_counter() - started
            cpu += time.process_time() - started_cpu
        started, started_cpu = time.perf_counter(), time.process_time()
        memory.settle()
        settled, settled_cpu = time.perf_counter() - started, time.process_time() - started_cpu
        status = memory.status()
    return {
        "events": status.events,
        "chunks": status.chunks,
        "record_s": took,
        "record_cpu_s": cpu,
        "vectors_s": settled,
        "vectors_cpu_s": settled_cpu,
        "store_bytes": status.size_bytes,
        "journal_bytes": sum(p.stat().st_size for p in (home / "journal").rglob("*") if p.is_file()),
    }


# -- asking


def ask(size: int, home: Path, url: str | None, namespace: str) -> dict[str, Any]:
    questions = Talk().questions(60 if size > 200_000 else 200, size)
    found: dict[str, Any] = {"bare_mb": resident_mb()}
    started = time.perf_counter()
    with opened(size, home, url, namespace) as memory:
        memory.recall(Query(questions[0], k=K))
        found |= {"cold_s": time.perf_counter() - started}
        for question in questions[:20]:
            memory.recall(Query(question, k=K))
        found |= {"resident_mb": resident_mb()}
        found |= in_turn(memory, questions, size, home)
        found |= {"split_ms": split(memory, questions)}
    if not url:
        found |= {"agreement": agreement(lambda: opened(size, home, url, namespace), questions)}
    return found


def in_turn(memory: Memory, questions: Sequence[str], size: int, home: Path) -> dict[str, Any]:
    """Each question goes to mnemic, to FTS5 and to NumPy before the next is asked."""
    words = FullText(home / "fts5.db", FUNCTION)
    words.add(turn.text for turn in Talk().turns(size))
    matrix, vectors = vectors_of(size), FakeEmbedder().embed(questions)
    ours, theirs, numpy = (list[float]() for _ in range(3))
    for question, vector in zip(questions, vectors, strict=True):
        ours.append(clocked(partial(memory.recall, Query(question, k=K))))
        theirs.append(clocked(partial(words.search, question, K)))
        numpy.append(clocked(partial(exact, matrix, vector, K)))
    words.close()
    return {"recall_ms": spread(ours), "fts5_ms": spread(theirs), "numpy_ms": spread(numpy)}


def vectors_of(size: int) -> Any:
    """The same vectors as one matrix."""
    import numpy as np

    embedder, turns = FakeEmbedder(), Talk().turns(size)
    matrix = np.empty((size, embedder.space.dimension), np.float32)
    for start in range(0, size, PART):
        some = [turn.text for turn in islice(turns, PART)]
        matrix[start : start + len(some)] = embedder.embed(some)
    return matrix


def split(memory: Memory, questions: Sequence[str]) -> dict[str, float]:
    """Mean milliseconds a question spends in each part of a recall; parts that are not found are left out."""
    totals = dict.fromkeys(PARTS, 0.0)
    with ExitStack() as stack:
        for name, place in PARTS.items():
            _watch(stack, totals, name, place)
        started = time.perf_counter()
        for question in questions:
            memory.recall(Query(question, k=K))
        whole = time.perf_counter() - started
    per = {name: 1000 * total / len(questions) for name, total in totals.items() if total}
    return per | {"whole": 1000 * whole / len(questions)}


def _watch(stack: ExitStack, totals: dict[str, float], name: str, place: tuple[str, str, str]) -> None:
    module, owner, function = place
    holder = import_module(module)
    holder = getattr(holder, owner, None) if owner else holder
    original = getattr(holder, function, None)
    if original is None:
        return

    def timed(*arguments: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return original(*arguments, **named)
        finally:
            totals[name] += time.perf_counter() - started

    setattr(holder, function, timed)
    stack.callback(setattr, holder, function, original)


def agreement(reopen: Callable[[], Memory], questions: Sequence[str]) -> dict[str, float]:
    """Candidates first, then exact scores, against scoring everything: the same top 10, and how many of the ten."""
    from mnemic.store.vectors import exact as index

    limit, answers = index.EXACT_LIMIT, list[list[list[int]]]()
    try:
        for index.EXACT_LIMIT in (0, 2**62):
            with reopen() as memory:
                memory.recall(Query(questions[0], k=K))
                times: list[float] = []
                answers.append(list(_top(memory, questions, times)))
                if not index.EXACT_LIMIT:
                    candidates = spread(times)
    finally:
        index.EXACT_LIMIT = limit
    pairs = list(zip(*answers, strict=True))
    shared = statistics.mean(len({*a} & {*b}) / max(len(b), 1) for a, b in pairs)
    return {
        "same_top": sum(a == b for a, b in pairs) / len(pairs),
        "shared": shared,
        "candidates_p50_ms": candidates["p50"],
        "candidates_p95_ms": candidates["p95"],
    }


def _top(memory: Memory, questions: Sequence[str], times: list[float]) -> Iterator[list[int]]:
    for question in questions:
        started = time.perf_counter()
        hits = memory.recall(Query(question, k=K))
        times.append(1000 * (time.perf_counter() - started))
        yield [int(hit.event.seq) for hit in hits]


def cold_command(home: Path, question: str) -> dict[str, float]:
    """`mnemic recall` from nothing, with the real local embedder, against a Python that does nothing. Seconds."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MNEMIC_")} | {"MNEMIC_HOME": str(home)}
    recall = [sys.executable, "-c", "from mnemic.doors.main import main; main()", "recall", question, "--json"]
    took: dict[str, list[float]] = {"cold_recall_s": [], "python_pass_s": []}
    for _ in range(COLD):
        for name, command in (("cold_recall_s", recall), ("python_pass_s", [sys.executable, "-c", "pass"])):
            started = time.perf_counter()
            subprocess.run(command, env=environment, check=True, capture_output=True, cwd=home)
            took[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in took.items()}


# -- numbers


def clocked(work: Callable[[], object]) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - started)


def spread(times: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"p50": statistics.median(ordered), "p95": ordered[max(0, -(-len(ordered) * 95 // 100) - 1)]}


def resident_mb() -> float:
    """Memory of this process that is its own or shared with files, MB; 0 where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def lines(size: int, found: dict[str, Any]) -> list[str]:
    ours, words, numpy = found["recall_ms"], found["fts5_ms"], found["numpy_ms"]
    parts = "  ".join(f"{name} {value:.2f}" for name, value in found["split_ms"].items())
    rates = []
    for name, key in (("record_many", "record"), ("settle", "vectors")):
        wall, cpu = found[f"{key}_s"], found[f"{key}_cpu_s"]
        rates.append(f"{name} {wall:.1f} s, CPU {cpu:.1f} s ({found['events'] / wall:,.0f}/s)")
    out = [
        f"{size:,} events, {found['chunks']:,} chunks: store {found['store_bytes'] / 2**20:,.1f} MB, "
        f"journal {found['journal_bytes'] / 2**20:,.1f} MB",
        f"  {'   '.join(rates)}",
        f"  resident {found['resident_mb']:,.0f} MB (imports alone {found['bare_mb']:.0f})   "
        f"cold: open and first recall {found['cold_s']:.2f} s",
        f"  recall p50 {ours['p50']:.1f}  p95 {ours['p95']:.1f} ms   "
        f"FTS5 alone {words['p50']:.1f} / {words['p95']:.1f}   "
        f"NumPy exact {numpy['p50']:.1f} / {numpy['p95']:.1f}   p95 / FTS5's {ours['p95'] / words['p95']:.2f}",
        f"  mean ms: {parts}",
    ]
    if "agreement" in found:
        same = found["agreement"]
        out.append(
            f"  candidates against exhaustive: same top {K} {same['same_top']:.1%}, {same['shared']:.2%} of it shared; "
            f"candidates p50 {same['candidates_p50_ms']:.1f}  p95 {same['candidates_p95_ms']:.1f} ms"
        )
    if "cold_recall_s" in found:
        out.append(
            f"  cold `mnemic recall` {found['cold_recall_s']:.2f} s, python -c pass {found['python_pass_s']:.3f} s"
        )
    return out


if __name__ == "__main__":
    main()
