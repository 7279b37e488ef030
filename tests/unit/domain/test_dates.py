"""One written rule for every time that comes in as text or number."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.domain.dates import Moment, parse_moment
from mnemic.errors import InvalidInput

DUBLIN = ZoneInfo("Europe/Dublin")
APIA = ZoneInfo("Pacific/Apia")
BEIRUT = ZoneInfo("Asia/Beirut")
NOW = datetime(2031, 3, 12, 9, 0, tzinfo=UTC)


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2031-03-12T09:00:00", at(2031, 3, 12, 9)),
        ("2031-07-12T09:00:00", at(2031, 7, 12, 8)),  # summer time in Dublin
        ("2031-03-12T09:00:00Z", at(2031, 3, 12, 9)),
        ("2031-03-12t09:00:00z", at(2031, 3, 12, 9)),
        ("2031-03-12 09:00 UTC", at(2031, 3, 12, 9)),
        ("2031-03-12T09:00:00+14:00", at(2031, 3, 11, 19)),
        ("2031-03-12T09:00:00-11:00", at(2031, 3, 12, 20)),
        ("2031-03-12 09:00:00 +0530", at(2031, 3, 12, 3, 30)),
        ("2031-03-12T09:00+05", at(2031, 3, 12, 4)),
        ("2031-03-12, 09:00", at(2031, 3, 12, 9)),
        ("20310312T0900", at(2031, 3, 12, 9)),
        ("20310312T090005Z", at(2031, 3, 12, 9, 0, 5)),
        ("  2031-03-12T09:00Z\n", at(2031, 3, 12, 9)),
        ("2031-03-12T09:00:00.123456789Z", at(2031, 3, 12, 9, 0, 0, 123456)),
        ("2031-03-12T09:00:00,5Z", at(2031, 3, 12, 9, 0, 0, 500000)),
        ("2031-03-12T24:00", at(2031, 3, 13)),
        ("2016-12-31T23:59:60Z", at(2017, 1, 1)),
        (1_931_072_400, at(2031, 3, 12, 9)),
        (1_931_072_400_000, at(2031, 3, 12, 9)),  # never the year 60000
        (1_931_072_400_000_000, at(2031, 3, 12, 9)),
        (1_931_072_400_000_000_000, at(2031, 3, 12, 9)),
        ("1931072400", at(2031, 3, 12, 9)),
        ("1931072400000", at(2031, 3, 12, 9)),
        ("1931072400.25", at(2031, 3, 12, 9, 0, 0, 250000)),
        (1_931_072_400.25, at(2031, 3, 12, 9, 0, 0, 250000)),
        (0, at(1970, 1, 1)),
        (-86_400, at(1969, 12, 31)),
        (datetime(2031, 3, 12, 9, tzinfo=timezone(timedelta(hours=2))), at(2031, 3, 12, 7)),
    ],
)
def test_an_instant_is_read_in_utc(text: object, instant: datetime) -> None:
    found = parse_moment(text, DUBLIN)  # type: ignore[arg-type]
    assert found == Moment(instant, "instant")
    assert found.at.tzinfo is UTC


def test_a_local_time_that_does_not_exist_uses_the_offset_from_before_the_gap() -> None:
    found = parse_moment("2031-03-30T01:30", DUBLIN).at
    assert found == at(2031, 3, 30, 1, 30)
    assert found.astimezone(DUBLIN).strftime("%H:%M") == "02:30"


def test_a_local_time_that_exists_twice_is_its_first_occurrence() -> None:
    assert parse_moment("2031-10-26T01:30", DUBLIN).at == at(2031, 10, 26, 0, 30)
    assert parse_moment("2031-10-26T02:30", DUBLIN).at == at(2031, 10, 26, 2, 30)


@pytest.mark.parametrize(
    ("text", "zone", "start", "end"),
    [
        ("2031-03-12", DUBLIN, at(2031, 3, 12), at(2031, 3, 13)),
        ("20310312", DUBLIN, at(2031, 3, 12), at(2031, 3, 13)),
        ("2031-03-30", DUBLIN, at(2031, 3, 30), at(2031, 3, 30, 23)),  # a day of 23 hours
        ("2031-10-26", DUBLIN, at(2031, 10, 25, 23), at(2031, 10, 27)),  # of 25
        ("2011-12-30", APIA, at(2011, 12, 30, 10), at(2011, 12, 30, 10)),  # of none: the island crossed the date line
        ("2022-03-27", BEIRUT, at(2022, 3, 26, 22), at(2022, 3, 27, 21)),  # midnight itself does not exist
        ("2024-02-29", UTC, at(2024, 2, 29), at(2024, 3, 1)),
    ],
)
def test_a_bare_date_is_the_whole_day(text: str, zone: ZoneInfo, start: datetime, end: datetime) -> None:
    assert parse_moment(text, zone) == Moment(start, "day")
    assert parse_moment(text, zone, end=True) == Moment(end, "day")


def test_a_bare_month_is_the_whole_month() -> None:
    assert parse_moment("2031-12", UTC) == Moment(at(2031, 12, 1), "month")
    assert parse_moment("2031-12", UTC, end=True) == Moment(at(2032, 1, 1), "month")
    assert parse_moment("2031-07", DUBLIN, end=True) == Moment(at(2031, 7, 31, 23), "month")


def test_an_instant_has_no_other_end() -> None:
    assert parse_moment("2031-03-12T09:00Z", UTC, end=True) == Moment(at(2031, 3, 12, 9), "instant")


@pytest.mark.parametrize(
    ("text", "end", "expected"),
    [
        ("now", False, Moment(NOW, "instant")),
        ("today", False, Moment(at(2031, 3, 12), "day")),
        ("today", True, Moment(at(2031, 3, 13), "day")),
        ("Yesterday", False, Moment(at(2031, 3, 11), "day")),
        ("yesterday", True, Moment(at(2031, 3, 12), "day")),
        ("tomorrow", False, Moment(at(2031, 3, 13), "day")),
        ("7d", False, Moment(at(2031, 3, 5, 9), "instant")),
        ("7d ago", True, Moment(at(2031, 3, 5, 9), "instant")),
        ("3h", False, Moment(at(2031, 3, 12, 6), "instant")),
        ("30 min ago", False, Moment(at(2031, 3, 12, 8, 30), "instant")),
        ("2w", False, Moment(at(2031, 2, 26, 9), "instant")),
    ],
)
def test_words_count_from_the_given_now(text: str, end: bool, expected: Moment) -> None:
    assert parse_moment(text, DUBLIN, now=NOW, end=end) == expected


def test_today_is_the_day_of_the_zone_and_not_of_utc() -> None:
    late = at(2031, 3, 12, 23, 30)
    assert parse_moment("today", ZoneInfo("Asia/Tokyo"), now=late).at == at(2031, 3, 12, 15)


def test_words_are_refused_where_there_is_no_now() -> None:
    with pytest.raises(InvalidInput, match="accepted: 2031-03-12"):
        parse_moment("yesterday", UTC)


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2031-02-30", "2031-13", "2031-13-01", "2031-03-12T25:00", "2031-03-12T24:01", "2031-03-12T09:60",
     "2031-03-12T09:00+24:00", "2031", "12/03/2031", "1.5e9", "٢٠٣١-٠٣-١٢", "9" * 21, "0000-01-01", "-1d", "999999w",
     "2031-03-12x09:00", "2031-03-12T09:00 banana", "2031-03-12T9:00",
     10**20, float("nan"), float("inf"), True],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_what_can(text: object) -> None:
    with pytest.raises(InvalidInput, match="accepted: 2031-03-12, 2031-03-12T09:00"):
        parse_moment(text, UTC, now=NOW)  # type: ignore[arg-type]


def test_a_naive_datetime_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no time zone"):
        parse_moment(datetime(2031, 3, 12, 9), UTC)


def test_the_ends_of_the_calendar_are_refused_rather_than_crash() -> None:
    assert parse_moment("9999-12-31", UTC).at == at(9999, 12, 31)
    for text, end in (("9999-12-31", True), ("9999-12", True), ("0001-01-01T00:00+14:00", False)):
        with pytest.raises(InvalidInput):
            parse_moment(text, UTC, end=end)


@given(st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29)), st.integers(-14 * 60, 14 * 60))
def test_iso_text_with_an_offset_reads_back_as_the_same_instant(naive: datetime, minutes: int) -> None:
    when = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert parse_moment(when.isoformat(), DUBLIN).at == when


@given(st.integers(100_000_000, 10**11 - 1))
def test_seconds_and_milliseconds_of_one_instant_agree(seconds: int) -> None:
    assert parse_moment(seconds, UTC) == parse_moment(seconds * 1000, UTC)


@given(st.text(max_size=40) | st.integers() | st.floats())
def test_nothing_but_invalid_input_is_ever_raised(text: str | int | float) -> None:
    try:
        assert parse_moment(text, DUBLIN, now=NOW).at.tzinfo is UTC
    except InvalidInput as error:
        assert "accepted" in str(error)
