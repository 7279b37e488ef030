"""Topics as a namespace names them, and sources: what a person keeps or says on purpose beside the log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from mnemic.store.codec import moment
from mnemic.store.driver import Driver, Tx


@dataclass(frozen=True, slots=True)
class Label:
    """How a topic is shown, and the key of the topic it was merged into ("" for none)."""

    key: str
    label: str
    into: str


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


class Naming:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def labels(self, namespace: str) -> dict[str, Label]:
        """Every topic that was ever named, by key."""
        rows = self._driver.read(namespace, lambda tx: tx.fetch("topic_labels", {"namespace": namespace}))
        return {row[0]: Label(*row) for row in rows}

    def counts(self, namespace: str) -> dict[str, int]:
        """key -> chunks about it."""
        rows = self._driver.read(namespace, lambda tx: tx.fetch("topic_counts", {"namespace": namespace}))
        return {row[0]: row[1] for row in rows}

    def name(self, namespace: str, labels: list[Label]) -> None:
        def work(tx: Tx) -> None:
            for item in labels:
                params = {"namespace": namespace, "key": item.key, "label": item.label, "into_key": item.into}
                tx.execute("topic_label_put", params)

        self._driver.write(namespace, work)

    def sources(self, namespace: str) -> list[StoredSource]:
        rows = self._driver.read(namespace, lambda tx: tx.fetch("sources", {"namespace": namespace}))
        return [StoredSource(UUID(bytes=bytes(row[0])), *row[1:]) for row in rows]

    def put_source(self, namespace: str, source: StoredSource) -> None:
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
