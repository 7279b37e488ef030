"""Events as rows of the store and as bodies of the journal: one place that knows both shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import UUID

from mnemic.domain.types import Data, Event, EventId, Kind, Role, Seq, SessionId, Trust
from mnemic.store.driver import Row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


def micros(moment: datetime) -> int:
    """Microseconds since 1970 in UTC. `moment` is aware."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=value)


def fields(event: Event) -> dict[str, object]:
    """What the caller said of an event, as JSON values: everything but `seq` and `recorded_at`."""
    return {
        "id": event.id.hex,
        "kind": event.kind.value,
        "text": event.text,
        "at": micros(event.at),
        "session": event.session,
        "channel": event.channel,
        "role": event.role.value,
        "actor": event.actor,
        "project": event.project,
        "importance": event.importance,
        "trust": event.trust.value,
        "data": event.data,
    }


def encode(event: Event) -> tuple[bytes, bytes]:
    """(digest, body): SHA-256 of what was said, and the journal's plaintext."""
    content = _dumps(fields(event))
    body = f'{{"v":1,"recorded_at":{micros(event.recorded_at)},"event":{content}}}'
    return sha256(content.encode()).digest(), body.encode()


def decode(body: bytes) -> Event:
    """The event of a journal body, `seq` still 0."""
    outer = json.loads(body)
    f = outer["event"]
    return Event(
        id=EventId(UUID(hex=f["id"])),
        kind=Kind(f["kind"]),
        text=f["text"],
        at=moment(f["at"]),
        recorded_at=moment(outer["recorded_at"]),
        session=SessionId(f["session"]) if f["session"] is not None else None,
        channel=f["channel"],
        role=Role(f["role"]),
        actor=f["actor"],
        project=f["project"],
        importance=f["importance"],
        trust=Trust(f["trust"]),
        data=f["data"],
    )


def event_params(namespace: str, event: Event, seq: int, digest: bytes) -> Mapping[str, object]:
    return {
        "namespace": namespace,
        "seq": seq,
        "id": event.id.bytes,
        "kind": event.kind.value,
        "text": event.text,
        "session": event.session,
        "channel": event.channel,
        "role": event.role.value,
        "actor": event.actor,
        "project": event.project,
        "at": micros(event.at),
        "recorded_at": micros(event.recorded_at),
        "importance": event.importance,
        "trust": event.trust.value,
        "data": _dumps(event.data) if event.data else "{}",
        "digest": digest,
    }


def event_of(row: Row) -> Event:
    """An event from a row of the queries `events*`. Damaged `data` becomes {"damaged": true}, never an outage."""
    seq, ident, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data = row
    return Event(
        id=EventId(UUID(bytes=bytes(ident))),
        kind=Kind(kind),
        text=text,
        at=moment(at),
        recorded_at=moment(recorded_at),
        seq=Seq(seq),
        session=SessionId(session) if session is not None else None,
        channel=channel,
        role=Role(role),
        actor=actor,
        project=project,
        importance=importance,
        trust=Trust(trust),
        data=_data(data),
    )


def _data(text: str) -> Data:
    if text == "{}":
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        return {"damaged": True}
    return value if isinstance(value, dict) else {"damaged": True}


def json_list(values: Sequence[object]) -> str:
    return json.dumps(list(values))
