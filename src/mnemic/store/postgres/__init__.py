"""The PostgreSQL driver: psycopg 3, a few connections, a transaction per closure.

Opening does not connect: with the server down a memory still records, into its journal. The schema is made or checked
with the first transaction. Reads are REPEATABLE READ (one snapshot), writes READ COMMITTED with the rows they hang on
locked. Every transaction names its namespace for row-level security and sets its own time limits; nothing outlives it,
so a transaction pooler may stand between.

A closure may run more than once: after a deadlock, or when the connection was lost before COMMIT. If it is lost during
COMMIT nobody knows, and `Unknown` (an Unreachable) says so.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import psycopg
from psycopg import sql

from mnemic.config import StoreConfig
from mnemic.errors import StorageError
from mnemic.store.driver import Params, Row, Tx, named_queries
from mnemic.store.postgres.connections import (
    SESSION,
    Address,
    Connection,
    Half,
    Pool,
    learn_halfvec,
    roll_back,
    transaction,
)
from mnemic.store.postgres.errors import RETRIED, SCHEMA_GONE, Unknown, is_lost, translate, translated
from mnemic.store.postgres.schema import prepare

log = logging.getLogger("mnemic.postgres")
T = TypeVar("T")
ATTEMPTS = 4
WRITE_STATEMENT_MS = 120_000
IDLE_MS = 60_000  # a transaction whose client stopped in the middle frees its locks
ANALYSE_AT = 500  # rows written before the first statistics are made
NO_WAIT_MS = 1  # the shortest lock_timeout there is


class PostgresTx:
    """Named queries on one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._queries = named_queries("postgres.sql")
        self.rows = 0  # written in bulk

    def fetch(self, query: str, params: Params | None = None) -> list[Row]:
        return self.fetch_composed(self._queries[query], params)

    def execute(self, query: str, params: Params | None = None) -> int:
        return max(0, self._connection.execute(self._queries[query], _bound(params)).rowcount)

    def execute_many(self, query: str, rows: Iterable[Params]) -> None:
        text, bound = self._queries[query], [_bound(row) for row in rows]
        if not bound:
            return
        self.rows += len(bound)
        if "unnest(" in text:
            columns = {name: [row[name] for row in bound] for name in bound[0]}
            self._connection.execute(text, columns)
        else:
            with self._connection.cursor() as cursor:
                cursor.executemany(text, bound)

    def scope(self, namespace: str) -> None:
        self._connection.execute(SESSION["scope"], {"namespace": namespace})

    def fetch_composed(self, query: str | sql.SQL | sql.Composed, params: Params | None = None) -> list[Row]:
        """For the one index whose SQL must hold its dimension as a literal (`store/vectors/pgvector.py`)."""
        return self._connection.execute(query, _bound(params), binary=True).fetchall()


def _bound(params: Params | None) -> Params:
    """A parameter called `vector` is a halfvec."""
    if params is None:
        return {}
    vector = params.get("vector")
    return {**params, "vector": Half(vector)} if isinstance(vector, bytes) else params


class PostgresDriver:
    """A store in a PostgreSQL database."""

    dialect = "postgres"

    def __init__(self, url: str, config: StoreConfig, ef_search: int = 64) -> None:
        self.address = Address(url)
        self._config = config
        self._ef_search = ef_search
        self._pool = Pool(self.address, config.readers + 2, config.busy_timeout_ms / 1000)
        self._preparing = threading.Lock()
        self._prepared = False
        self._written, self._analyse_at = 0, ANALYSE_AT
        self._analysing = threading.Lock()
        self._alone: set[Connection] = set()

    # -- transactions

    def read(self, namespace: str, work: Callable[[Tx], T]) -> T:
        begin = {
            "namespace": namespace,
            "statement_ms": str(self._config.query_deadline_ms),
            "idle_ms": str(IDLE_MS),
            "ef_search": str(self._ef_search),
        }
        return self._repeated("begin_read", begin, work)

    def write(self, namespace: str, work: Callable[[Tx], T], *, wait: bool = True) -> T:
        begin = {
            "namespace": namespace,
            "statement_ms": str(WRITE_STATEMENT_MS),
            "idle_ms": str(IDLE_MS),
            "lock_ms": str(self._config.busy_timeout_ms if wait else NO_WAIT_MS),
        }
        result = self._repeated("begin_write", begin, self._counted(work))
        self._analyse()
        return result

    def _counted(self, work: Callable[[Tx], T]) -> Callable[[Tx], T]:
        def counting(tx: Tx) -> T:
            result = work(tx)
            if isinstance(tx, PostgresTx) and tx.rows:
                self._written += tx.rows
            return result

        return counting

    def _analyse(self) -> None:
        """Let the planner know of tables that have grown fourfold. It takes one without statistics for tiny, and joins
        it to itself in quadratic time; the server's own round comes a minute later."""
        if self._written < self._analyse_at or not self._analysing.acquire(blocking=False):
            return
        try:
            self._analyse_at = max(self._analyse_at, self._written) * 4
            limits = {"namespace": "", "statement_ms": "10000", "idle_ms": str(IDLE_MS), "lock_ms": str(NO_WAIT_MS)}
            with self._pool.connection() as connection, transaction(connection, "begin_write", limits):
                connection.execute(SESSION["analyse"])
        except psycopg.Error as error:
            log.debug("no statistics this time: %s", error)
        finally:
            self._analysing.release()

    def _repeated(self, begin: str, settings: Params, work: Callable[[Tx], T]) -> T:
        """Run the transaction, again where it certainly did not happen. Errors: those of `mnemic.errors`."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self._pool.connection() as connection:
                    self._prepare(connection)
                    return self._once(connection, begin, settings, work)
            except psycopg.Error as error:
                if attempt == ATTEMPTS or not self._may_repeat(error, attempt):
                    raise translate(error, self.address) from error
        raise AssertionError("the last attempt returns or raises")

    def _may_repeat(self, error: psycopg.Error, attempt: int) -> bool:
        if isinstance(error, RETRIED):
            time.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - apart, not secret
            return True
        if isinstance(error, SCHEMA_GONE):
            again, self._prepared = self._prepared, False  # what is derived can be made again, once
            return again and attempt == 1
        if is_lost(error) and isinstance(error, Lost):
            self._pool.forget()  # the others are of the same dead server
            return True
        return False

    def _once(self, connection: Connection, begin: str, settings: Params, work: Callable[[Tx], T]) -> T:
        try:
            psycopg.ClientCursor(connection).execute(SESSION[begin], settings)
            result = work(PostgresTx(connection))
        except psycopg.OperationalError as error:
            if connection.closed and is_lost(error):
                raise Lost(str(error)) from error
            roll_back(connection)
            raise
        except BaseException:
            roll_back(connection)
            raise
        try:
            connection.execute(SESSION["commit"])
        except psycopg.OperationalError as error:
            if not connection.closed:
                raise
            if begin == "begin_write":
                raise Unknown(
                    f"the {self.address} was lost during COMMIT; what was written is found by its id"
                ) from error
        return result

    def _prepare(self, connection: Connection) -> None:
        if self._prepared:
            return
        with self._preparing:
            if not self._prepared:
                prepare(connection, self.address)
                self._pool.forget()  # made before the extension was: they do not know its type
                self._prepared = True
        learn_halfvec(connection)

    # -- keeping

    def alone(self, statement: sql.Composed) -> None:
        """Run a statement that no transaction may hold (CREATE INDEX CONCURRENTLY), on a connection of its own."""
        if self._pool.closed:
            raise StorageError("this memory is closed")
        with translated(self.address), self.address.connect(round(self._config.busy_timeout_ms / 1000)) as connection:
            self._alone.add(connection)
            try:
                connection.execute(statement)
            finally:
                self._alone.discard(connection)

    def backup(self, target: str) -> None:
        raise StorageError(
            f"the {self.address} is backed up with pg_dump, or copied with `mnemic db copy` to a sqlite:///file"
        )

    def check(self) -> Sequence[str]:
        """What is wrong: tables whose row-level security was switched off, indexes that are not whole."""
        with translated(self.address), self._pool.connection() as connection:
            self._prepare(connection)
            open_tables = connection.execute(SESSION["unprotected"]).fetchall()
            broken = connection.execute(SESSION["invalid_indexes"]).fetchall()
        found = [
            f"row-level security is off on {row[0]}: ALTER TABLE {row[0]} FORCE ROW LEVEL SECURITY"
            for row in open_tables
        ]
        return found + [f"the index {row[0]} is not whole: DROP INDEX {row[0]}, it is made again" for row in broken]

    def advice(self) -> Sequence[str]:
        """What works but could be safer."""
        with translated(self.address), self._pool.connection() as connection:
            rows = connection.execute(SESSION["bypasses"]).fetchall()
        return [
            f"role {row[0]!r} bypasses row-level security: namespaces are kept apart by the queries alone; connect as "
            "a role that is no superuser and has no BYPASSRLS"
            for row in rows
        ]

    def size_bytes(self) -> int:
        with translated(self.address), self._pool.connection() as connection:
            self._prepare(connection)
            return int(str(connection.execute(SESSION["size"]).fetchall()[0][0]))

    def close(self) -> None:
        self._pool.close()
        for connection in tuple(self._alone):
            with contextlib.suppress(psycopg.Error):  # it has ended by itself meanwhile
                connection.cancel_safe()


class Lost(psycopg.OperationalError):
    """The connection was lost before COMMIT: nothing has happened."""


def open_postgres(url: str, config: StoreConfig, ef_search: int = 64) -> PostgresDriver:
    """`postgresql://user:password@host:5432/database`. Connects with the first transaction. Errors: ConfigError."""
    return PostgresDriver(url, config, ef_search)
