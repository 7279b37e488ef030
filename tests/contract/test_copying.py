"""`mnemic db copy`: from any database into any other, everything, as it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from mnemic.domain.drafts import Draft
from mnemic.errors import StorageError
from mnemic.store import copying
from tests.conftest import OpenMemory, open_store
from tests.contract.corpus import QUESTIONS, conversation
from tests.fakes import FakeEmbedder

OWN = {"meta", "anchors", "leases"}  # belong to a store and its nodes, not to what it holds
DIRECTIONS = [("sqlite", "postgres"), ("postgres", "sqlite")]


def contents(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, by the catalogue: a new table or column that is not copied shows here."""
    if url.startswith("sqlite"):
        file = apsw.Connection(url.removeprefix("sqlite:///"))
        names = [r[0] for r in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables = {
            n: [
                dict(zip((d[0] for d in c.description), r, strict=True))
                for c in [file.cursor()]
                for r in c.execute(f"SELECT * FROM {n}")
            ]
            for n in names
        }
        file.close()
    else:
        with psycopg.connect(url.replace("mnemic@", "postgres@"), row_factory=psycopg.rows.dict_row) as server:
            listed = server.execute(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            )
            names = [r["relname"] for r in listed.fetchall()]
            tables = {n: server.execute(f"SELECT * FROM {n}").fetchall() for n in names}  # type: ignore[arg-type]
    return {name: sorted(map(_plain, rows), key=repr) for name, rows in tables.items() if name not in OWN}


def _plain(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Columns by name. Vectors are compared by length here and by the answers below; epochs move on their own."""
    kept = {k: v for k, v in row.items() if k not in ("epoch", "vector")}
    return tuple((k, bytes(v) if isinstance(v, memoryview) else v) for k, v in sorted(kept.items()))


@pytest.mark.parametrize(("from_", "to"), DIRECTIONS)
def test_a_copy_holds_everything_and_answers_the_same(
    both: Mapping[str, str], open_memory: OpenMemory, tmp_path: Path, from_: str, to: str
) -> None:
    memory = open_memory(both[from_])
    memory.record_many(conversation())
    other = open_memory(both[from_], namespace="other")
    other.record("of somebody else, and with a \U0001f600", data={"k": [1, None]})
    memory.settle()
    wanted = [(h.event.id, h.score) for q in QUESTIONS for h in memory.recall(q)]
    memory.usage()
    for opened in (memory, other):
        opened.close()
    source, target = open_store(both[from_]), open_store(both[to])
    told: list[copying.Copied] = []
    assert copying.copy(source.driver, target.driver, told.append) == told
    assert [(c.namespace, c.events) for c in told] == [("default", 200), ("other", 1)]
    assert contents(both[to]) == contents(both[from_])
    assert source.upkeep.identity() != target.upkeep.identity()
    copying.copy(source.driver, target.driver)
    assert contents(both[to]) == contents(both[from_])
    source.close()
    target.close()
    copy = open_memory(both[to], home=tmp_path / "copy")
    assert [(h.event.id, h.score) for q in QUESTIONS for h in copy.recall(q)] == [
        (i, pytest.approx(s, abs=1e-6)) for i, s in wanted
    ]
    copy.record("the log goes on")
    assert [e.seq for e in copy.events(after=199)] == [200, 201]


def test_an_interrupted_copy_is_taken_up_again(
    both: Mapping[str, str], open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = open_memory(both["sqlite"])
    memory.record_many(conversation())
    memory.settle()
    source, target = open_store(both["sqlite"]), open_store(both["postgres"])
    monkeypatch.setattr(copying, "BATCH", 30)
    put, calls = copying._put, iter(range(3))

    def failing(*arguments: Any) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        put(*arguments)

    monkeypatch.setattr(copying, "_put", failing)
    with pytest.raises(KeyboardInterrupt):
        copying.copy(source.driver, target.driver)
    assert 0 < len(contents(both["postgres"])["chunks"]) < len(contents(both["sqlite"])["chunks"])
    monkeypatch.setattr(copying, "_put", put)
    copying.copy(source.driver, target.driver)
    memory.record_many(Draft(f"said after the first copy, {n}") for n in range(40))
    memory.settle()
    copying.copy(source.driver, target.driver)
    assert contents(both["postgres"]) == contents(both["sqlite"])
    source.close()
    target.close()


@pytest.mark.parametrize(("from_", "to"), DIRECTIONS)
def test_a_store_of_its_own_is_never_copied_over(
    both: Mapping[str, str], open_memory: OpenMemory, from_: str, to: str
) -> None:
    for name in (from_, to):
        memory = open_memory(both[name], embedder=FakeEmbedder())
        memory.record(f"the text in {name}")
        memory.events()
    source, target = open_store(both[from_]), open_store(both[to])
    with pytest.raises(StorageError, match="holds another store"):
        copying.copy(source.driver, target.driver)
    assert [row for row in contents(both[to])["events"] if ("text", f"the text in {to}") in row]
    source.close()
    target.close()
