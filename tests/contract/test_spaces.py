"""Embedding spaces: another model, a lost table, an interrupted reindex; no text is lost by any of them."""

from __future__ import annotations

import psycopg
import pytest

from mnemic import Memory
from mnemic.domain.drafts import Draft
from tests.conftest import OpenMemory
from tests.fakes import FakeEmbedder

pytestmark = pytest.mark.usefixtures("back_end")
SIZE = 300


def _record(memory: Memory, size: int = SIZE, begin: int = 0) -> None:
    memory.record_many(
        Draft(f"the apple tree number {n} stands in row {n % 7}", session=f"s{n // 10}")
        for n in range(begin, begin + size)
    )


def _spaces(memory: Memory) -> dict[str, tuple[str, int, int]]:
    return {s.label: (s.state, s.vectors, s.missing) for s in memory.status().spaces}


def test_u70_another_dimension_reindex_interrupted_and_back(open_memory: OpenMemory) -> None:
    old, new = FakeEmbedder(dimension=8, model="old"), FakeEmbedder(dimension=12, model="new")
    first = open_memory(embedder=old, filter__enabled=False)
    _record(first)
    first.settle()
    first.close()

    second = open_memory(embedder=new, filter__enabled=False, worker__batch=64)
    _record(second, 10, SIZE)
    found = second.recall("apple tree number 305")
    assert found[0].text.startswith("the apple tree number 305")
    assert any("old/8" in notice and "new/12" in notice for notice in found.notices)
    assert second.status().events == SIZE + 10
    second.reindex()
    second._memory._worker.run_once()  # one batch, then the process dies
    assert _spaces(second)["fake/new/12"][0] == "building"
    assert 0 < _spaces(second)["fake/new/12"][1] < SIZE
    second.close()

    third = open_memory(embedder=new, filter__enabled=False)
    third.settle()
    assert _spaces(third) == {"fake/old/8": ("retired", SIZE, 10), "fake/new/12": ("serving", SIZE + 10, 0)}
    assert len(new.seen) <= SIZE + 10 + 1  # nothing was embedded twice, but the question
    third.close()

    fourth = open_memory(embedder=old, filter__enabled=False)
    fourth.reindex()
    fourth.settle()
    assert _spaces(fourth) == {"fake/old/8": ("serving", SIZE + 10, 0), "fake/new/12": ("retired", SIZE + 10, 0)}
    assert fourth.status().events == SIZE + 10
    assert not fourth.recall("apple tree").notices


def test_u50_a_dropped_table_is_derived_again(open_memory: OpenMemory, url: str, back_end: str) -> None:
    memory = open_memory(filter__enabled=False)
    _record(memory)
    memory.settle()
    question = "apple tree number 17 in row 3"
    before = [(h.event.id, h.score) for h in memory.recall(question)]
    memory.close()
    for table in ("vectors", "chunks"):
        _drop(url, back_end, table)
        again = open_memory(filter__enabled=False)
        if table == "vectors":
            found = again.recall("number 17")  # keyword search still answers
            assert "number 17 " in found[0].text and found[0].found_by == ("keyword",)
        again.settle()
        status = again.status()
        assert (status.events, status.chunks) == (SIZE, SIZE)
        assert [(s.vectors, s.missing) for s in status.spaces] == [(SIZE, 0)]
        assert [(h.event.id, h.score) for h in again.recall(question)] == before
        again.close()


def test_u50_a_table_dropped_under_an_open_memory(open_memory: OpenMemory, url: str, back_end: str) -> None:
    """PostgreSQL tells at once and the driver mends it; a file is mended when it is opened next."""
    memory = open_memory(filter__enabled=False)
    _record(memory, 20)
    memory.settle()
    if back_end == "sqlite":
        memory.close()
    _drop(url, back_end, "vectors")
    memory = memory if back_end == "postgres" else open_memory(filter__enabled=False)
    assert memory.recall("apple tree number 7")[0].text.startswith("the apple tree number 7")
    memory.settle()
    assert [(s.vectors, s.missing) for s in memory.status().spaces] == [(20, 0)]


def _drop(url: str, back_end: str, table: str) -> None:
    if back_end == "postgres":
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP TABLE {table}")  # type: ignore[arg-type]
    else:
        import apsw

        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(f"DROP TABLE {table}")
        connection.close()
