"""PostgreSQL's errors as mnemic's, each saying what to do. No message holds a password."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg
from psycopg import errors as pg

from mnemic.errors import (
    ConfigError,
    DeadlineExceeded,
    MnemicError,
    SchemaTooNew,
    StorageDamaged,
    StorageError,
    StorageFull,
    StorageLocked,
    StorageReadOnly,
    Unreachable,
)
from mnemic.store.postgres.connections import Address

RETRIED = (pg.SerializationFailure, pg.DeadlockDetected)  # the transaction did not happen; try it again
SCHEMA_GONE = (pg.UndefinedTable, pg.UndefinedObject)


class Unknown(Unreachable):
    """The connection was lost during COMMIT: the write may have happened. Events are written once by their id, so
    repeat it."""


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection, not the statement, failed."""
    gone = (pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow, pg.IdleInTransactionSessionTimeout)
    return isinstance(error, gone) or (isinstance(error, psycopg.OperationalError) and error.sqlstate is None)


@contextlib.contextmanager
def translated(address: Address) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, address) from error


def translate(error: psycopg.Error, address: Address) -> MnemicError:
    said = address.without_secrets(str(error).strip().partition("\n")[0])
    match error:
        case pg.QueryCanceled():
            return DeadlineExceeded(f"a query took too long and was stopped (store.query_deadline_ms): {address}")
        case pg.LockNotAvailable() | pg.SerializationFailure() | pg.DeadlockDetected():
            return StorageLocked(f"the {address} is held by another writer; try again in a moment")
        case pg.TooManyConnections() | pg.ConfigurationLimitExceeded():
            return StorageLocked(f"the {address} has no connection left; raise max_connections or use a pooler")
        case pg.DiskFull() | pg.OutOfMemory():
            return StorageFull(f"the {address} is full; free space on the server and try again: {said}")
        case pg.ReadOnlySqlTransaction():
            return StorageReadOnly(f"the {address} is read-only (a standby?); use the URL of the primary")
        case pg.InsufficientPrivilege():
            return StorageReadOnly(f"role {address.role!r} may not do this in the {address} ({said}); GRANT it")
        case pg.DataCorrupted() | pg.IndexCorrupted():
            return StorageDamaged(f"the {address} is damaged: {said}; restore a backup")
        case pg.UndefinedTable() | pg.UndefinedColumn() | pg.UndefinedObject():
            return StorageDamaged(f"the schema in the {address} is not whole: {said}; restore a backup")
    if is_lost(error):
        return _connecting(said, address)
    return StorageError(f"the {address} refused: {said}")


def _connecting(said: str, address: Address) -> MnemicError:
    """Why there is no connection. libpq gives no code before a session exists, so its words decide."""
    if "password" in said or "authentication failed" in said or "no pg_hba.conf entry" in said:
        return ConfigError(
            f"the {address} refuses role {address.role!r}: check user and password in store.url ({said})"
        )
    if "role" in said and "does not exist" in said:
        return ConfigError(f"the {address} knows no role {address.role!r}; check store.url or CREATE ROLE it")
    if "database" in said and "does not exist" in said:
        return ConfigError(f"there is no {address}; createdb it or check store.url")
    if "invalid port" in said or "invalid connection option" in said or "invalid integer" in said:
        return ConfigError(f"store.url: {said}")
    if "too many clients" in said or "remaining connection slots" in said:
        return StorageLocked(f"the {address} has no connection left; raise max_connections or use a pooler")
    return Unreachable(f"the {address} does not answer ({said}); is the server running?")


def too_new(found: int, known: int, address: Address) -> SchemaTooNew:
    return SchemaTooNew(
        f"the {address} has schema {found}, this mnemic knows {known}: upgrade with pip install -U mnemic"
    )
