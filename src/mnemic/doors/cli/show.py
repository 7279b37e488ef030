"""`mnemic show`, `events`, `sessions`: the log as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import LINE_CHARS, Reply, clock, one_line, plain, safe

if TYPE_CHECKING:
    from mnemic.domain.types import Event
    from mnemic.engine.asking import Listing
    from mnemic.engine.inspection import Seen, SeenChunk

app = typer.Typer(rich_markup_mode=None)

Ident = Annotated[str, typer.Argument(help="An id, a number, or chunk:N.", show_default=False)]
Most = Annotated[int, typer.Option("--limit", min=1, help="At most so many.")]


@dataclass(frozen=True, slots=True)
class EventsOptions:
    session: Annotated[str | None, typer.Option(help="Only of this session.")] = None
    kind: Annotated[list[str], typer.Option(help="Only such events; repeatable.")] = field(default_factory=list)
    role: Annotated[list[str], typer.Option(help="Only what was said in this role.")] = field(default_factory=list)
    since: Annotated[str | None, typer.Option(help="Said then or later.")] = None
    until: Annotated[str | None, typer.Option(help="Said before the end of that time.")] = None
    after: Annotated[int, typer.Option(min=0, help="Only with a higher number.")] = 0
    limit: Most = 50


@command(app, "show")
def show(door: Door, ident: Ident) -> Reply:
    """Show all that is stored about an event or a chunk."""
    from mnemic.engine.inspection import look_at

    with door.opened() as (memory, engine):
        memory.sessions(1)  # what is pending is applied before we look
        seen = look_at(engine, memory.namespace, ident)
    return Reply({"event": event_data(seen.event), "chunks": seen.chunks}, _whole(door, seen))


@command(app, "events")
def events(door: Door, options: EventsOptions) -> Reply:
    """List events in the order of the log."""
    listing: Listing = {
        "session": options.session,
        "kinds": options.kind,
        "roles": options.role,
        "since": options.since,
        "until": options.until,
        "after": options.after,
        "limit": options.limit,
    }
    with door.memory() as memory:
        found = memory.events(**listing)
    last = int(found[-1].seq) if found else options.after
    data = {"events": [event_data(event) for event in found], "last": last}
    return Reply(data, (_short(door, event) for event in found) if found else ["no events"])


@command(app, "sessions")
def sessions(door: Door, limit: Most = 50) -> Reply:
    """List sessions, the one with the latest event first."""
    with door.memory() as memory:
        found = memory.sessions(limit)
    lines = [
        f"{clock(each.began, door.zone)} - {clock(each.ended, door.zone)}  {each.events:>6}  {one_line(each.session)}"
        for each in found
    ]
    return Reply({"sessions": found}, lines or ["no sessions"])


def event_data(event: Event) -> dict[str, object]:
    return {
        "id": event.id,
        "seq": int(event.seq),
        "kind": event.kind,
        "role": event.role,
        "actor": event.actor,
        "text": event.text,
        "session": event.session,
        "channel": event.channel,
        "project": event.project,
        "at": event.at,
        "recorded_at": event.recorded_at,
        "importance": event.importance,
        "trust": event.trust,
        "data": event.data,
    }


def _short(door: Door, event: Event) -> str:
    from mnemic.doors.cli.reasons import who

    head = door.out.styled(f"{int(event.seq):>6}  {clock(event.at, door.zone)}  {one_line(who(event), 40)}", "cyan")
    return f"{head}  {one_line(event.text, LINE_CHARS)}"


def _decided(chunk: SeenChunk) -> Iterator[str]:
    if chunk.verdict:
        parts = chunk.verdict.get("parts")
        shown = ", ".join(f"{name} {value}" for name, value in parts.items()) if isinstance(parts, dict) else ""
        why = f" ({chunk.verdict['reason']})" if "reason" in chunk.verdict else ""
        yield f"filter: {chunk.verdict.get('decision')}{why}, score {chunk.verdict.get('score')} from {shown}"
    if chunk.same_as is not None:
        yield f"says the same as chunk:{chunk.same_as}"
    if chunk.archived:
        yield f"out of the index: {one_line(chunk.archived)}"
    if chunk.topics:
        yield "topics: " + ", ".join(f"{one_line(label, 60)} {confidence:.2f}" for label, confidence in chunk.topics)


def _whole(door: Door, seen: Seen) -> Iterator[str]:
    out = door.out
    data = event_data(seen.event)
    for name, value in data.items():
        if name not in ("text", "data") and value not in ("", None):
            yield f"{out.styled(f'{name:<11}', 'dim')} {one_line(str(plain(value)), 1000)}"
    for name, value in seen.event.data.items():
        yield f"{out.styled(f'{one_line(name, 40):<11}', 'dim')} {one_line(str(value), 1000)}"
    yield ""
    yield safe(seen.event.text)
    for chunk in seen.chunks:
        yield ""
        where = ", ".join(chunk.spaces) or ("not yet" if chunk.kept else "none, by decision")
        head = f"chunk:{chunk.id}  characters {chunk.start}-{chunk.stop}  {chunk.words} words  vector in: {where}"
        yield out.styled(head, "dim")
        yield from (out.styled(f"  {line}", "dim") for line in _decided(chunk))
