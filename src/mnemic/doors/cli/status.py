"""`mnemic status`, and the screen of `mnemic` alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from mnemic.config import without_password
from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import Reply, plain, safe, size
from mnemic.version import __version__

if TYPE_CHECKING:
    from mnemic.engine.status import Status

app = typer.Typer(rich_markup_mode=None)


@command(app, "status")
def status(door: Door) -> Reply:
    """Show what is stored, what is missing, and who works."""
    with door.memory() as memory:
        now = memory.status()
    data = plain(now)
    assert isinstance(data, dict)
    return Reply({"version": __version__, "home": door.config.home, **data}, _lines(door, now), _notices(now))


def welcome(door: Door) -> Reply:
    """Where one is and what to do next; opens nothing."""
    config = door.config
    new = (
        config.store_url.startswith("sqlite:///") and not (config.home / "mnemic.db").exists() and not config.store.url
    )
    state = "new" if new else "in use"
    lines = [
        door.out.styled(f"mnemic {__version__}", "bold"),
        f"Memory: {safe(without_password(config.store_url))} ({state})",
        "",
        'mnemic remember "The staging server moved to 10.0.1.5"    keep something',
        'mnemic recall "where is staging?"                         find it again',
        "mnemic import chat.jsonl                                  bring your chats",
        "mnemic demo                                               see it at work, without touching your memory",
        "",
        "mnemic --help shows everything, mnemic doctor what could be better",
    ]
    return Reply(
        {"version": __version__, "home": config.home, "store": without_password(config.store_url), "new": new}, lines
    )


def _lines(door: Door, now: Status) -> Iterator[str]:
    def row(name: str, value: object) -> str:
        return f"{door.out.styled(f'{name:<12}', 'dim')} {safe(str(value))}"

    yield row("store", f"{now.store} ({size(now.size_bytes)})")
    yield row("namespace", now.namespace)
    yield row("events", f"{now.events:,} in {now.sessions:,} sessions, {now.chunks:,} chunks")
    if now.pending:
        yield row("pending", f"{now.pending:,} recorded and not yet in the store")
    if now.quarantined:
        yield row("quarantine", f"{now.quarantined:,} events whose id was taken")
    for space in now.spaces:
        missing = f", {space.missing:,} missing" if space.missing and space.state != "retired" else ""
        yield row("vectors", f"{space.vectors:,} in {space.label} ({space.state}{missing})")
    yield row("embedder", now.embedder or "none: recall is by keyword only")
    if now.work.holder:
        yield row("worker", now.work.holder)


def _notices(now: Status) -> list[str]:
    notices = [now.notice] if now.notice else []
    if now.better:
        notices.append(f"{now.better} would understand more: mnemic reindex")
    if now.work.failure:
        notices.append(f"the last step failed: {now.work.failure}")
    return notices
