"""What happens when rows are damaged, tables are gone, or the store is held: nothing that was said is lost."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from mnemic import Memory
from mnemic.errors import SchemaTooNew, StorageDamaged, StorageError, StorageReadOnly
from tests.fakes import FakeEmbedder

QUIET = {"worker.enabled": False}
TEXTS = ["The red fox sleeps under the barn", "The grey heron fishes in the pond", "The brown bear eats all the honey"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Memory.open(home=tmp_path, embedder=FakeEmbedder(), settings=QUIET) as memory:
        for text in TEXTS:
            memory.record(text, data={"n": 1})
        memory.settle()
    return tmp_path


def reopened(home: Path) -> Memory:
    return Memory.open(home=home, embedder=FakeEmbedder(), settings=QUIET)


def damage(home: Path, *statements: str) -> None:
    connection = apsw.Connection(str(home / "mnemic.db"))
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


def test_u49_one_bad_record_stops_nothing(home: Path) -> None:
    damage(
        home,
        "UPDATE events SET data = '{\"n\": ' WHERE seq = 1",
        "UPDATE vectors SET vector = x'0102' WHERE chunk = 2",
        "UPDATE chunks SET terms = x'010203' WHERE id = 3",
    )
    with reopened(home) as memory:
        assert [e.text for e in memory.events()] == TEXTS
        assert memory.get(1).data == {"damaged": True}
        assert memory.recall("fox barn")[0].text == TEXTS[0]
        assert memory.recall("heron pond")[0].text == TEXTS[1]


@pytest.mark.parametrize("table", ["vectors", "chunks", "chunk_topics", "topics"])
def test_u50_a_dropped_view_is_derived_again(home: Path, table: str) -> None:
    with reopened(home) as memory:
        topics = memory.topics()
    damage(home, f"DROP TABLE {table}")
    with reopened(home) as memory:
        memory.settle()
        assert [memory.recall(text)[0].text for text in TEXTS] == TEXTS
        assert memory.topics() == topics
        status = memory.status()
        assert (status.events, status.chunks, status.spaces[0].vectors) == (3, 3, 3)


def test_u47_reading_needs_no_write_lock(home: Path) -> None:
    holder = apsw.Connection(str(home / "mnemic.db"))
    holder.execute("BEGIN IMMEDIATE").fetchall()
    try:
        with reopened(home) as memory:
            for _ in range(100):
                assert memory.recall("fox barn")[0].text == TEXTS[0]
            memory.record("Recorded while the store is held by another")
            answer = memory.recall("held by another")
            assert answer.pending == 1
            assert "not searchable yet" in answer.notices[0]
            holder.execute("ROLLBACK").fetchall()
            assert memory.recall("held by another")[0].text == "Recorded while the store is held by another"
    finally:
        holder.close()


def test_u112_a_newer_schema_is_refused_and_not_touched(home: Path) -> None:
    damage(home, "PRAGMA user_version = 999")
    before = (home / "mnemic.db").read_bytes()
    with pytest.raises(SchemaTooNew, match="schema 999"):
        reopened(home)
    assert (home / "mnemic.db").read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mnemic.db").write_bytes(b"this is a diary, not a database" * 100)
    with pytest.raises(StorageDamaged, match=r"mnemic\.db is damaged or no mnemic store"):
        reopened(tmp_path)
    assert (tmp_path / "mnemic.db").read_bytes().startswith(b"this is a diary")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises((StorageError, StorageReadOnly)) as error:
        Memory.open(home=tmp_path / "file" / "home", embedder=FakeEmbedder())
    assert str(tmp_path / "file") in str(error.value)


def test_files_belong_to_their_owner_alone(home: Path) -> None:
    modes = {p.relative_to(home).as_posix(): p.stat().st_mode & 0o777 for p in home.rglob("*")}
    assert {mode for path, mode in modes.items() if not (home / path).is_dir()} == {0o600}
    assert {mode for path, mode in modes.items() if (home / path).is_dir()} == {0o700}


def test_backup_while_writing_is_whole(home: Path, tmp_path: Path) -> None:
    target, stop = tmp_path / "copy.db", threading.Event()

    def write(memory: Memory) -> None:
        n = 0
        while not stop.is_set():
            memory.record(f"Background sentence number {n}")
            n += 1

    with reopened(home) as memory:
        writer = threading.Thread(target=write, args=(memory,))
        writer.start()
        memory.backup(str(target))
        stop.set()
        writer.join()
    copy = apsw.Connection(str(target))
    assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert copy.execute("SELECT text FROM events WHERE seq <= 3 ORDER BY seq").fetchall() == [(t,) for t in TEXTS]
    copy.close()
    assert target.stat().st_mode & 0o777 == 0o600


def test_two_memories_on_one_file_see_each_other(home: Path) -> None:
    with reopened(home) as one, reopened(home) as two:
        one.record("Said through the first door")
        assert two.recall("first door")[0].text == "Said through the first door"
        two.record("Said through the second door")
        two.settle()
        assert one.recall("second door")[0].text == "Said through the second door"
        assert one.status().spaces == two.status().spaces
        assert (one.status().events, one.status().spaces[0].vectors) == (5, 5)
