"""Chats in JSON, as they are found: other names, parts, broken lines, odd times, the same file again."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.domain.types import Role
from mnemic.errors import InvalidInput
from mnemic.integrations.importers import Failure, ImportOptions, Record, records, sniff

NOW = datetime(2031, 3, 12, 9, tzinfo=UTC)
OPTIONS = ImportOptions(now=NOW)


def read(*rows: object, options: ImportOptions = OPTIONS) -> list[Record | Failure]:
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    return list(records(io.BytesIO(text.encode("utf-8", "surrogatepass")), "chat.jsonl", options))


def one(row: object) -> Record:
    (found,) = read(row)
    assert isinstance(found, Record), found
    return found


def texts(found: Iterable[Record | Failure]) -> list[str]:
    return [item.text if isinstance(item, Record) else f"! {item.line}" for item in found]


def test_a_message_in_the_plainest_form() -> None:
    found = one({"role": "user", "content": "hi", "session": "s1", "at": "2026-01-05T10:00:00+01:00", "id": 7})
    assert (found.role, found.text, found.session, found.line) == (Role.USER, "hi", "s1", 1)
    assert found.at == datetime(2026, 1, 5, 9, tzinfo=UTC)
    assert (found.external_id, found.kind, found.actor, found.data, found.marks) == ("id:s1/7", "message", "", {}, ())


@pytest.mark.parametrize("key", ["content", "text", "message"])
@pytest.mark.parametrize("session", ["session", "conversation", "conversation_id", "session_id", "thread"])
@pytest.mark.parametrize("time", ["at", "timestamp", "created_at", "time", "date"])
def test_other_names_for_the_same_thing(key: str, session: str, time: str) -> None:
    found = one({key: "hi", session: "s1", time: 1_767_607_200, "author": "Ana", "channel": "mail", "kind": "note"})
    assert (found.text, found.session, found.actor, found.channel, found.kind) == ("hi", "s1", "Ana", "mail", "note")
    assert found.at == datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert found.data == {}


@pytest.mark.parametrize(
    ("row", "role", "actor"),
    [
        ({"role": "assistant"}, Role.ASSISTANT, ""),
        ({"role": "Human"}, Role.USER, ""),
        ({"role": "developer"}, Role.SYSTEM, ""),
        ({"role": "function", "name": "weather"}, Role.TOOL, "weather"),
        ({"role": "user", "name": "Ana"}, Role.USER, "Ana"),
        ({"speaker": "Ana"}, Role.USER, "Ana"),
        ({"speaker": "Assistant"}, Role.ASSISTANT, ""),
        ({"sender": "human"}, Role.USER, ""),
        ({"author": {"role": "assistant", "name": "Mo"}}, Role.ASSISTANT, "Mo"),
        ({"role": "narrator"}, Role.USER, "narrator"),
    ],
)
def test_who_speaks(row: dict[str, object], role: Role, actor: str) -> None:
    found = one({**row, "content": "hi"})
    assert (found.role, found.actor) == (role, actor)


def test_a_marker_is_a_kind_and_a_note_needs_no_role() -> None:
    assert (one({"role": "marker", "content": "session_clear"}).kind, one({"kind": "note", "text": "x"}).role) == (
        "marker",
        Role.USER,
    )


def test_a_message_without_a_speaker_is_refused() -> None:
    (found,) = read({"content": "who said this?"})
    assert isinstance(found, Failure)
    assert "chat.jsonl, line 1: no role and no speaker" in str(found.reason)


def test_parts_keep_their_texts_in_order_and_what_is_unknown() -> None:
    future = {"type": "x_future", "payload": {"a": [1, None]}}
    found = one(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "The boiler man comes on Friday"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                future,
                {"type": "text", "text": "photo of the boiler"},
            ],
        }
    )
    assert found.text == "The boiler man comes on Friday\n[image]\nphoto of the boiler"
    assert found.data == {"parts": [{"index": 2, "part": future}]}


def test_a_lone_image_and_a_lone_unknown_part_are_messages() -> None:
    assert one({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}).text == "[image]"
    lone = one({"role": "user", "content": [{"type": "x_future", "v": 1}]})
    assert (lone.text, lone.data) == ("[x_future]", {"parts": [{"index": 0, "part": {"type": "x_future", "v": 1}}]})


def test_an_answer_that_only_calls_tools_says_so() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]
    found = one({"role": "assistant", "content": None, "tool_calls": calls})
    assert (found.text, found.data) == ("[tool call: weather]", {"tool_calls": calls})


def test_what_has_no_name_is_kept() -> None:
    found = one({"role": "user", "content": "hi", "data": {"a": 1}, "mood": "fine", "lc": {"__class__": "x"}})
    assert found.data == {"a": 1, "other": {"mood": "fine", "lc": {"__class__": "x"}}}


def test_the_better_name_wins_and_the_other_is_kept() -> None:
    for row in ({"text": "b", "content": "a"}, {"content": "a", "text": "b"}):
        found = one({"role": "user", **row})
        assert (found.text, found.data) == ("a", {"other": {"text": "b"}})


def test_a_nested_message_takes_what_the_line_says_around_it() -> None:
    row = {
        "type": "user",
        "sessionId": "s1",
        "timestamp": "2026-01-05T10:00:00Z",
        "message": {"role": "user", "content": "hi"},
    }
    found = one(row)
    assert (found.text, found.session, found.role) == ("hi", "s1", Role.USER)


def test_a_list_and_an_object_with_messages_read_alike() -> None:
    rows = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    for whole in (rows, {"messages": rows}, {"session": "s1", "messages": rows}):
        for indent in (None, 1, 2):
            assert texts(read(json.dumps(whole, indent=indent))) == ["one", "two"]
    found = read({"id": "c9", "channel": "web", "messages": rows})
    assert [(item.session, item.channel) for item in found if isinstance(item, Record)] == [("c9", "web")] * 2


def test_conversations_without_a_name_do_not_run_together() -> None:
    first, second = (
        {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]} for text in "ab"
    )
    sessions = [item.session for item in read(first, second) if isinstance(item, Record)]
    assert sessions[0] == sessions[1] != sessions[2] == sessions[3]
    laid_out = [item.session for item in read(json.dumps(first, indent=2)) if isinstance(item, Record)]
    assert laid_out == sessions[:2]


def test_a_broken_line_is_reported_and_the_rest_goes_on() -> None:
    good = {"role": "user", "content": "fine"}
    deep = '{"role": "user", "content": "x", "data": ' + "[" * 100_000 + "]" * 100_000 + "}"
    found = read('{"role": "user", "cont', good, "[1, 2]", "null", deep, {"role": "user", "content": ""}, "", good)
    assert texts(found) == ["! 1", "fine", "! 3", "! 4", "! 5", "! 6", "fine"]
    assert "line 1: not valid JSON" in str(found[0].reason)  # type: ignore[union-attr]
    assert "empty" in str(found[5].reason)  # type: ignore[union-attr]


def test_data_that_is_nested_too_deep_or_not_finite() -> None:
    def nested(depth: int) -> object:
        return [nested(depth - 1)] if depth else 1

    assert texts(read({"role": "user", "content": "x", "data": {"a": nested(70)}})) == ["! 1"]
    assert one('{"role": "user", "content": "x", "data": {"a": NaN, "b": 1e999}}').data == {"a": None, "b": None}


def test_an_array_that_breaks_keeps_what_came_before() -> None:
    found = read('[{"role": "user", "content": "one"}, {"role": "user", "content": "two"}, {"role": ')
    assert texts(found) == ["one", "two", "! 3"]
    assert "what follows is not read" in str(found[2].reason)  # type: ignore[union-attr]
    assert texts(read('[{"role": "user", "content": "one"}, oops, {"role": "user", "content": "two"}]')) == [
        "one",
        "! 2",
    ]


def test_nul_surrogates_and_bad_bytes_come_through_as_text() -> None:
    rows = [
        b'{"role": "user", "content": "a\\u0000b"}',
        b'{"role": "user", "content": "half \\ud83d pair"}',
        b'{"role": "user", "content": "x", "data": {"k\\udc80": "v\\ud83d"}}',
        b'{"role": "user", "content": "bytes \xff\xfe"}',
        '{"role": "user", "content": "\ufffe\u202e"}'.encode(),
        b'{"role": "user", "content": "whole \\ud83d\\ude00"}',
    ]
    found = [item for item in records(io.BytesIO(b"\r\n".join(rows)), "x", OPTIONS) if isinstance(item, Record)]
    assert [item.text for item in found] == [
        "a\0b", "half \ufffd pair", "x", "bytes \ufffd\ufffd", "\ufffe\u202e", "whole 😀"
    ]  # fmt: skip
    assert found[2].data == {"k\ufffd": "v\ufffd"}
    assert ["text_replaced" in item.marks for item in found] == [False, True, False, True, False, False]


@pytest.mark.parametrize(
    ("time", "at", "marks"),
    [
        ("2026-02-30T10:00", None, ("time_marked", "time_unreadable")),
        ({"$date": 1}, None, ("time_marked", "time_unreadable")),
        (None, None, ("time_unknown",)),
        ("1969-12-31T10:00Z", datetime(1969, 12, 31, 10, tzinfo=UTC), ("time_marked", "time_before_1970")),
        (0, datetime(1970, 1, 1, tzinfo=UTC), ("time_marked", "time_before_1970")),
        ("2031-03-14T10:00Z", datetime(2031, 3, 14, 10, tzinfo=UTC), ("time_marked", "time_in_future")),
        ("2031-03-13T08:00Z", datetime(2031, 3, 13, 8, tzinfo=UTC), ()),  # within the tolerance
        ("2026-01-05", datetime(2026, 1, 5, tzinfo=UTC), ("time_day",)),
        (1_767_607_200_000, datetime(2026, 1, 5, 10, tzinfo=UTC), ()),
    ],
)
def test_an_odd_time_is_kept_and_marked(time: object, at: datetime | None, marks: tuple[str, ...]) -> None:
    found = one({"role": "user", "content": "hi", "at": time})
    assert (found.text, found.at, found.marks) == ("hi", at, marks)
    assert found.data == ({"time": time} if "time_unreadable" in marks else {})


def test_a_time_without_an_offset_is_local_to_the_given_zone() -> None:
    options = ImportOptions(zone=timezone(timedelta(hours=2)), now=NOW)
    (found,) = read({"role": "user", "content": "hi", "at": "2026-01-05 10:00"}, options=options)
    assert isinstance(found, Record)
    assert found.at == datetime(2026, 1, 5, 8, tzinfo=UTC)


def keys(found: Iterable[Record | Failure]) -> list[str]:
    return [item.external_id for item in found if isinstance(item, Record)]


def test_the_same_file_gives_the_same_ids_and_a_longer_one_adds_only_what_is_new() -> None:
    rows = [{"role": "user", "content": text} for text in ("hi", "ok", "ok", "bye", "ok")]
    before, after = keys(read(*rows)), keys(read(*rows, {"role": "user", "content": "ok"}))
    assert len(set(before)) == 5
    assert after[:5] == before
    assert after[5] not in before
    assert keys(read({"role": "user", "content": "earlier"}, *rows))[1:] == before  # not the position


def test_ids_tell_sessions_speakers_times_and_texts_apart_but_not_zones() -> None:
    base = {"role": "user", "content": "ok", "session": "a", "at": "2026-01-05 10:00"}
    changes = {"role": "assistant", "content": "OK", "session": "b", "at": "2026-01-05 10:01", "name": "Ana"}
    other = [base | {key: value} for key, value in changes.items()]
    found = keys(read(base, *other))
    assert len(set(found)) == 6
    moved = ImportOptions(zone=timezone(timedelta(hours=9)), now=NOW + timedelta(days=9_999))
    assert keys(read(base, *other, options=moved)) == found


def test_a_line_over_the_limit_is_skipped_and_not_held() -> None:
    good = {"role": "user", "content": "fine"}
    found = read(good, {"role": "user", "content": "x" * 2_000}, good, options=ImportOptions(now=NOW, max_bytes=1_000))
    assert texts(found) == ["fine", "! 2", "fine"]
    assert str(found[1].reason) == "chat.jsonl, line 2: longer than 1000 bytes; skipped"  # type: ignore[union-attr]


@pytest.mark.parametrize("shape", ["lines", "array", "messages"])
def test_memory_does_not_grow_with_the_file(shape: str) -> None:
    rows = 12_000
    shapes = {"lines": ("", "\n", ""), "array": ("[", ",\n", "]"), "messages": ('{"messages": [', ",", "]}")}
    opening, between, closing = shapes[shape]

    def stream() -> Iterator[bytes]:
        yield opening.encode()
        for number in range(rows):
            yield (
                f'{{"role": "user", "content": "{"x" * 2_000} {number}"}}' + (between if number < rows - 1 else "")
            ).encode()
        yield closing.encode()

    tracemalloc.start()
    count = sum(isinstance(item, Record) for item in records(stream(), "big", OPTIONS))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == rows  # 26 MB of text
    assert peak < 12_000_000


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=8), st.integers(1, 40), st.booleans())
def test_however_the_bytes_are_cut_the_messages_are_the_same(said: list[str], size: int, lines: bool) -> None:
    rows = [{"role": "user", "content": text} for text in said]
    raw = ("\n".join(map(json.dumps, rows)) if lines else json.dumps(rows, ensure_ascii=False, indent=1)).encode()
    cut = [raw[start : start + size] for start in range(0, len(raw), size)]
    assert texts(records(cut, "x", OPTIONS)) == said


@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:\\u0d8 \n\ta1', max_size=80).map(str.encode))
def test_no_bytes_raise_anything_but_invalid_input(raw: bytes) -> None:
    for start in (b"", b"[{", b'{"messages": [', b'{"role": "user", "content": "x"}\n'):
        try:
            for item in records(io.BytesIO(start + raw), "x", OPTIONS):
                assert isinstance(item, Record | Failure)
        except InvalidInput as error:
            assert "x" in str(error)


def test_the_format_is_told_by_the_content() -> None:
    assert sniff(b'{"role": "user", "content": "x"}\n{"role"').name == "JSON Lines"
    assert sniff(b'{"broken": \n{"role": "user", "content": "x"}\n').name == "JSON Lines"
    assert sniff(b'\n [ {"role": "user"}]').name == "JSON"
    assert sniff(b'{\n "messages": [\n  {"role": "user", "content": "x"}\n ]}').name == "JSON"
    assert sniff(b"[2026-01-05 10:00] Ana: hi").name == "plain text"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_a_byte_order_mark_tells_the_encoding(encoding: str) -> None:
    raw = (("\ufeff" if encoding == "utf-16-le" else "") + '{"role": "user", "content": "ñandú 😀"}\n').encode(encoding)
    assert texts(records(io.BytesIO(raw), "x", OPTIONS)) == ["ñandú 😀"]


def test_what_is_no_chat_is_named() -> None:
    for raw, what in (
        (b"PK\x03\x04..", "zip archive"),
        (b"SQLite format 3\0", "SQLite"),
        (b"%PDF-1.7", "mnemic ingest"),
    ):
        with pytest.raises(InvalidInput, match=f"old.bin: this is .*{what}"):
            list(records(io.BytesIO(raw), "old.bin", OPTIONS))
    with pytest.raises(InvalidInput, match="ChatGPT export"):
        read([{"title": "x", "mapping": {}}])


def test_an_empty_file_holds_nothing() -> None:
    assert read("") == read(" \n\n") == read("[]") == []
