"""`mnemic hygiene`: take near-copies, what is old and what is too many out of the index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import Reply, one_line

app = typer.Typer(rich_markup_mode=None)


@dataclass(frozen=True, slots=True)
class HygieneOptions:
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be taken out.")] = False
    list_archived: Annotated[bool, typer.Option("--list", help="Show what is out of the index, and why.")] = False
    restore: Annotated[bool, typer.Option("--restore", help="Put everything back that hygiene took out.")] = False


@command(app, "hygiene")
def hygiene(door: Door, options: HygieneOptions) -> Reply:
    """Take near-copies, old and surplus chunks out of the index. The log keeps all, and nothing that a person wrote or
    kept on purpose is touched."""
    with door.memory() as memory:
        if options.list_archived or options.restore:
            found = [a for a in memory.archived(1_000_000) if a.reason in REASONS or options.list_archived]
            restored = memory.restore_archived([a.id for a in found]) if options.restore else 0
            lines = [f"chunk:{a.id}  {a.reason:<10}  {one_line(a.text)}" for a in found]
            told = f"{restored} put back" if options.restore else f"{len(found)} out of the index"
            return Reply({"archived": found, "restored": restored}, [*lines, told])
        memory.settle()
        swept = memory.hygiene(dry_run=options.dry_run)
    lines = [f"chunk:{c.chunk}  {c.reason:<10}  {one_line(c.text)}  ({one_line(c.because)})" for c in swept.candidates]
    total = f"{len(swept.candidates)} chunks {'taken' if swept.done else 'would be taken'} out of the index"
    data = {"candidates": swept.candidates, "counts": swept.counts, "done": swept.done}
    return Reply(data, [*lines, total])


REASONS = ("near-copy", "old", "too many")
