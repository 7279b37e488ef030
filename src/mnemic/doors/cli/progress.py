"""Progress of long work, on stderr and only where somebody can see it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

Advance = Callable[[float], None]  # how far it is, in the unit of `total`


@contextlib.contextmanager
def progress(what: str, total: float | None, *, quiet: bool = False) -> Iterator[Advance]:
    """A bar for the time of the block; nothing when stderr is no terminal, with `--json`, or on a dumb terminal."""
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda done: None
        return
    from rich.console import Console  # late: costs more than most commands
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, markup=False), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
