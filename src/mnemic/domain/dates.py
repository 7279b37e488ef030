"""The one place that reads a time a person typed or a file holds. Pure: the zone and `now` are arguments.

Accepted:

* ISO 8601, with `T` or a space: `2031-03-12T09:00`, `2031-03-12 09:00:00.5`, `2031-03-12T09:00Z`, `...+14:00`,
  `...-1100`, and the compact `20310312T0900`. Without an offset the time is local to the zone.
* A bare date (`2031-03-12`, `20310312`) or month (`2031-03`): its start in the zone, or its end with `end=True`. The
  end is the start of the next day or month, so that it serves as an excluded upper bound.
* Seconds since 1970, as a number or as text of nine digits or more. The magnitude tells the unit: below 1e11 seconds
  (to the year 5138), below 1e14 milliseconds, below 1e17 microseconds, below 1e20 nanoseconds. Milliseconds of before
  March 1973 are therefore read as seconds; no millisecond is ever read as a year in the far future.
* With `now`: `now`, `today`, `yesterday`, `tomorrow`, and `90s`, `30m`, `3h`, `7d`, `2w` (with or without `ago`),
  which count exact hours back from now; a `d` is 24 hours and an `m` a minute.

Where the clock changes (the rule of RFC 5545 §3.3.5): a local time that does not exist is read with the offset from
before the gap, so 01:30 in a skipped hour is the instant later shown as 02:30; a local time that exists twice is its
first occurrence. `24:00` is the start of the next day, and a leap second is the second after it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Literal

from mnemic.errors import InvalidInput

Precision = Literal["instant", "day", "month"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ACCEPTED = (
    "accepted: 2031-03-12, 2031-03-12T09:00 (local), 2031-03-12T09:00Z, 2031-03-12T09:00+01:00, "
    "or seconds or milliseconds since 1970"
)
_ACCEPTED_NOW = ACCEPTED + "; also now, today, yesterday, tomorrow, 3h, 7d, 2w ago"

_MONTH = re.compile(r"([0-9]{4})-([0-9]{2})")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})|([0-9]{4})([0-9]{2})([0-9]{2})")
_TIME = re.compile(
    r"([0-9]{2}):?([0-9]{2})(?::?([0-9]{2})(?:[.,]([0-9]{1,12}))?)?\s*(?:(Z|UTC|GMT)|([+-])([0-9]{2})(?::?([0-9]{2}))?)?",
    re.IGNORECASE,
)
_DATE_AND_TIME = re.compile(rf"(?P<date>{_DATE.pattern})(?:T|,?\s+)(?P<time>[0-9].*)", re.IGNORECASE)
_NUMBER = re.compile(r"-?[0-9]{9,20}(?:\.[0-9]{1,12})?")
_AGO = re.compile(r"([0-9]{1,6})\s*(s|sec|m|min|h|d|w)(?:\s+ago)?", re.IGNORECASE)
_SECONDS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DAYS = {"today": 0, "yesterday": -1, "tomorrow": 1}
# Below each bound a number since 1970 is in units of so many microseconds.
_UNITS = ((10**11, Decimal(1_000_000)), (10**14, Decimal(1_000)), (10**17, Decimal(1)), (10**20, Decimal("0.001")))


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, aware and in UTC. `precision`: how much of it was said; the rest is the start (or end) of it."""

    at: datetime
    precision: Precision


def parse_moment(
    text: str | int | float | datetime, zone: tzinfo, *, now: datetime | None = None, end: bool = False
) -> Moment:
    """What `text` means, by the rules in the head of this file.

    `zone`: for times and dates without an offset. `now` (aware): allows words that need it; without it they are
    refused, as in a file, where "yesterday" has lost its day. `end`: a date or month gives its end, not its start.
    Errors: InvalidInput, saying what is accepted; also for a naive datetime and a time outside the years 1 to 9999.
    """
    if isinstance(text, datetime) and text.utcoffset() is None:
        raise InvalidInput(f"{text} has no time zone; give an aware datetime, such as datetime.now(UTC)")
    try:
        found = _read(text, zone, now, end)
    except (ValueError, OverflowError):
        found = None
    if found is None:
        shown = text if isinstance(text, datetime) else repr(text)[:80]
        raise InvalidInput(f"{shown} is not a time mnemic can read; {_ACCEPTED_NOW if now else ACCEPTED}")
    return found


def _read(text: str | int | float | datetime, zone: tzinfo, now: datetime | None, end: bool) -> Moment | None:
    if isinstance(text, datetime):
        return Moment(text.astimezone(UTC), "instant")
    if isinstance(text, bool) or (isinstance(text, float) and not math.isfinite(text)):
        return None
    if isinstance(text, int | float):
        return _since_1970(Decimal(str(text)))
    text = text.strip()
    if found := _DATE.fullmatch(text):
        return _day(_date(found), zone, end)
    if found := _MONTH.fullmatch(text):
        return _month(int(found[1]), int(found[2]), zone, end)
    if _NUMBER.fullmatch(text):
        return _since_1970(Decimal(text))
    if (found := _DATE_AND_TIME.fullmatch(text)) and (clock := _TIME.fullmatch(found["time"])):
        day = _DATE.fullmatch(found["date"])
        return Moment(_instant(_date(day), clock, zone), "instant") if day else None
    return _relative(text.lower(), zone, now, end) if now else None


def _date(found: re.Match[str]) -> date:
    year, month, day = (int(part) for part in found.groups()[:6] if part is not None)
    return date(year, month, day)


def _instant(day: date, found: re.Match[str], zone: tzinfo) -> datetime:
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    micros = int((found[4] or "0").ljust(6, "0")[:6])
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second or micros)):
        raise ValueError(found[0])
    beyond = timedelta(days=hour == 24, seconds=second == 60)
    clock = time(hour % 24, minute, min(second, 59), micros)
    if found[5]:
        zone = UTC
    elif found[6]:
        ahead = timedelta(hours=int(found[7]), minutes=int(found[8] or 0))
        zone = timezone(ahead if found[6] == "+" else -ahead)
    # Added on the local clock, before the zone is applied: 24:00 is midnight there, whatever the day's length.
    return (datetime.combine(day, clock) + beyond).replace(tzinfo=zone).astimezone(UTC)


def _day(day: date, zone: tzinfo, end: bool) -> Moment:
    return Moment(_start(day + timedelta(days=end), zone), "day")


def _month(year: int, month: int, zone: tzinfo, end: bool) -> Moment:
    first = date(year, month, 1)
    if end:
        first = date(year + month // 12, month % 12 + 1, 1)
    return Moment(_start(first, zone), "month")


def _start(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


def _since_1970(number: Decimal) -> Moment | None:
    for bound, unit in _UNITS:
        if abs(number) < bound:
            return Moment(EPOCH + timedelta(microseconds=int(number * unit)), "instant")
    return None


def _relative(word: str, zone: tzinfo, now: datetime, end: bool) -> Moment | None:
    if word == "now":
        return Moment(now.astimezone(UTC), "instant")
    if word in _DAYS:
        return _day(now.astimezone(zone).date() + timedelta(days=_DAYS[word]), zone, end)
    if found := _AGO.fullmatch(word):
        return Moment(now.astimezone(UTC) - timedelta(seconds=int(found[1]) * _SECONDS[found[2]]), "instant")
    return None
