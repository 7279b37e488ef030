"""A backup takes the place of the store.

The order makes every moment safe: the backup is copied beside the store and opened there (schema, integrity, identity)
before anything is touched; the store that is here gets a second name and is then replaced in one step.

The journal belongs to the store by its id. If the backup is of the same store, what the journal holds after the
backup's last event is applied again at the next start, so that nothing acknowledged is lost; `exact` lays the journal
aside instead, and the memory is what it was. A journal of another store, or one that does not fit the backup, is laid
aside too: it is never applied to a store it was not written for.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mnemic import app
from mnemic.config import Config
from mnemic.errors import (
    ConfigError,
    InvalidInput,
    JournalError,
    MnemicError,
    SchemaTooNew,
    StorageDamaged,
    StorageError,
    StorageLocked,
)

if TYPE_CHECKING:
    from mnemic.store.driver import Driver

_MAGIC = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class Plan:
    """`replace`: also a store that holds events. `exact`: without what the journal holds since."""

    file: Path
    replace: bool = False
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """`events`: in the backup. `replayed`: came back from the journal. `kept`, `journal_kept`: where what was here
    lies now, None when there was nothing."""

    events: int
    replayed: int
    kept: Path | None
    journal_kept: Path | None
    journal_note: str

    def data(self) -> dict[str, object]:
        return asdict(self)


def restore_store(config: Config, plan: Plan) -> Restored:
    """Errors: InvalidInput (no backup; something is here), StorageError and its kin."""
    store = _store_path(config)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    _look_at(plan.file)
    store.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _copied(plan.file, store.with_name(f"{store.name}.restoring-{stamp}")) as copy:
        events = _check_copy(config, copy)
        before = _let_go(config, store, replace=plan.replace)
        kept = _swap(store, copy, stamp)
    folder = app.journal_folder(config)
    laid, note = None, ""
    if plan.exact and folder.exists():
        laid = _lay_aside(folder, stamp)
        note = f"{max(0, before - events)} events that are not in the backup stay in there (--exact)"
    after = _count_after(config)
    if isinstance(after, JournalError):
        laid, note = _lay_aside(folder, stamp), f"it is not the journal of the restored store ({after})"
        after = _count_after(config)
    if isinstance(after, MnemicError):
        raise after
    return Restored(events, max(0, after - events), kept, laid, note)


def _store_path(config: Config) -> Path:
    if not config.store_url.startswith("sqlite:///") or config.store_url.endswith(":memory:"):
        raise ConfigError("restore works on a store in a file; for PostgreSQL use pg_restore")
    return Path(config.store_url.removeprefix("sqlite:///")).absolute()


def _look_at(file: Path) -> None:
    """Whether it can be a backup at all, from its first bytes."""
    try:
        with file.open("rb") as stream:
            head = stream.read(100)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from error
    if not head.startswith(_MAGIC) or int.from_bytes(head[60:64]) == 0:  # the schema's version; ours is never 0
        raise InvalidInput(f"{file} is no mnemic store; restore takes a file that `mnemic backup` wrote")
    wal = file.with_name(f"{file.name}-wal")
    if wal.exists() and wal.stat().st_size:
        raise InvalidInput(f"{file} is in use, a copy of it would be incomplete; make one with `mnemic backup`")


@contextlib.contextmanager
def _copied(file: Path, copy: Path) -> Iterator[Path]:
    """A private, durable copy for the time of the block; gone afterwards unless it was moved."""
    try:
        descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as target, file.open("rb") as source:
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())
        yield copy
    except OSError as error:
        raise StorageError(f"{error.filename or copy}: {error.strerror}") from error
    finally:
        for leftover in copy.parent.glob(f"{copy.name}*"):
            leftover.unlink(missing_ok=True)


def _check_copy(config: Config, copy: Path) -> int:
    """Open the copy, which brings an older schema up to date; its events in all namespaces."""
    from mnemic.store.sqlite import open_sqlite
    from mnemic.store.upkeep import Upkeep

    try:
        driver = open_sqlite(f"sqlite:///{copy}", config.store)
        try:
            wrong = driver.check()
            if wrong:
                raise StorageDamaged(f"the backup is damaged: {wrong[0]}")
            Upkeep(driver).identity()
            return _events(driver)
        finally:
            driver.close()
    except (SchemaTooNew, StorageDamaged):
        raise
    except StorageError as error:
        raise InvalidInput(f"this is no mnemic store, or an incomplete one: {error}") from error


def _events(driver: Driver) -> int:
    from mnemic.store.chunks import Chunks
    from mnemic.store.events import Events

    events = Events(driver)
    return sum(events.counts(head.namespace)[0] for head in Chunks(driver).heads())


def _let_go(config: Config, store: Path, *, replace: bool) -> int:
    """Make sure that nobody uses the store that is here and that it may be replaced; how many events it holds."""
    if not store.exists() or not store.stat().st_size:
        return 0
    events = 0
    why = ""
    try:
        memory, engine = app.opened(config)
        with memory:
            if engine.spool.pending():
                engine.spool.drain()
            events = _events(engine.store.driver)
    except StorageLocked:
        raise
    except MnemicError as error:  # that may be why somebody restores
        why = f" (which does not open: {error})"
    if (events or why) and not replace:
        what = f"holds {events} events" if events else "is there already"
        raise InvalidInput(f"{store} {what}{why}; --yes replaces it and keeps it beside")
    wal = store.with_name(f"{store.name}-wal")
    if not why and wal.exists() and wal.stat().st_size:  # the last one to close a store removes it
        raise StorageLocked(f"{store} is in use by another process; stop it and try again")
    return events


def _swap(store: Path, copy: Path, stamp: str) -> Path | None:
    """At every moment there is a store under the name; what was here keeps all its bytes under another."""
    kept: Path | None = None
    if store.exists() and store.stat().st_size:
        kept = store.with_name(f"{store.name}.before-restore-{stamp}")
        try:
            os.link(store, kept)
        except OSError:  # a file system without links
            shutil.copy2(store, kept)
        for tail in ("-wal", "-shm"):
            beside = store.with_name(store.name + tail)
            if beside.exists():
                beside.replace(kept.with_name(kept.name + tail))
    copy.replace(store)
    return kept


def _lay_aside(folder: Path, stamp: str) -> Path:
    aside = folder.with_name(f"{folder.name}.before-restore-{stamp}")
    folder.rename(aside)
    return aside


def _count_after(config: Config) -> int | MnemicError:
    """Open what is here now, as the next start will, and count."""
    try:
        memory, engine = app.opened(config)
        with memory:
            if engine.spool.pending():
                engine.spool.drain()
            return _events(engine.store.driver)
    except MnemicError as error:
        return error
