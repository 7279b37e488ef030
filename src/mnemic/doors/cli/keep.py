"""`mnemic backup` and `mnemic restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import Reply, safe, size
from mnemic.errors import InvalidInput

app = typer.Typer(rich_markup_mode=None)

Yes = Annotated[bool, typer.Option("--yes", help="Do it although something is there already.")]


@command(app, "backup")
def backup(
    door: Door, file: Annotated[Path, typer.Argument(help="Where to.", show_default=False)], yes: Yes = False
) -> Reply:
    """Copy the whole store into one file, consistent, while others go on working."""
    target = file.expanduser().absolute()
    if target.is_dir():
        raise InvalidInput(f"{target} is a folder; name a file in it")
    if target.exists() and not yes:
        raise InvalidInput(f"{target} is there already; choose another name, or --yes replaces it")
    with door.memory() as memory:
        events = memory.status().events
        memory.backup(str(target))
    count = target.stat().st_size
    data = {"file": target, "bytes": count, "events": events}
    return Reply(data, [f"{safe(str(target))}: {events} events of {door.config.namespace}, {size(count)}"])


@command(app, "restore")
def restore(
    door: Door,
    file: Annotated[Path, typer.Argument(help="A file that `mnemic backup` wrote.", show_default=False)],
    yes: Yes = False,
    exact: Annotated[bool, typer.Option("--exact", help="Leave out what the journal holds since that backup.")] = False,
) -> Reply:
    """Put a backup in the place of the store; what is there is kept beside it.

    What was recorded after the backup is still in the journal, and comes back, unless --exact.
    """
    from mnemic.doors.restoring import Plan, restore_store

    done = restore_store(door.config, Plan(file.expanduser().absolute(), replace=yes, exact=exact))
    lines = [f"restored {done.events} events from {safe(str(file))}"]
    if done.replayed:
        lines.append(f"{done.replayed} events recorded after the backup came back from the journal")
    if done.kept:
        lines.append(f"the store that was here is kept as {safe(str(done.kept))}")
    if done.journal_kept:
        lines.append(f"its journal is kept as {safe(str(done.journal_kept))}: {done.journal_note}")
    return Reply({"file": file, **done.data()}, lines)
