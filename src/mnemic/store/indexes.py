"""The indexes of each namespace, made on first use and followed; the least recently used are let go."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from mnemic.domain import ranking
from mnemic.store.arrays import Arrays, Snapshot
from mnemic.store.driver import Driver, Tx
from mnemic.store.upkeep import StoredSpace, spaces_in
from mnemic.store.vectors import Dense, MakeIndex, VectorIndex

HELD_NAMESPACES = 256


@dataclass(frozen=True, slots=True)
class State:
    """A namespace and its vectors as of one committed moment. `dense` is None when no space serves yet."""

    snapshot: Snapshot
    space: StoredSpace | None
    dense: Dense | None


@dataclass(slots=True)
class _Namespace:
    arrays: Arrays
    vectors: dict[int, VectorIndex] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Indexes:
    def __init__(self, driver: Driver, make: MakeIndex, weights: ranking.Weights) -> None:
        self._driver, self._make, self._weights = driver, make, weights
        self._lock = threading.Lock()
        self._held: OrderedDict[str, _Namespace] = OrderedDict()

    def state(self, namespace: str) -> State:
        """What is committed now. Blocking; a few ms when much has changed, microseconds when nothing has."""
        held = self._of(namespace)
        with held.lock:
            return self._driver.read(namespace, lambda tx: self._follow(tx, namespace, held))

    def _follow(self, tx: Tx, namespace: str, held: _Namespace) -> State:
        snapshot = held.arrays.follow(tx)
        space = next((s for s in spaces_in(tx) if s.state == "serving"), None)
        if space is None:
            return State(snapshot, None, None)
        if space.id not in held.vectors:
            held.vectors.clear()  # another space serves now; vectors of two are not held together
            held.vectors[space.id] = self._make(self._driver, namespace, space.id, space.space.dimension)
        return State(snapshot, space, held.vectors[space.id].follow(tx, snapshot))

    def _of(self, namespace: str) -> _Namespace:
        with self._lock:
            held = self._held.get(namespace)
            if held is None:
                held = self._held[namespace] = _Namespace(Arrays(self._driver, namespace, self._weights))
            self._held.move_to_end(namespace)
            while len(self._held) > HELD_NAMESPACES:
                self._held.popitem(last=False)
            return held
