"""The SQLite file under the journal: made 0600, opened strictly, unlocked, its errors in the words of this package."""

from __future__ import annotations

import errno
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import apsw

from mnemic.errors import (
    JournalDamaged,
    JournalError,
    MnemicError,
    SchemaTooNew,
    StorageError,
    StorageFull,
    StorageLocked,
    StorageReadOnly,
    WrongKey,
)
from mnemic.store.journal import keys
from mnemic.store.journal.keys import from_os, new_file, whoami
from mnemic.store.journal.seal import Place, Seal

FILE = "journal.db"
FORMAT = 1
KID = 1  # one data key per file: a new key means a new file
OLDEST_SQLITE = (3, 51, 3)  # older ones can lose commits when two connections reset the -wal at the same time
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _load_queries() -> dict[str, str]:
    text = (Path(__file__).parent.parent / "sql" / "journal.sql").read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in text.split("-- name: ")[1:])
    return {name.strip(): sql for name, _, sql in parts}


SQL = _load_queries()


@dataclass(frozen=True, slots=True)
class Unlocked:
    """A journal whose key was found: its id, the seal for its rows, and which key that was (its id, not the key)."""

    journal: UUID
    store: UUID
    seal: Seal
    key_source: str
    key_id: bytes


def prepare(folder: Path) -> Path:
    """The journal's path in `folder`; both are made if missing, the folder 0700 and the file 0600.

    SQLite gives -wal and -shm the mode of the file they belong to, so no umask is touched.
    """
    path = folder / FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _keep_private(folder)
        if path.exists():
            _keep_private(path)
            return path
    except OSError as error:
        raise from_os(error, path) from error
    new_file(path, b"")
    return path


def connect(path: Path, busy_timeout_s: float) -> apsw.Connection:
    """A connection that waits for locks, syncs each commit and reads no schema it cannot trust."""
    require_sqlite(apsw.sqlite_lib_version())
    deadline = time.monotonic() + busy_timeout_s
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            wait_for_locks(connection, busy_timeout_s)
            _to_wal(connection, path, deadline)
            connection.execute(SQL["connect"]).fetchall()  # all of it: apsw stops at a row until it is taken
        except BaseException:
            connection.close()
            raise
    except apsw.Error as error:
        raise translate(error, path) from error
    return connection


def wait_for_locks(connection: apsw.Connection, timeout_s: float) -> None:
    """How long a locked file is waited for; 0: not at all.

    SQLite's own handler sleeps up to 100 ms a time, so that of several busy writers one may wait for seconds.
    """
    deadline = 0.0

    def again(attempts: int) -> bool:
        nonlocal deadline
        now = time.monotonic()
        if attempts == 0:
            deadline = now + timeout_s
        if now >= deadline:
            return False
        time.sleep(min(0.0002 + time.perf_counter_ns() % 1_024 / 1e6, deadline - now))  # 0.2 to 1.2 ms, uneven
        return True

    connection.set_busy_handler(again if timeout_s > 0 else None)


def unlock(connection: apsw.Connection, folder: Path, store: UUID | None, key: str, *, encrypt: bool) -> Unlocked:
    """Finds the key of the file, or gives a new file its ids and key.

    Errors: SchemaTooNew, JournalError (another store's file), WrongKey, JournalDamaged, those of `keys.find`. In all of
    these cases nothing has been written. A file that has rows never gets a new key: what is missing must be brought.
    """
    if not connection.execute(SQL["has_schema"]).get:
        if store is None:
            raise JournalError(f"{folder / FILE} is new: its first use needs the database to answer")
        _create(connection, folder, store, key)
    meta, row = connection.execute(SQL["meta"]).get, connection.execute(SQL["key"]).get
    if meta is None or row is None:
        raise JournalDamaged(f"{folder / FILE} has lost its header; run `mnemic doctor`")
    written, owner, journal = meta[0], UUID(bytes=meta[1]), UUID(bytes=meta[2])
    if written > FORMAT:
        raise SchemaTooNew(f"{folder / FILE} was written by a newer mnemic; upgrade this one")
    store = owner if store is None else store  # None: the database is down, and tells its id later
    if owner != store:
        raise JournalError(
            f"{folder / FILE} belongs to the store {owner}, not to {store}; move it back to its own folder"
        )
    kid, wrapped, kek_id, source = row
    kek = keys.find(folder, source if key == "auto" else key, store)
    if kek is None:
        where = source if key == "auto" else key
        raise WrongKey(f"the key {kek_id.hex()} of {folder / FILE} is not where it should be ({where}); bring it back")
    if kek.id != kek_id:
        raise WrongKey(f"{folder / FILE} needs the key {kek_id.hex()}, but {kek.source} holds {kek.id.hex()}")
    place = Place(store, journal, kid)
    seal = Seal(keys.unwrap(kek, wrapped, _bound(place)), place, encrypt=encrypt)
    return Unlocked(journal, owner, seal, kek.source, kek.id)


def require_sqlite(version: str) -> None:
    if tuple(map(int, version.split("."))) < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise StorageError(f"SQLite {version} can lose commits; {oldest} or newer is needed: pip install -U apsw")


def translate(error: apsw.Error, path: Path, system_errno: int = 0) -> MnemicError:
    """The error of this package for one of SQLite's. `system_errno`: of the call that failed below it, if known."""
    match error:
        case apsw.BusyError() | apsw.LockedError() | apsw.ProtocolError():
            return StorageLocked(f"{path} is held by another process; try again in a moment")
        case apsw.FullError():
            return StorageFull(f"no space left to write {path}; free some and try again")
        case apsw.IOError() if is_full(error, system_errno):
            return StorageFull(f"no space left to write {path}; free some and try again")
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StorageReadOnly(f"{path} cannot be written{whoami()}; check its permissions and its folder's")
        case apsw.CantOpenError():
            return StorageError(f"{path} cannot be opened{whoami()}; check its permissions and its folder's")
        case apsw.CorruptError() | apsw.NotADBError():
            return JournalDamaged(f"{path} is damaged ({error}); run `mnemic doctor`")
        case apsw.IOError():
            reason = os.strerror(system_errno) if system_errno else str(error)
            return StorageError(f"{path} could not be read or written: {reason}; check the disk")
    return StorageError(f"{path}: {error}")


def is_full(error: apsw.Error, system_errno: int) -> bool:
    """Whether a *write* found no room (a quota, a size limit). A failed sync is never taken for that: it is final."""
    writes = (apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_TRUNCATE)
    return isinstance(error, apsw.FullError) or (
        getattr(error, "extendedresult", 0) in writes and system_errno in _FULL
    )


def _to_wal(connection: apsw.Connection, path: Path, deadline: float) -> None:
    while True:
        try:
            mode = connection.execute(SQL["wal"]).get
        except apsw.BusyError:  # two first starts at once: SQLite does not wait when it changes the mode
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.005)
            continue
        if connection.readonly("main"):
            raise StorageReadOnly(f"{path} cannot be written{whoami()}; check its permissions and its folder's")
        if mode != "wal":
            raise StorageError(f"{path} lies on a file system without shared memory; use a local disk")
        return


def _create(connection: apsw.Connection, folder: Path, store: UUID, key: str) -> None:
    """In one transaction, so that of several first starts one makes the key and the others find it."""
    connection.execute(SQL["begin"])
    try:
        if not connection.execute(SQL["has_schema"]).get:
            kek = keys.find(folder, key, store) or keys.make(folder, key, store)
            place = Place(store, uuid4(), KID)
            wrapped = keys.wrap(kek, os.urandom(32), _bound(place))
            connection.execute(SQL["schema"])
            connection.execute(SQL["add_meta"], (FORMAT, store.bytes, place.journal.bytes))
            connection.execute(SQL["add_key"], (KID, wrapped, kek.id, kek.source))
        connection.execute(SQL["commit"])
    except BaseException:
        if connection.in_transaction:
            connection.execute(SQL["rollback"])
        raise


def _bound(place: Place) -> bytes:
    return place.store.bytes + place.journal.bytes + place.kid.to_bytes(4, "big") + b"journal"


def _keep_private(path: Path) -> None:
    status = path.stat()
    if os.name == "posix" and stat.S_IMODE(status.st_mode) & 0o077 and status.st_uid == os.geteuid():
        path.chmod(stat.S_IMODE(status.st_mode) & 0o700)
