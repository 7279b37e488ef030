"""The journal: what was recorded is durable here before anybody is told so.

One sealed row per event in an SQLite file of its own. An acknowledgement means that a COMMIT at synchronous=FULL has
returned. Rows are only ever appended; `seq` is their order. Once applied, the store is the truth: this is a spool.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from typing import Any
from uuid import UUID

import apsw

from mnemic.errors import Conflict, JournalDamaged, MnemicError, StorageError, StorageLocked
from mnemic.store.journal import keys
from mnemic.store.journal.file import SQL, Unlocked, connect, is_full, prepare, translate, unlock, wait_for_locks
from mnemic.store.journal.group import Group, Outcome
from mnemic.store.journal.seal import Entry, Row, Stored, fresh_nonces

CHECKPOINT_PAGES = 1_000  # 4 MB of -wal
PAGE_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Anchor:
    """What the store says it has applied: the last row's seq and chain; seq 0 and b"" for nothing."""

    seq: int
    chain: bytes


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found. `bad`: seqs that do not open or do not follow. `gaps`: missing seqs, both ends included."""

    rows: int
    first: int
    last: int
    bad: tuple[int, ...]
    gaps: tuple[tuple[int, int], ...]
    chain_ok: bool
    pages_ok: bool
    plain: int

    @property
    def ok(self) -> bool:
        return self.chain_ok and self.pages_ok and not self.bad and not self.gaps


@dataclass(frozen=True, slots=True)
class Status:
    """For `doctor`. `encrypt`: whether new rows are sealed; `protects`: what the key keeps out, in a sentence."""

    path: Path
    rows: int
    head: int
    bytes: int
    key_source: str
    key_id: str
    protects: str
    encrypt: bool
    stopped: str


class Journal:
    """Thread-safe and blocking. Any number of processes may have the same journal open and append to it."""

    id: UUID

    def __init__(self, path: Path, connection: apsw.Connection, unlocked: Unlocked, busy_timeout_s: float) -> None:
        """Use `Journal.open`."""
        self.id = unlocked.journal
        self.store = unlocked.store
        self.path = path
        self._unlocked = unlocked
        self._seal = unlocked.seal
        self._busy_timeout_s = busy_timeout_s
        self._writer = connection
        self._reader: apsw.Connection | None = None
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._group = Group(self._commit_group, self._settle_file, busy_timeout_s)
        self._pid = os.getpid()
        self._stopped = ""  # why nothing more may be written, once a sync has failed
        self._closed = False
        self._wal_pages = 0
        self._checkpoint_at = CHECKPOINT_PAGES
        connection.set_wal_hook(self._after_commit)  # takes the place of SQLite's own, which hides a failed sync

    @classmethod
    def open(
        cls,
        folder: Path,
        store_id: UUID | None,
        key: str = "auto",
        *,
        busy_timeout_s: float = 5.0,
        encrypt: bool = True,
    ) -> Journal:
        """The journal in `folder` (0700), made if there is none; `key`: "auto", "file", "keyring" or "env:NAME".

        Errors: WrongKey, JournalError (another store's; key file not private), JournalDamaged, ConfigError (key
        source), StorageReadOnly, StorageLocked, StorageFull, StorageError. None of them has changed what is
        recorded.
        """
        path = prepare(folder)
        connection = connect(path, busy_timeout_s)
        try:
            unlocked = unlock(connection, folder, store_id, key, encrypt=encrypt)
        except BaseException as error:
            reason = translate(error, path, connection.system_errno) if isinstance(error, apsw.Error) else None
            connection.close()
            if reason is not None:
                raise reason from error
            raise
        return cls(path, connection, unlocked, busy_timeout_s)

    def submit(self, entry: Entry) -> Future[int]:
        """Queues one entry; the future gives its seq once it is durable. Entries of several callers share a commit.

        The future fails with Conflict (same id, other digest; nothing of it is written), StorageLocked, StorageFull or
        StorageError. Raised here: StorageLocked when the queue stays full, StorageError when closed or stopped.
        """
        self._usable()
        if self._stopped:
            raise StorageError(self._stopped)
        return self._group.submit(entry)

    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Writes all entries in order in one transaction, or none, and returns their seqs once they are durable.

        A repeated id with the same digest gets the seq of its first. Errors: Conflict, as `submit`'s.
        """
        self._usable()
        return [_seq(outcome) for outcome in self._write(entries, whole=True)] if entries else []

    def head(self) -> int:
        """The last committed seq, of any process; 0 when empty."""
        return int(self._fetch("head", ())[0][0])

    def read(self, after: int, limit: int = PAGE_ROWS) -> list[Row]:
        """Up to `limit` verified rows with seq > `after`, in order. Empty only if there are none.

        Ends early before a row that does not verify; if that would be the first, raises JournalDamaged naming it.
        """
        start = max(after, 0)
        stored = [Stored(*row) for row in self._fetch("rows_from", (start or 1, limit + bool(start)))]
        if not stored:
            return []
        if start and stored[0].seq != start:
            raise JournalDamaged(_missing(start, stored[0].seq - 1))
        chain = stored.pop(0).chain if start else self._seal.genesis
        rows: list[Row] = []
        for row in stored:
            try:
                rows.append(self._verified(row, start + len(rows), chain))
            except MnemicError:
                if not rows:
                    raise
                break
            chain = row.chain
        return rows

    def check(self, anchor: Anchor) -> None:
        """That everything the store has applied is still here unaltered, and that no row after it is missing.

        Errors: JournalDamaged naming the range.
        """
        head = self.head()
        if head < anchor.seq:
            raise JournalDamaged(_missing(head + 1, anchor.seq))
        if anchor.seq:
            found = self._fetch("chain_at", (anchor.seq,))
            if not found:
                raise JournalDamaged(_missing(anchor.seq, anchor.seq))
            if not compare_digest(found[0][0], anchor.chain):
                raise JournalDamaged(
                    f"journal events 1-{anchor.seq} are not those the store has applied; run `mnemic doctor`"
                )
        for before, after in self._fetch("gap_after", (anchor.seq,)):
            raise JournalDamaged(_missing(before + 1, after - 1))

    def verify(self) -> Verification:
        """Reads all: opens every row, follows the chain, checks SQLite's pages. Raises only if it cannot read."""
        bad: list[int] = []
        gaps: list[tuple[int, int]] = []
        rows = first = last = plain = 0
        chain_ok, chain = True, self._seal.genesis
        for row in self._all_rows():
            if row.seq != last + 1:
                gaps.append((last + 1, row.seq - 1))
                chain_ok = False
            elif not self._seal.follows(row, chain):
                bad.append(row.seq)
                chain_ok = False
            if not self._opens(row) and row.seq not in bad[-1:]:
                bad.append(row.seq)
            rows, first, last, chain = rows + 1, first or row.seq, row.seq, row.chain
            plain += not row.nonce
        pages_ok = self._fetch("quick_check", ()) == [("ok",)]
        return Verification(rows, first, last, tuple(bad), tuple(gaps), chain_ok, pages_ok, plain)

    def status(self) -> Status:
        files = (self.path.with_name(self.path.name + tail) for tail in ("", "-wal", "-shm"))
        size = sum(file.stat().st_size for file in files if file.exists())
        source, key_id = self._unlocked.key_source, self._unlocked.key_id
        protects = keys.protects(source)
        if not self._seal.encrypt:
            protects = "new rows are not encrypted: their text is readable in the file; changes to them still show"
        rows = int(self._fetch("count", ())[0][0])
        return Status(
            self.path, rows, self.head(), size, source, key_id.hex(), protects, self._seal.encrypt, self._stopped
        )

    def close(self) -> None:
        """Commits and answers what was submitted, then lets go of the file. Idempotent. A forked child lets go only."""
        if self._pid != os.getpid():
            return
        self._group.close()
        with self._writing, self._reading:
            if not self._closed:
                self._closed = True
                if self._reader is not None:
                    self._reader.close()
                self._writer.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- writing: every path ends in _write, under one lock

    def _commit_group(self, entries: Sequence[Entry]) -> list[Outcome]:
        return self._write(entries, whole=False)

    def _write(self, entries: Sequence[Entry], *, whole: bool) -> list[Outcome]:
        """One transaction. `whole`: a Conflict is raised and nothing is written, else it is that entry's outcome."""
        with self._writing:
            if self._wal_pages >= self._checkpoint_at:  # before, not after: nobody waits for it who has been written
                self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
            if self._stopped or self._closed:
                raise StorageError(self._stopped or "the journal is closed; open it again")
            try:
                self._writer.execute(SQL["begin"])
                outcomes = self._add_all(entries, whole=whole)
                self._writer.execute(SQL["commit"])
            except BaseException as error:
                self._undo(error)
                if isinstance(error, apsw.Error):
                    raise self._translated(error) from error
                raise
        return outcomes

    def _add_all(self, entries: Sequence[Entry], *, whole: bool) -> list[Outcome]:
        seq, chain = self._writer.execute(SQL["last"]).get or (0, self._seal.genesis)
        outcomes: list[Outcome] = []
        execute, changes, seal, add = self._writer.execute, self._writer.changes, self._seal.seal, SQL["add"]
        for entry, nonce in zip(entries, fresh_nonces(len(entries)), strict=True):
            row = seal(seq + 1, entry, chain, nonce)
            execute(add, row)
            if changes():
                seq, chain = row.seq, row.chain
                outcomes.append(seq)
                continue
            outcome = self._first(entry, row.ns)
            if whole and isinstance(outcome, MnemicError):
                raise outcome
            outcomes.append(outcome)
        return outcomes

    def _first(self, entry: Entry, ns: bytes) -> Outcome:
        """What a repeated id gets: the seq of its first, or the error that this entry alone fails with."""
        row = Stored(*self._writer.execute(SQL["first_with_id"], (ns, entry.id)).get)
        try:
            first = self._seal.open(row)
        except MnemicError as error:
            return error
        if compare_digest(first.digest, entry.digest):
            return row.seq
        return Conflict(f"the id {UUID(bytes=entry.id)} was recorded before with other content; use a new id")

    def _undo(self, error: BaseException) -> None:
        """Rolls back. After a failed write or sync nobody knows what the disk holds: no further commit is tried."""
        if isinstance(error, apsw.IOError) and not is_full(error, self._writer.system_errno):
            self._stop(error)
        try:
            if self._writer.in_transaction:
                self._writer.execute(SQL["rollback"])
        except apsw.Error as second:
            self._stop(second)

    def _stop(self, error: apsw.Error) -> None:
        self._stopped = (
            f"the journal {self.path} stopped after a failed write ({error}); check the disk, then restart this"
            " process: what was acknowledged is replayed"
        )
        self._writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # closing must not try the sync once more

    def _after_commit(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _settle_file(self) -> None:
        """When idle: moves the -wal into the file and empties it, for damage to a -wal goes unseen by SQLite."""
        with self._writing:
            if self._wal_pages and not self._stopped and not self._closed:
                self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _checkpoint(self, mode: int) -> None:
        wait_for_locks(self._writer, 0)  # never wait for a reader: the next one will do
        try:
            pages, moved = self._writer.wal_checkpoint(mode=mode)
            self._wal_pages = pages - moved
        except apsw.BusyError:
            pass
        except apsw.IOError as error:
            if not is_full(error, self._writer.system_errno):
                self._stop(error)
        except apsw.Error:
            pass  # e.g. no space: the rows are safe in the -wal, and the next commit will say so
        finally:
            self._checkpoint_at = self._wal_pages + CHECKPOINT_PAGES
            wait_for_locks(self._writer, self._busy_timeout_s)

    # ---- reading: on a connection of its own, so that no reader waits for a sync

    def _fetch(self, name: str, values: tuple[int, ...]) -> list[tuple[Any, ...]]:
        self._usable()
        with self._reading:
            if self._reader is None:
                self._reader = connect(self.path, self._busy_timeout_s)
            try:
                return self._reader.execute(SQL[name], values).fetchall()
            except apsw.Error as error:
                raise translate(error, self.path, self._reader.system_errno) from error

    def _all_rows(self) -> Iterator[Stored]:
        after = 0
        while page := [Stored(*row) for row in self._fetch("rows_from", (after + 1, PAGE_ROWS))]:
            yield from page
            after = page[-1].seq

    def _verified(self, row: Stored, before: int, chain: bytes) -> Row:
        if row.seq != before + 1:
            raise JournalDamaged(_missing(before + 1, row.seq - 1))
        entry = self._seal.open(row)
        if not self._seal.follows(row, chain):
            raise JournalDamaged(f"journal event {row.seq} was altered or is damaged; run `mnemic doctor`")
        return Row(row.seq, entry, row.chain)

    def _opens(self, row: Stored) -> bool:
        try:
            self._seal.open(row)
        except MnemicError:
            return False
        return True

    def _usable(self) -> None:
        if self._closed:
            raise StorageError("the journal is closed; open it again")
        if self._pid != os.getpid():
            raise StorageError("the journal was opened before a fork; open it again in this process")

    def _translated(self, error: apsw.Error) -> MnemicError:
        if self._stopped:
            return StorageError(self._stopped)
        translated = translate(error, self.path, self._writer.system_errno)
        if isinstance(translated, StorageLocked):
            return StorageLocked(
                f"{self.path} was held by others for {self._busy_timeout_s:g} s; try again in a moment"
            )
        return translated


def _missing(first: int, last: int) -> str:
    return f"journal events {first}-{last} are missing; run `mnemic doctor`"


def _seq(outcome: Outcome) -> int:
    if isinstance(outcome, MnemicError):
        raise outcome
    return outcome
