"""Whether the steps have something to do here and nobody does it: for short-lived doors, which have no worker of
their own. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from mnemic.engine.parts import Engine
from mnemic.engine.worker import LEASE
from mnemic.errors import StorageError
from mnemic.store.codec import micros

OFFLINE = frozenset({"local", "hashing", "multilingual", "auto"})  # providers that need no network but loopback


@dataclass(frozen=True, slots=True)
class Unfinished:
    """`missing`: vectors that all namespaces still lack. `holder`: who has the lease on the steps, or "". `offline`:
    whether the vectors can be made without a network."""

    missing: int
    holder: str
    offline: bool


def unfinished(engine: Engine) -> Unfinished:
    """Blocking; a few milliseconds for 10,000 chunks."""
    store = engine.store
    spaces = [s for s in store.upkeep.spaces() if s.state in ("serving", "building")]
    ids = [s.id for s in spaces] or [0]
    provider = engine.config.embeddings.provider
    missing = 0
    if provider != "none":
        heads = store.chunks.heads()
        missing = sum(store.vectors.missing_count(head.namespace, ident) for head in heads for ident in ids)
    lease = store.upkeep.lease(LEASE)
    holder = lease[0] if lease and lease[1] > micros(engine.clock()) else ""
    return Unfinished(missing, holder, {s.space.provider for s in spaces} | {provider} <= OFFLINE)


def is_writable_now(engine: Engine) -> bool:
    """Whether the store's write lock is free at this moment; a reader does not wait for it."""
    try:
        engine.store.driver.write("", lambda tx: None, wait=False)
    except StorageError:
        return False
    return True
