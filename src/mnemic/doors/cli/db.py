"""`mnemic db`: the database itself: set it up, bring its schema up to date, copy it into another."""

from __future__ import annotations

from typing import Annotated

import typer

from mnemic.config import without_password
from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import Reply, safe

app = typer.Typer(rich_markup_mode=None)
db = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Set up, migrate or copy the database.")
app.add_typer(db, name="db")

From = Annotated[str, typer.Argument(metavar="FROM", help="sqlite:///path or postgresql://...")]
To = Annotated[str, typer.Argument(metavar="TO", help="An empty database or a new file; or an earlier copy to go on.")]


@command(db, "init")
def init(door: Door) -> Reply:
    """Set up the database of store.url. Not needed: the first use does it."""
    return _prepared(door)


@command(db, "migrate")
def migrate(door: Door) -> Reply:
    """Bring the schema up to date. Not needed: opening does it, after a backup (SQLite)."""
    return _prepared(door)


def _prepared(door: Door) -> Reply:
    with door.opened() as (_, engine):
        identity = engine.store.upkeep.identity()
        problems = list(engine.store.driver.check())
    where = without_password(door.config.store_url)
    data = {"store": where, "identity": identity, "problems": problems}
    return Reply(data, [f"{safe(where)} is ready"], problems, 5 if problems else 0)


@command(db, "copy")
def copy(door: Door, source: From, target: To) -> Reply:
    """Copy everything from one database into another, whatever kind each is. Interrupted, it goes on where it was."""
    from mnemic.app import copy_store

    lines: list[str] = []
    done = copy_store(
        door.config, source, target, lambda c: lines.append(f"{c.namespace}: {c.events} events, {c.chunks} chunks")
    )
    where = without_password(target)
    data = {"from": without_password(source), "to": where, "namespaces": done}
    return Reply(data, [*map(safe, lines), f"copied to {safe(where)}; use it with store.url"])
