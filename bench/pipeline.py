"""What the text pipeline costs, and what its filter refuses.

    python bench/pipeline.py --data ../shared/bench/data

Retrieval is measured by `bench/retrieval.py`, which runs with the whole pipeline on.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mnemic.config import ChunkerConfig, FilterConfig, TopicsConfig
from mnemic.domain import chunking, sentences, topics, worth
from mnemic.domain.types import ChunkId
from mnemic.domain.worth import Circumstances, Neighbour
from mnemic.engine.analysis import embed_whole
from mnemic.models.local import LocalEmbedder
from mnemic.models.tokens import counter

SMALL_TALK = Path(__file__).parent.parent / "tests" / "data" / "small_talk.txt"
TURNS = 400
SENTENCE = "The {} limit of the {} service is {} requests per minute for every {} client."


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    bar: str
    value: str
    met: bool


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def share_of_ingest(embedder: LocalEmbedder, turns: Sequence[str]) -> float:
    """CPU of chunking, filter and topics, over the same plus the embedding; percent."""
    count, rules = counter("cl100k_base"), worth.rules(FilterConfig())
    config = TopicsConfig()
    taxonomy = topics.taxonomy(config, embedder.embed(topics.prompts(config)))
    vectors = embed_whole(embedder, turns)

    def pipeline() -> None:
        for text, vector in zip(turns, vectors, strict=True):
            for piece in chunking.split(text, ChunkerConfig(), count):
                part = text[piece.start : piece.stop]
                worth.judge(part, Circumstances(), rules)
                topics.assign(part, vector, {}, taxonomy)

    spent = cpu(pipeline)
    return 100 * spent / (spent + cpu(lambda: embed_whole(embedder, turns)))


def semantic_ratio(embedder: LocalEmbedder, text: str) -> float:
    """CPU of cutting a document by meaning, over embedding its chunks once."""
    count = counter("cl100k_base")
    config = ChunkerConfig(strategy="semantic")
    pieces = chunking.split(text, ChunkerConfig(overlap_tokens=0), count)

    def cut() -> None:
        spans = sentences.sentences(text)
        vectors = embed_whole(embedder, [text[s.start : s.stop] for s in spans])
        near = np.einsum("ij,ij->i", vectors[:-1], vectors[1:]).tolist()
        chunking.split_semantic(text, spans, near, config, count)

    return cpu(cut) / cpu(lambda: embed_whole(embedder, [text[p.start : p.stop] for p in pieces]))


def refused(texts: Sequence[str]) -> float:
    """Percent that the default filter refuses a vector."""
    rules = worth.rules(FilterConfig())
    verdicts = [worth.judge(text, Circumstances(), rules) for text in texts]
    return 100 * sum(isinstance(v, worth.Refuse) for v in verdicts) / len(texts)


def value_changes_refused() -> int:
    """Of 200 sentences that differ from a stored one in one value, how many are taken for a repetition."""
    rules, wrong = worth.rules(FilterConfig()), 0
    for n in range(200):
        old = SENTENCE.format("upper", "staging", 500 + n, "paying")
        new = SENTENCE.format("upper", "staging", 800 + n, "paying")
        known = Circumstances(neighbours=[Neighbour(ChunkId(1), old, 0.97)])
        wrong += not isinstance(worth.judge(new, known, rules), worth.Keep)
    return wrong


def corpora(data: Path) -> Iterator[tuple[str, Any]]:
    sys.path.insert(0, str(data.resolve().parent))
    from membench.datasets import LOADERS  # type: ignore[import-not-found]

    for name in ("locomo", "beam"):
        for corpus in LOADERS[name](data):
            yield name, corpus


def measured(data: Path) -> list[Figure]:
    turns: dict[str, list[str]] = {"locomo": [], "beam": []}
    gold: dict[str, list[str]] = {"locomo": [], "beam": []}
    for name, corpus in corpora(data):
        wanted = set().union(*(q.gold for q in corpus.queries))
        said = {d.id: d.text.removeprefix(f"{d.speaker}: ") for d in corpus.docs}
        turns[name] += said.values()
        gold[name] += [said[i] for i in wanted if i in said and said[i].strip()]
    embedder = LocalEmbedder(threads=1)
    figures = []
    for name, texts in turns.items():
        value = share_of_ingest(embedder, [t for t in texts if t.strip()][: TURNS if name == "locomo" else TURNS // 8])
        figures.append(
            Figure(f"chunk + topics + filter, share of ingest, {name}", "<= 15 %", f"{value:.1f} %", value <= 15)
        )
    document = "\n\n".join(turns["beam"])[:100_000]
    ratio = semantic_ratio(embedder, document)
    figures.append(Figure("semantic chunking of 100 kB / embedding it", "<= 3", f"{ratio:.2f}", ratio <= 3))
    for name, texts in gold.items():
        value = refused(texts)
        figures.append(Figure(f"gold turns refused, {name} ({len(texts)})", "<= 1 %", f"{value:.2f} %", value <= 1))
    lines = [t for t in SMALL_TALK.read_text(encoding="utf-8").splitlines() if t.strip() and not t.startswith("#")]
    value = refused(lines)
    figures.append(Figure(f"small talk refused ({len(lines)})", ">= 60 %", f"{value:.1f} %", value >= 60))
    wrong = value_changes_refused()
    figures.append(Figure("value changes taken for a repetition (200)", "0", str(wrong), wrong == 0))
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/bench/data"))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = measured(arguments.data)
    if arguments.json:
        print(json.dumps([{"measure": f.name, "bar": f.bar, "value": f.value, "met": f.met} for f in figures]))
    else:
        for f in figures:
            print(f"{f.name:<55} {f.bar:>8}  {f.value:>9}  {'met' if f.met else 'MISSED'}")
    return 0 if all(f.met for f in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
