"""`mnemic ingest`, `source` and `sources`: what a person chooses to keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import Reply, clock, one_line
from mnemic.doors.cli.progress import progress
from mnemic.errors import MnemicError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mnemic.app import Memory
    from mnemic.engine.sources import Ingested
    from mnemic.store.sources import StoredSource

app = typer.Typer(rich_markup_mode=None)

Places = Annotated[list[str], typer.Argument(metavar="PLACE...", help="Files, folders, or http(s) addresses.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="What you call it.")]


@dataclass(frozen=True, slots=True)
class IngestOptions:
    name: Annotated[str, typer.Option(help="What you call it [default: the name of each document].")] = ""
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="An address may lead to this machine and its networks.")
    ] = False
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Leave the vectors to a worker.")] = False


@dataclass(frozen=True, slots=True)
class SpanOptions:
    first: Annotated[int | None, typer.Option("--from", min=1, help="The first number [after the last source].")] = None
    last: Annotated[int | None, typer.Option("--to", min=1, help="The last number [the latest].")] = None


@dataclass(slots=True)
class Tally:
    done: list[dict[str, object]] = field(default_factory=list)
    failed: list[dict[str, object]] = field(default_factory=list)


@command(app, "ingest")
def ingest(door: Door, places: Places, options: IngestOptions) -> Reply:
    """Keep documents, word for word. An unchanged one is a no-op; of a changed one only what changed is made anew."""
    from mnemic.doors.cli import working
    from mnemic.doors.detached import start_worker

    tally = Tally()
    with door.opened() as (memory, engine):
        with progress("reading", None, quiet=door.out.as_json) as advance:
            for place in places:
                _take(memory, door.text(place) if place != "-" else place, options, tally)
                advance(len(tally.done))
        if tally.done and not options.no_wait:
            working.work(door, memory, engine, "making vectors", None, rest=True)
    if tally.done and options.no_wait and door.config.worker.enabled:
        start_worker(door.config.home, door.environment)
    return _ingested(door, tally)


def _take(memory: Memory, place: str, options: IngestOptions, tally: Tally) -> None:
    from mnemic.app import documents
    from mnemic.engine.sources import SourceText

    for found in documents(place, allow_private=options.allow_private):
        if not isinstance(found, SourceText):
            tally.failed.append({"place": found.uri, "reason": str(found.reason)})
            continue
        text = SourceText(found.uri, options.name or found.name, found.type, found.text, found.title)
        try:
            tally.done.append(_row(memory.ingest(text)))
        except MnemicError as error:
            tally.failed.append({"place": found.uri, "reason": str(error)})


def _row(done: Ingested) -> dict[str, object]:
    return {
        "source_id": done.source.id,
        "name": done.source.name,
        "kind": done.source.type,
        "uri": done.source.uri,
        "status": done.status,
        "version": done.source.version,
        "chunks": done.chunks,
        "kept_chunks": done.kept_chunks,
        "characters": done.characters,
        "first": done.source.first,
        "last": done.source.last,
        "summary": done.source.summary,
    }


def _ingested(door: Door, tally: Tally) -> Reply:
    lines = [f"{row['status']!s:<9}  {row['chunks']:>5} chunks  {one_line(str(row['uri']))}" for row in tally.done]
    notices = [f"not kept: {row['place']}: {row['reason']}" for row in tally.failed]
    data = {"sources": tally.done, "failed": tally.failed}
    return Reply(data, lines or ["nothing was kept"], notices, 1 if tally.failed else 0)


@command(app, "source")
def source(door: Door, name: Name, options: SpanOptions) -> Reply:
    """Keep a stretch of the log under a name (default: all since the last such source)."""
    from mnemic.doors.cli import working

    with door.opened() as (memory, engine):
        done = memory.source(name, options.first, options.last)
        working.work(door, memory, engine, "making vectors", None, rest=True)
    row = _row(done)
    return Reply(row, [f"kept {done.source.uri} as {one_line(name)}: {done.chunks} chunks"])


@command(app, "sources")
def sources(door: Door, name: Annotated[str, typer.Argument(help="Only those whose name holds this.")] = "") -> Reply:
    """List what was kept."""
    with door.memory() as memory:
        found = memory.sources(name)
    return Reply({"sources": [_listed(s) for s in found]}, list(_lines(door, found)) or ["no sources"])


def _listed(kept: StoredSource) -> dict[str, object]:
    return {
        "id": kept.id,
        "name": kept.name,
        "type": kept.type,
        "uri": kept.uri,
        "version": kept.version,
        "first": kept.first,
        "last": kept.last,
        "summary": kept.summary,
        "created_at": kept.created,
    }


def _lines(door: Door, found: list[StoredSource]) -> Iterator[str]:
    for kept in found:
        yield f"{clock(kept.created, door.zone)}  {one_line(kept.name, 40):<40}  {kept.type:<8}  {one_line(kept.uri)}"
