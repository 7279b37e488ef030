"""Whether the steps have something to do here and nobody does it: for short-lived doors, which have no worker of
their own. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from mnemic.engine.parts import Engine
from mnemic.engine.worker import LEASE
from mnemic.errors import StorageError
from mnemic.store.codec import micros

OFFLINE = frozenset({"local", "hashing", "multilingual"})  # providers that need no network


@dataclass(frozen=True, slots=True)
class Unfinished:
    """`work`: chunks wait for a vector. `busy`: somebody holds the lease on the steps. `offline`: the vectors can be
    made without a network."""

    work: bool
    busy: bool
    offline: bool


def unfinished(engine: Engine) -> Unfinished:
    """Blocking; a few milliseconds for 10,000 chunks."""
    store = engine.store
    spaces = [s for s in store.upkeep.spaces() if s.state in ("serving", "building")]
    ids = [s.id for s in spaces] or [0]
    work = any(store.vectors.missing_count(head.namespace, ident) for head in store.chunks.heads() for ident in ids)
    lease = store.upkeep.lease(LEASE)
    busy = lease is not None and lease[1] > micros(engine.clock())
    providers = {s.space.provider for s in spaces} or {engine.config.embeddings.provider}
    return Unfinished(work and engine.config.embeddings.provider != "none", busy, providers <= OFFLINE | {"auto"})


def is_writable_now(engine: Engine) -> bool:
    """Whether the store's write lock is free at this moment; a reader does not wait for it."""
    try:
        engine.store.driver.write("", lambda tx: None, wait=False)
    except StorageError:
        return False
    return True
