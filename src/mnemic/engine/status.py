"""What `mnemic status` says: counts, spaces, who works, what is missing. Never the text of a memory."""

from __future__ import annotations

from dataclasses import dataclass

from mnemic.config import without_password
from mnemic.engine.parts import Engine
from mnemic.engine.worker import LEASE, Worker
from mnemic.store.codec import micros


@dataclass(frozen=True, slots=True)
class SpaceStatus:
    label: str
    state: str
    vectors: int
    missing: int


@dataclass(frozen=True, slots=True)
class WorkStatus:
    """`holder`: who has the lease on the steps now, or "". `missing`: chunks that still get a vector."""

    holder: str
    missing: int
    failure: str


@dataclass(frozen=True, slots=True)
class Status:
    store: str
    namespace: str
    events: int
    sessions: int
    chunks: int
    pending: int
    quarantined: int
    size_bytes: int
    spaces: tuple[SpaceStatus, ...]
    work: WorkStatus
    embedder: str
    better: str
    notice: str


def read_status(engine: Engine, worker: Worker, namespace: str) -> Status:
    """Blocking. Reads only."""
    store = engine.store
    events, chunks, _ = store.events.counts(namespace)
    spaces = tuple(
        SpaceStatus(
            s.space.label,
            s.state,
            store.vectors.count(namespace, s.id),
            store.vectors.missing_count(namespace, s.id),
        )
        for s in store.upkeep.spaces()
    )
    lease = store.upkeep.lease(LEASE)
    alive = lease is not None and lease[1] > micros(engine.clock())
    embedders = worker.embedders()
    filling = [s.missing for s in spaces if s.state in ("serving", "building")]
    return Status(
        store=without_password(engine.config.store_url),
        namespace=namespace,
        events=events,
        sessions=len(store.events.sessions(namespace, 1_000_000)),
        chunks=chunks,
        pending=engine.spool.pending(),
        quarantined=store.events.quarantined(namespace),
        size_bytes=store.driver.size_bytes(),
        spaces=spaces,
        work=WorkStatus(
            lease[0] if alive and lease else "",
            max(filling, default=chunks),
            worker.failure or engine.spool.failure,
        ),
        embedder=embedders.serving.space.label if embedders.serving else "",
        better=embedders.better.label if embedders.better else "",
        notice=embedders.reason,
    )
