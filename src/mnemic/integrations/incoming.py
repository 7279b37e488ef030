"""A file of chats, or an export of ours, as drafts that can be recorded: each with an id that is the same next time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from itertools import chain
from uuid import UUID

from mnemic.domain.drafts import KIND_ALIASES, Draft
from mnemic.domain.types import Kind, Trust
from mnemic.errors import InvalidInput
from mnemic.integrations import interchange
from mnemic.integrations.importers import Failure, ImportOptions, Record, records
from mnemic.integrations.importers.record import lines, too_long

_KINDS = frozenset(Kind) | frozenset(KIND_ALIASES)


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows go that do not say it themselves. `namespace`: part of every id."""

    namespace: str
    session: str | None = None
    channel: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class Incoming:
    """`recorded_at`: only an export knows it."""

    draft: Draft
    line: int
    recorded_at: datetime | None = None


def incoming(pieces: Iterable[bytes], name: str, options: ImportOptions, place: Place) -> Iterator[Incoming | Failure]:
    """The rows in order, and a Failure for each that cannot be read. In constant memory.

    Errors, at the first `next`: InvalidInput when the file as a whole holds no events.
    """
    source = iter(pieces)
    head = next(source, b"")
    rest = chain((head,), source)
    if not head.strip():
        return
    if interchange.is_own(head):
        yield from _exported(rest, name, options)
        return
    for found in records(rest, name, options):
        yield found if isinstance(found, Failure) else Incoming(draft_of(found, place), found.line)


def draft_of(record: Record, place: Place) -> Draft:
    """Nothing of a record is lost: a kind that we do not have becomes a message that says which kind it was."""
    data = dict(record.data)
    kind, marks = record.kind, record.marks
    if kind not in _KINDS:
        data["kind"], kind, marks = kind, Kind.MESSAGE.value, (*marks, "kind_unknown")
    if "time_marked" in marks:
        marks = (*marks, "time")
    return Draft(
        text=record.text,
        role=record.role.value,
        kind=kind,
        session=record.session or place.session,
        channel=record.channel or place.channel,
        actor=record.actor,
        project=place.project,
        at=record.at,
        trust=Trust.IMPORT.value,
        data=data,
        id=_id(place.namespace, _where(record, place), record.external_id),
        marks=marks,
    )


def _where(record: Record, place: Place) -> str:
    """What a row belongs to. One that names neither a session nor a time belongs to its file: "hi" at the start of two
    chats is said twice."""
    return record.session or ("" if record.at else place.session or "")


def _id(*names: str) -> UUID:
    digest = blake2b("\0".join(names).encode("utf-8", "replace"), digest_size=16, person=b"mnemic import").digest()
    return UUID(bytes=digest, version=5)


def _exported(pieces: Iterable[bytes], name: str, options: ImportOptions) -> Iterator[Incoming | Failure]:
    for number, raw in lines(pieces, options.max_bytes):
        if raw is None:
            yield too_long(name, number, options.max_bytes)
            continue
        text = raw.decode("utf-8", "replace")
        if not text.strip():
            continue
        try:
            draft, recorded_at = interchange.draft_of(text)
            yield Incoming(draft, number, recorded_at)
        except InvalidInput as error:
            yield Failure(name, number, InvalidInput(f"{name}, line {number}: {error}"))
