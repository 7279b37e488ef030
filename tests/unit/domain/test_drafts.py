"""From what a caller says to a checked event."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from mnemic.domain.drafts import Draft, Limits, make_event, uuid7
from mnemic.domain.types import Event, Kind, Role, Trust
from mnemic.errors import InvalidInput

NOW = datetime(2031, 3, 12, 9, 0, tzinfo=UTC)


def made(*arguments: object, **named: object) -> Event:
    return make_event(Draft(*arguments, **named), NOW, Limits(max_bytes=1_000))  # type: ignore[arg-type]


def test_what_is_left_out_gets_its_default() -> None:
    event = made("hello")
    assert (event.kind, event.role, event.trust, event.at, event.importance) == (
        Kind.MESSAGE,
        Role.USER,
        Trust.USER,
        NOW,
        0.5,
    )
    assert event.seq == 0
    assert event.id.version == 7


@pytest.mark.parametrize(
    ("role", "trust"), [("user", "user"), ("assistant", "assistant"), ("tool", "tool"), ("system", "tool")]
)
def test_trust_follows_the_role(role: str, trust: str) -> None:
    assert made("x", role=role).trust == Trust(trust)


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u00a0"])
def test_blank_text_is_refused_but_a_marker_needs_none(text: str) -> None:
    with pytest.raises(InvalidInput, match="nothing to remember"):
        made(text)
    assert made(text, kind="marker").text == text


def test_text_over_the_limit_is_refused_with_both_sizes() -> None:
    assert len(made("x" * 1_000).text) == 1_000
    with pytest.raises(InvalidInput, match=r"1,001 bytes, the limit is 1,000"):
        made("x" * 1_001)
    with pytest.raises(InvalidInput, match=r"1,002 bytes"):
        made("é" * 501)


def test_what_cannot_be_stored_everywhere_is_replaced_in_text_and_data() -> None:
    event = made("a\x00b\ud83d", data={"k\ud800": ["v\x00", {"n": "\udfff"}], "n": 3, "f": 0.5, "t": True, "z": None})
    assert event.text == "a\ufffdb\ufffd"
    assert event.data == {"k\ufffd": ["v\ufffd", {"n": "\ufffd"}], "n": 3, "f": 0.5, "t": True, "z": None}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, b"x"])
def test_data_that_is_no_json_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="data holds"):
        made("x", data={"k": value})


def test_data_that_never_ends_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InvalidInput, match="nested"):
        made("x", data={"k": endless})


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no time zone"):
        made("x", at=datetime(2031, 3, 1))


@pytest.mark.parametrize("at", [NOW + timedelta(days=1, seconds=1), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)])
def test_an_impossible_time_is_refused_and_kept_only_where_an_import_marked_it(at: datetime) -> None:
    with pytest.raises(InvalidInput, match="before 1970 or more than a day in the future"):
        made("x", at=at)
    event = made("x", at=at, marks=("time",))
    assert event.at == at
    assert event.data["marks"] == ["time"]


@pytest.mark.parametrize("at", [NOW + timedelta(days=1), datetime(1970, 1, 1, tzinfo=UTC)])
def test_the_bounds_of_time_are_inside(at: datetime) -> None:
    assert made("x", at=at).at == at


def test_times_become_utc() -> None:
    at = datetime(2031, 3, 12, 10, 0, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert made("x", at=at).at.isoformat() == "2031-03-12T04:30:00+00:00"


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"role": "asistant"}, "did you mean assistant?"),
        ({"role": "xyz"}, "known are: user, assistant, system, tool"),
        ({"kind": "mesage"}, "did you mean message?"),
        ({"trust": "nobody"}, "unknown trust"),
        ({"importance": 1.5}, "not between 0 and 1"),
        ({"id": "abc"}, "no UUID"),
        ({"session": "s" * 1_001}, "the session has 1001 characters"),
    ],
)
def test_a_wrong_value_is_named_with_the_way_out(named: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        made("x", **named)


@pytest.mark.parametrize(("alias", "kind"), [("read_file", Kind.EYE_READ), ("tool_call", Kind.BODY_TOOL)])
def test_the_second_vocabulary_of_perceptions_is_understood(alias: str, kind: Kind) -> None:
    assert made("x", kind=alias).kind is kind


def test_ids_are_kept_and_read_from_text() -> None:
    ident = UUID(int=7)
    assert made("x", id=ident).id == ident
    assert made("x", id=ident.hex).id == ident


def test_uuids_of_version_7_carry_the_time_and_differ() -> None:
    ids = {uuid7(NOW) for _ in range(1_000)}
    assert len(ids) == 1_000
    assert {i.version for i in ids} == {7}
    assert {i.variant for i in ids} == {"specified in RFC 4122"}
    assert {i.int >> 80 for i in ids} == {int(NOW.timestamp() * 1000)}
