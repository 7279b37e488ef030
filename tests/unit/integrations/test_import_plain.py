"""Chats in plain text: who speaks is found, or the file is refused; never one blob."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from mnemic.domain.types import Role
from mnemic.errors import InvalidInput
from mnemic.integrations.importers import Failure, ImportOptions, Record, records

OPTIONS = ImportOptions(now=datetime(2031, 3, 12, 9, tzinfo=UTC))


def read(text: str | bytes, options: ImportOptions = OPTIONS) -> list[Record | Failure]:
    return list(records([text.encode() if isinstance(text, str) else text], "chat.txt", options))


def said(found: Iterable[Record | Failure]) -> list[tuple[str, str]]:
    return [(item.actor or item.role.value, item.text) for item in found if isinstance(item, Record)]


def test_times_in_brackets() -> None:
    found = read("[2026-01-05 10:00] Ana: hola\n[2026-01-05 10:01] Ben Ek: hi\nand more\n\nafter a gap\n")
    assert said(found) == [("Ana", "hola"), ("Ben Ek", "hi\nand more\n\nafter a gap")]
    assert [item.at for item in found if isinstance(item, Record)] == [
        datetime(2026, 1, 5, 10, 0, tzinfo=UTC),
        datetime(2026, 1, 5, 10, 1, tzinfo=UTC),
    ]
    assert [item.line for item in found] == [1, 2]


@pytest.mark.parametrize(
    ("line", "hour"),
    [
        ("2026-01-05T10:00Z user: hi", 10),
        ("2026-01-05T10:00:30Z user: hi", 10),
        ("2026-01-05 10:00 user: hi", 8),  # in the zone, two hours ahead
        ("2026-01-05 10:00 +05:00 user: hi", 5),
        ("2026-01-05, 10:00 - user: hi", 8),
    ],
)
def test_times_without_brackets(line: str, hour: int) -> None:
    (found,) = read(line, ImportOptions(zone=timezone(timedelta(hours=2)), now=OPTIONS.now))
    assert isinstance(found, Record)
    assert found.at is not None
    assert (found.role, found.text, found.at.hour) == (Role.USER, "hi", hour)


def test_role_words_without_times() -> None:
    found = read("User: What is a fjord?\nAssistant: A sea inlet.\nExample: Geiranger\nNote: deep.\n\nUser: thanks\n")
    assert said(found) == [
        ("user", "What is a fjord?"),
        ("assistant", "A sea inlet.\nExample: Geiranger\nNote: deep."),
        ("user", "thanks"),
    ]
    assert {item.marks for item in found if isinstance(item, Record)} == {("time_unknown",)}


def test_names_without_times() -> None:
    found = read(
        "Ana: bring milk\nNote: the blue one\nhttp://x.example/a: b\nJuan Gómez: ok\nhe said: no\n田中：はい\n"
    )
    assert said(found) == [
        ("Ana", "bring milk\nNote: the blue one\nhttp://x.example/a: b"),
        ("Juan Gómez", "ok\nhe said: no"),
        ("田中", "はい"),
    ]


def test_the_text_may_start_on_the_next_line() -> None:
    assert said(read("User:\nfirst\n  second\nAssistant:\tok")) == [("user", "first\n  second"), ("assistant", "ok")]


def test_in_a_chat_with_times_only_a_time_starts_a_message() -> None:
    found = read("[2026-01-05 10:00] Ana: to do\nBen: milk\nUser: eggs\n")
    assert said(found) == [("Ana", "to do\nBen: milk\nUser: eggs")]


def test_an_impossible_time_is_kept_and_marked() -> None:
    (found,) = read("[2026-02-30 10:00] Ana: hi")
    assert isinstance(found, Record)
    assert (found.at, found.marks, found.data) == (
        None,
        ("time_marked", "time_unreadable"),
        {"time": "2026-02-30 10:00"},
    )


@pytest.mark.parametrize(
    "text",
    [
        "It was a dark night.\nThe rain fell.\n",
        "# Title\n\nSome prose: with a colon.\n",
        "the man said: no.\n",
        "Dear Ana,\nthank you.\nBen: see you\n",
        "word\n" * 5_000,
    ],
)  # fmt: skip
def test_a_text_without_speakers_is_an_error_that_says_what_is_expected(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"chat\.txt.*no speaker.*`Ana: text`.*mnemic ingest"):
        read(text)


def test_lines_before_the_first_time_are_reported_and_skipped() -> None:
    found = read("Chat with Ana\nexported today\n\n[2026-01-05 10:00] Ana: hi\n")
    assert said(found) == [("Ana", "hi")]
    assert isinstance(found[0], Failure)
    assert str(found[0].reason) == "chat.txt, line 1: 2 line(s) before the first message have no speaker; skipped"


def test_an_empty_message_is_reported() -> None:
    found = read("Ana:\nBen: hi\n")
    assert isinstance(found[0], Failure)
    assert found[0].line == 1
    assert said(found) == [("Ben", "hi")]


def test_the_same_file_again_and_a_longer_one() -> None:
    def keys(text: str) -> list[str]:
        return [item.external_id for item in read(text) if isinstance(item, Record)]

    text = "Ana: ok\nBen: ok\nAna: ok\n"
    assert len(set(keys(text))) == 3
    assert keys(text) == keys(text.replace("\n", "\r\n")) == keys(text + "Ben: ok\n")[:3]
    assert len(set(keys(text + "Ben: ok\n"))) == 4


def test_bytes_that_are_not_utf_8_are_replaced_and_marked() -> None:
    found = read(b"Ana: caf\xe9 \x00 ok\nBen: fine\n")
    assert said(found) == [("Ana", "caf\ufffd \0 ok"), ("Ben", "fine")]
    assert [item.marks for item in found if isinstance(item, Record)] == [
        ("time_unknown", "text_replaced"),
        ("time_unknown",),
    ]


def test_a_message_or_line_over_the_limit_is_skipped() -> None:
    options = ImportOptions(now=OPTIONS.now, max_bytes=100)
    found = read("Ana: " + "x" * 200 + "\nAna: ok\n" + "more of it\n" * 20 + "Ben: fine\n", options)
    assert [item.line for item in found if isinstance(item, Failure)] == [1, 2]
    assert said(found) == [("Ben", "fine")]


@pytest.mark.parametrize(
    "line",
    ["[" + "1" * 1_000_000, "2026-01-05T10:00" + " " * 1_000_000, "A" + " " * 1_000_000, "a b " * 250_000,
     "[1]" + " " * 1_000_000, "2026-01-05" + " " * 1_000_000],
)  # fmt: skip
def test_a_hostile_line_costs_one_pass(line: str) -> None:
    before = time.process_time()
    with pytest.raises(InvalidInput):
        read(line)
    assert time.process_time() - before < 1
