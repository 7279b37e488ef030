"""`mnemic work`: run the steps that derive what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import Reply
from mnemic.errors import ModelError

app = typer.Typer(rich_markup_mode=None)


@dataclass(frozen=True, slots=True)
class WorkOptions:
    until_idle: Annotated[bool, typer.Option("--until-idle", help="End when nothing is left to do.")] = False
    seconds: Annotated[float | None, typer.Option(min=0, help="End after so many seconds.")] = None
    unless_busy: Annotated[bool, typer.Option("--unless-busy", hidden=True)] = False  # how other commands start it


@command(app, "work")
def work(door: Door, options: WorkOptions) -> Reply:
    """Make what is missing, such as vectors; without an option until interrupted."""
    from mnemic.doors.cli import working
    from mnemic.engine.unfinished import unfinished

    with door.opened() as (memory, engine):
        before = unfinished(engine)
        if options.unless_busy and before.holder:
            return Reply({"idle": False, "done": 0, "missing": before.missing}, [f"{before.holder} is at it"])
        idle = working.work(door, memory, engine, "making vectors", options.seconds, rest=options.until_idle)
        left, failure = unfinished(engine).missing, memory.status().work.failure
    if idle and left and failure:
        raise ModelError(f"{left} chunks are still without a vector: {failure}")
    done = max(0, before.missing - left)
    line = f"{done} vectors made, {left} missing" + ("" if idle else "; not finished")
    return Reply({"idle": idle, "done": done, "missing": left}, [line])
