"""Running the steps in the foreground: until they rest, for a time, or for ever; patient with others at the store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mnemic.doors.cli.progress import progress
from mnemic.errors import StorageLocked, Unreachable

if TYPE_CHECKING:
    from mnemic.app import Memory
    from mnemic.doors.cli.door import Door
    from mnemic.engine.parts import Engine

SLICE_S = 1.0  # between looks at the clock and the bar
PATIENCE = 20  # times in a row that the store may be held by somebody before we give up


def work(door: Door, memory: Memory, engine: Engine, what: str, seconds: float | None, *, rest: bool) -> bool:
    """Run the steps for `seconds` (None: no limit) or, with `rest`, until nothing is left; whether they came to rest.

    Safe to interrupt at any moment: what is done is stored, what is not is found again.
    Errors: StorageError when the store stays held for long.
    """
    from mnemic.engine.unfinished import unfinished

    end = None if seconds is None else time.monotonic() + seconds
    total = unfinished(engine).missing
    refused = 0
    with progress(what, total or None, quiet=door.out.as_json) as advance:
        while True:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return False
            try:
                rests = memory.settle(SLICE_S if left is None else min(SLICE_S, left))
                refused = 0
            except (StorageLocked, Unreachable):
                refused += 1
                if rest and refused > PATIENCE:
                    raise
                rests = False
            advance(total - unfinished(engine).missing)
            if rests and rest:
                return True
            if rests or refused:
                pause = engine.config.worker.poll_ms / 1000
                time.sleep(pause if left is None else max(0.0, min(pause, left)))
