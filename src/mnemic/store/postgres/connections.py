"""Connections to PostgreSQL: made when needed, kept for the next, dropped when broken.

Not psycopg_pool: its pool connects in a thread of its own, so that a wrong password is a time-out there and a server
that is down costs the whole time-out each time. Here the caller connects, and gets the reason at once.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator

import numpy as np
import psycopg
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Format, TransactionStatus
from psycopg.types import TypeInfo

from mnemic.errors import ConfigError, StorageError, StorageLocked
from mnemic.store.driver import Params, named_queries

Connection = psycopg.Connection[tuple[object, ...]]
SESSION = named_queries("postgres_session.sql")

# A network that swallows packets must show as a lost connection, not as silence.
_NETWORK: dict[str, str | int] = {
    "application_name": "mnemic",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


class Half(bytes):
    """A vector as float16, little-endian, bound as `halfvec`. The store's code knows only the bytes."""


class HalfDumper(Dumper):
    """To the wire format of halfvec: dimension and a spare field (both 16 bit), then big-endian float16."""

    format = Format.BINARY

    def dump(self, obj: Half) -> bytes:
        return (len(obj) // 2).to_bytes(2, "big") + b"\0\0" + np.frombuffer(obj, "<u2").byteswap().tobytes()


class HalfLoader(Loader):
    format = Format.BINARY

    def load(self, data: bytes | bytearray | memoryview) -> bytes:
        return np.frombuffer(data, "<u2", offset=4).byteswap().tobytes()


class Address:
    """Where a store is, and a way to say so without its password. Errors: ConfigError."""

    def __init__(self, url: str) -> None:
        try:
            self._parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            raise ConfigError(
                "store.url is no PostgreSQL URL: expected postgresql://user:password@host:5432/database, with special "
                "characters of the password percent-encoded"
            ) from None  # the driver's message quotes the URL
        self._url = url

    def __str__(self) -> str:
        get = self._parts.get
        host = f"{get('host') or 'localhost'}:{get('port') or 5432}"
        return f"PostgreSQL database {get('dbname') or get('user') or '(default)'!r} at {host}"

    @property
    def role(self) -> str:
        return str(self._parts.get("user") or "(default)")

    @property
    def database(self) -> str:
        return str(self._parts.get("dbname") or self._parts.get("user") or "(default)")

    def without_secrets(self, text: str) -> str:
        password = self._parts.get("password")
        return text.replace(str(password), "***") if password else text

    def connect(self, timeout_s: int) -> Connection:
        """A new connection. Errors: psycopg.Error."""
        given = {name: value for name, value in _NETWORK.items() if name not in self._parts}
        connection = psycopg.connect(
            make_conninfo(self._url, connect_timeout=timeout_s, **given),
            autocommit=True,  # the driver says BEGIN and COMMIT itself
            prepare_threshold=None,  # a prepared statement lives in one session; a transaction pooler changes sessions
        )
        try:
            learn_halfvec(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def learn_halfvec(connection: Connection) -> None:
    """Bind and read halfvec as float16 bytes on this connection, once its extension is there."""
    oid, array_oid = connection.execute(SESSION["halfvec"]).fetchall()[0]
    if oid is not None:
        TypeInfo("halfvec", int(str(oid)), int(str(array_oid))).register(connection)
        connection.adapters.register_dumper(Half, type("HalfDumper", (HalfDumper,), {"oid": int(str(oid))}))
        connection.adapters.register_loader(int(str(oid)), HalfLoader)


@contextlib.contextmanager
def transaction(connection: Connection, begin: str, settings: Params) -> Iterator[None]:
    """`begin`: begin_read or begin_write. Their several statements go in one round trip, bound in the client."""
    psycopg.ClientCursor(connection).execute(SESSION[begin], settings)
    try:
        yield
    except BaseException:
        roll_back(connection)
        raise
    connection.execute(SESSION["commit"])


def roll_back(connection: Connection) -> None:
    """Leave the connection outside any transaction. One in the middle of a query stays so, and is not used again."""
    try:
        if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            connection.execute(SESSION["rollback"])
    except psycopg.Error:
        connection.close()


class Pool:
    """At most `size` connections. Thread-safe."""

    def __init__(self, address: Address, size: int, timeout_s: float) -> None:
        self._address, self._timeout_s = address, timeout_s
        self._idle: queue.LifoQueue[Connection] = queue.LifoQueue()
        self._free = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self.closed = False

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection outside any transaction. It is kept unless it is found broken or busy afterwards.

        Errors: StorageError, StorageLocked, psycopg.Error.
        """
        if self.closed:
            raise StorageError("this memory is closed")
        if not self._free.acquire(timeout=self._timeout_s):
            raise StorageLocked(f"all connections to the {self._address} are busy; try again in a moment")
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._free.release()

    def _take(self) -> Connection:
        while True:
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                return self._address.connect(max(2, round(self._timeout_s)))
            if not connection.closed:
                return connection

    def _give_back(self, connection: Connection) -> None:
        clean = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
        with self._lock:
            if clean and not self.closed:
                self._idle.put(connection)
                return
        connection.close()

    def forget(self) -> None:
        """Close what is idle: the server has restarted, or a type has changed."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()

    def close(self) -> None:
        """Idempotent. Connections in use close when they are given back."""
        with self._lock:
            self.closed = True
        self.forget()
