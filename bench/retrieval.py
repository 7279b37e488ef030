"""Retrieval and time on public conversations, judged by membench's own measures.

    python bench/retrieval.py --data ../shared/bench/data [--url postgresql://...] [--sets locomo,beam]

Every question carries the ids of its evidence, so a figure is exact and repeatable. One default configuration for all
sets; membench is found beside the data folder. Times are taken question by question in turn with the baselines, on one
thread, so that a busy machine slows all of them alike: read the ratios.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
TURNS = 600  # the speed figures are stated for about this many
K = 10


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table. `run`: which run holds it; `path`: where in its result, percent."""

    name: str
    run: str
    path: tuple[str, str, str]
    peer: str
    bar: float
    ambition: float


@dataclass(frozen=True, slots=True)
class Run:
    """One data set under one embedder ("" is the one asked for)."""

    dataset: str
    embedder: str = ""


RUNS = {
    "locomo": Run("locomo"),
    "beam": Run("beam"),
    "locomo_plus": Run("locomo_plus"),
    "longmemeval": Run("longmemeval_pieces"),
    "speed": Run("locomo"),
    "nomodel": Run("locomo", "hashing"),  # last: a database server has one serving space, and this moves it
}
FIGURES = (
    Figure("LoCoMo turn R@10, answerable", "locomo", ("turn", "answerable", "recall@10"), "mem0 65, FTS5 62", 79, 84),
    Figure("LoCoMo turn nDCG@10, answerable", "locomo", ("turn", "answerable", "ndcg@10"), "mem0 49, FTS5 49", 63, 69),
    Figure("LoCoMo adversarial R@10", "locomo", ("turn", "adversarial", "recall@10"), "73", 81, 90),
    Figure("LoCoMo turn R@10 without any model", "nomodel", ("turn", "answerable", "recall@10"), "FTS5 62", 75, 79),
    Figure("LoCoMo session hit@5", "locomo", ("session", "answerable", "hit@5"), "FTS5 91", 93, 96),
    Figure("BEAM-100K turn R@10", "beam", ("turn", "answerable", "recall@10"), "MiniLM 58", 65, 71),
    Figure("BEAM-100K turn nDCG@10", "beam", ("turn", "answerable", "ndcg@10"), "MiniLM 44", 53, 59),
    Figure("LoCoMo-Plus hit@10", "locomo_plus", ("turn", "answerable", "hit@10"), "MiniLM 27", 35, 45),
    Figure("LongMemEval slice session R@5", "longmemeval", ("session", "answerable", "recall@5"), "94-98", 94, 98),
)


def main() -> None:
    options = _options()
    os.environ |= ONE_THREAD  # NumPy reads them when it is loaded: the imports that need it come after
    sys.path.insert(0, str(options.data.resolve().parent))
    from membench import datasets  # beside the data

    names = options.sets.split(",") if options.sets else list(RUNS)
    results: dict[str, Any] = {}
    for name in names:
        if name == "speed":
            results[name] = speed(datasets, options)
        else:
            results[name] = quality(RUNS[name], datasets, options)
        print(f"{name} done", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(results, indent=1))
    else:
        print("\n".join(table(results)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="membench's data folder")
    parser.add_argument("--url", help="a database server instead of a file, postgresql://...")
    parser.add_argument("--embedder", default="local", help="local (default), hashing, multilingual ...")
    parser.add_argument("--sets", default="", help=f"some of {','.join(RUNS)} (default: all)")
    parser.add_argument("--json", action="store_true", help="everything that was measured")
    options = parser.parse_args()
    unknown = {*filter(None, options.sets.split(","))} - RUNS.keys()
    if unknown:
        parser.error(f"unknown sets: {', '.join(sorted(unknown))}")
    return options


def quality(run: Run, datasets: Any, options: argparse.Namespace) -> dict[str, Any]:
    """membench's result for one data set."""
    from membench.run import evaluate

    from adapter import Mnemic

    corpora = list(datasets.LOADERS[run.dataset](options.data))
    embedder = run.embedder or options.embedder
    result: dict[str, Any] = evaluate(lambda: Mnemic(embedder=embedder, url=options.url), corpora)
    return result


def table(results: dict[str, Any]) -> list[str]:
    """The rows of the issue, percent; `met` says which of bar and ambition was reached."""
    head = f"{'measure':40} {'peer or baseline':>18} {'bar':>6} {'ambition':>8} {'ours':>7} {'n':>4}  met"
    lines = [head] if results.keys() - {"speed"} else []
    for figure in FIGURES:
        if figure.run in results:
            level, group, measure = figure.path
            found = results[figure.run]["levels"][level][group]
            ours = round(100 * found[measure], 1)
            given = f"{figure.name:40} {figure.peer:>18} {figure.bar:>6g} {figure.ambition:>8g}"
            lines.append(f"{given} {ours:>7.1f} {found['n']:>4}  {reached(ours, figure.bar, figure.ambition)}")
    if "speed" in results:
        lines += _speed_lines(results["speed"])
    return lines


def reached(ours: float, bar: float, ambition: float) -> str:
    """Higher is better, unless the ambition lies below the bar."""
    sign = 1 if ambition >= bar else -1
    if sign * ours >= sign * ambition:
        return "ambition"
    return "bar" if sign * ours >= sign * bar else "MISSED"


# -- time


class Bare:
    """The embedder alone, without a store: what no memory that uses it can undercut."""

    def __init__(self) -> None:
        from mnemic.models.local import LocalEmbedder

        self._model = LocalEmbedder(threads=1)

    def add(self, docs: Sequence[Any]) -> None:
        self._model.embed([doc.text for doc in docs])

    def search(self, query: str, k: int, now: object = None) -> list[str]:
        self._model.embed([query], query=True)
        return []


def speed(datasets: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Ingest and query times on the LoCoMo chat nearest to 600 turns, next to the baselines."""
    from adapter import Mnemic

    corpus = min(datasets.LOADERS["locomo"](options.data), key=lambda c: abs(len(c.docs) - TURNS))
    makers: dict[str, Callable[[], Any]] = {
        "mnemic": lambda: Mnemic(embedder=options.embedder, url=options.url),
        **_baselines(),
    }
    if not options.url:
        makers["mnemic, no model"] = lambda: Mnemic(embedder="hashing")
    with tempfile.TemporaryDirectory() as folder, _minilm(Path(folder)):
        retrievers, rows = {}, {}
        for name, make in makers.items():
            retrievers[name] = retriever = make()
            for query in corpus.queries[:3]:
                retriever.search(query.text, K)  # loads the model: not part of the rate
            wall, cpu = _clocked(lambda r=retriever: r.add(corpus.docs))
            rows[name] = {"turns_per_s": len(corpus.docs) / wall, "turns_per_cpu_s": len(corpus.docs) / cpu}
        for name, times in _in_turn(retrievers, corpus.queries).items():
            rows[name] |= times
        for retriever in retrievers.values():
            if hasattr(retriever, "close"):
                retriever.close()
    return {"turns": len(corpus.docs), "queries": len(corpus.queries), "load": os.getloadavg()[0], "rows": rows}


def _baselines() -> dict[str, Callable[[], Any]]:
    from membench.retrievers.baselines import Fts5, Hybrid

    class Fitted(Hybrid):  # type: ignore[misc]
        """Hybrid that can be asked before there are documents, as the others can."""

        def search(self, query: str, k: int, now: object = None) -> list[str]:
            return list(super().search(query, k)) if hasattr(self.dense, "matrix") else []

    return {"FTS5": Fts5, "FTS5 + MiniLM int8, RRF": Fitted, "MiniLM int8 alone": Bare}


@contextmanager
def _minilm(folder: Path) -> Any:
    """membench's Hybrid over the very weights that mnemic uses."""
    from mnemic.models import local

    (folder / "model.onnx").symlink_to(local.model_file())
    (folder / "tokenizer.json").symlink_to(local.TOKENIZER)
    os.environ |= {"MINILM_DIR": str(folder), "MINILM_THREADS": "1"}
    yield


def _clocked(work: Callable[[], object]) -> tuple[float, float]:
    """(wall, CPU of the whole process) in seconds."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, max(time.process_time() - cpu, 1e-9)


def _in_turn(retrievers: dict[str, Any], queries: Sequence[Any]) -> dict[str, dict[str, float]]:
    """Each question goes to each retriever before the next one is asked; milliseconds."""
    from membench.metrics import percentile

    walls: dict[str, list[float]] = {name: [] for name in retrievers}
    cpus: dict[str, list[float]] = {name: [] for name in retrievers}
    for query in queries:
        for name, retriever in retrievers.items():
            wall, cpu = time.perf_counter(), time.process_time()
            retriever.search(query.text, K, query.when)
            walls[name].append(1000 * (time.perf_counter() - wall))
            cpus[name].append(1000 * (time.process_time() - cpu))
    return {
        name: {
            "p50_ms": percentile(walls[name], 50),
            "p95_ms": percentile(walls[name], 95),
            "cpu_p95_ms": percentile(cpus[name], 95),
        }
        for name in retrievers
    }


def _speed_lines(found: dict[str, Any]) -> list[str]:
    rows = found["rows"]
    ours = rows["mnemic"]
    lines = [
        "",
        f"{found['turns']} turns, {found['queries']} questions, k = {K}, one thread, load {found['load']:.1f}",
        f"{'':26} {'turns/s':>9} {'per CPU s':>9} {'p50 ms':>7} {'p95 ms':>7} {'CPU p95':>8} {'p95 / ours':>10}",
    ]
    for name, row in rows.items():
        rates = f"{row['turns_per_s']:>9,.0f} {row['turns_per_cpu_s']:>9,.0f}"
        times = f"{row['p50_ms']:>7.1f} {row['p95_ms']:>7.1f} {row['cpu_p95_ms']:>8.1f}"
        lines.append(f"{name:26} {rates} {times} {row['p95_ms'] / ours['p95_ms']:>10.2f}")
    met = reached(ours["p95_ms"], 15, 6), reached(ours["turns_per_s"], 90, 250)
    lines.append(f"query p95: bar 15 ms, ambition 6 ms: {met[0]}; ingest: bar 90 turns/s, ambition 250: {met[1]}")
    return lines


if __name__ == "__main__":
    main()
