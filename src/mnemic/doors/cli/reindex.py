"""`mnemic reindex`: move all vectors to another embedder; the old ones serve until the new ones are complete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import Reply
from mnemic.errors import InvalidInput, ModelError

app = typer.Typer(rich_markup_mode=None)


@dataclass(frozen=True, slots=True)
class ReindexOptions:
    embedder: Annotated[str, typer.Option(help="Such as local, hashing, ollama [default: the best there is].")] = ""
    model: Annotated[str, typer.Option(help="The model of that embedder.")] = ""
    refilter: Annotated[
        bool, typer.Option("--refilter", help="Judge every chunk again by the filter and topics as they are set now.")
    ] = False


@command(app, "reindex")
def reindex(door: Door, options: ReindexOptions) -> Reply:
    """Make all vectors anew with another embedder. Interrupted, it goes on where it was."""
    from mnemic.doors.cli import working

    if options.model and not options.embedder:
        raise InvalidInput("--model needs --embedder: which program is to run it?")
    if options.refilter:
        return _refilter(door)
    with door.opened() as (memory, engine):
        label = memory.reindex(options.embedder, options.model)
        working.work(door, memory, engine, f"reindexing to {label}", None, rest=True)
        now = memory.status()
    space = next((space for space in now.spaces if space.label == label), None)
    if space is None or space.state != "serving":
        why = now.work.failure or "not all vectors could be made"
        raise ModelError(f"not finished: {why}; what there was serves on, `mnemic reindex` goes on where it stopped")
    data = {"space": label, "state": space.state, "vectors": space.vectors, "missing": space.missing}
    return Reply(data, [f"{space.vectors} vectors in {label}, which serves now"])


def _refilter(door: Door) -> Reply:
    from mnemic.doors.cli import working

    with door.opened() as (memory, engine):
        count = memory.refilter()
        working.work(door, memory, engine, "judging again", None, rest=True)
        now = memory.status()
    kept = sum(space.vectors for space in now.spaces if space.state == "serving")
    data = {"judged": count, "vectors": kept, "missing": now.work.missing}
    return Reply(data, [f"{count} chunks judged again; {kept} have a vector"])
