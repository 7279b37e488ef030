"""The seam between mnemic and a database: named queries, run inside transactions that are closures.

A transaction is a function `work(tx)` that the driver runs in the calling thread. It has no await inside, so a
cancelled caller can leave while it finishes: no transaction is ever left open. Callers on an event loop run it in a
thread. The SQL itself lives in `sql/<dialect>.sql`; both dialects know the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]
Params = Mapping[str, object]


class Tx(Protocol):
    """One transaction, limited to one namespace (PostgreSQL enforces that by row-level security)."""

    def fetch(self, query: str, params: Params | None = None) -> list[Row]:
        """All rows of the named query."""
        ...

    def execute(self, query: str, params: Params | None = None) -> int:
        """Run the named statement; the number of rows it changed."""
        ...

    def execute_many(self, query: str, rows: Iterable[Params]) -> None:
        """Run the named statement once a row, as fast as the database can."""
        ...

    def scope(self, namespace: str) -> None:
        """Turn to another namespace within this transaction."""
        ...


class Driver(Protocol):
    """Blocking and safe to use from several threads. Errors are those of `mnemic.errors`."""

    dialect: str

    def read(self, namespace: str, work: Callable[[Tx], T]) -> T:
        """Run `work` on a consistent snapshot. It must not write."""
        ...

    def write(self, namespace: str, work: Callable[[Tx], T], *, wait: bool = True) -> T:
        """Run `work` in a transaction that is durable when this returns. `wait=False`: StorageLocked at once when
        another writer holds the database."""
        ...

    def backup(self, target: str) -> None: ...

    def check(self) -> Sequence[str]:
        """What is wrong with the database itself; empty when nothing is."""
        ...

    def advice(self) -> Sequence[str]:
        """What works but could be safer; empty when nothing could."""
        ...

    def size_bytes(self) -> int: ...

    def close(self) -> None: ...


@cache
def named_queries(file: str) -> Mapping[str, str]:
    """Queries of `sql/<file>`: each begins with a line `-- name: <name>`; further comment lines belong to it."""
    queries: dict[str, str] = {}
    name, lines = "", list[str]()
    for line in (resources.files("mnemic.store") / "sql" / file).read_text(encoding="utf-8").splitlines():
        if line.startswith("-- name: "):
            if name:
                queries[name] = "\n".join(lines).strip()
            name, lines = line.removeprefix("-- name: ").strip(), []
        elif not line.lstrip().startswith("--"):
            lines.append(line)
    if name:
        queries[name] = "\n".join(lines).strip()
    return queries


@cache
def migrations(dialect: str) -> tuple[tuple[int, str], ...]:
    """Numbered migrations of a dialect in order: (number, SQL script)."""
    folder = resources.files("mnemic.store") / "sql" / "migrations"
    found = [
        (int(file.name[:4]), file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(f".{dialect}.sql")
    ]
    return tuple(sorted(found))
