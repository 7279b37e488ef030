"""What keeps a store running: its identity, its embedding spaces, leases on work, and usage counts."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID, uuid4

import numpy as np

from mnemic.domain.types import Space
from mnemic.errors import LeaseLost
from mnemic.ports import Matrix
from mnemic.store.driver import Driver, Tx

SpaceState = Literal["serving", "building", "retired"]


@dataclass(frozen=True, slots=True)
class StoredSpace:
    id: int
    space: Space
    state: SpaceState


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run a step. `token` grows with each holder: work of an older one is refused at its commit."""

    name: str
    holder: str
    token: int


class Upkeep:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def identity(self) -> UUID:
        """The store's id, made on first use."""
        rows = self._driver.read("", lambda tx: tx.fetch("meta", {"key": "store_id"}))
        if not rows:

            def work(tx: Tx) -> list[tuple[str, ...]]:
                tx.execute("meta_put_once", {"key": "store_id", "value": uuid4().hex})
                return tx.fetch("meta", {"key": "store_id"})

            rows = self._driver.write("", work)
        return UUID(hex=rows[0][0])

    def keep_vectors(self, name: str, vectors: Matrix) -> None:
        """Remember vectors that belong to no chunk (labels of topics, say), so that no process makes them again."""
        value = f"{vectors.shape[1]} {base64.b64encode(vectors.astype(np.float16).tobytes()).decode()}"
        self._driver.write("", lambda tx: tx.execute("meta_put", {"key": f"vectors {name}", "value": value}))

    def kept_vectors(self, name: str) -> Matrix | None:
        rows = self._driver.read("", lambda tx: tx.fetch("meta", {"key": f"vectors {name}"}))
        if not rows:
            return None
        width, _, coded = rows[0][0].partition(" ")
        return np.frombuffer(base64.b64decode(coded), np.float16).astype(np.float32).reshape(-1, int(width))

    # -- spaces

    def spaces(self) -> list[StoredSpace]:
        return self._driver.read("", spaces_in)

    def serving(self) -> StoredSpace | None:
        return next((s for s in self.spaces() if s.state == "serving"), None)

    def put_space(self, space: Space, state: SpaceState) -> StoredSpace:
        """Add a space, or give a known one another state. There is one serving space; a second one retires it."""

        def work(tx: Tx) -> list[tuple[object, ...]]:
            tx.fetch("exclusive", {"name": "spaces"})
            for row in tx.fetch("spaces"):
                if state == row[6] and row[1] != space.label:
                    tx.execute("space_state", {"id": row[0], "state": "retired"})
            params = {
                "label": space.label,
                "provider": space.provider,
                "model": space.model,
                "dimension": space.dimension,
                "scheme": space.scheme,
                "state": state,
            }
            tx.execute("space_put", params)
            return tx.fetch("spaces")

        self._driver.write("", work)
        return next(s for s in self.spaces() if s.space == space)

    def serve_first(self, space: Space) -> StoredSpace:
        """The serving space, which becomes `space` when there is none yet. Two processes cannot disagree."""

        def work(tx: Tx) -> None:
            tx.fetch("exclusive", {"name": "spaces"})
            if not any(row[6] == "serving" for row in tx.fetch("spaces")):
                params: Mapping[str, object] = {
                    "label": space.label,
                    "provider": space.provider,
                    "model": space.model,
                    "dimension": space.dimension,
                    "scheme": space.scheme,
                    "state": "serving",
                }
                tx.execute("space_put", params)

        self._driver.write("", work)
        return next(s for s in self.spaces() if s.state == "serving")

    def drop_space(self, ident: int) -> None:
        self._driver.write("", lambda tx: tx.execute("space_drop", {"id": ident}))

    # -- leases

    def lease(self, name: str) -> tuple[str, int] | None:
        """(holder, expires_at in microseconds) of a lease, expired or not."""
        rows = self._driver.read("", lambda tx: tx.fetch("lease", {"name": name}))
        return (rows[0][0], rows[0][2]) if rows else None

    def acquire(self, name: str, holder: str, now: int, expires_at: int) -> Lease | None:
        """Take or renew a lease; None while another holder's has not expired. Times in microseconds."""

        def work(tx: Tx) -> Lease | None:
            tx.fetch("exclusive", {"name": f"lease {name}"})
            rows = tx.fetch("lease", {"name": name})
            token = rows[0][1] if rows else 0
            if rows and rows[0][0] != holder:
                if rows[0][2] > now:
                    return None
                token += 1
            params = {"name": name, "holder": holder, "token": token, "expires_at": expires_at}
            tx.execute("lease_put", params)
            return Lease(name, holder, token)

        return self._driver.write("", work)

    def release(self, lease: Lease) -> None:
        def work(tx: Tx) -> None:
            tx.fetch("exclusive", {"name": f"lease {lease.name}"})
            rows = tx.fetch("lease", {"name": lease.name})
            if rows and (rows[0][0], rows[0][1]) == (lease.holder, lease.token):
                params = {"name": lease.name, "holder": lease.holder, "token": lease.token, "expires_at": 0}
                tx.execute("lease_put", params)

        self._driver.write("", work)

    # -- usage

    def count_use(self, namespace: str, counts: Mapping[str, int], day: int) -> None:
        """Add to the usage of subjects on a day (days since 1970). StorageLocked at once if the store is busy."""
        rows = [{"namespace": namespace, "subject": s, "day": day, "count": n} for s, n in sorted(counts.items())]
        self._driver.write(namespace, lambda tx: tx.execute_many("usage_add", rows), wait=False)

    def usage(self, namespace: str) -> dict[str, tuple[int, int]]:
        """subject -> (times recalled, last day)."""
        rows = self._driver.read(namespace, lambda tx: tx.fetch("usage", {"namespace": namespace}))
        return {row[0]: (row[1], row[2]) for row in rows}


def spaces_in(tx: Tx) -> list[StoredSpace]:
    return [StoredSpace(r[0], Space(r[2], r[3], r[4], r[5]), r[6]) for r in tx.fetch("spaces")]


def check_lease(tx: Tx, lease: Lease | None) -> None:
    """Inside the transaction that commits a step's result: a holder whose lease went to another writes nothing."""
    if lease is None:
        return
    rows = tx.fetch("lease", {"name": lease.name})
    if not rows or (rows[0][0], rows[0][1]) != (lease.holder, lease.token):
        raise LeaseLost(f"another worker took over the lease on {lease.name}")
