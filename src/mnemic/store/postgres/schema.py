"""The schema of a PostgreSQL store: made on first use, brought up to date, mended where it can be derived again.

It lives in the current schema (the first of the role's search_path). Scripts run in one transaction under an advisory
lock that ends with it, so that of several nodes one migrates, and a killed one leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import errors as pg

from mnemic.errors import StorageError, StorageReadOnly
from mnemic.store.driver import migrations
from mnemic.store.postgres.connections import SESSION, Address, Connection, learn_halfvec, transaction
from mnemic.store.postgres.errors import too_new

OLDEST_SERVER = 14
OLDEST_PGVECTOR = (0, 8)  # iterative scans: without them a filtered search comes back short
DDL_LOCK_MS = 10_000
MECHANICS = 2  # the migration that can be run again


def prepare(connection: Connection, address: Address) -> None:
    """Make the schema fit for use. Errors: StorageError, StorageReadOnly, SchemaTooNew, psycopg.Error."""
    server = connection.info.server_version // 10_000
    if server < OLDEST_SERVER:
        raise StorageError(f"the {address} is PostgreSQL {server}; {OLDEST_SERVER} or newer is needed")
    known = migrations("postgres")
    has_meta, has_events, has_mechanics, pgvector = _state(connection)
    if not has_meta and has_events:
        raise StorageError(
            f"the {address} holds tables of another application; use a database or a search_path of its own "
            "(ALTER ROLE ... SET search_path = mnemic)"
        )
    version = _version(connection) if has_meta else 0
    if version > known[-1][0]:
        raise too_new(version, known[-1][0], address)
    if version < known[-1][0]:
        _migrate(connection, address)
    elif not has_mechanics:
        _restore(connection, address)
    else:
        _check_pgvector(pgvector, address)


def _migrate(connection: Connection, address: Address) -> None:
    with _changing(connection):
        _add_pgvector(connection, address)
        has_meta = _state(connection)[0]  # another node may have migrated while we waited for the lock
        version = _version(connection) if has_meta else 0
        for number, script in migrations("postgres"):
            if number > version:
                _run(connection, script, address)
                connection.execute(SESSION["version_put"], {"version": str(number)})
    learn_halfvec(connection)


def _restore(connection: Connection, address: Address) -> None:
    """Derived tables that were dropped are made again, empty; the worker fills them from the events."""
    with _changing(connection):
        _add_pgvector(connection, address)
        _run(connection, dict(migrations("postgres"))[MECHANICS], address)
    learn_halfvec(connection)


@contextmanager
def _changing(connection: Connection) -> Iterator[None]:
    settings = {"namespace": "", "statement_ms": "0", "lock_ms": str(DDL_LOCK_MS), "idle_ms": "0"}
    with transaction(connection, "begin_write", settings):
        connection.execute(SESSION["migration_lock"])
        yield


def _run(connection: Connection, script: str, address: Address) -> None:
    try:
        connection.execute(script)
    except pg.InsufficientPrivilege as error:
        raise StorageReadOnly(
            f"role {address.role!r} may not make tables in the {address}: GRANT CREATE ON SCHEMA public TO that role, "
            "or run `mnemic db migrate` once as the owner"
        ) from error


def _add_pgvector(connection: Connection, address: Address) -> None:
    try:
        connection.execute(SESSION["extension"])
    except pg.InsufficientPrivilege as error:
        raise StorageReadOnly(
            f"the {address} lacks the extension pgvector, and role {address.role!r} may not add it: as a superuser of "
            f"{address.database!r} run CREATE EXTENSION vector"
        ) from error
    except (pg.FeatureNotSupported, pg.UndefinedFile) as error:
        raise StorageError(
            f"the server of the {address} has no pgvector: install it there (package postgresql-NN-pgvector), then try "
            "again"
        ) from error
    _check_pgvector(_state(connection)[3], address)


def _check_pgvector(version: str | None, address: Address) -> None:
    if version is None:
        raise StorageError(f"the {address} lacks the extension pgvector: as a superuser run CREATE EXTENSION vector")
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_PGVECTOR:
        oldest = ".".join(map(str, OLDEST_PGVECTOR))
        raise StorageError(
            f"the {address} has pgvector {version}; {oldest} or newer is needed: install it on the server, then run "
            "ALTER EXTENSION vector UPDATE"
        )


def _state(connection: Connection) -> tuple[bool, bool, bool, str | None]:
    """Whether `meta`, `events` and the derived tables are there, and the version of pgvector."""
    meta, events, mechanics, pgvector = connection.execute(SESSION["state"]).fetchall()[0]
    return bool(meta), bool(events), bool(mechanics), None if pgvector is None else str(pgvector)


def _version(connection: Connection) -> int:
    rows = connection.execute(SESSION["version"]).fetchall()
    return int(str(rows[0][0])) if rows else 0
