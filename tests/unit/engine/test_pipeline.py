"""What enters the index, in which pieces, under which topics, and why something was left out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mnemic import Draft, Memory
from mnemic.app import assemble
from mnemic.config import load
from mnemic.engine.reranking import reranked
from mnemic.engine.sources import SourceText
from mnemic.errors import ConfigError, InvalidInput, ModelUnavailable, NotFound
from tests.fakes import FakeEmbedder, FixedClock

QUIET = {"worker.enabled": False, "timezone": "UTC"}
BEES = "The bees in the third hive made forty kilos of honey this year."


def opened(home: Path, embedder: FakeEmbedder | None = None, **settings: object) -> Memory:
    dotted = {key.replace("__", "."): value for key, value in settings.items()}
    return Memory.open(home=home, embedder=embedder or FakeEmbedder(), clock=FixedClock(), settings={**QUIET, **dotted})


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with opened(tmp_path) as made:
        yield made


def vectors(memory: Memory) -> int:
    return sum(space.vectors for space in memory.status().spaces)


def test_small_talk_gets_no_vector_but_stays_findable(memory: Memory) -> None:
    memory.record("ok thanks!")
    memory.record(BEES)
    memory.settle()
    assert vectors(memory) == 1
    assert [h.text for h in memory.recall("thanks")] == ["ok thanks!"]


def test_what_is_kept_on_purpose_is_never_refused(memory: Memory) -> None:
    memory.remember("ok")
    memory.settle()
    assert vectors(memory) == 1


def test_a_repetition_is_one_hit_that_names_the_others(memory: Memory) -> None:
    memory.record(BEES, at="2031-01-01")
    memory.record(BEES.upper(), at="2031-02-01")
    memory.record("The bees in the third hive made fifty kilos of honey this year.", at="2031-03-01")
    memory.settle()
    hits = memory.recall("honey hive")
    assert sorted(h.event.seq for h in hits) == [1, 3]  # forty is not fifty
    assert next(h for h in hits if h.event.seq == 1).others == (2,)
    assert vectors(memory) == 2


def test_a_changed_filter_decides_again(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.record(BEES)
        memory.settle()
        assert vectors(memory) == 1
    with opened(tmp_path, filter__exclude_patterns=("honey",)) as memory:
        assert memory.refilter() == 1
        memory.settle()
        assert vectors(memory) == 0
        assert [h.text for h in memory.recall("honey")] == [BEES]
    with opened(tmp_path) as memory:
        memory.refilter()
        memory.settle()
        assert vectors(memory) == 1


def test_the_verdict_is_stored_with_its_parts(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.record("ok thanks!")
        memory.record(BEES)
        memory.settle()
    engine = assemble(load({"MNEMIC_HOME": str(tmp_path)})[0])
    refused, kept = (engine.store.chunks.detail("default", n) for n in (1, 2))
    engine.spool.close()
    engine.journal.close()
    engine.store.close()
    assert refused is not None
    assert kept is not None
    assert (refused.kept, json.loads(refused.verdict)["decision"], json.loads(refused.verdict)["reason"]) == (
        False,
        "refuse",
        "short",
    )
    verdict = json.loads(kept.verdict)
    assert verdict["decision"] == "keep"
    assert set(verdict["parts"]) == {"density", "novelty", "relevance", "actionability", "recency"}
    assert verdict["score"] >= 0.4


def test_the_same_words_are_embedded_once(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    with opened(tmp_path, embedder) as memory:
        memory.remember(BEES)
        memory.settle()
        memory.remember(BEES)
        memory.settle()
        assert vectors(memory) == 2
    assert embedder.seen.count(f"user: {BEES}") == 1


# -- topics


def test_topics_are_assigned_filtered_renamed_merged_and_undone(tmp_path: Path) -> None:
    settings = {
        "topics__taxonomy": "fixed",
        "topics__custom_topics": ("beekeeping", "sailing"),
        "topics__min_confidence": 0.5,
    }
    with opened(tmp_path, FakeEmbedder(provider="hashing"), **settings) as memory:
        memory.remember("Beekeeping needs patience")
        memory.remember("Sailing needs wind")
        memory.settle()
        assert {t.label: t.chunks for t in memory.topics()} == {"beekeeping": 1, "sailing": 1}
        assert [h.text for h in memory.recall("needs", topics=["sailing"])] == ["Sailing needs wind"]
        assert memory.recall("needs", topics=["knitting"]).hits == ()
        memory.rename_topic("sailing", "boats")
        assert {t.label for t in memory.topics()} == {"beekeeping", "boats"}
        assert [h.text for h in memory.recall("needs", topics=["boats"])] == ["Sailing needs wind"]
        memory.rename_topic("beekeeping", "boats")
        assert [(t.label, t.chunks) for t in memory.topics()] == [("boats", 2)]
        assert len(memory.recall("needs", topics=["boats"])) == 2
        memory.undo_topic()
        assert {t.label for t in memory.topics()} == {"beekeeping", "boats"}
        memory.undo_topic()
        assert {t.label for t in memory.topics()} == {"beekeeping", "sailing"}
        with pytest.raises(NotFound, match="to undo"):
            memory.undo_topic()
        with pytest.raises(NotFound, match="no topic 'knitting'"):
            memory.rename_topic("knitting", "x")


# -- sources


def test_a_document_is_kept_once_and_changed_only_where_it_changed(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    with opened(tmp_path, embedder, chunker__max_tokens=30, chunker__overlap_tokens=0) as memory:
        paragraphs = [f"Paragraph {n} is about beehive number {n} and its honey." for n in range(20)]
        first = memory.ingest(SourceText("file:///a.md", "bees", "document", "\n\n".join(paragraphs)))
        memory.settle()
        assert (first.status, first.source.version) == ("new", 1)
        assert first.source.summary.startswith("Paragraph 0 is about beehive number 0 and its honey.")
        again = memory.ingest(SourceText("file:///a.md", "bees", "document", "\n\n".join(paragraphs)))
        assert (again.status, again.chunks) == ("unchanged", first.chunks)
        seen = len(embedder.seen)
        paragraphs[10] = "Paragraph 10 is about wasps now."
        changed = memory.ingest(SourceText("file:///a.md", "bees", "document", "\n\n".join(paragraphs)))
        memory.settle()
        assert (changed.status, changed.source.version) == ("changed", 2)
        assert changed.kept_chunks >= changed.chunks - 2
        assert len(embedder.seen) - seen <= 2  # only what changed was embedded
        assert memory.recall("wasps")[0].event.data["version"] == 2
        assert {h.event.data["version"] for h in memory.recall("beehive honey", k=20)} == {2}
        assert [s.name for s in memory.sources("BEE")] == ["bees"]


def test_a_source_without_text_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="holds no text"):
        memory.ingest(SourceText("file:///empty", "empty", "document", " \n"))


def test_a_document_larger_than_an_event_is_kept_in_parts(tmp_path: Path) -> None:
    with opened(tmp_path, record__max_bytes=2_000) as memory:
        text = "\n\n".join(f"Paragraph {n} tells of hive {n} and the weather there." for n in range(200))
        done = memory.ingest(SourceText("file:///long", "long", "document", text))
        events = memory.events()
        assert len(events) > 4
        assert "".join(e.text for e in events).replace("\n", "") == text.replace("\n", "")
        assert (done.source.first, done.source.last) == (1, len(events))
        assert memory.recall("hive 199")[0].text


def test_a_span_of_the_log_becomes_a_source_word_for_word(memory: Memory) -> None:
    memory.record("Which boat is ours?", session="s")
    memory.record("The blue one at the end of the pier.", role="assistant", session="s")
    memory.record("Let us talk about lunch now.", session="s")
    done = memory.source("our boat", 1, 2)
    assert (done.source.type, done.source.uri) == ("buffer", "log:1-2")
    assert memory.get(4).text == "user: Which boat is ours?\n\nassistant: The blue one at the end of the pier."
    assert memory.source("the rest").source.uri == "log:3-4"
    with pytest.raises(InvalidInput, match="no events in that span"):
        memory.source("nothing", 90, 99)


# -- cutting by meaning


def test_the_semantic_strategy_cuts_where_the_meaning_changes(tmp_path: Path) -> None:
    near = FakeEmbedder({"hive": [1, 0, 0], "boat": [0, 1, 0]}, dimension=3)
    settings = {"chunker__strategy": "semantic", "chunker__min_tokens": 8, "chunker__max_tokens": 200}
    with opened(tmp_path, near, **settings) as memory:
        bees = "The hive is full of bees today. " * 4
        boats = "The boat lies at the pier tonight. " * 4
        memory.record(bees + boats)
        assert memory.recall("hive")[0].text == bees + boats  # by words at once, cut later
        memory.settle()
        texts = [memory.recall(word)[0].text.strip() for word in ("hive", "boat")]
        assert texts == [bees.strip(), boats.strip()]


# -- hygiene


def test_hygiene_takes_out_only_what_nobody_wrote_on_purpose_and_puts_it_back(tmp_path: Path) -> None:
    with opened(tmp_path, hygiene__prune_after_days=30) as memory:
        memory.record("An old answer about the weather in Bergen.", role="assistant", at="2030-01-01")
        memory.record("An old question about the weather in Bergen?", at="2030-01-01")
        memory.record("A fresh answer about the weather in Bergen.", role="assistant", at="2031-03-11")
        memory.settle()
        plan = memory.hygiene()
        assert [(c.seq, c.reason) for c in plan.candidates] == [(1, "old")]
        assert not plan.done
        assert len(memory.recall("weather Bergen")) == 3
        swept = memory.hygiene(dry_run=False)
        assert swept.done
        assert {h.event.seq for h in memory.recall("weather Bergen")} == {2, 3}
        archived = memory.archived()
        assert [(a.seq, a.reason) for a in archived] == [(1, "old")]
        assert memory.events()[-1].text == "hygiene took 1 chunks out of the index: 1 old"
        assert memory.restore_archived([a.id for a in archived]) == 1
        assert {h.event.seq for h in memory.recall("weather Bergen")} == {1, 2, 3}


def test_hygiene_limits_the_size_oldest_first(tmp_path: Path) -> None:
    with opened(tmp_path, hygiene__max_entries=3) as memory:
        for n in range(5):
            memory.record(f"Answer number {n} about the garden shed.", role="assistant", at=f"2031-03-0{n + 1}")
        memory.settle()
        assert [(c.seq, c.reason) for c in memory.hygiene().candidates] == [(1, "too many"), (2, "too many")]


# -- re-ranking


class Backwards:
    """Scores texts by how late they come."""

    name = "backwards"

    def __init__(self, scores: Sequence[float] | None = None, error: Exception | None = None) -> None:
        self._scores, self._error = scores, error

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        if self._error:
            raise self._error
        return self._scores if self._scores is not None else [n / len(texts) for n in range(len(texts))]


@pytest.mark.parametrize(
    ("reranker", "order", "notice"),
    [
        (Backwards(), [2, 1, 0], ""),
        (Backwards([0.5, 0.5, 0.5]), [0, 1, 2], ""),
        (Backwards([0.5]), [0, 1, 2], "not re-ranked: backwards did not score every text"),
        (Backwards([0.5, float("nan"), 1]), [0, 1, 2], "not re-ranked: backwards did not score every text"),
        (Backwards(error=ModelUnavailable("it sleeps")), [0, 1, 2], "not re-ranked: it sleeps"),
        (None, [0, 1, 2], "not re-ranked: no model is configured (vector.rerank_model)"),
    ],
)
def test_a_second_look_reorders_and_any_failure_leaves_the_order(
    memory: Memory, reranker: Backwards | None, order: list[int], notice: str
) -> None:
    import asyncio

    for word in ("one", "two", "three"):
        memory.remember(f"apple {word}")
    hits = memory.recall("apple").hits

    async def run(work, *arguments):  # type: ignore[no-untyped-def]
        return work(*arguments)

    found, told = asyncio.run(reranked(lambda: reranker, "apple", hits, 1.0, run))
    assert [hits.index(next(h for h in hits if h.chunk == f.chunk)) for f in found] == order
    assert told == notice


def test_recall_says_when_there_is_no_model_to_rerank_with(memory: Memory) -> None:
    memory.remember("apple pie")
    answer = memory.recall("apple", rerank=True)
    assert [h.text for h in answer] == ["apple pie"]
    assert answer.notices == ("not re-ranked: no model is configured (vector.rerank_model)",)


# -- an index that lives as long as the process


def test_vectors_in_memory_answer_and_are_gone_with_the_process(tmp_path: Path) -> None:
    near = FakeEmbedder({"puppy": [1, 0, 0, 0], "hound": [0.9, 0.1, 0, 0]}, dimension=4)
    with opened(tmp_path, near, vector__index_type="memory") as memory:
        memory.remember("We got a puppy")
        memory.settle()
        assert [h.found_by for h in memory.recall("hound")] == [("vector",)]
        assert vectors(memory) == 1
    with opened(tmp_path, near, vector__index_type="memory") as memory:
        assert vectors(memory) == 0
        memory.settle()
        memory.remember("Another puppy")
        memory.settle()
        assert vectors(memory) == 2
        assert {h.text for h in memory.recall("hound")} == {"We got a puppy", "Another puppy"}


def test_a_missing_reranker_leaves_the_order_and_says_why(tmp_path: Path) -> None:
    with opened(tmp_path, vector__rerank_model=str(tmp_path / "none.onnx")) as memory:
        memory.remember("apple pie")
        answer = memory.recall("apple", rerank=True)
        assert [h.text for h in answer] == ["apple pie"]
        assert answer.notices[0].startswith("not re-ranked: vector.rerank_model")


def test_a_fixed_taxonomy_without_topics_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="custom_topics"):
        opened(tmp_path, topics__taxonomy="fixed")


def test_sources_that_came_with_an_import_are_listed_and_not_kept_twice(tmp_path: Path) -> None:
    with opened(tmp_path / "old") as old:
        old.ingest(SourceText("file:///a.md", "bees", "document", "Bees make honey in the hive."))
        old.ingest(SourceText("file:///a.md", "bees", "document", "Wasps make paper under the roof."))
        events = old.events()
    with opened(tmp_path / "new") as new:
        drafts = [
            Draft(e.text, kind=e.kind, channel=e.channel, at=e.at, trust=e.trust, data=e.data, id=e.id) for e in events
        ]
        new.record_many(drafts)
        assert new.sources() == []
        assert new.restore_sources() == 1
        assert [(s.name, s.version, s.uri) for s in new.sources()] == [("bees", 2, "file:///a.md")]
        assert new.recall("hive honey").hits == ()
        again = new.ingest(SourceText("file:///a.md", "bees", "document", "Wasps make paper under the roof."))
        assert (again.status, len(new.events())) == ("unchanged", 2)
        assert new.restore_sources() == 0
