"""Curated sources: documents and named spans of the log. Their chunks are verbatim; the summary is for display."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from uuid import UUID

from mnemic.config import ChunkerConfig
from mnemic.domain import chunking, sentences
from mnemic.domain.drafts import Draft
from mnemic.domain.tokens import bytes_of
from mnemic.domain.types import Event, EventId, JsonValue, Kind, Trust
from mnemic.engine.recording import Recording
from mnemic.errors import InvalidInput, NotFound
from mnemic.ports import Clock
from mnemic.store import Store
from mnemic.store.codec import micros
from mnemic.store.events import EventFilter
from mnemic.store.sources import StoredSource

SUMMARY_CHARS = 300
CHANNEL = "ingest"
REPLACED = "replaced by a newer version"


@dataclass(frozen=True, slots=True)
class SourceText:
    """A document to keep. `uri`: where it is; the same uri again is a new version. `name`: what the person calls it.
    `type`: document | repo | web | buffer."""

    uri: str
    name: str
    type: str
    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Ingested:
    """`status`: new | changed | unchanged. `kept_chunks`: those that stand in the former version word for word and keep
    their vectors."""

    source: StoredSource
    status: str
    chunks: int
    kept_chunks: int
    characters: int


class Sources:
    """The verbs on sources of one namespace. Blocking."""

    def __init__(self, store: Store, namespace: str, recording: Recording, clock: Clock) -> None:
        self._store, self._namespace, self._recording, self._clock = store, namespace, recording, clock

    def ingest(self, source: SourceText, max_bytes: int) -> Ingested:
        """Keep a document. Unchanged: nothing happens. Changed: the new text takes the place of the old in the index
        (the log keeps both), and only what changed is embedded again. Errors: InvalidInput (no text)."""
        if not source.text.strip():
            raise InvalidInput(f"{source.uri or source.name} holds no text")
        ident = UUID(bytes=blake2b(f"source\0{self._namespace}\0{source.uri}".encode(), digest_size=16).digest())
        digest = sha256(source.text.encode()).hexdigest()
        known = self._store.sources.all(self._namespace)
        former = next((s for s in known if s.id == ident or (s.uri and s.uri == source.uri)), None)
        ident = former.id if former else ident
        if former is not None and former.digest == digest:
            chunks = self._chunks_of(former)
            return Ingested(former, "unchanged", len(chunks), len(chunks), len(source.text))
        version = former.version + 1 if former else 1
        seqs = self._record(source, ident, digest, version, max_bytes)
        stored = StoredSource(
            id=ident,
            name=source.name,
            type=source.type,
            uri=source.uri,
            digest=digest,
            version=version,
            session=None,
            first=min(seqs),
            last=max(seqs),
            summary=opening(source.text),
            created_at=former.created_at if former else micros(self._clock()),
        )
        fresh = self._chunks_of(stored)
        kept = self._replace(former, fresh) if former else 0
        self._store.sources.put(self._namespace, stored)
        return Ingested(stored, "changed" if former else "new", len(fresh), kept, len(source.text))

    def span(self, name: str, first: int | None, last: int | None) -> tuple[SourceText, tuple[int, int]]:
        """A stretch of the log as a source: the transcript, word for word. Default: from after the last such source to
        the end. Errors: InvalidInput (empty or backward span)."""
        events = self._events(first if first is not None else self._after_last_span(), last)
        if not events:
            raise InvalidInput("there are no events in that span; `mnemic events` lists them with their seq")
        begin, end = int(events[0].seq), int(events[-1].seq)
        text = "\n\n".join(f"{event.actor or event.role}: {event.text}" for event in events)
        return SourceText(f"log:{begin}-{end}", name, "buffer", text), (begin, end)

    def restore(self) -> int:
        """Note sources whose documents are in the log but not in the list, as after an import; how many. Former
        versions leave the index again."""
        listed = {s.id: s.version for s in self._store.sources.all(self._namespace)}
        found: dict[UUID, dict[int, list[Event]]] = {}
        for event in self._events(1, None, kinds=(Kind.DOCUMENT,)):
            source, version = event.data.get("source"), event.data.get("version")
            if isinstance(source, str) and isinstance(version, int):
                found.setdefault(UUID(hex=source), {}).setdefault(version, []).append(event)
        count = 0
        for ident, versions in found.items():
            latest = max(versions)
            if listed.get(ident, 0) >= latest:
                continue
            for version in sorted(versions)[:-1]:
                seqs = [int(event.seq) for event in versions[version]]
                places = [p.id for seq in seqs for p in self._store.chunks.of_event(self._namespace, seq)]
                self._store.chunks.archive(self._namespace, places, REPLACED)
            self._store.sources.put(self._namespace, _listed(ident, latest, versions[latest]))
            count += 1
        return count

    def all(self, name: str = "") -> list[StoredSource]:
        """Sources whose name holds `name`, whatever its case, oldest first."""
        wanted = name.casefold()
        return [s for s in self._store.sources.all(self._namespace) if wanted in s.name.casefold()]

    def one(self, ident: str) -> StoredSource:
        """Errors: NotFound."""
        for source in self._store.sources.all(self._namespace):
            if ident in (source.id.hex, str(source.id), source.uri):
                return source
        raise NotFound(f"there is no source {ident!r}; `mnemic sources` lists them")

    # -- inside

    def _record(self, source: SourceText, ident: UUID, digest: str, version: int, max_bytes: int) -> list[int]:
        parts = _parts(source.text, max_bytes)
        drafts, ids = [], list[EventId]()
        for number, part in enumerate(parts):
            own = blake2b(f"{ident.hex}\0{version}\0{digest}\0{number}".encode(), digest_size=16).digest()
            data: dict[str, JsonValue] = {
                "source": ident.hex,
                "uri": source.uri,
                "name": source.name,
                "type": source.type,
                "version": version,
                "digest": digest,
                "part": number + 1,
                "parts": len(parts),
            }
            if source.title:
                data["title"] = source.title
            trust = Trust.WEB if source.type == "web" else Trust.IMPORT
            event_id = EventId(UUID(bytes=own))
            ids.append(event_id)
            drafts.append(
                Draft(part, kind=Kind.DOCUMENT.value, channel=CHANNEL, trust=trust.value, data=data, id=event_id)
            )
        known = self._store.events.digests(self._namespace, ids)
        if len(known) == len(ids):  # recorded before, and interrupted before the source was noted
            return [seq for _, seq in known.values()]
        return [int(receipt.seq) for receipt in self._recording.batch(drafts)]

    def _chunks_of(self, source: StoredSource) -> list[tuple[int, str]]:
        """(id, text) of the chunks of a source's current version."""
        events = self._events(source.first, source.last)
        found = []
        for event in events:
            if event.data.get("source") == source.id.hex and event.data.get("version") == source.version:
                places = self._store.chunks.of_event(self._namespace, int(event.seq))
                found += [(place.id, event.text[place.start : place.stop]) for place in places]
        return found

    def _replace(self, former: StoredSource, fresh: Sequence[tuple[int, str]]) -> int:
        """Take the former version out of the index; how many of its chunks stand in the new one."""
        old = self._chunks_of(former)
        self._store.chunks.archive(self._namespace, [ident for ident, _ in old], REPLACED)
        texts = {text for _, text in old}
        return sum(text in texts for _, text in fresh)

    def _events(self, first: int, last: int | None, kinds: tuple[Kind, ...] = ()) -> list[Event]:
        found: list[Event] = []
        after = first - 1
        while True:
            page = self._store.events.select(self._namespace, EventFilter(kinds=kinds, after=after, last=last))
            found += [e for e in page if e.kind not in (Kind.MARKER, Kind.EDIT)]
            if len(page) < 1_000:
                return found
            after = int(page[-1].seq)

    def _after_last_span(self) -> int:
        spans = [re.fullmatch(r"log:\d+-(\d+)", s.uri) for s in self._store.sources.all(self._namespace)]
        return max((int(m[1]) + 1 for m in spans if m), default=1)


def _listed(ident: UUID, version: int, events: Sequence[Event]) -> StoredSource:
    """A source as its documents tell it."""
    text, told = "".join(event.text for event in events), events[0].data
    return StoredSource(
        id=ident,
        name=str(told.get("name", "")),
        type=str(told.get("type", "document")),
        uri=str(told.get("uri", "")),
        digest=str(told.get("digest") or sha256(text.encode()).hexdigest()),
        version=version,
        session=None,
        first=min(int(event.seq) for event in events),
        last=max(int(event.seq) for event in events),
        summary=opening(text),
        created_at=micros(events[0].at),
    )


def opening(text: str) -> str:
    """The first sentences of a text, for display until somebody summarises it."""
    shown = ""
    for span in sentences.sentences(text[:4_000]):
        sentence = " ".join(text[span.start : span.stop].split())
        if shown and len(shown) + len(sentence) > SUMMARY_CHARS:
            break
        shown = f"{shown} {sentence}".strip()
    return shown[:SUMMARY_CHARS]


def _parts(text: str, max_bytes: int) -> list[str]:
    """The text in pieces that one event can hold, cut where a chunk would be cut."""
    if len(text.encode()) <= max_bytes:
        return [text]
    pieces = chunking.split(text, ChunkerConfig(max_tokens=max_bytes, overlap_tokens=0), bytes_of)
    return [text[p.start : p.stop] for p in pieces if text[p.start : p.stop].strip()]
