"""The database goes away: down, restarting, killed in the middle, slow. Nothing is lost, doubled or reordered."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from mnemic import Memory
from mnemic.config import StoreConfig
from mnemic.domain.drafts import Draft
from mnemic.errors import ConfigError, StorageLocked, StorageReadOnly, Unreachable
from mnemic.store.driver import Tx
from mnemic.store.postgres import PostgresDriver, open_postgres, schema
from tests.fakes import FakeEmbedder
from tests.postgres import GUARDED, Server, folder

PATIENCE_S = 30.0
SETTINGS = {"worker.enabled": False, "journal.key": "file", "journal.spool_wait_ms": 300, "embeddings.provider": "none"}


@pytest.fixture(scope="module")
def fragile() -> Iterator[Server]:
    """A server of this module's own, because its tests stop it."""
    server = Server(folder("mnemic-down"), durable=False).start()
    yield server
    server.start().stop()


@pytest.fixture
def place(fragile: Server) -> Iterator[str]:
    fragile.start()
    name = f"down_{uuid4().hex[:12]}"
    yield fragile.create(name)
    fragile.start().drop(name)


def opened(home: Path, url: str, **settings: object) -> Memory:
    return Memory.open(home=home, url=url, settings={**SETTINGS, **settings}, embedder=FakeEmbedder())


def in_time(reached: Callable[[], bool]) -> bool:
    """Whether it comes true by itself; asks again and again, for at most `PATIENCE_S`."""
    end = time.monotonic() + PATIENCE_S
    while not reached():
        if time.monotonic() > end:
            return False
        threading.Event().wait(0.02)
    return True


def test_down_record_is_spooled_in_time_and_drains_in_order_by_itself(
    fragile: Server, place: str, tmp_path: Path
) -> None:
    with opened(tmp_path, place) as memory:
        assert memory.record("turn 0").spooled is False
        fragile.stop("immediate")
        for n in range(1, 20):
            began = time.monotonic()
            receipt = memory.record(f"turn {n}")
            assert (receipt.spooled, receipt.seq) == (True, 0)
            assert time.monotonic() - began < 2.0
        with pytest.raises(Unreachable, match="is the server running"):
            memory.recall("turn")
        fragile.start()
        store = memory._memory._engine.store
        assert in_time(lambda: store.events.counts("default")[0] == 20)
        assert [(e.seq, e.text) for e in memory.events()] == [(n + 1, f"turn {n}") for n in range(20)]
        assert memory.record("turn 20").spooled is False


def test_opening_with_the_database_down_records_if_the_home_was_used_before(
    fragile: Server, place: str, tmp_path: Path
) -> None:
    with opened(tmp_path, place) as memory:
        memory.record("before")
    fragile.stop("immediate")
    with pytest.raises(Unreachable):
        opened(tmp_path / "never used", place)
    with opened(tmp_path, place) as memory:
        assert memory.record("while it was down").spooled
        named = uuid4()
        assert memory.record("with an id of its own", id=named).spooled
        assert [r.spooled for r in memory.record_many(Draft(f"many {n}") for n in range(3))] == [True] * 3
    fragile.start()
    with opened(tmp_path, place) as memory:
        wanted = ["before", "while it was down", "with an id of its own", "many 0", "many 1", "many 2"]
        assert [e.text for e in memory.events()] == wanted


def test_restarts_under_load_lose_and_double_nothing(fragile: Server, place: str, tmp_path: Path) -> None:
    """Three writers of three nodes, the server killed and restarted again and again; each node's order is kept."""
    nodes = [opened(tmp_path / f"node{n}", place) for n in range(3)]
    said: list[list[str]] = [[] for _ in nodes]
    stop = threading.Event()

    def write(node: int) -> None:
        while not stop.is_set():
            text = f"node {node} says {len(said[node])}"
            nodes[node].record(text, session=f"n{node}")
            said[node].append(text)

    writers = [threading.Thread(target=write, args=(node,)) for node in range(3)]
    for writer in writers:
        writer.start()
    for _ in range(4):
        before = [len(texts) for texts in said]
        assert in_time(lambda before=before: all(len(t) > b + 3 for t, b in zip(said, before, strict=True)))  # type: ignore[misc]
        fragile.stop("immediate")
        fragile.start()
    stop.set()
    for writer in writers:
        writer.join()
    store = nodes[0]._memory._engine.store
    total = sum(map(len, said))
    assert in_time(lambda: store.events.counts("default")[0] == total)
    events = nodes[0].events(limit=100_000)
    assert [e.seq for e in events] == list(range(1, total + 1))
    for node, texts in enumerate(said):
        assert [e.text for e in events if e.session == f"n{node}"] == texts
    for memory in nodes:
        memory.close()


def test_an_unspooled_reply_survives_the_loss_of_the_home(place: str, tmp_path: Path) -> None:
    memory = opened(tmp_path / "node", place)
    receipts = [memory.record(f"kept {n}") for n in range(5)]
    assert [r.spooled for r in receipts] == [False] * 5
    memory.close()
    shutil.rmtree(tmp_path / "node")
    with opened(tmp_path / "other", place) as other:
        assert [(e.id, e.seq) for e in other.events()] == [(r.id, r.seq) for r in receipts]


def test_a_locked_or_slow_database_spools_too(place: str, tmp_path: Path) -> None:
    """Another transaction holds the namespace's row: a migration, or a node that stopped in the middle."""
    with opened(tmp_path, place, **{"store.busy_timeout_ms": 2_000}) as memory:
        memory.record("first")
        with psycopg.connect(place) as blocker:
            blocker.execute("SELECT * FROM heads FOR UPDATE")
            began = time.monotonic()
            assert memory.record("second").spooled
            assert time.monotonic() - began < 1.5
        store = memory._memory._engine.store
        assert in_time(lambda: store.events.counts("default")[0] == 2)


# -- the driver alone


@pytest.fixture
def driver(place: str) -> Iterator[PostgresDriver]:
    made = open_postgres(place, StoreConfig(busy_timeout_ms=2_000))
    made.read("", lambda tx: tx.fetch("heads"))
    yield made
    made.close()


def _put(key: str) -> Callable[[Tx], None]:
    return lambda tx: tx.execute_many("usage_add", [{"namespace": "n", "subject": key, "day": 1, "count": 1}])


def _kill_others(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def _usage(driver: PostgresDriver) -> dict[str, int]:
    rows = driver.read("n", lambda tx: tx.fetch("usage", {"namespace": "n"}))
    return {row[0]: row[1] for row in rows}


def test_a_connection_killed_while_idle_is_replaced(driver: PostgresDriver, place: str) -> None:
    driver.write("n", _put("one"))
    _kill_others(place)
    driver.write("n", _put("two"))
    assert _usage(driver) == {"one": 1, "two": 1}


def test_a_connection_killed_before_commit_runs_the_closure_again_once(driver: PostgresDriver, place: str) -> None:
    runs: list[int] = []

    def work(tx: Tx) -> None:
        _put("one")(tx)
        runs.append(1)
        if len(runs) == 1:
            _kill_others(place)
            tx.fetch("heads")

    driver.write("n", work)
    assert (len(runs), _usage(driver)) == (2, {"one": 1})


def test_a_connection_killed_at_commit_is_unknown_and_says_so(driver: PostgresDriver, place: str) -> None:
    def work(tx: Tx) -> None:
        _put("one")(tx)
        _kill_others(place)

    with pytest.raises(Unreachable, match="during COMMIT"):
        driver.write("n", work)
    assert _usage(driver) in ({}, {"one": 1})
    driver.write("n", _put("two"))
    assert _usage(driver)["two"] == 1


def test_without_waiting_a_locked_row_is_locked_at_once(driver: PostgresDriver, place: str) -> None:
    driver.write("n", _put("one"))
    with psycopg.connect(place) as blocker:
        blocker.execute("SELECT set_config('mnemic.namespace', 'n', true)")
        blocker.execute("SELECT * FROM usage FOR UPDATE")
        began = time.monotonic()
        with pytest.raises(StorageLocked):
            driver.write("n", _put("one"), wait=False)
        assert time.monotonic() - began < 1.0


def test_a_deadlock_is_retried(driver: PostgresDriver) -> None:
    driver.write("n", lambda tx: (_put("a")(tx), _put("b")(tx)))
    both_hold = threading.Barrier(2, timeout=10)
    first_try = threading.local()

    def crossing(one: str, other: str) -> Callable[[Tx], None]:
        def work(tx: Tx) -> None:
            _put(one)(tx)
            if not getattr(first_try, "done", False):
                first_try.done = True
                both_hold.wait()
            _put(other)(tx)

        return work

    threads = [threading.Thread(target=driver.write, args=("n", crossing(*pair))) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _usage(driver) == {"a": 3, "b": 3}


# -- what is wrong, in words


def _error(url: str, kind: type[Exception]) -> str:
    driver = open_postgres(url, StoreConfig(busy_timeout_ms=2_000))
    with pytest.raises(kind) as caught:
        driver.read("", lambda tx: tx.fetch("heads"))
    driver.close()
    return str(caught.value)


def test_wrong_url_password_role_and_database_are_named_without_the_password(fragile: Server) -> None:
    fragile.start()
    where = f"?host={fragile.data}"
    wrong = _error(f"postgresql://{GUARDED}:s3cret-word@/mnemic{where}", ConfigError)
    assert "password" in wrong and GUARDED in wrong and "s3cret-word" not in wrong
    assert "createdb" in _error(f"postgresql://mnemic@/no_such_database{where}", ConfigError)
    assert "CREATE ROLE" in _error(f"postgresql://nobody_here@/mnemic{where}", ConfigError)
    assert "is the server running" in _error("postgresql://u:s3cret-word@127.0.0.1:1/x", Unreachable)
    with pytest.raises(ConfigError) as caught:
        open_postgres("postgresql://u:s3cret%zzword@h/x", StoreConfig())
    assert "s3cret" not in str(caught.value) and caught.value.__cause__ is None


def test_a_server_without_pgvector_or_privilege_or_of_another_use_is_named(fragile: Server) -> None:
    fragile.start()
    bare, foreign = f"bare_{uuid4().hex[:8]}", f"foreign_{uuid4().hex[:8]}"
    try:
        url = fragile.create(bare, "template0")
        assert "CREATE EXTENSION vector" in _error(url, StorageReadOnly)
        with psycopg.connect(fragile.admin_url(bare), autocommit=True) as admin:
            admin.execute("CREATE EXTENSION vector")
            admin.execute("ALTER DATABASE " + bare + " OWNER TO postgres")  # type: ignore[arg-type]
        assert "GRANT CREATE" in _error(url, StorageReadOnly)
        url = fragile.create(foreign)
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("CREATE TABLE events (id int)")
        assert "another application" in _error(url, Exception)
    finally:
        fragile.drop(bare)
        fragile.drop(foreign)


def test_a_newer_schema_is_refused(place: str, driver: PostgresDriver) -> None:
    with psycopg.connect(place, autocommit=True) as other:
        other.execute("UPDATE meta SET value = '9999' WHERE key = 'schema'")
    assert "pip install -U mnemic" in _error(place, Exception)


def test_a_migration_that_fails_half_way_leaves_nothing_and_can_be_repeated(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = schema.migrations("postgres")
    monkeypatch.setattr(schema, "migrations", lambda _: (*whole[:2], (whole[2][0], "CREATE TABLE half (a int); SELEC")))
    assert "syntax" in _error(place, Exception)
    with psycopg.connect(place) as other:
        assert other.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
    monkeypatch.undo()
    made = open_postgres(place, StoreConfig())
    assert made.read("", lambda tx: tx.fetch("heads")) == []
    made.close()


def test_nodes_that_start_together_migrate_once(place: str) -> None:
    drivers = [open_postgres(place, StoreConfig()) for _ in range(6)]
    errors: list[BaseException] = []

    def start(made: PostgresDriver) -> None:
        try:
            made.read("", lambda tx: tx.fetch("heads"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=start, args=(made,)) for made in drivers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for made in drivers:
        made.close()
    assert errors == []


def test_no_session_state_is_left_for_the_next_user_of_a_pooled_connection(driver: PostgresDriver) -> None:
    """What a transaction pooler hands on: the same server session, another client's transaction."""
    driver.write("n", _put("one"))

    def settings(tx: Tx) -> list[str]:
        connection = tx._connection  # type: ignore[attr-defined]
        names = ("mnemic.namespace", "statement_timeout", "lock_timeout", "jit")
        connection.execute("ROLLBACK")
        return [str(connection.execute("SELECT current_setting(%s, true)", [n]).fetchone()[0] or "") for n in names]

    assert driver.read("n", settings) == ["", "0", "0", "on"]
