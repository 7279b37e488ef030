"""What every reading command does first: the steps that need no network, for a moment, and a worker for the rest."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from mnemic.config import Config
from mnemic.doors.cli.door import Door
from mnemic.errors import MnemicError

if TYPE_CHECKING:
    from mnemic.app import Memory
    from mnemic.engine.parts import Engine

STEPS_S = 0.2
BATCH = 16  # small enough that one batch fits into that time


@contextlib.contextmanager
def up_to_date(door: Door) -> Iterator[tuple[Memory, Engine]]:
    """The memory after a moment of work; what is left is done by a worker that outlives this command."""
    worker = replace(door.config.worker, batch=min(BATCH, door.config.worker.batch))
    left = False
    model = _import_model if _may_need_model(door.config) else None
    with (
        _beside(model),
        door.opened(replace(door.config, worker=worker)) as (memory, engine),
        _beside(lambda: _load(engine, memory.namespace)),
    ):
        if worker.enabled:
            left = run_steps(memory, engine)
        yield memory, engine
    if left:
        from mnemic.doors.detached import start_worker

        start_worker(door.config.home, door.environment)


@contextlib.contextmanager
def _beside(work: Callable[[], None] | None) -> Iterator[None]:
    """Work in a thread during the block. It is over when the block is: no library is torn down while it loads."""
    thread = threading.Thread(target=work or (lambda: None), name="mnemic-beside", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _may_need_model(config: Config) -> bool:
    return config.vector.enabled and config.embeddings.provider in ("auto", "local")


def _import_model() -> None:
    """The model's libraries, while the store opens: they take about as long."""
    with contextlib.suppress(ImportError):
        import_module("onnxruntime")
        import_module("tokenizers")


def _load(engine: Engine, namespace: str) -> None:
    """Read the index while the question gets its vector."""
    with contextlib.suppress(MnemicError):
        engine.store.indexes.state(namespace)


def run_steps(memory: Memory, engine: Engine) -> bool:
    """At most 200 ms of steps, and only if there is something to do and nobody is at it; never waits for a lock.
    Whether work is left that nobody does."""
    from mnemic.engine.unfinished import is_writable_now, unfinished

    try:
        found = unfinished(engine)
        if not found.missing or found.holder:
            return False
        if found.offline and is_writable_now(engine):
            return not memory.settle(STEPS_S)
    except MnemicError:  # the question is answered without, and says why
        return False
    return True
