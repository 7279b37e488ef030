"""An export loses nothing, whatever was recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.domain.drafts import Draft, Limits, make_event
from mnemic.domain.types import Event, Kind, Role, Trust
from mnemic.errors import InvalidInput
from mnemic.integrations.interchange import draft_of, is_own, line_of

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
TEXT = st.text(max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
DRAFTS = st.builds(
    Draft,
    text=TEXT.map(lambda text: f"x{text}"),
    role=st.sampled_from([role.value for role in Role]),
    kind=st.sampled_from([kind.value for kind in Kind]),
    session=st.none() | TEXT,
    channel=TEXT,
    actor=TEXT,
    project=TEXT,
    at=st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1)).map(lambda at: at.replace(tzinfo=UTC)),
    importance=st.floats(0, 1),
    trust=st.sampled_from([trust.value for trust in Trust]),
    data=st.dictionaries(TEXT.filter(lambda key: key != "marks"), JSON, max_size=3),
    marks=st.just(("time",)),
)


def again(line: str) -> Event:
    draft, recorded_at = draft_of(line)
    event = make_event(draft, datetime(2030, 1, 1, tzinfo=UTC), Limits())
    return replace(event, recorded_at=recorded_at or event.recorded_at)


@given(DRAFTS)
def test_what_comes_back_is_what_went_out(draft: Draft) -> None:
    event = make_event(draft, NOW, Limits())
    line = line_of(event)
    assert line.isascii()
    assert "\n" not in line
    assert is_own(line.encode())
    assert again(line) == event


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "{}",
        '{"format": "mnemic-event/2"}',
        '{"format": "mnemic-event/1", "id": "7"}',
        '{"format": "mnemic-event/1", "id": "7", "text": "x", "role": "user", "kind": "note", "at": "2026-01-05"}',
        '{"format": "mnemic-event/1", "id": null, "text": "x", "role": "user", "kind": "note", "at": null}',
    ],
)
def test_a_line_that_is_none_of_ours_is_refused(line: str) -> None:
    with pytest.raises(InvalidInput):
        draft_of(line)


def test_other_files_are_not_taken_for_an_export() -> None:
    assert not is_own(b'{"role": "user", "content": "mnemic-event/1"}')
    assert not is_own(b"Ana: hello")
    assert is_own(json.dumps({"z": 1, "format": "mnemic-event/1"}).encode())
