"""Vector search means the same with every index and metric on both databases."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import psycopg
import pytest

from mnemic import Memory
from mnemic.domain.drafts import Draft
from mnemic.errors import ConfigError
from mnemic.store.vectors import pgvector
from tests.conftest import OpenMemory
from tests.contract.corpus import QUESTIONS, conversation
from tests.fakes import FakeEmbedder
from tests.postgres import Server

METRICS = ("cosine", "dot_product", "euclidean")
INDEXES = ("exact", "sqlite-vec", "pgvector")
DIMENSION = 16


def at_cosine(cosine: float, length: float = 1.0) -> list[float]:
    """A vector of that cosine to the first axis."""
    return [length * cosine, length * math.sqrt(1 - cosine**2)] + [0.0] * (DIMENSION - 2)


@pytest.fixture
def tiny_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use pgvector's own index and scan even for a handful of vectors."""
    monkeypatch.setattr(pgvector, "EXACT_BELOW", 0)
    monkeypatch.setattr(pgvector, "FEW", 0)


def offered(url: str, index: str) -> bool:
    return index != "pgvector" or url.startswith("postgres")


# For each metric a length of the stored vectors at which the threshold lies between the second and the third.
@pytest.mark.usefixtures("tiny_is_large")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("unit", [True, False])
def test_u54_the_same_two_hits_in_the_same_order(
    both: Mapping[str, str], open_memory: OpenMemory, tmp_path: Path, metric: str, index: str, unit: bool
) -> None:
    length = 1.0 if unit else {"cosine": 3.0, "dot_product": 3.0, "euclidean": 0.9}[metric]
    chosen = {
        "what is asked": at_cosine(1.0),
        "first text": at_cosine(0.95, length),
        "second text": at_cosine(0.60, length),
        "third text": at_cosine(0.05, length),
    }
    scores = {}
    for name, url in both.items():
        if not offered(url, index):
            continue
        memory = open_memory(
            url,
            home=tmp_path / name,
            embedder=FakeEmbedder(chosen, dimension=DIMENSION),
            recall__fusion="vector",
            vector__similarity_threshold=0.5,
            vector__similarity_metric=metric,
            vector__index_type=index,
            filter__enabled=False,
        )
        for text in ("third text", "first text", "second text"):
            memory.record(text)
        memory.settle()
        hits = memory.recall("what is asked")
        assert [h.text for h in hits] == ["first text", "second text"]
        assert all(0 <= h.score <= 1 for h in hits)
        scores[name] = [h.parts["similarity"] for h in hits]
        if unit or metric == "cosine":
            assert scores[name] == pytest.approx([0.95, 0.60], abs=2e-3)
            assert memory.recall("first text")[0].parts["similarity"] == pytest.approx(1.0, abs=2e-3)
    assert len({tuple(s) for s in scores.values()}) == 1


@pytest.mark.usefixtures("tiny_is_large")
@pytest.mark.parametrize("index", ["sqlite-vec", "pgvector"])
def test_an_index_that_proposes_scores_like_the_exact_one(
    both: Mapping[str, str], open_memory: OpenMemory, index: str
) -> None:
    for url in both.values():
        if not offered(url, index):
            continue
        exact = open_memory(url, namespace="talk")
        exact.record_many(conversation())
        exact.settle()
        proposing = open_memory(url, namespace="talk", vector__index_type=index)
        for question in QUESTIONS:
            wanted = [(h.event.id, pytest.approx(h.score, abs=2e-4)) for h in exact.recall(question)]
            assert [(h.event.id, h.score) for h in proposing.recall(question)] == wanted, question
            wanted = [h.event.id for h in exact.recall(question, sessions=["s1", "s4"], since="2026-03-02")]
            narrow = proposing.recall(question, sessions=["s1", "s4"], since="2026-03-02")
            assert [h.event.id for h in narrow] == wanted


def _fill(memory: Memory, size: int, text: str) -> None:
    memory.record_many(Draft(f"{text} number {n}", session=f"s{n // 50}") for n in range(size))


@pytest.mark.usefixtures("tiny_is_large")
@pytest.mark.parametrize("index", INDEXES)
def test_u57_a_small_tenant_among_many_gets_all_of_its_own(
    both: Mapping[str, str], open_memory: OpenMemory, tmp_path: Path, index: str
) -> None:
    """2,000 rows of A near the question, 30 of B far from it: as B 20 of 20, in the order of brute force."""
    random = np.random.default_rng(3)
    far = {f"tulip number {n} of": (random.standard_normal(DIMENSION) - 4 * np.eye(DIMENSION)[0]) for n in range(30)}
    near = {"crowd": np.eye(DIMENSION)[0] * 1.0}
    chosen = {k: (v / np.linalg.norm(v)).tolist() for k, v in {**far, **near}.items()}
    question = np.eye(DIMENSION)[0] + 0.3 * np.eye(DIMENSION)[1]
    question /= np.linalg.norm(question)
    chosen["wanted thing"] = question.tolist()
    stored = {k: np.asarray(v, np.float16).astype(np.float32) for k, v in chosen.items() if k in far}
    order = sorted(stored, key=lambda k: -float(stored[k] @ question) / float(np.linalg.norm(stored[k])))
    for name, url in both.items():
        if not offered(url, index):
            continue
        settings = {"recall__fusion": "vector", "vector__index_type": index, "filter__enabled": False}
        embedder = FakeEmbedder(chosen, dimension=DIMENSION)
        crowd = open_memory(url, home=tmp_path / name, embedder=embedder, namespace="a", **settings)
        _fill(crowd, 2_000, "crowd")
        small = open_memory(
            url, home=tmp_path / name, embedder=embedder, namespace="b", vector__similarity_threshold=-1.0, **settings
        )
        small.record_many(Draft(f"tulip number {n} of the bed", session=f"b{n}") for n in range(30))
        crowd.settle()
        state = small._memory._engine.store.indexes.state("b")
        assert state.dense is not None
        found = state.dense.nearest(np.asarray(question, np.float32), 20, None)
        texts = [e.text.removesuffix(" the bed") for e in small.events(limit=100)]
        centred = np.mean([v / np.linalg.norm(v) for v in stored.values()], axis=0)
        wanted = sorted(
            range(30),
            key=lambda n: -float(stored[texts[n]] @ (question - centred)) / float(np.linalg.norm(stored[texts[n]])),
        )
        assert found.tolist()[:20] == wanted[:20], name
        scores = state.dense.similar(np.asarray(-question, np.float32), None)
        assert np.argsort(scores, kind="stable")[:5].tolist() == [texts.index(k) for k in order[:5]]


def test_pgvector_uses_its_index(both: Mapping[str, str], open_memory: OpenMemory, tiny_is_large: None) -> None:
    url = both["postgres"]
    memory = open_memory(url, vector__index_type="pgvector", filter__enabled=False, embedder=FakeEmbedder(dimension=16))
    _fill(memory, 3_000, "chatter")
    memory.settle()
    store = memory._memory._engine.store
    serving = store.upkeep.serving()
    assert serving is not None
    indexed = pgvector.Indexed(serving.id, 16)
    pgvector.build(store.driver, indexed)  # type: ignore[arg-type]
    pgvector.build(store.driver, indexed)  # type: ignore[arg-type]  # the second finds it made
    asked = {"namespace": "default", "ids": None, "limit": 10, "vector": np.ones(16, np.float16).tobytes()}
    query = pgvector.sql.SQL("EXPLAIN ") + indexed.filled("nearest_by_index")
    plan = store.driver.read("default", lambda tx: tx.fetch_composed(query, asked))  # type: ignore[attr-defined]
    assert any(indexed.index in row[0] for row in plan), plan
    state = store.indexes.state("default")
    assert state.dense is not None and not state.dense.exhaustive
    found = state.dense.nearest(np.ones(16, np.float32), 50, None)
    assert len(set(found.tolist())) == 50


def test_u122_without_the_extension_one_clear_line(
    both: Mapping[str, str], open_memory: OpenMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite_vec

    monkeypatch.setattr(sqlite_vec, "loadable_path", lambda: str(tmp_path / "nothing"))
    for url in both.values():
        with pytest.raises(ConfigError, match=r"pip install 'mnemic\[sqlite-vec\]'"):
            open_memory(url, vector__index_type="sqlite-vec")
        memory = open_memory(url)
        memory.record("the engine works without the extension all the same")
        assert len(memory.recall("extension")) == 1


def test_pgvector_on_a_file_is_refused(both: Mapping[str, str], open_memory: OpenMemory) -> None:
    memory = open_memory(both["sqlite"], vector__index_type="pgvector", filter__enabled=False)
    memory.record("some text that gets a vector")
    memory.settle()
    with pytest.raises(ConfigError, match="postgresql://"):
        memory.recall("text")
    assert len(open_memory(both["postgres"]).recall("text")) == 0


def test_a_role_that_may_not_build_the_index_still_searches(
    both: Mapping[str, str],
    open_memory: OpenMemory,
    server: Server,
    tiny_is_large: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = both["postgres"]
    owner = open_memory(url, filter__enabled=False, embedder=FakeEmbedder(dimension=16))
    _fill(owner, 50, "chatter")
    owner.settle()
    database = url.partition("@/")[2].partition("?")[0]
    with psycopg.connect(server.admin_url(database), autocommit=True) as admin:
        admin.execute("REASSIGN OWNED BY mnemic TO postgres")
        admin.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO mnemic")
    store = open_memory(url, vector__index_type="pgvector")._memory._engine.store
    first = store.indexes.state("default")
    assert first.dense is not None and not first.dense.exhaustive
    assert len(first.dense.nearest(np.ones(16, np.float32), 20, None)) == 20
    for thread in threading.enumerate():
        if thread.name == "mnemic-hnsw":
            thread.join()
    assert "CREATE INDEX CONCURRENTLY" in caplog.text
    assert len(first.dense.nearest(np.ones(16, np.float32), 20, None)) == 20
