"""What the journal promises to those who write to it and read it back."""

from __future__ import annotations

import hashlib
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import apsw
import pytest

from mnemic.errors import Conflict, InvalidInput, StorageError, StorageLocked
from mnemic.store.journal import Anchor, Entry, Journal
from mnemic.store.journal.file import connect, require_sqlite

STORE = UUID(int=1)


def entry(number: int, text: str = "", namespace: str = "home") -> Entry:
    body = (text or f"text {number}").encode()
    return Entry(number.to_bytes(16, "big"), namespace, hashlib.sha256(body).digest(), body)


def reopen(journal: Journal) -> Journal:
    journal.close()
    return Journal.open(journal.path.parent, STORE, "file")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal", STORE, "file") as journal:
        yield journal


def test_what_was_submitted_is_read_back_in_order(journal: Journal) -> None:
    entries = [entry(n, "žluťoučký kůň " * n, "дом") for n in range(1, 40)]
    seqs = [future.result() for future in [journal.submit(each) for each in entries]]
    assert seqs == list(range(1, 40))
    rows = journal.read(0)
    assert [row.seq for row in rows] == seqs
    assert [row.entry for row in rows] == entries


def test_append_is_one_run_of_seqs_and_follows_what_was_submitted(journal: Journal) -> None:
    assert journal.submit(entry(1)).result() == 1
    assert journal.append([entry(2), entry(3)]) == [2, 3]
    assert journal.submit(entry(4)).result() == 4
    assert journal.append([]) == []


def test_reading_starts_after_a_seq_and_stops_at_the_limit(journal: Journal) -> None:
    journal.append([entry(n) for n in range(1, 11)])
    assert [row.seq for row in journal.read(0, 3)] == [1, 2, 3]
    assert [row.seq for row in journal.read(3, 3)] == [4, 5, 6]
    assert [row.seq for row in journal.read(9)] == [10]
    assert journal.read(10) == []
    assert journal.read(11) == []


def test_a_repeat_gets_the_first_seq(journal: Journal) -> None:
    assert journal.append([entry(1), entry(2), entry(1)]) == [1, 2, 1]
    assert journal.submit(entry(2)).result() == 2
    assert [f.result() for f in [journal.submit(entry(3)), journal.submit(entry(3))]] == [3, 3]
    again = reopen(journal)
    assert again.submit(entry(1)).result() == 1
    assert again.head() == 3
    again.close()


def test_other_content_under_the_same_id_fails_that_entry_alone(journal: Journal) -> None:
    futures = [journal.submit(e) for e in (entry(1), entry(1, "other"), entry(2))]
    assert futures[0].result() == 1
    with pytest.raises(Conflict, match="00000000-0000-0000-0000-000000000001"):
        futures[1].result()
    assert futures[2].result() == 2
    assert [row.entry for row in journal.read(0)] == [entry(1), entry(2)]


def test_append_with_a_conflict_writes_nothing(journal: Journal) -> None:
    journal.append([entry(1)])
    with pytest.raises(Conflict):
        journal.append([entry(2), entry(1, "other"), entry(3)])
    assert journal.head() == 1
    assert journal.append([entry(3)]) == [2]


def test_the_same_id_in_two_namespaces_is_two_events(journal: Journal) -> None:
    assert journal.append([entry(1), entry(1, "other", "work")]) == [1, 2]
    assert [row.entry.namespace for row in journal.read(0)] == ["home", "work"]


def test_a_journal_keeps_its_id_and_its_rows_when_it_is_opened_again(journal: Journal) -> None:
    journal.append([entry(1)])
    rows = journal.read(0)
    again = reopen(journal)
    assert (again.id, again.read(0), again.head()) == (journal.id, rows, 1)
    assert again.append([entry(2)]) == [2]
    assert again.verify().ok
    again.close()


def test_head_and_repeats_see_what_another_opener_committed(journal: Journal) -> None:
    assert journal.head() == 0
    with Journal.open(journal.path.parent, STORE) as other:
        assert other.id == journal.id
        other.append([entry(1), entry(2)])
        assert journal.head() == 2
        assert journal.append([entry(2), entry(3)]) == [2, 3]
        assert other.head() == 3
    assert journal.verify().ok


def test_many_threads_get_one_seq_each(journal: Journal) -> None:
    seqs: list[int] = []

    def write(first: int) -> None:
        seqs.extend(journal.submit(entry(n)).result() for n in range(first, first + 20))

    threads = [threading.Thread(target=write, args=(1 + 20 * n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seqs) == list(range(1, 321))
    assert {int.from_bytes(row.entry.id, "big") for row in journal.read(0)} == set(range(1, 321))
    assert journal.verify().ok


def test_close_answers_what_was_submitted_and_may_be_repeated(journal: Journal) -> None:
    futures = [journal.submit(entry(n)) for n in range(1, 500)]
    journal.close()
    journal.close()
    assert [future.result(timeout=0) for future in futures] == list(range(1, 500))
    with pytest.raises(StorageError, match="closed"):
        journal.submit(entry(500))
    with pytest.raises(StorageError, match="closed"):
        journal.head()
    again = reopen(journal)
    assert again.head() == 499
    again.close()


def test_a_cancelled_entry_is_not_written(journal: Journal) -> None:
    blocker = apsw.Connection(str(journal.path))
    blocker.execute("BEGIN IMMEDIATE")
    first = journal.submit(entry(1))
    while not first.running():
        pass
    second = journal.submit(entry(2))
    assert second.cancel()
    blocker.execute("ROLLBACK")
    blocker.close()
    assert first.result() == 1
    assert journal.append([entry(3)]) == [2]


def test_a_writer_that_never_lets_go_is_reported_after_the_bounded_wait(tmp_path: Path) -> None:
    with Journal.open(tmp_path, STORE, "file", busy_timeout_s=0.05) as journal:
        blocker = apsw.Connection(str(journal.path))
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageLocked, match=r"held by others for 0\.05 s"):
            journal.submit(entry(1)).result()
        with pytest.raises(StorageLocked):
            journal.append([entry(1)])
        blocker.execute("ROLLBACK")
        blocker.close()
        assert journal.submit(entry(1)).result() == 1


def test_an_empty_anchor_and_the_head_both_check(journal: Journal) -> None:
    journal.check(Anchor(0, b""))
    journal.append([entry(n) for n in range(1, 6)])
    journal.check(Anchor(0, b""))
    for row in journal.read(0):
        journal.check(Anchor(row.seq, row.chain))


def test_an_entry_of_the_wrong_shape_is_refused() -> None:
    for wrong in ((b"short", "home", b"d" * 32), (b"i" * 16, "home", b"d"), (b"i" * 16, "", b"d" * 32)):
        with pytest.raises(InvalidInput):
            Entry(*wrong, b"body")


def test_files_are_private_while_open_and_after(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "journal"
    with Journal.open(folder, STORE, "file") as journal:
        journal.append([entry(1)])
        names = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert names == dict.fromkeys(("journal.db", "journal.db-shm", "journal.db-wal", "journal.key"), 0o600)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_laxer_folder_or_file_is_tightened(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    Journal.open(folder, STORE, "file").close()
    folder.chmod(0o755)
    (folder / "journal.db").chmod(0o644)
    Journal.open(folder, STORE).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "journal.db").stat().st_mode) == 0o600


@pytest.mark.parametrize(("encrypt", "visible"), [(True, False), (False, True)])
def test_text_and_namespace_are_in_no_file_when_encrypted(tmp_path: Path, encrypt: bool, visible: bool) -> None:
    journal = Journal.open(tmp_path, STORE, "file", encrypt=encrypt)
    journal.append([entry(1, "the canary sings", "bird-house"), entry(2, "x" * 5_000)])
    journal.submit(entry(3, "canary again", "bird-house")).result()
    while_open = _copy_of_files(tmp_path)
    journal.close()
    for everything in (while_open, b"".join(path.read_bytes() for path in tmp_path.iterdir())):
        assert (b"canary" in everything) is visible
        assert (b"bird-house" in everything) is visible


def _copy_of_files(folder: Path) -> bytes:
    """Read by another process: closing a descriptor here would drop the locks of the open journal."""
    import subprocess
    import sys

    script = (
        "import sys, pathlib; [sys.stdout.buffer.write(p.read_bytes()) for p in pathlib.Path(sys.argv[1]).iterdir()]"
    )
    return subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, check=True).stdout


def test_sizes_show_only_in_steps_of_64_bytes(journal: Journal) -> None:
    journal.append([entry(n, "x" * n) for n in range(1, 200)])
    journal.close()
    raw = apsw.Connection(str(journal.path))
    sizes = {size for (size,) in raw.execute("SELECT length(ct) - 16 FROM journal")}
    raw.close()
    assert sizes == {64, 128, 192, 256}


def test_plain_rows_are_chained_and_said_to_be_plain(tmp_path: Path) -> None:
    with Journal.open(tmp_path, STORE, "file", encrypt=False) as journal:
        journal.append([entry(1), entry(2)])
        assert journal.read(0)[1].entry == entry(2)
        assert journal.status().encrypt is False
        assert "not encrypted" in journal.status().protects
    with Journal.open(tmp_path, STORE) as journal:
        assert journal.append([entry(1), entry(3)]) == [1, 3]
        found = journal.verify()
        assert (found.ok, found.rows, found.plain) == (True, 3, 2)


def test_status_says_where_how_much_and_which_key(journal: Journal) -> None:
    journal.append([entry(1), entry(2)])
    status = journal.status()
    assert (status.path, status.rows, status.head, status.encrypt) == (journal.path, 2, 2, True)
    assert (status.key_source, status.stopped) == ("file", "")
    assert status.bytes >= 4_096
    assert "without its key file" in status.protects


def test_verify_of_a_whole_file(journal: Journal) -> None:
    assert journal.verify().ok
    journal.append([entry(n) for n in range(1, 2_101)])
    found = journal.verify()
    assert (found.rows, found.first, found.last) == (2_100, 1, 2_100)
    assert (found.bad, found.gaps, found.chain_ok, found.pages_ok, found.plain) == ((), (), True, True, 0)


def test_connections_are_strict_and_sync_each_commit(journal: Journal) -> None:
    connection = connect(journal.path, 1.0)
    pragmas = {
        name: connection.pragma(name)
        for name in ("journal_mode", "synchronous", "secure_delete", "trusted_schema", "foreign_keys", "mmap_size")
    }
    connection.close()
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": 2,
        "secure_delete": 1,
        "trusted_schema": 0,
        "foreign_keys": 1,
        "mmap_size": 0,
    }


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE journal SET ct = x'00'",
        "DELETE FROM journal",
        "UPDATE meta SET store_id = zeroblob(16)",
        "DELETE FROM meta",
        "DELETE FROM keys",
        "INSERT INTO journal SELECT seq + 7, zeroblob(16), ns, kid, nonce, ct, chain FROM journal",
        "INSERT OR REPLACE INTO journal SELECT * FROM journal",
    ],
)
def test_the_engine_itself_refuses_to_change_rows(journal: Journal, change: str) -> None:
    journal.append([entry(1)])
    raw = apsw.Connection(str(journal.path))
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        raw.execute(change)
    raw.close()
    assert journal.verify().ok


@pytest.mark.parametrize("version", ["3.51.2", "3.40.1", "3.9.0"])
def test_an_old_sqlite_is_refused(version: str) -> None:
    with pytest.raises(StorageError, match=f"SQLite {version} can lose commits; 3.51.3 or newer"):
        require_sqlite(version)
    require_sqlite("3.51.3")
    require_sqlite("3.54.1")


def test_two_journals_have_two_ids(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "a", uuid4(), "file") as a, Journal.open(tmp_path / "b", uuid4(), "file") as b:
        assert a.id != b.id
