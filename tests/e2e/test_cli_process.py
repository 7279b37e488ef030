"""The command line as its own process: what only a real one shows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mnemic import Memory

MNEMIC = (sys.executable, "-m", "mnemic.doors.main")
WORKER = {"MNEMIC_WORKER__ENABLED": "true"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "mem ory"


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MNEMIC_")}
    settings = {
        "MNEMIC_HOME": str(home),
        "MNEMIC_EMBEDDINGS__PROVIDER": "hashing",
        "MNEMIC_WORKER__ENABLED": "false",
        "MNEMIC_JOURNAL__KEY": "file",
    }
    return inherited | settings


def run(environment: dict[str, str], *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*MNEMIC, *words], env=environment, input=stdin, capture_output=True, timeout=60, check=False)


def test_the_version_costs_nothing(environment: dict[str, str]) -> None:
    listed = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "mnemic.doors.main", "--version"],
        env=environment,
        capture_output=True,
        check=True,
    )
    imported = {line.rsplit("|", 1)[-1].strip() for line in listed.stderr.decode().splitlines()}
    assert listed.stdout.startswith(b"mnemic ")
    assert not imported & {"numpy", "apsw", "typer", "asyncio", "rich", "platformdirs", "mnemic.config"}


def test_recall_imports_only_what_it_needs(environment: dict[str, str]) -> None:
    run(environment, "remember", "one")
    listed = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "mnemic.doors.main", "recall", "one"],
        env=environment,
        capture_output=True,
        check=True,
    )
    imported = {line.rsplit("|", 1)[-1].strip() for line in listed.stderr.decode().splitlines()}
    assert "numpy" in imported
    assert not imported & {"keyring", "httpx", "rich", "onnxruntime", "tiktoken", "psycopg", "cryptography.x509"}


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_no_encoding_crashes_it(environment: dict[str, str], encoding: str) -> None:
    text = "Grüße ✓ 日本 🙂 C:\\new\\table"
    environment |= {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    kept = run(environment, "remember", "-", "--json", stdin=text.encode())
    assert kept.returncode == 0
    found = run(environment, "recall", "Grüße", "--json")
    assert json.loads(found.stdout.decode(encoding))["hits"][0]["text"] == text
    shown = run(environment, "show", "1")
    assert shown.returncode == 0
    assert b"C:\\new\\table" in shown.stdout
    assert text.encode(encoding, "replace") in shown.stdout
    failed = run(environment, "show", "日本")
    assert (failed.returncode, failed.stdout) == (2, b"")


def test_a_reader_who_leaves_is_no_error(environment: dict[str, str]) -> None:
    rows = b"".join(b'{"role": "user", "content": "%s"}\n' % (b"x%d " % n * 40) for n in range(2_000))
    assert run(environment, "import", "-", stdin=rows).returncode == 0
    export = subprocess.Popen([*MNEMIC, "export"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert export.stdout is not None
    assert export.stderr is not None
    assert export.stdout.readline().startswith(b'{"format": "mnemic-event/1"')
    export.stdout.close()
    assert (export.wait(30), export.stderr.read()) == (0, b"")
    export.stderr.close()


def test_ctrl_c_is_code_130_and_breaks_nothing(environment: dict[str, str], home: Path) -> None:
    run(environment, "remember", "one")
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}  # a shell in the background ignores it
    with subprocess.Popen(
        [*MNEMIC, "work"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **heard
    ) as work:
        try:
            _wait(lambda: _lease(home))
            work.send_signal(signal.SIGINT)
            out, err = work.communicate(timeout=30)
        finally:
            work.kill()  # a failure must not wait for ever
    assert (work.returncode, out) == (130, b"")
    assert b"Traceback" not in err
    assert json.loads(run(environment, "status", "--json").stdout)["events"] == 1


def test_reading_starts_a_worker_that_finishes_and_holds_nothing(environment: dict[str, str], home: Path) -> None:
    """More than the moment of work before the answer can do: the rest is done by a process that nobody waits for."""
    rows = b"".join(
        b'{"role": "user", "content": "word%d and %s", "session": "s"}\n' % (n, b"more " * 30) for n in range(600)
    )
    environment |= {"MNEMIC_EMBEDDINGS__PROVIDER": "local"}
    run(environment, "import", "-", stdin=rows)
    found = run(environment | WORKER, "recall", "word7", "--json")
    assert json.loads(found.stdout)["hits"][0]["seq"] == 8
    assert found.stderr == b""
    _wait(lambda: _missing(environment) == 0, 120)
    assert (home / "worker.log").stat().st_mode & 0o777 == 0o600
    assert "Traceback" not in (home / "worker.log").read_text()


def test_without_a_worker_reading_does_no_work(environment: dict[str, str], home: Path) -> None:
    run(environment, "remember", "one")
    assert json.loads(run(environment, "recall", "one", "--json").stdout)["hits"][0]["seq"] == 1
    assert json.loads(run(environment, "status", "--json").stdout)["spaces"] == []
    assert not (home / "worker.log").exists()


def test_a_reader_works_for_a_moment_and_then_knows_meaning(environment: dict[str, str], home: Path) -> None:
    run(environment, "remember", "one")
    found = run(environment | WORKER, "recall", "one", "--json")
    assert json.loads(found.stdout)["hits"][0]["found_by"] == ["keyword", "vector"]
    assert not (home / "worker.log").exists()  # nothing was left to do


def test_a_folder_that_cannot_be_written(environment: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "a file"
    file.write_text("")
    failed = run(environment, "remember", "x", "--json", "--home", str(file / "inside"))
    assert (failed.returncode, failed.stdout) == (5, b"")
    error = json.loads(failed.stderr)["error"]
    assert (error["exit_code"], str(file) in error["message"]) == (5, True)
    broken = run(environment, "doctor", "--json", "--home", str(file / "inside"))
    assert broken.returncode in (0, 4)
    assert broken.stderr == b""


def test_a_held_store_neither_loses_a_note_nor_stops_a_question(environment: dict[str, str], home: Path) -> None:
    """Scenario U47, and the other half of it: while somebody holds the write lock."""
    import apsw

    run(environment, "remember", "one")
    holder = apsw.Connection(str(home / "mnemic.db"))
    holder.execute("BEGIN IMMEDIATE").fetchall()
    try:
        kept = json.loads(run(environment, "remember", "two", "--json").stdout)
        assert (kept["seq"], kept["spooled"]) == (0, True)
        before = time.monotonic()
        found = json.loads(run(environment | WORKER, "recall", "one", "--json").stdout)
        assert time.monotonic() - before < 5
        assert [hit["text"] for hit in found["hits"]] == ["one"]
        assert found["pending"] == 1
    finally:
        holder.execute("ROLLBACK").fetchall()
        holder.close()
    found = json.loads(run(environment, "recall", "two", "--json").stdout)
    assert (found["hits"][0]["text"], found["pending"]) == ("two", 0)


def _wait(ready: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)


def _missing(environment: dict[str, str]) -> int:
    now = json.loads(run(environment, "status", "--json").stdout)
    return int(now["work"]["missing"])


def _lease(home: Path) -> str:
    settings = {"worker.enabled": False, "embeddings.provider": "hashing"}
    with Memory.open(home=home, settings=settings) as memory:
        return memory.status().work.holder
