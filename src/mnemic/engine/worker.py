"""The steps that derive what is missing. They keep no cursor: each asks the store what it lacks, so a crash is a
restart. One worker at a time holds the lease; its token is checked in the transaction that stores a result, so a
holder that slept through its lease writes nothing."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import uuid4

import numpy as np

from mnemic.domain.topics import Topic
from mnemic.engine.analysis import embed_whole, embedded_text
from mnemic.engine.embedding import Embedders
from mnemic.engine.judging import Known, understands
from mnemic.engine.parts import Engine
from mnemic.errors import LeaseLost, ModelError
from mnemic.ports import Embedder, Matrix
from mnemic.store.chunks import Filled, Head, Raw
from mnemic.store.codec import micros
from mnemic.store.upkeep import Lease, StoredSpace

log = logging.getLogger("mnemic.worker")

LEASE = "steps"


@dataclass(frozen=True, slots=True)
class Progress:
    """One look at one step: `done` pieces of work; `left` says whether the step found more than it took."""

    step: str
    done: int
    left: bool


class Reached:
    """How far each step has come in a namespace, so that a batch does not look through all that is done. A hint, never
    stored: an epoch that moves, or a new process, starts over from what the store says."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], tuple[int, int]] = {}

    def of(self, head: Head, step: str) -> int:
        """Chunks up to this id lack nothing that the step could give."""
        epoch, ident = self._ids.get((head.namespace, step), (head.epoch, 0))
        return ident if epoch == head.epoch else 0

    def put(self, head: Head, step: str, ident: int) -> None:
        self._ids[head.namespace, step] = (head.epoch, ident)


class Worker:
    """Runs the steps of all namespaces of a store. Blocking; one call at a time."""

    def __init__(self, engine: Engine) -> None:
        self._store, self._analyser, self._models = engine.store, engine.analyser, engine.models
        self._judging, self._clock = engine.judging, engine.clock
        self._pace = engine.config.worker
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        self._lease: Lease | None = None
        self._lease_until = 0.0
        self._embedders: Embedders | None = None
        self._reached = Reached()
        self._at_rest: dict[str, tuple[int, int, tuple[int, ...]]] = {}
        self.failure = ""  # why the last attempt of a step failed; empty when it did not

    # -- leases

    def holds_lease(self) -> bool:
        """Take or renew the lease; whether this worker has it."""
        now = time.monotonic()
        if self._lease is not None and now < self._lease_until - self._pace.lease_s / 2:
            return True
        stamp = micros(self._clock())
        ends = stamp + int(self._pace.lease_s * 1_000_000)
        self._lease = self._store.upkeep.acquire(LEASE, self._holder, stamp, ends)
        self._lease_until = now + self._pace.lease_s
        return self._lease is not None

    def release(self) -> None:
        if self._lease is not None:
            self._store.upkeep.release(self._lease)
            self._lease = None

    # -- embedders

    def embedders(self) -> Embedders:
        """Chosen once; a new store's choice is recorded with its first vector."""
        if self._embedders is None:
            serving = self._store.upkeep.serving()
            self._embedders = self._models.choose(serving.space if serving else None)
        return self._embedders

    def embedder_of(self, stored: StoredSpace) -> Embedder | None:
        for known in (self.embedders().serving, self.embedders().configured):
            if known is not None and known.space == stored.space:
                return known
        return self._models.of(stored.space)

    def forget_choice(self) -> None:
        """The serving space has changed: choose again."""
        self._embedders = None
        self._at_rest.clear()

    # -- steps

    def run_once(self, stop: Callable[[], bool] = lambda: False) -> list[Progress]:
        """One batch of each step in each namespace that lacks something. Errors of models end up in `failure`."""
        report: list[Progress] = []
        for head in self._store.chunks.heads():
            spaces = self._filling()
            mark = (head.chunk, head.epoch, tuple(s.id for s in spaces))
            if stop() or (self._at_rest.get(head.namespace) == mark and (spaces or not self._can_start())):
                continue
            found = [self._chunk(head), self._cut(head.namespace, spaces), self._judge(head, spaces)]
            found += self._index(head, spaces)
            report += [p for p in found if p.done or p.left]
            if not self.failure and not any(p.done or p.left for p in found):
                self._at_rest[head.namespace] = mark
        if not report:
            self._finish_reindex()
        return report

    def _filling(self) -> list[StoredSpace]:
        return [s for s in self._store.upkeep.spaces() if s.state in ("serving", "building")]

    def _can_start(self) -> bool:
        return self.embedders().serving is not None

    def _chunk(self, head: Head) -> Progress:
        """Events without chunks: their table was lost. Looked for once, and again when rows went away."""
        if self._reached.of(head, "chunk"):
            return Progress("chunk", 0, False)
        events = self._store.events.without_chunks(head.namespace, self._pace.batch)
        rows = [(int(event.seq), chunk) for event in events for chunk in self._analyser.chunks(event)]
        if rows:
            self._store.chunks.add(head.namespace, rows, self._lease)
        else:
            self._reached.put(head, "chunk", 1)
        return Progress("chunk", len(rows), bool(rows))

    def _cut(self, namespace: str, spaces: list[StoredSpace]) -> Progress:
        """Pieces of long texts are cut anew where the meaning changes (semantic strategy)."""
        events = self._store.events.provisional(namespace, 8)
        if not events:
            return Progress("cut", 0, False)
        embedder = self._serving_embedder(spaces)
        able = embedder if embedder is not None and understands(embedder.space) else None
        try:
            rows = [(int(e.seq), chunk) for e in events for chunk in self._analyser.chunks_by_meaning(e, able)]
        except ModelError as error:
            self.failure = str(error)
            return Progress("cut", 0, False)
        self._store.chunks.replace(namespace, rows, self._lease)
        return Progress("cut", len(events), True)

    def _known(self, namespace: str) -> Known:
        return Known(self._store.chunks.labels(namespace), self._store.upkeep)

    def _serving_embedder(self, spaces: list[StoredSpace]) -> Embedder | None:
        serving = next((s for s in spaces if s.state == "serving"), None)
        return self.embedder_of(serving) if serving else self.embedders().serving

    def _judge(self, head: Head, spaces: list[StoredSpace]) -> Progress:
        """Chunks about which nothing has been decided. Topics wait for the vector where one will tell more."""
        namespace = head.namespace
        raws = self._store.chunks.undecided(namespace, self._reached.of(head, "judge"), self._pace.batch)
        if not raws:
            self._reached.put(head, "judge", head.chunk)
            return Progress("judge", 0, False)
        said_before = self._store.chunks.saying(namespace, (r.signature for r in raws))
        serving = next((s for s in spaces if s.state == "serving"), None)
        embedder = self._serving_embedder(spaces)
        about: dict[int, tuple[Topic, ...]] = {}
        known = self._known(namespace)
        if embedder is None or not understands(embedder.space):
            about = self._judging.about(raws, None, None, known)
        elif serving is not None:  # judged again: what has its vector need not wait
            held = self._store.vectors.some(namespace, serving.id, (r.id for r in raws))
            able = [r for r in raws if r.id in held]
            if able:
                about = self._judging.about(able, np.stack([held[r.id] for r in able]), embedder, known)
        decisions = self._judging.decide(raws, said_before, about)
        self._store.chunks.decide(namespace, decisions, self._lease)
        refused = [d.id for d in decisions if not d.kept]
        for space in spaces:
            if refused and self._store.vectors.some(namespace, space.id, refused):
                self._store.vectors.drop(namespace, space.id, refused)
        self._reached.put(head, "judge", raws[-1].id)
        return Progress("judge", len(raws), len(raws) == self._pace.batch)

    def _index(self, head: Head, spaces: list[StoredSpace]) -> list[Progress]:
        if not spaces:
            first = self.embedders().serving
            return [self._embed(head, None, first)] if first is not None else []
        return [self._embed(head, space, self.embedder_of(space)) for space in spaces]

    def _embed(self, head: Head, stored: StoredSpace | None, embedder: Embedder | None) -> Progress:
        """Vectors for a batch of chunks that have none in a space, and what they are about."""
        if embedder is None:
            return Progress("index", 0, False)
        namespace, place = head.namespace, f"space {stored.id if stored else 0}"
        missing = self._store.vectors.missing(
            namespace, stored.id if stored else 0, self._reached.of(head, place), self._pace.batch
        )
        if not missing:
            self._reached.put(head, place, self._reached.of(head, "judge"))
            return Progress("index", 0, False)
        try:
            vectors = self._vectors(namespace, stored, embedder, missing)
            about = {}
            if understands(embedder.space) and (stored is None or stored.state == "serving"):
                about = self._judging.about(missing, vectors, embedder, self._known(namespace))
            self.failure = ""
        except ModelError as error:
            self.failure = str(error)
            log.warning("%d chunks wait for their vectors: %s", len(missing), error)
            return Progress("index", 0, False)
        if stored is None:
            stored = self._store.upkeep.serve_first(embedder.space)
            if stored.space != embedder.space:  # another process chose first
                self.forget_choice()
                return Progress("index", 0, True)
        self._store.vectors.put(namespace, Filled(stored.id, [m.id for m in missing], vectors, about), self._lease)
        self._reached.put(head, f"space {stored.id}", missing[-1].id)
        return Progress("index", len(missing), len(missing) == self._pace.batch)

    def _vectors(
        self, namespace: str, stored: StoredSpace | None, embedder: Embedder, missing: Sequence[Raw]
    ) -> Matrix:
        """(len(missing), dimension). A text that has a vector already, to the letter, is not embedded again."""
        twins = self._store.vectors.twins(namespace, stored.id, missing) if stored else {}
        held = self._store.vectors.some(namespace, stored.id, twins.values()) if stored and twins else {}
        known = {m.id: held[twins[m.digest]] for m in missing if twins.get(m.digest) in held}
        fresh = [m for m in missing if m.id not in known]
        if fresh:
            made = embed_whole(embedder, [embedded_text(m.text, m.actor, m.role) for m in fresh])
            known |= {m.id: vector for m, vector in zip(fresh, made, strict=True)}
        return np.stack([known[m.id] for m in missing])

    def missing(self) -> int:
        """Chunks of all namespaces that a step could still give a vector."""
        spaces = [s for s in self._filling() if self.embedder_of(s) is not None]
        total = 0
        for head in self._store.chunks.heads():
            if not spaces and not self._filling() and self._can_start():
                total += self._store.vectors.missing_count(head.namespace, 0)
            for space in spaces:
                total += self._store.vectors.missing_count(head.namespace, space.id)
        return total

    def _finish_reindex(self) -> None:
        """A space being built serves as soon as it lacks nothing."""
        building = next((s for s in self._store.upkeep.spaces() if s.state == "building"), None)
        if building is None:
            return
        left = (self._store.vectors.missing_count(h.namespace, building.id) for h in self._store.chunks.heads())
        if not any(left):
            self._store.upkeep.put_space(building.space, "serving")
            self.forget_choice()
            log.info("reindex done: %s serves now", building.space.label)

    def _run_leased(self, end: float | None) -> bool:
        """One round; whether there may be more to do."""
        try:
            return bool(self.run_once(lambda: end is not None and time.monotonic() > end))
        except LeaseLost:
            self._lease = None
            return True

    def settle(self, seconds: float | None = None) -> bool:
        """Run the steps to rest, with the lease; whether they came to rest within `seconds`."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            if not self.holds_lease():
                if not self.missing():
                    return True  # another worker did it
            elif not self._run_leased(end):
                return True
            if end is not None and time.monotonic() > end:
                return False
            if self._lease is None:
                time.sleep(0.05)  # another worker holds the lease; it works, or it lapses
