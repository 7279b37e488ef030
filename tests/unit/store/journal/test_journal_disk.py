"""Disks that are full, fail, or may not be written: nothing is acknowledged that is not there, and it is said why."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import apsw
import pytest

from mnemic.errors import StorageError, StorageFull
from mnemic.store.journal import Entry, Journal

STORE = UUID(int=1)
SYNC_FAILED = (apsw.IOError, apsw.SQLITE_IOERR_FSYNC)
WRITE_FAILED = (apsw.IOError, apsw.SQLITE_IOERR_WRITE)
NO_SPACE = (apsw.FullError, apsw.SQLITE_FULL)


def entry(number: int, size: int = 20) -> Entry:
    body = b"%d" % number * size
    return Entry(number.to_bytes(16, "big"), "home", hashlib.sha256(body).digest(), body)


class Disk(apsw.VFS):
    """SQLite's own disk, whose writes and syncs are counted by (call, kind of file) and fail on demand."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.fails: dict[tuple[str, str], tuple[type[apsw.Error], int]] = {}
        self.errno = 0
        self.before = apsw.vfs_names()[0]
        super().__init__("disk", self.before, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> DiskFile:
        return DiskFile(self, name, flags)

    def xGetLastError(self) -> tuple[int, str]:
        return self.errno, os.strerror(self.errno)

    def hit(self, call: str, kind: str) -> None:
        self.calls[call, kind] += 1
        if (call, kind) in self.fails:
            kind_of_error, code = self.fails[call, kind]
            error = kind_of_error("injected")
            error.extendedresult = code
            raise error


class DiskFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self.disk = disk
        self.kind = "wal" if flags[0] & apsw.SQLITE_OPEN_WAL else "db"
        super().__init__(disk.before, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self.disk.hit("write", self.kind)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self.disk.hit("sync", self.kind)
        super().xSync(flags)


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.fails.clear()
    apsw.set_default_vfs(disk.before)
    disk.unregister()


@pytest.fixture
def journal(tmp_path: Path, disk: Disk) -> Iterator[Journal]:
    journal = Journal.open(tmp_path, STORE, "file")
    journal.append([entry(1)])
    yield journal
    disk.fails.clear()
    journal.close()


def reread(journal: Journal) -> list[int]:
    """The ids in the file as the next start finds them."""
    journal.close()
    with Journal.open(journal.path.parent, STORE) as again:
        assert again.verify().ok
        return [int.from_bytes(row.entry.id, "big") for row in again.read(0, 10_000)]


def test_one_acknowledgement_costs_one_sync(journal: Journal, disk: Disk) -> None:
    journal.submit(entry(2)).result()
    disk.calls.clear()
    for n in range(3, 23):
        journal.submit(entry(n)).result()
    assert disk.calls["sync", "wal"] == 20
    assert disk.calls["sync", "db"] == 0


def test_a_repeat_costs_none(journal: Journal, disk: Disk) -> None:
    disk.calls.clear()
    assert journal.submit(entry(1)).result() == 1
    assert disk.calls == {}


def test_those_who_wait_share_a_sync(journal: Journal, disk: Disk) -> None:
    blocker = apsw.Connection(str(journal.path), vfs=disk.before)
    blocker.execute("BEGIN IMMEDIATE")
    futures = [journal.submit(entry(2))]
    while not futures[0].running():
        pass
    futures += [journal.submit(entry(n)) for n in range(3, 515)]
    disk.calls.clear()
    blocker.execute("ROLLBACK")
    blocker.close()
    assert [future.result() for future in futures] == list(range(2, 515))
    assert disk.calls["sync", "wal"] == 3  # 1, then 256 and 256


@pytest.mark.parametrize("failure", [SYNC_FAILED, WRITE_FAILED], ids=["sync", "write"])
def test_after_a_failed_commit_nothing_more_is_acknowledged(
    journal: Journal, disk: Disk, failure: tuple[type[apsw.Error], int]
) -> None:
    disk.fails["sync" if failure is SYNC_FAILED else "write", "wal"] = failure
    with pytest.raises(StorageError, match=r"stopped after a failed write .*restart this process"):
        journal.submit(entry(2)).result()
    disk.fails.clear()
    with pytest.raises(StorageError, match="restart this process"):
        journal.submit(entry(3))
    with pytest.raises(StorageError, match="restart this process"):
        journal.append([entry(4)])
    assert [row.seq for row in journal.read(0)] == [1], "reading goes on"
    assert "restart" in journal.status().stopped
    disk.calls.clear()
    journal.close()
    assert disk.calls == {}, "a sync that failed is not tried again, not even by closing"
    assert 3 not in (ids := reread(journal)) and 4 not in ids and ids[0] == 1


def test_the_whole_batch_is_refused_when_its_commit_fails(journal: Journal, disk: Disk) -> None:
    disk.fails["sync", "wal"] = SYNC_FAILED
    futures = []
    for n in range(2, 50):
        try:
            futures.append(journal.submit(entry(n)))
        except StorageError:
            break
    assert futures
    assert {type(future.exception()) for future in futures} == {StorageError}


def test_a_full_disk_refuses_and_recovers_without_a_restart(journal: Journal, disk: Disk) -> None:
    disk.fails["write", "wal"] = NO_SPACE
    with pytest.raises(StorageFull, match="no space left"):
        journal.submit(entry(2)).result()
    with pytest.raises(StorageFull):
        journal.append([entry(3)])
    assert journal.head() == 1
    disk.fails.clear()
    assert journal.submit(entry(4)).result() == 2
    assert reread(journal) == [1, 4]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_quota_is_a_full_disk(journal: Journal, disk: Disk, number: int) -> None:
    disk.errno = number
    disk.fails["write", "wal"] = WRITE_FAILED
    with pytest.raises(StorageFull, match="no space left"):
        journal.append([entry(2)])
    disk.fails.clear()
    assert journal.append([entry(3)]) == [2]


def test_a_sync_that_fails_for_want_of_space_is_final_all_the_same(journal: Journal, disk: Disk) -> None:
    disk.errno = errno.ENOSPC
    disk.fails["sync", "wal"] = SYNC_FAILED
    with pytest.raises(StorageError, match="restart this process") as caught:
        journal.append([entry(2)])
    assert not isinstance(caught.value, StorageFull)


def test_a_failed_sync_of_a_checkpoint_stops_the_writer_but_loses_nothing(journal: Journal, disk: Disk) -> None:
    disk.fails["sync", "db"] = SYNC_FAILED
    journal.append([entry(n, 300) for n in range(2, 4_000)])  # more than 1,000 pages of -wal: next comes a checkpoint
    with pytest.raises(StorageError, match="restart this process"):
        journal.append([entry(5_000)])
    disk.fails.clear()
    assert len(reread(journal)) == 3_999


def test_the_wal_is_moved_into_the_file_as_it_grows(journal: Journal, disk: Disk) -> None:
    for first in range(2, 10_000, 1_000):
        journal.append([entry(n, 100) for n in range(first, first + 1_000)])
    wal = journal.path.with_name("journal.db-wal").stat().st_size
    assert wal < 12 * 1024 * 1024
    assert disk.calls["sync", "db"] >= 1
    assert journal.verify().rows == 10_001


def test_an_idle_journal_leaves_no_row_in_the_wal(
    journal: Journal, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemic.store.journal.group.IDLE_S", 0.01)
    assert journal.submit(entry(2)).result() == 2
    wal, deadline = journal.path.with_name("journal.db-wal"), time.monotonic() + 30
    while wal.stat().st_size:
        assert time.monotonic() < deadline
    assert journal.submit(entry(3)).result() == 3
    assert reread(journal) == [1, 2, 3]


CHILD = """
    import hashlib, json, os, resource, signal, sys
    from pathlib import Path
    from uuid import UUID
    from mnemic.errors import MnemicError
    from mnemic.store.journal import Entry, Journal

    def entry(number, size=20):
        body = b"%d" % number * size
        return Entry(number.to_bytes(16, "big"), "home", hashlib.sha256(body).digest(), body)

    def attempt(call):
        try:
            return call()
        except MnemicError as error:
            return [type(error).__name__, str(error)]

    folder, said = Path(sys.argv[1]), {}
"""


def child(folder: Path, script: str) -> dict[str, object]:
    """Runs `script` in a process of its own, where limits may be set and rights given up; returns what it `said`."""
    code = textwrap.dedent(CHILD) + textwrap.dedent(script) + "\nprint(json.dumps(said))"
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said: dict[str, object] = json.loads(done.stdout)
    return said


def test_a_file_size_limit_is_a_full_disk(tmp_path: Path) -> None:
    said = child(
        tmp_path,
        """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        journal = Journal.open(folder, UUID(int=1), "file")
        acknowledged = journal.append([entry(n) for n in range(1, 33)])
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        said["full"] = attempt(lambda: [journal.submit(entry(n, 1_000)).result() for n in range(100, 1_000)])
        said["head"] = journal.head()
        said["append"] = attempt(lambda: journal.append([entry(5_000, 10_000), entry(5_001, 50_000)]))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        said["later"] = journal.append([entry(9_999)])
        journal.close()
        """,
    )
    assert said["full"][0] == said["append"][0] == "StorageFull"  # type: ignore[index]
    head = said["head"]
    assert isinstance(head, int) and head > 32
    assert said["later"] == [head + 1]
    with Journal.open(tmp_path, STORE) as journal:
        assert journal.verify().ok
        assert journal.head() == head + 1


GIVE_UP_RIGHTS = "os.geteuid() == 0 and os.seteuid(65534)"


@pytest.fixture
def open_path(tmp_path: Path) -> Path:
    """A folder that a process without rights can reach."""
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        if parent.stat().st_uid == os.geteuid():
            parent.chmod(parent.stat().st_mode | 0o011)
    return tmp_path


def test_a_folder_that_may_not_be_written_is_said_to_be_so(open_path: Path) -> None:
    folder = open_path / "journal"
    folder.mkdir(mode=0o555)
    said = child(folder, f'{GIVE_UP_RIGHTS}; said["open"] = attempt(lambda: Journal.open(folder, UUID(int=1), "file"))')
    assert said["open"][0] == "StorageReadOnly"  # type: ignore[index]
    assert f"{folder / 'journal.db'} cannot be written by uid" in said["open"][1]  # type: ignore[index]
    assert list(folder.iterdir()) == []


def test_a_journal_that_may_only_be_read_is_said_to_be_so(open_path: Path) -> None:
    folder = open_path / "journal"
    with Journal.open(folder, STORE, "file") as journal:
        journal.append([entry(1)])
    before = (folder / "journal.db").read_bytes()
    (folder / "journal.db").chmod(0o444)
    folder.chmod(0o555)
    said = child(
        folder,
        f"""
        {GIVE_UP_RIGHTS}
        said["open"] = attempt(lambda: Journal.open(folder, UUID(int=1)))
        """,
    )
    assert said["open"][0] == "StorageReadOnly"  # type: ignore[index]
    folder.chmod(0o755)
    assert (folder / "journal.db").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["journal.db", "journal.key"]


def test_a_folder_in_place_of_the_file_names_path_and_uid(tmp_path: Path) -> None:
    (tmp_path / "journal.db").mkdir()
    with pytest.raises(StorageError, match=rf"journal\.db cannot be opened by uid {os.geteuid()}"):
        Journal.open(tmp_path, STORE, "file")


def test_a_forked_child_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    said = child(
        tmp_path,
        """
        journal = Journal.open(folder, UUID(int=1), "file")
        journal.append([entry(1)])
        reading, writing = os.pipe()
        if not (pid := os.fork()):
            answers = [attempt(lambda: journal.append([entry(2)])), attempt(journal.head),
                       attempt(lambda: journal.submit(entry(3)))]
            journal.close()
            os.write(writing, json.dumps(answers).encode())
            os._exit(0)
        os.waitpid(pid, 0)
        said["child"] = json.loads(os.read(reading, 10_000))
        said["parent"] = [journal.append([entry(4)]), journal.submit(entry(5)).result(), journal.head()]
        said["ok"] = journal.verify().ok
        journal.close()
        """,
    )
    assert [error for error, _ in said["child"]] == ["StorageError"] * 3  # type: ignore[attr-defined]
    assert all("before a fork" in message for _, message in said["child"])  # type: ignore[attr-defined]
    assert (said["parent"], said["ok"]) == ([[2], 3, 3], True)
