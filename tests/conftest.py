"""Every contract test runs on SQLite and on a real PostgreSQL, always: a test in `tests/contract` that asks for neither
`back_end` nor `both` is refused at collection. How many ran on each is printed at the end."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from mnemic import Memory
from mnemic.config import StoreConfig
from mnemic.domain import ranking
from mnemic.ports import Embedder
from mnemic.store import Store
from mnemic.store.driver import Driver
from mnemic.store.postgres import open_postgres
from mnemic.store.sqlite import open_sqlite
from mnemic.store.vectors.exact import ExactIndex
from tests.fakes import FakeEmbedder
from tests.postgres import Server, folder

BACK_ENDS = ("sqlite", "postgres")
PREFIX = "mnemic_test"
OpenMemory = Callable[..., Memory]

_numbers = count()
_ran: Counter[str] = Counter()


# -- the gate and the count


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    contract = [i for i in items if "contract" in i.path.parts]
    stray = [i.nodeid for i in contract if not {"back_end", "both"} & set(getattr(i, "fixturenames", ()))]
    if stray:
        raise pytest.UsageError(f"contract tests must run on both databases: {stray}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed and "contract/" in report.nodeid:
        _ran.update(value for name, value in report.user_properties if name == "back_end")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _ran:
        terminalreporter.write_line(
            "contract tests passed: " + ", ".join(f"{n} on {b}" for b, n in sorted(_ran.items()))
        )


# -- PostgreSQL: one server for all runs, one template for this run, one database a test


@pytest.fixture(scope="session")
def server() -> Server:
    return Server(folder("mnemic-test-pg"), durable=False).start()


@pytest.fixture(scope="session")
def template(server: Server) -> Iterator[str]:
    """A database with the current schema, to be copied; what this run has made is dropped at its end."""
    mine = f"{PREFIX}_{os.getpid()}"
    _drop_stale(server)
    driver = open_postgres(server.create(mine), StoreConfig())
    driver.read("", lambda tx: tx.fetch("heads"))
    driver.close()
    yield mine
    for name in _databases(server):
        if name == mine or name.startswith(f"{mine}_"):
            server.drop(name)


def _databases(server: Server) -> list[str]:
    with psycopg.connect(server.admin_url()) as admin:
        rows = admin.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [f"{PREFIX}_"])
        return [row[0] for row in rows]


def _drop_stale(server: Server) -> None:
    """Databases of runs that were killed."""
    for name in _databases(server):
        if not psutil.pid_exists(int(name.split("_")[2])):
            server.drop(name)


@pytest.fixture
def postgres_url(server: Server, template: str) -> str:
    """A fresh PostgreSQL store, entered as a role that row-level security holds for."""
    return server.create(f"{template}_{next(_numbers)}", template)


# -- stores


@pytest.fixture(params=BACK_ENDS)
def back_end(request: pytest.FixtureRequest) -> str:
    request.node.user_properties.append(("back_end", request.param))
    return str(request.param)


@pytest.fixture
def url(back_end: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A fresh store on each database in turn."""
    if back_end == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'mnemic.db'}"


@pytest.fixture
def both(tmp_path: Path, postgres_url: str, request: pytest.FixtureRequest) -> Mapping[str, str]:
    """A fresh store on each database at once, to compare them."""
    request.node.user_properties.extend(("back_end", name) for name in BACK_ENDS)
    return {"sqlite": f"sqlite:///{tmp_path / 'mnemic.db'}", "postgres": postgres_url}


@pytest.fixture
def open_memory(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[OpenMemory]:
    """Opens memories that are closed at the end. Without a `url` it is the test's store; each has the same home, no
    worker of its own, and a fake embedder, unless it says otherwise."""
    with ExitStack() as stack:

        def opened(
            url: str = "",
            *,
            embedder: Embedder | None = None,
            home: Path | None = None,
            namespace: str = "",
            **settings: Any,
        ) -> Memory:
            named = {key.replace("__", "."): value for key, value in settings.items()}
            memory = Memory.open(
                home=home or tmp_path / "home",
                url=url or request.getfixturevalue("url"),
                namespace=namespace or None,
                settings={"worker.enabled": False, "journal.key": "file", **named},
                embedder=embedder or FakeEmbedder(),
            )
            stack.callback(memory.close)
            return memory

        yield opened


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory()


def open_store(url: str) -> Store:
    driver: Driver
    driver = open_sqlite(url, StoreConfig()) if url.startswith("sqlite") else open_postgres(url, StoreConfig())
    return Store(driver, ExactIndex, ranking.Weights())


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url)
    yield opened
    opened.close()
