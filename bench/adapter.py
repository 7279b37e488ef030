"""mnemic as a membench retriever, through its public Python API alone.

    python -m membench.run --dataset locomo --retriever adapter:Mnemic --data data --out /tmp/out    # PYTHONPATH=bench

Each object has a store of its own in a temporary folder; of a database server it uses a namespace of its own, which
stays there. Models run on one thread, so that times compare with those of the baselines.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol
from uuid import UUID, uuid4

from mnemic import Draft, Memory, Query

ROLES = frozenset({"user", "assistant", "system", "tool"})


class Doc(Protocol):
    """What is read of a `membench.protocol.Doc`."""

    id: str
    text: str
    session: str
    when: datetime | None
    speaker: str


class Mnemic:
    """One memory in its default configuration but for the embedder and its single thread."""

    def __init__(self, embedder: str = "local", url: str | None = None, view: str | None = None) -> None:
        if view is not None:
            raise ValueError(f"this mnemic has no views yet: view={view!r}")
        self._folder = tempfile.TemporaryDirectory(prefix="mnemic-bench-", ignore_cleanup_errors=True)
        home = Path(self._folder.name)
        self.memory = Memory.open(
            home=home,
            url=url or f"sqlite:///{home / 'mnemic.db'}",
            namespace=f"bench-{uuid4().hex}" if url else "bench",
            settings={"embeddings.provider": embedder, "embeddings.threads": 1, "journal.key": "file"},
        )
        self._doc_of: dict[UUID, str] = {}
        if url:
            self._serve(embedder)

    def _serve(self, provider: str) -> None:
        """One space serves a database: if an earlier run chose another, move it, with all that such runs left there."""
        serving = [space.label for space in self.memory.status().spaces if space.state == "serving"]
        if serving and not serving[0].startswith(f"{provider}/"):
            self.memory.reindex(provider)
            self.memory.settle()

    def add(self, docs: Sequence[Doc]) -> None:
        """Record in order; returns when every text can be searched by its words and by its vector."""
        drafts = [(doc.id, draft_of(doc)) for doc in docs]
        kept = [(ident, draft) for ident, draft in drafts if draft.text.strip()]
        receipts = self.memory.record_many([draft for _, draft in kept])
        self._doc_of |= {receipt.id: ident for (ident, _), receipt in zip(kept, receipts, strict=True)}
        self.memory.settle()
        status = self.memory.status()
        if status.pending or status.work.missing:
            raise RuntimeError(f"not settled: {status.pending} pending, {status.work.missing} without a vector")

    def search(self, query: str, k: int, now: datetime | None = None) -> list[str]:
        """Ids of documents, best first. `now` is not used: nothing in recall depends on the day it is asked."""
        return [self._doc_of[hit.event.id] for hit in self.memory.recall(Query(query, k=k))]

    def close(self) -> None:
        """Remove the store."""
        self.memory.close()
        self._folder.cleanup()


def draft_of(doc: Doc) -> Draft:
    """What mnemic's user would record: who spoke is said in its place, not in the text."""
    named = doc.speaker.strip()
    role = named.lower() if named.lower() in ROLES else "user"
    return Draft(
        without_speaker(doc.text, doc.speaker),
        role=role,
        actor="" if named.lower() in ROLES else named,
        session=doc.session or None,
        at=doc.when.replace(tzinfo=doc.when.tzinfo or UTC) if doc.when else None,
    )


def without_speaker(text: str, speaker: str) -> str:
    """'Ana: hello' by Ana is 'hello'; any other text stays as it is."""
    return text[len(speaker) + 1 :].lstrip(" ") if speaker and text.startswith(f"{speaker}:") else text
