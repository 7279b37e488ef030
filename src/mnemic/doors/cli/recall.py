"""`mnemic recall`: what the memory holds about a question, best first, with reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import LINE_CHARS, Reply, clock, one_line, safe

if TYPE_CHECKING:
    from mnemic.domain.types import Hit, Recalled
    from mnemic.engine.asking import Asking

app = typer.Typer(rich_markup_mode=None)

NOTHING_FOUND = 3  # with --fail-empty

Question = Annotated[str, typer.Argument(help="Any text; `-` reads it from stdin.", show_default=False)]


@dataclass(frozen=True, slots=True)
class RecallOptions:
    k: Annotated[
        int | None, typer.Option("-k", "--k", min=1, help="At most so many hits [10].", show_default=False)
    ] = None
    kind: Annotated[list[str], typer.Option(help="Only such events; repeatable.")] = field(default_factory=list)
    role: Annotated[list[str], typer.Option(help="Only what was said in this role.")] = field(default_factory=list)
    session: Annotated[list[str], typer.Option(help="Only from this session.")] = field(default_factory=list)
    channel: Annotated[list[str], typer.Option(help="Only from this channel.")] = field(default_factory=list)
    project: Annotated[list[str], typer.Option(help="Only from this project (a folder or a name).")] = field(
        default_factory=list
    )
    topic: Annotated[list[str], typer.Option(help="Only what has this topic.")] = field(default_factory=list)
    since: Annotated[str | None, typer.Option(help="Said then or later: 2026-03-01, yesterday.")] = None
    until: Annotated[str | None, typer.Option(help="Said before the end of that time.")] = None
    rerank: Annotated[
        bool | None,
        typer.Option("--rerank/--no-rerank", help="Let the re-ranker order the best.", show_default=False),
    ] = None
    fail_empty: Annotated[bool, typer.Option("--fail-empty", help="Exit code 3 if nothing is found.")] = False
    explain: Annotated[bool, typer.Option("--explain", help="Show every number of the score.")] = False
    full: Annotated[bool, typer.Option("--full", help="Show whole texts.")] = False


@command(app, "recall")
def recall(door: Door, question: Question, options: RecallOptions) -> Reply:
    """Find what is known about a question."""
    from mnemic.doors.cli.reading import up_to_date

    text = door.text(question)
    asking = _asking(door, options)
    with up_to_date(door) as (memory, _):
        found = memory.recall(text, **asking)
    notices = list(found.notices)
    if found.pending:
        notices.append(f"{found.pending} recorded events are not searchable yet")
    lines = _lines(door, text, found, options) if found.hits else ["nothing found"]
    data = {"hits": [hit_data(hit) for hit in found.hits], "pending": found.pending, "notices": list(found.notices)}
    return Reply(data, lines, notices, NOTHING_FOUND if options.fail_empty and not found.hits else 0)


def hit_data(hit: Hit) -> dict[str, object]:
    event, chunk = hit.event, hit.chunk
    return {
        "id": event.id,
        "seq": int(event.seq),
        "chunk": int(chunk.id),
        "text": chunk.text,
        "score": hit.score,
        "weak": hit.weak,
        "found_by": hit.found_by,
        "parts": hit.parts,
        "kind": event.kind,
        "role": event.role,
        "actor": event.actor,
        "session": event.session,
        "channel": event.channel,
        "project": event.project,
        "at": event.at,
        "importance": event.importance,
        "trust": event.trust,
        "topics": chunk.topics,
        "start": chunk.start,
        "stop": chunk.stop,
        "others": hit.others,
    }


def _asking(door: Door, options: RecallOptions) -> Asking:
    from mnemic.doors.project import project_of

    asking: Asking = {
        "kinds": options.kind,
        "roles": options.role,
        "sessions": options.session,
        "channels": options.channel,
        "projects": [project_of(name, door.config) for name in options.project],
        "topics": options.topic,
        "since": options.since,
        "until": options.until,
    }
    if options.k is not None:
        asking["k"] = options.k
    if options.rerank is not None:
        asking["rerank"] = options.rerank
    return asking


def _lines(door: Door, question: str, found: Recalled, options: RecallOptions) -> Iterator[str]:
    from mnemic.doors.cli.reasons import numbers, reason, who

    out = door.out
    for hit in found.hits:
        head = f"{hit.score:.2f}  {clock(hit.event.at, door.zone)}  {one_line(who(hit.event), 40)}"
        text = safe(hit.chunk.text) if options.full else one_line(hit.chunk.text, LINE_CHARS)
        yield f"{out.styled(head, 'cyan')}  {text}"
        where = f"  [{int(hit.event.seq)}]" + (f" {one_line(hit.event.session, 40)}" if hit.event.session else "")
        yield out.styled(f"      {safe(reason(hit, question))}{where}", "dim")
        if options.explain:
            for line in numbers(hit):
                yield out.styled(f"        {line}", "dim")
