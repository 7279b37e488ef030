from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from mnemic.domain.types import Kind, Receipt, Seq
from mnemic.doors.cli.output import Output, Reply, dumps, one_line, plain, safe, size, wants_colour


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("a\rb", "a\\x0db"),
        ("over\x08\x08", "over\\x08\\x08"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("[red]not markup[/red]", "[red]not markup[/red]"),
        ("Grüße 日本 🙂 العربية\u200f", "Grüße 日本 🙂 العربية\u200f"),
        ("two\nlines\tand a tab\r\n", "two\nlines\tand a tab\n"),
    ],
)
def test_what_a_terminal_would_obey_is_shown_instead(stored: str, shown: str) -> None:
    assert safe(stored) == shown


def test_a_line_is_one_line_and_not_longer() -> None:
    assert one_line("a\n\n  b\tc") == "a b c"
    assert one_line("x" * 300) == "x" * 157 + "..."
    assert len(one_line("\x1b" * 300)) == 160


@pytest.mark.parametrize(
    ("environment", "terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
    ],
)
def test_colour_is_a_matter_of_the_environment(
    environment: dict[str, str], terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_colour(Terminal() if terminal else io.StringIO()) is expected


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_json_is_exact_in_every_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Grüße 日本 🙂 \x1b[31m \x9b \u202e \u2028"
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding=encoding))
    print(dumps({"text": text}), flush=True)
    line = raw.getvalue().decode(encoding)
    assert json.loads(line) == {"text": text}
    assert not {"\x1b", "\x9b", "\u202e", "\u2028"} & set(line)


def test_half_a_surrogate_pair_does_not_break_the_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    dumps({"text": "a\ud800"}).encode("utf-8")


def test_values_of_the_house_become_json_values() -> None:
    ident = UUID(int=7)
    assert plain(Receipt(ident, Seq(3), False)) == {"id": str(ident), "seq": 3, "spooled": False}  # type: ignore[arg-type]
    assert plain({"at": datetime(2026, 1, 5, 10, tzinfo=UTC)}) == {"at": "2026-01-05T10:00:00Z"}
    assert plain((Kind.NOTE, Path("/a b"), None, True)) == ["note", "/a b", None, True]
    with pytest.raises(TypeError):
        plain(object())


def test_a_reply_is_an_object_or_lines(capsys: pytest.CaptureFixture[str]) -> None:
    reply = Reply({"a": 1}, ["one", "two"], ["a hint"], exit_code=3)
    assert Output(as_json=False).reply(reply) == 3
    assert capsys.readouterr() == ("one\ntwo\n", "a hint\n")
    assert Output(as_json=True).reply(reply) == 3
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == ({"schema_version": 1, "a": 1}, "")


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_500, "1.5 kB"), (2_340_000, "2.3 MB"), (5e12, "5000.0 GB")],
)
def test_sizes_read_well(count: int, shown: str) -> None:
    assert size(int(count)) == shown
