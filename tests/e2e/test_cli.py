"""The commands, one after the other on one memory each, run in this process; `test_cli_process.py` runs real ones."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mnemic import Memory
from mnemic.doors.main import main


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err)["error"]


Cli = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("MNEMIC_")]:
        monkeypatch.delenv(name)
    place = tmp_path / "mem ory"  # a blank in the path, as in scenario U116
    monkeypatch.setenv("MNEMIC_HOME", str(place))
    monkeypatch.setenv("MNEMIC_EMBEDDINGS__PROVIDER", "hashing")
    monkeypatch.setenv("MNEMIC_WORKER__ENABLED", "false")
    monkeypatch.setenv("MNEMIC_JOURNAL__KEY", "file")
    monkeypatch.setenv("MNEMIC_TIMEZONE", "UTC")
    monkeypatch.chdir(tmp_path)
    return place


@pytest.fixture
def cli(home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    logger = logging.getLogger("mnemic")
    before = logger.level, logger.propagate, list(logger.handlers)

    def run(*words: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = main(list(words))
        out, err = capfd.readouterr()
        return Result(code, out, err)

    yield run
    logger.setLevel(before[0])
    logger.propagate, logger.handlers = before[1], before[2]


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


# -- remember, recall


def test_what_is_remembered_is_recalled_with_its_reasons(cli: Cli) -> None:
    kept = cli("remember", "The staging server moved to 10.0.1.5", "--json")
    assert kept.code == 0
    assert (kept.json["seq"], kept.json["spooled"], kept.json["schema_version"]) == (1, False, 1)
    cli("remember", "Ana plays the cello")
    found = cli("recall", "where is staging?", "--json").json
    first = found["hits"][0]
    assert (first["id"], first["seq"], first["text"]) == (
        kept.json["id"],
        1,
        "The staging server moved to 10.0.1.5",
    )
    assert first["found_by"][0] == "keyword"
    assert first["parts"]
    assert (first["role"], first["kind"], first["trust"], first["session"]) == ("user", "note", "user", None)
    assert (found["pending"], found["notices"]) == (0, [])
    shown = cli("recall", "where is staging?")
    assert "The staging server moved to 10.0.1.5" in shown.out.splitlines()[0]
    assert "words: staging" in shown.out.splitlines()[1]


def test_everything_that_can_be_said_of_an_event_is_kept(cli: Cli) -> None:
    said = (
        "--session",
        "s 1",
        "--at",
        "2026-01-05T10:00",
        "--role",
        "assistant",
        "--actor",
        "Bo",
        "--channel",
        "phone",
    )
    more = ("--kind", "message", "--importance", "0.9", "--data", '{"a": [1, "ü"]}', "--project", "alpha")
    seq = cli("remember", "Lunch is at noon", *said, *more, "--data", '{"a": [1, "ü"]}', "--json").json["seq"]
    event = cli("show", str(seq), "--json").json["event"]
    assert event["at"] == "2026-01-05T10:00:00Z"
    assert event["data"] == {"a": [1, "ü"]}
    names = ("session", "role", "actor", "channel", "kind", "importance", "project")
    assert [event[name] for name in names] == ["s 1", "assistant", "Bo", "phone", "message", 0.9, "alpha"]


def test_questions_can_be_narrowed(cli: Cli) -> None:
    for session, role, day in (("a", "user", "01"), ("b", "assistant", "02"), ("c", "user", "03")):
        said = ("--session", session, "--role", role, "--at", f"2026-01-{day}", "--channel", f"ch-{session}")
        cli("remember", f"apples {session}", *said)

    def texts(*options: str) -> list[str]:
        return sorted(hit["text"] for hit in cli("recall", "apples", "--json", *options).json["hits"])

    assert texts() == ["apples a", "apples b", "apples c"]
    assert texts("--role", "assistant") == ["apples b"]
    assert texts("--session", "a", "--session", "c") == ["apples a", "apples c"]
    assert texts("--channel", "ch-c") == ["apples c"]
    assert texts("--since", "2026-01-02") == ["apples b", "apples c"]
    assert texts("--until", "2026-01-02") == ["apples a", "apples b"]
    assert texts("--kind", "message") == []
    assert len(texts("-k", "1")) == 1


def test_fail_empty_is_code_three(cli: Cli) -> None:
    assert cli("recall", "nothing", "--json").json["hits"] == []
    empty = cli("recall", "nothing", "--fail-empty")
    assert (empty.code, empty.out) == (3, "nothing found\n")


@pytest.mark.parametrize(
    "text",
    [
        "C++ and a*",
        "co-pilot can't GB/s src:main",
        '"half quote (open',
        "100% under_score \\ ;--",
        "🙂 emoji",
        "港の夜景",
    ],
)
def test_any_text_is_a_question_and_comes_back_as_it_was(cli: Cli, text: str) -> None:
    cli("remember", text)
    found = cli("recall", text, "--json")
    assert found.code == 0
    assert found.json["hits"][0]["text"] == text


def test_stdin_is_read_by_a_dash(cli: Cli) -> None:
    seq = cli("remember", "-", "--json", stdin="Grüße aus Köln\n".encode()).json["seq"]
    assert cli("show", str(seq), "--json").json["event"]["text"] == "Grüße aus Köln"
    assert cli("recall", "-", "--json", stdin=b"K\xc3\xb6ln?\r\n").json["hits"][0]["seq"] == seq


def test_bytes_that_are_no_text_become_replacement_characters(cli: Cli) -> None:
    bad = b"a lone surrogate \xed\xa0\x80, a NUL \x00, latin \xe9\n"
    seq = cli("remember", "-", "--json", stdin=bad).json["seq"]
    text = cli("show", str(seq), "--json").json["event"]["text"]
    assert text == "a lone surrogate \ufffd\ufffd\ufffd, a NUL \ufffd, latin \ufffd"
    from_argument = cli("remember", os.fsdecode(b"latin \xe9"), "--json").json["seq"]
    assert cli("show", str(from_argument), "--json").json["event"]["text"] == "latin \ufffd"


def test_stored_escapes_do_nothing_to_a_terminal(cli: Cli) -> None:
    text = "[red]a[/red] \x1b[31m trap \x1b[0m \x9b2J"
    seq = cli("remember", text, "--session", "\x1b]0;owned\x07", "--actor", "\x1b[5mEve", "--json").json["seq"]
    for words in (
        ("recall", "trap", "--explain"),
        ("show", str(seq)),
        ("events",),
        ("sessions",),
        ("recall", "trap", "--full"),
    ):
        shown = cli(*words).out
        assert not {"\x1b", "\x9b", "\x07"} & set(shown), words
    assert "[red]a[/red] \\x1b[31m trap" in cli("recall", "trap").out
    assert cli("show", str(seq), "--json").json["event"]["text"] == text


# -- errors


@pytest.mark.parametrize(
    ("words", "code", "kind", "message"),
    [
        (("remember", "  \n "), 2, "InvalidInput", "empty"),
        (("remember", "x", "--role", "usr"), 2, "InvalidInput", "did you mean user"),
        (("remember", "x", "--kind", "mesage"), 2, "InvalidInput", "did you mean message"),
        (("remember", "x", "--at", "someday"), 2, "InvalidInput", "someday"),
        (("remember", "x", "--at", "1969-07-20"), 2, "InvalidInput", "before 1970"),
        (("remember", "x", "--at", "2999-01-01"), 2, "InvalidInput", "future"),
        (("remember", "x", "--importance", "7"), 2, "InvalidInput", "between 0 and 1"),
        (("remember", "x", "--data", "{"), 2, "InvalidInput", "no JSON"),
        (("remember", "x", "--data", "[]"), 2, "InvalidInput", "JSON object"),
        (("remember", "x", "--project", "./nowhere"), 2, "InvalidInput", "no such folder"),
        (("recall", "x", "--role", "usr"), 2, "InvalidInput", "did you mean user"),
        (("recall", "x", "--since", "soon"), 2, "InvalidInput", "soon"),
        (("recall",), 2, "UsageError", "--help"),
        (("recall", "x", "-k", "0"), 2, "UsageError", "x>=1"),
        (("recal", "x"), 2, "UsageError", "did you mean recall"),
        (("show", "99"), 3, "NotFound", "no event 99"),
        (("show", "chunk:99"), 3, "NotFound", "no chunk 99"),
        (("show", "what"), 2, "InvalidInput", "neither"),
        (("import", "nowhere.jsonl"), 2, "InvalidInput", "cannot be read"),
        (("restore", "nowhere.db"), 2, "InvalidInput", "cannot be read"),
        (("reindex", "--embedder", "nope"), 4, "ModelMissing", "nope"),
        (("reindex", "--model", "m"), 2, "InvalidInput", "--embedder"),
        (("remember", "x", "--namespace", "n" * 201), 2, "InvalidInput", "namespace"),
    ],
)
def test_errors_say_what_to_do_and_have_their_code(
    cli: Cli, words: tuple[str, ...], code: int, kind: str, message: str
) -> None:
    failed = cli(*words, "--json")
    assert (failed.code, failed.out) == (code, "")
    assert (failed.error["type"], failed.error["exit_code"]) == (kind, code)
    assert message in failed.error["message"]
    spoken = cli(*words)
    assert (spoken.code, spoken.out) == (code, "")
    assert spoken.err.startswith("mnemic: ")
    assert message in spoken.err
    assert cli("events", "--json").json["events"] == []


def test_a_text_over_the_limit_is_refused_from_both_sides(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMIC_RECORD__MAX_BYTES", "1000")
    for words, stdin in ((("remember", "é" * 501), b""), (("remember", "-"), b"x" * 1100)):
        failed = cli(*words, "--json", stdin=stdin)
        assert (failed.code, failed.error["type"]) == (2, "InvalidInput")
        assert "1,000" in failed.error["message"]
    assert cli("remember", "-", "--json", stdin=b"x" * 1000).code == 0


def test_an_unknown_setting_is_named_with_the_nearest(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMIC_EMBEDINGS__MODEL", "x")
    failed = cli("recall", "x", "--json")
    assert (failed.code, failed.error["type"]) == (4, "ConfigError")
    assert "did you mean embeddings.model?" in failed.error["message"]
    assert "MNEMIC_EMBEDINGS__MODEL" in failed.error["message"]


def test_passwords_are_in_no_message(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMIC_STORE__URL", "mysql://ana:s3cret@db/m")
    for words in (
        ("recall", "x"),
        ("status", "--json"),
        ("doctor",),
        ("config", "list"),
        ("config", "path"),
        ("recall", "x", "-vv"),
    ):
        result = cli(*words)
        assert "s3cret" not in result.out + result.err, words
    assert "mysql://ana:***@db/m" in cli("config", "list").out


# -- common options


def test_common_options_stand_before_or_after_the_command(cli: Cli, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert cli("--json", "--home", str(other), "--namespace", "n", "remember", "there").json["seq"] == 1
    assert cli("events", "--home", str(other), "--namespace", "n", "--json").json["events"][0]["text"] == "there"
    assert cli("events", "--home", str(other), "--json").json["events"] == []
    assert cli("events", "--json").json["events"] == []


def test_the_first_screen_needs_no_memory(cli: Cli, home: Path) -> None:
    first = cli()
    assert first.code == 0
    assert f"Memory: sqlite:///{home}/mnemic.db (new)" in first.out
    assert not home.exists()


def test_completion_knows_commands_and_options(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "_MNEMIC_COMPLETE" in cli("completion", "bash").out
    monkeypatch.setenv("_MNEMIC_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "mnemic re")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        main([])
    monkeypatch.delenv("_MNEMIC_COMPLETE")


# -- settings


def test_settings_come_with_their_origin(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    (home / "config.toml").write_text('project = "mine"\n[vector]\ntop_k = 4\n')
    monkeypatch.setenv("MNEMIC_EMBEDDINGS__API_KEY", "sk-abcdefghijklmnop")
    listed = {row["key"]: row for row in cli("config", "list", "--json", "--namespace", "n").json["settings"]}
    file = str(home / "config.toml")
    assert listed["project"] == {"key": "project", "value": "mine", "origin": file}
    assert listed["vector.top_k"] == {"key": "vector.top_k", "value": 4, "origin": file}
    assert listed["embeddings.api_key"]["value"] == "********"
    assert listed["embeddings.api_key"]["origin"] == "environment MNEMIC_EMBEDDINGS__API_KEY"
    assert listed["namespace"] == {"key": "namespace", "value": "n", "origin": "--namespace"}
    assert listed["recall.fusion"]["origin"] == "default"
    assert "sk-abc" not in cli("config", "list").out
    paths = cli("config", "path", "--json").json
    assert (paths["config"], paths["home"], paths["store"]) == (file, str(home), f"sqlite:///{home}/mnemic.db")


def test_the_project_of_the_settings_is_on_what_is_remembered(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMIC_PROJECT", "mine")
    seq = cli("remember", "x", "--json").json["seq"]
    assert cli("show", str(seq), "--json").json["event"]["project"] == "mine"


# -- status, show


def test_status_counts(cli: Cli, home: Path) -> None:
    cli("remember", "one", "--session", "s")
    cli("work", "--until-idle")
    now = cli("status", "--json").json
    assert (now["events"], now["sessions"], now["chunks"], now["pending"]) == (1, 1, 1, 0)
    assert now["store"] == f"sqlite:///{home}/mnemic.db"
    assert [(s["state"], s["vectors"], s["missing"]) for s in now["spaces"]] == [("serving", 1, 0)]
    assert now["embedder"].startswith("hashing/")
    assert "1 in 1 sessions" in cli("status").out


def test_show_tells_all_about_an_event_and_a_chunk(cli: Cli) -> None:
    kept = cli("remember", "The staging server moved to 10.0.1.5", "--json").json
    cli("work", "--until-idle")
    by_seq, by_id = cli("show", "1", "--json").json, cli("show", kept["id"], "--json").json
    assert by_seq == by_id
    chunk = by_seq["chunks"][0]
    assert (chunk["start"], chunk["stop"], chunk["text"]) == (0, 36, "The staging server moved to 10.0.1.5")
    assert chunk["kept"] is True
    assert [label.split("/")[0] for label in chunk["spaces"]] == ["hashing"]
    only = cli("show", f"chunk:{chunk['id']}", "--json").json
    assert (only["event"]["id"], only["chunks"]) == (kept["id"], [chunk])
    assert "The staging server moved" in cli("show", "1").out


def test_events_and_sessions_are_listed(cli: Cli) -> None:
    for number in range(5):
        cli("remember", f"text {number}", "--session", f"s{number % 2}")
    page = cli("events", "--limit", "2", "--json").json
    assert [event["seq"] for event in page["events"]] == [1, 2]
    assert [event["seq"] for event in cli("events", "--after", str(page["last"]), "--json").json["events"]] == [3, 4, 5]
    assert [event["text"] for event in cli("events", "--session", "s1", "--json").json["events"]] == [
        "text 1",
        "text 3",
    ]
    sessions = cli("sessions", "--json").json["sessions"]
    assert [(s["session"], s["events"]) for s in sessions] == [("s0", 3), ("s1", 2)]


# -- import, export

CHAT = (
    line(role="user", content="My sister Ana lives in Porto", session="s1", at="2026-01-05T10:00:00Z")
    + b"this is no json\n"
    + line(role="assistant", content="Noted.", session="s1", at="1901-01-01T00:00:00Z")
    + line(role="user", content="no time", kind="whisper", colour="red")
)


def test_an_import_keeps_what_it_can_and_says_what_it_cannot(cli: Cli) -> None:
    done = cli("import", "-", "--json", stdin=CHAT)
    assert done.code == 1
    assert [done.json[name] for name in ("imported", "skipped", "failed", "sessions")] == [3, 0, 1, 2]
    assert done.json["failures"][0]["line"] == 2
    hit = cli("recall", "Ana", "--json").json["hits"][0]
    assert (hit["text"], hit["session"], hit["at"], hit["trust"]) == (
        "My sister Ana lives in Porto",
        "s1",
        "2026-01-05T10:00:00Z",
        "import",
    )
    events = cli("events", "--json").json["events"]
    assert events[1]["at"] == "1901-01-01T00:00:00Z"
    assert "time_before_1970" in events[1]["data"]["marks"]
    assert (events[2]["session"], events[2]["kind"], events[2]["data"]["kind"]) == ("stdin", "message", "whisper")
    assert events[2]["data"]["other"] == {"colour": "red"}
    assert events[2]["data"]["marks"] == ["time_unknown", "kind_unknown"]


def test_the_same_import_again_adds_nothing(cli: Cli, tmp_path: Path) -> None:
    cli("import", "-", stdin=CHAT)
    before = cli("export").out
    again = cli("import", "-", "--json", stdin=CHAT).json
    assert (again["imported"], again["skipped"], again["failed"]) == (0, 3, 1)
    longer = tmp_path / "longer.jsonl"
    longer.write_bytes(CHAT + line(role="user", content="one more", session="s1"))
    more = cli("import", str(longer), "--json").json
    assert (more["imported"], more["skipped"]) == (2, 2)  # the row without session and time belongs to its file
    assert cli("export").out.splitlines()[:3] == before.splitlines()


def test_an_id_that_comes_with_other_content_is_reported_and_changes_nothing(cli: Cli) -> None:
    cli("import", "-", stdin=line(id="m1", role="user", content="first", session="s"))
    second = cli("import", "-", "--json", stdin=line(id="m1", role="user", content="second", session="s"))
    assert (second.code, second.json["failed"], second.json["imported"]) == (1, 1, 0)
    assert "other content" in second.json["failures"][0]["reason"]
    assert [event["text"] for event in cli("events", "--json").json["events"]] == ["first"]


def test_plain_text_chats_and_dry_runs(cli: Cli, tmp_path: Path) -> None:
    chat = tmp_path / "holiday.txt"
    chat.write_text("[2026-01-05 10:00] Ana: I booked the hotel in Faro\n[2026-01-05 10:01] Bo: Great\nsee you\n")
    dry = cli("import", str(chat), "--dry-run", "--json").json
    assert (dry["imported"], dry["dry_run"], dry["first"]) == (2, True, "2026-01-05T10:00:00Z")
    assert cli("events", "--json").json["events"] == []
    cli("import", str(chat))
    events = cli("events", "--json").json["events"]
    assert [(e["actor"], e["text"], e["session"]) for e in events] == [
        ("Ana", "I booked the hotel in Faro", "holiday"),
        ("Bo", "Great\nsee you", "holiday"),
    ]


def test_rows_that_are_too_large_or_no_chat_at_all(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMIC_RECORD__MAX_BYTES", "100")
    done = cli("import", "-", "--json", stdin=line(role="user", content="x" * 101) + line(role="user", content="y"))
    assert (done.code, done.json["imported"], done.json["failed"]) == (1, 1, 1)
    assert "100 (record.max_bytes)" in done.json["failures"][0]["reason"]
    refused = cli("import", "-", "--json", stdin=b"PK\x03\x04rest")
    assert (refused.code, refused.error["type"]) == (2, "InvalidInput")
    assert cli("import", "-", "--json", stdin=b"").json["imported"] == 0


def test_an_export_restores_everything_in_another_memory(cli: Cli, tmp_path: Path) -> None:
    cli("import", "-", stdin=CHAT)
    said = ("--at", "2026-02-01", "--data", '{"a": {"b": null}}', "--session", " s ")
    cli("remember", "a note\n\x1b[31m ü 日本", *said)
    with Memory.open() as memory:
        memory.record("", kind="marker", role="system", session="s1")
    file, other = tmp_path / "out.jsonl", str(tmp_path / "other")
    written = cli("export", "--out", str(file), "--json").json
    assert (written["exported"], written["out"]) == (5, str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert cli("import", str(file), "--home", other, "--json").json["imported"] == 5
    assert cli("export", "--home", other).out == file.read_text() == cli("export").out
    assert cli("import", str(file), "--json").json["skipped"] == 5
    whole = cli("export", "--json").json
    assert (whole["schema_version"], len(whole["events"])) == (1, 5)


# -- keeping


def test_a_restored_backup_gets_back_what_the_journal_holds(cli: Cli, home: Path, tmp_path: Path) -> None:
    backup = str(tmp_path / "b.db")
    cli("remember", "one")
    assert cli("backup", backup, "--json").json["events"] == 1
    assert cli("backup", backup).code == 2
    cli("remember", "two")
    refused = cli("restore", backup, "--json")
    assert (refused.code, refused.error["type"]) == (2, "InvalidInput")
    assert "--yes" in refused.error["message"]
    done = cli("restore", backup, "--yes", "--json").json
    assert (done["events"], done["replayed"], done["journal_kept"]) == (1, 1, None)
    assert [event["text"] for event in cli("events", "--json").json["events"]] == ["one", "two"]
    exact = cli("restore", backup, "--yes", "--exact", "--json").json
    assert (exact["events"], exact["replayed"]) == (1, 0)
    assert Path(exact["kept"]).exists()
    assert Path(exact["journal_kept"]).exists()
    assert [event["text"] for event in cli("events", "--json").json["events"]] == ["one"]
    assert cli("remember", "three", "--json").json["seq"] == 2
    assert cli("doctor", "--json").json["ok"] is True
    assert not list(home.glob("*restoring*"))


def test_a_backup_of_another_store_brings_no_foreign_journal(cli: Cli, tmp_path: Path) -> None:
    backup, other = str(tmp_path / "b.db"), str(tmp_path / "other")
    cli("remember", "mine")
    cli("backup", backup)
    assert cli("restore", backup, "--home", str(tmp_path / "new"), "--json").json["events"] == 1
    cli("remember", "theirs", "--home", other)
    done = cli("restore", backup, "--home", other, "--yes", "--json").json
    assert "not the journal of the restored store" in done["journal_note"]
    assert [event["text"] for event in cli("events", "--home", other, "--json").json["events"]] == ["mine"]


def test_what_is_no_backup_changes_nothing(cli: Cli, home: Path, tmp_path: Path) -> None:
    cli("remember", "one")
    backup = tmp_path / "b.db"
    cli("backup", str(backup))
    whole = backup.read_bytes()
    newer = whole[:60] + (999).to_bytes(4) + whole[64:]
    halved = whole[: len(whole) // 2]
    empty_schema = whole[:60] + bytes(4) + whole[64:]
    before = (home / "mnemic.db").read_bytes()
    for content, code, kind in (
        (b"no database", 2, "InvalidInput"),
        (empty_schema, 2, "InvalidInput"),
        (newer, 5, "SchemaTooNew"),
        (halved, 5, "StorageDamaged"),
    ):
        backup.write_bytes(content)
        failed = cli("restore", str(backup), "--yes", "--json")
        assert (failed.code, failed.error["type"]) == (code, kind)
    assert (home / "mnemic.db").read_bytes() == before
    assert [path.name for path in home.glob("mnemic.db*")] == ["mnemic.db"]


def test_a_store_in_use_is_not_replaced(cli: Cli, home: Path, tmp_path: Path) -> None:
    backup = str(tmp_path / "b.db")
    cli("remember", "one")
    cli("backup", backup)
    with Memory.open() as memory:
        memory.record("two")
        memory.settle()
        failed = cli("restore", backup, "--yes", "--json")
        assert (failed.code, failed.error["type"]) == (5, "StorageLocked")
    assert len(cli("events", "--json").json["events"]) == 2


def test_reindex_moves_to_another_space(cli: Cli) -> None:
    cli("remember", "one")
    cli("work", "--until-idle")
    done = cli("reindex", "--embedder", "local", "--json").json
    assert done["space"].startswith("local/")
    assert (done["state"], done["vectors"], done["missing"]) == ("serving", 1, 0)
    assert cli("status", "--json").json["embedder"].startswith("local/")


def test_work_says_what_it_did(cli: Cli) -> None:
    cli("remember", "one")
    assert cli("work", "--until-idle", "--json").json == {"schema_version": 1, "idle": True, "done": 1, "missing": 0}
    assert cli("work", "--seconds", "0", "--json").json["idle"] is False


# -- doctor


def levels(result: Result) -> dict[str, str]:
    return {check["name"]: check["level"] for check in result.json["checks"]}


def test_doctor_on_nothing_makes_nothing(cli: Cli, home: Path) -> None:
    found = cli("doctor", "--json")
    assert (found.code, found.json["ok"]) == (0, True)
    assert not home.exists()


def test_doctor_on_a_good_memory(cli: Cli) -> None:
    cli("remember", "one")
    found = cli("doctor", "--json")
    assert found.code == 0
    for name in (
        "python",
        "sqlite",
        "config",
        "permissions",
        "disk",
        "store",
        "integrity",
        "journal",
        "pending",
        "vectors",
    ):
        assert levels(found)[name] == "ok", name
    key = next(check for check in found.json["checks"] if check["name"] == "journal key")
    assert "from the file; protects against" in key["text"]
    assert "ok    python" in cli("doctor").out


def test_doctor_warns_about_what_others_can_read(cli: Cli, home: Path) -> None:
    cli("remember", "one")
    home.chmod(0o755)
    found = cli("doctor", "--json")
    assert (found.code, levels(found)["permissions"]) == (0, "warn")
    assert cli("doctor", "--strict").code == 1
    assert f"chmod 700 {home}" in cli("doctor").out


def test_doctor_finds_and_repairs_damaged_vectors(cli: Cli, home: Path) -> None:
    import apsw

    cli("remember", "one")
    cli("work", "--until-idle")
    with apsw.Connection(str(home / "mnemic.db")) as database:
        database.execute("UPDATE vectors SET vector = x'00'").fetchall()
    broken = cli("doctor", "--json")
    assert (broken.code, levels(broken)["vectors"]) == (4, "fail")
    assert cli("recall", "one", "--json").json["hits"][0]["text"] == "one"
    mended = cli("doctor", "--repair", "--json")
    assert (mended.code, levels(mended)["vectors"]) == (0, "warn")
    assert cli("work", "--until-idle", "--json").json["done"] == 1
    assert levels(cli("doctor", "--json"))["vectors"] == "ok"


@pytest.mark.parametrize("what", ["config", "store", "newer", "key", "journal"])
def test_doctor_says_what_is_broken(cli: Cli, home: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("remember", "one")
    store = home / "mnemic.db"
    journal = next(home.glob("journal/*/journal.db"))
    match what:
        case "config":
            monkeypatch.setenv("MNEMIC_NO__SUCH", "1")
        case "store":
            store.write_bytes(b"\xff" * 8192)
        case "newer":
            whole = store.read_bytes()
            store.write_bytes(whole[:60] + (999).to_bytes(4) + whole[64:])
        case "key":
            journal.with_name("journal.key").write_bytes(b"A" * 43 + b"=\n")
        case "journal":
            journal.write_bytes(b"\xff" * 8192)
    found = cli("doctor", "--json")
    assert (found.code, found.json["ok"]) == (4, False)
    failing = next(check for check in found.json["checks"] if check["level"] == "fail")
    assert failing["name"] == {"newer": "store", "key": "journal"}.get(what, what)
    failed = cli("recall", "one", "--json")
    kinds = {"config": (4, "ConfigError"), "store": (5, "StorageDamaged"), "newer": (5, "SchemaTooNew")}
    kinds |= {"key": (5, "WrongKey"), "journal": (5, "JournalDamaged")}
    assert (failed.code, failed.error["type"]) == kinds[what]


def test_an_empty_place_beside_a_store_is_pointed_out(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("remember", "one")
    monkeypatch.setenv("MNEMIC_STORE__URL", f"sqlite:///{home}/other.db")
    found = cli("doctor", "--json")
    store = next(check for check in found.json["checks"] if check["name"] == "store")
    assert store["level"] == "warn"
    assert str(home / "mnemic.db") in store["text"]


# -- demo


def test_the_demo_leaves_the_memory_alone_and_answers(cli: Cli, home: Path) -> None:
    found = cli("demo", "--json").json
    assert (found["events"], found["sessions"], len(found["questions"])) == (31, 4, 6)
    first = {question["text"]: question["hits"][0]["text"] for question in found["questions"]}
    assert "4417" in first["What is the padlock code?"]
    assert "rash" in first["Is there any fruit that Mara cannot eat?"]
    assert "removal" in first["When does the removal company come?"]
    assert "Fischmarkt" in first["Wo wohnt die Großmutter?"]
    assert "夜景" in first["夜景"]
    assert found["questions"][-1]["hits"][0]["at"] > "2026-04-01"
    assert found["seconds"] < 10
    assert not home.exists()


def test_the_products_own_docs_answer_under_a_topic_of_ones_own(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMIC_TOPICS__TAXONOMY", "fixed")
    monkeypatch.setenv("MNEMIC_TOPICS__CUSTOM_TOPICS", '["configuration"]')
    docs = Path(__file__).parent.parent.parent / "docs"
    assert cli("ingest", str(docs), "--json").json["failed"] == []
    found = cli("recall", "what does the filter do", "--topic", "configuration", "--json").json["hits"]
    assert "What the filter does" in found[0]["text"]
    assert cli("recall", "filter", "--topic", "knitting", "--json").json["hits"] == []
