"""The SQLite driver: apsw, WAL, `synchronous=FULL`, one writer and a few readers.

Every write transaction is BEGIN IMMEDIATE: a deferred one that upgrades fails at once under contention. Reads never
write. A read that outlives its deadline is interrupted by the progress handler. SQLite below 3.51.3 is refused: its
write-ahead log can lose a commit in a rare race (fixed there).
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw

from mnemic.config import StoreConfig
from mnemic.errors import (
    ConfigError,
    DeadlineExceeded,
    SchemaTooNew,
    StorageDamaged,
    StorageError,
    StorageFull,
    StorageLocked,
    StorageReadOnly,
)
from mnemic.store.driver import Params, Row, Tx, migrations, named_queries

T = TypeVar("T")
FLOOR = (3, 51, 3)
MECHANICS = {"chunks", "vectors", "chunk_topics", "topics"}  # tables that migration 2 can make again from the events
_STEPS_BETWEEN_CHECKS = 20_000  # virtual machine steps between looks at the clock, about 1 ms


class Deadline:
    """Interrupts a statement that takes too long, by SQLite's progress handler; each statement has its own time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def begin(self) -> None:
        self._end = time.monotonic() + self._seconds

    @contextlib.contextmanager
    def on(self, connection: apsw.Connection) -> Iterator[None]:
        connection.set_progress_handler(lambda: time.monotonic() > self._end, _STEPS_BETWEEN_CHECKS)
        try:
            yield
        finally:
            connection.set_progress_handler(None)


class SqliteTx:
    """Named queries on one connection."""

    def __init__(self, connection: apsw.Connection, deadline: Deadline | None = None) -> None:
        self._connection = connection
        self._deadline = deadline
        self._queries = named_queries("sqlite.sql")

    def fetch(self, query: str, params: Params | None = None) -> list[Row]:
        if self._deadline is not None:
            self._deadline.begin()
        return self._connection.execute(self._queries[query], params or {}).fetchall()

    def execute(self, query: str, params: Params | None = None) -> int:
        self._connection.execute(self._queries[query], params or {}).fetchall()
        return self._connection.changes()

    def execute_many(self, query: str, rows: Iterable[Params]) -> None:
        self._connection.executemany(self._queries[query], rows)

    def scope(self, namespace: str) -> None:
        """Nothing to do: in one person's file the namespace is a column like any other."""


class SqliteDriver:
    """A store in one file, or in memory (`sqlite:///:memory:`, which is a single connection)."""

    dialect = "sqlite"

    def __init__(self, path: str, config: StoreConfig) -> None:
        if tuple(map(int, apsw.sqlite_lib_version().split("."))) < FLOOR:
            raise StorageError(f"SQLite {apsw.sqlite_lib_version()} is too old (need 3.51.3): pip install -U apsw")
        self.path = path
        self._config = config
        self._closed = False
        self._write_lock = threading.Lock()
        self._readers: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()
        self._reader_count = 0
        self._count_lock = threading.Lock()
        with _translated(path):
            fresh = self._prepare_file()
            self._writer = self._connect()
            self._migrate(fresh)

    @property
    def in_memory(self) -> bool:
        return self.path == ":memory:"

    # -- transactions

    def read(self, namespace: str, work: Callable[[Tx], T]) -> T:
        if self.in_memory:
            return self.write(namespace, work)
        deadline = Deadline(self._config.query_deadline_ms / 1000)
        with _translated(self.path), self._reader() as connection, deadline.on(connection):
            connection.execute("BEGIN").fetchall()
            try:
                return work(SqliteTx(connection, deadline))
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK").fetchall()

    def write(self, namespace: str, work: Callable[[Tx], T], *, wait: bool = True) -> T:
        with _translated(self.path), self._exclusive(wait) as connection:
            connection.execute("BEGIN IMMEDIATE").fetchall()
            try:
                result = work(SqliteTx(connection))
                connection.execute("COMMIT").fetchall()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK").fetchall()
                raise
            return result

    @contextlib.contextmanager
    def _exclusive(self, wait: bool) -> Iterator[apsw.Connection]:
        timeout = self._config.busy_timeout_ms / 1000
        if not self._write_lock.acquire(blocking=wait, timeout=timeout * 4 if wait else -1):
            raise StorageLocked("another thread is writing; try again in a moment")
        try:
            if self._closed:
                raise StorageError("this memory is closed")
            self._writer.set_busy_timeout(self._config.busy_timeout_ms if wait else 0)
            yield self._writer
        finally:
            self._write_lock.release()

    @contextlib.contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        connection = self._take_reader()
        try:
            yield connection
        finally:
            self._readers.put(connection)

    def _take_reader(self) -> apsw.Connection:
        if self._closed:
            raise StorageError("this memory is closed")
        try:
            return self._readers.get_nowait()
        except queue.Empty:
            with self._count_lock:
                may_open = self._reader_count < self._config.readers
                self._reader_count += may_open
            if not may_open:
                return self._readers.get()
            connection = self._connect()
            connection.execute("PRAGMA query_only=ON").fetchall()
            return connection

    # -- opening

    def _prepare_file(self) -> bool:
        """Make the folder 0700 and the file 0600 (SQLite gives its -wal and -shm the same rights)."""
        if self.in_memory:
            return True
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            return path.stat().st_size == 0
        return True

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(self.path)
        connection.set_busy_timeout(self._config.busy_timeout_ms)
        for pragma in ("synchronous=FULL", "secure_delete=ON", "trusted_schema=OFF", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.execute("PRAGMA cache_size=-16384").fetchall()
        return connection

    def _migrate(self, fresh: bool) -> None:
        """Bring the schema up to date; an existing store is copied beside itself first."""
        known = migrations(self.dialect)
        version = self._version()
        if version > known[-1][0]:
            raise SchemaTooNew(
                f"{self.path} has schema {version}, this mnemic knows {known[-1][0]}: pip install -U mnemic"
            )
        if version == known[-1][0]:
            self._restore_mechanics(dict(known)[2])
            return
        if not self.in_memory and self._pragma("journal_mode") != "wal":
            self._writer.execute("PRAGMA journal_mode=WAL").fetchall()
        if version:
            self.backup(f"{self.path}.schema-{version}.bak")
        self._writer.execute("BEGIN IMMEDIATE").fetchall()
        try:
            for number, script in known:
                if number > self._version():  # another process may have migrated while we waited
                    self._writer.execute(script).fetchall()
                    self._writer.execute(f"PRAGMA user_version={number}").fetchall()
            self._writer.execute("COMMIT").fetchall()
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK").fetchall()
            raise

    def _restore_mechanics(self, script: str) -> None:
        """A dropped derived table is made again, empty; the worker fills it from the events."""
        names = {row[0] for row in self._writer.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not names >= MECHANICS:
            self._writer.execute("BEGIN IMMEDIATE").fetchall()
            self._writer.execute(script).fetchall()
            self._writer.execute("COMMIT").fetchall()

    def _version(self) -> int:
        return int(self._pragma("user_version"))

    def _pragma(self, name: str) -> Any:
        return self._writer.execute(f"PRAGMA {name}").fetchall()[0][0]

    # -- keeping

    def backup(self, target: str) -> None:
        """A consistent copy while others read and write. The target is written whole or not at all."""
        part = Path(f"{target}.part")
        with _translated(target):
            part.unlink(missing_ok=True)
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            copy = apsw.Connection(str(part))
            source = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READONLY) if not self.in_memory else self._writer
            try:
                with copy.backup("main", source, "main") as job:
                    while not job.done:
                        job.step(2_000)
            finally:
                copy.close()
                if source is not self._writer:
                    source.close()
            part.replace(target)

    def check(self) -> Sequence[str]:
        with _translated(self.path), self._reader() as connection:
            rows = connection.execute("PRAGMA quick_check(20)").fetchall()
        return [str(row[0]) for row in rows if row[0] != "ok"]

    def advice(self) -> Sequence[str]:
        return ()

    def size_bytes(self) -> int:
        if self.in_memory:
            return 0
        return sum(p.stat().st_size for p in map(Path, (self.path, f"{self.path}-wal")) if p.exists())

    def close(self) -> None:
        with self._write_lock:
            if self._closed:
                return
            self._closed = True
            for _ in range(self._reader_count):
                self._readers.get().close()
            with contextlib.suppress(apsw.Error):  # tidying: another process may be reading the log
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            self._writer.close()


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    """SQLite's errors as ours, each saying what to do."""
    try:
        yield
    except apsw.InterruptError as error:
        raise DeadlineExceeded(f"a query on {path} took too long and was stopped (store.query_deadline_ms)") from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StorageLocked(f"{path} is held by another process; try again in a moment") from error
    except apsw.FullError as error:
        raise StorageFull(f"no space left for {path}; free some and try again, nothing was half written") from error
    except apsw.ReadOnlyError as error:
        raise StorageReadOnly(f"{path} cannot be written by uid {_uid()}; check its permissions") from error
    except apsw.CantOpenError as error:
        raise StorageError(f"{path} cannot be opened by uid {_uid()}: does its folder exist, may you write?") from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StorageDamaged(f"{path} is damaged or no mnemic store: {error}; `mnemic restore` a backup") from error
    except (apsw.IOError, apsw.Error) as error:
        raise StorageError(f"{path}: {error}") from error
    except PermissionError as error:
        raise StorageReadOnly(f"{error.filename or path} cannot be written by uid {_uid()}") from error
    except OSError as error:
        raise StorageError(f"{error.filename or path}: {error.strerror}") from error


def _uid() -> int | str:
    return os.getuid() if hasattr(os, "getuid") else "?"


def open_sqlite(url: str, config: StoreConfig) -> SqliteDriver:
    """`sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite:///:memory:`. Errors: ConfigError, StorageError."""
    path = url.removeprefix("sqlite://")
    if not path.startswith("/") or len(path) < 2:
        raise ConfigError(f"store.url {url!r}: expected sqlite:///path/to/file.db")
    path = path[1:]
    return SqliteDriver(path if path == ":memory:" else str(Path(path).absolute()), config)
