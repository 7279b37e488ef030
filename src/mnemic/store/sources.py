"""Documents and named spans of the log that a person chose to keep."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from mnemic.store.codec import moment
from mnemic.store.driver import Driver


@dataclass(frozen=True, slots=True)
class StoredSource:
    """`type`: buffer | document | repo | web. `first`, `last`: seqs. `summary` is for display; chunks are verbatim."""

    id: UUID
    name: str
    type: str
    uri: str
    digest: str
    version: int
    session: str | None
    first: int
    last: int
    summary: str
    created_at: int

    @property
    def created(self) -> datetime:
        return moment(self.created_at)


class Sources:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def all(self, namespace: str) -> list[StoredSource]:
        rows = self._driver.read(namespace, lambda tx: tx.fetch("sources", {"namespace": namespace}))
        return [StoredSource(UUID(bytes=bytes(row[0])), *row[1:]) for row in rows]

    def put(self, namespace: str, source: StoredSource) -> None:
        params = {
            "namespace": namespace,
            "id": source.id.bytes,
            "name": source.name,
            "type": source.type,
            "uri": source.uri,
            "digest": source.digest,
            "version": source.version,
            "session": source.session,
            "first": source.first,
            "last": source.last,
            "summary": source.summary,
            "created_at": source.created_at,
        }
        self._driver.write(namespace, lambda tx: tx.execute("source_put", params))
