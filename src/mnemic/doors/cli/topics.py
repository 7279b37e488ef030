"""`mnemic topics`: what the memory is about, and what those subjects are called."""

from __future__ import annotations

from typing import Annotated

import typer

from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import Reply, one_line

app = typer.Typer(rich_markup_mode=None)
topics = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="List, rename and merge topics.")
app.add_typer(topics, name="topics")

Old = Annotated[str, typer.Argument(metavar="OLD", help="The topic as it is called.")]
New = Annotated[str, typer.Argument(metavar="NEW", help="Its new name; the name of another topic merges the two.")]


@command(topics, "list")
def list_(door: Door) -> Reply:
    """List topics, the most frequent first."""
    from mnemic.doors.cli.reading import up_to_date

    with up_to_date(door) as (memory, _):
        found = memory.topics()
    lines = [f"{topic.chunks:>6}  {one_line(topic.label)}" for topic in found]
    return Reply({"topics": found}, lines or ["no topics"])


@command(topics, "rename")
def rename(door: Door, old: Old, new: New) -> Reply:
    """Call a topic something else, or merge it into another. `mnemic topics undo` takes it back."""
    with door.memory() as memory:
        receipt = memory.rename_topic(old, new)
        done = memory.get(receipt.id)
    return Reply({"id": done.id, "seq": int(done.seq), "done": done.text}, [one_line(done.text)])


@command(topics, "merge")
def merge(door: Door, old: Old, new: New) -> Reply:
    """Merge a topic into another. `mnemic topics undo` takes it back."""
    return rename(door, old, new)


@command(topics, "undo")
def undo(door: Door) -> Reply:
    """Take back the latest rename or merge."""
    with door.memory() as memory:
        done = memory.get(memory.undo_topic().id)
    return Reply({"id": done.id, "seq": int(done.seq), "done": done.text}, [one_line(done.text)])
