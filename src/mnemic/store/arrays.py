"""What ranking runs on: the rows of a namespace as arrays, derived lazily and followed as other processes commit.

`refresh` compares the namespace's head with what is held and reads only what is new; when rows that are held changed or
went away (`epoch`), it starts over. What a reader got before stays valid: growing replaces arrays, it does not edit
the part that a snapshot can see.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mnemic.domain import ranking
from mnemic.domain.types import Kind, Query, Role
from mnemic.store.chunks import Head, _head
from mnemic.store.codec import micros
from mnemic.store.driver import Driver, Row, Tx
from mnemic.store.postings import Postings, unpack

ROLES = (Role.USER, Role.ASSISTANT, Role.SYSTEM, Role.TOOL)  # the codes that `domain/cues.py` knows
KINDS = tuple(Kind)
_PAGE = 20_000  # rows; more at once would cost memory that Python does not give back
_ROLE_CODE = {role.value: code for code, role in enumerate(ROLES)}
_KIND_CODE = {kind.value: code for code, kind in enumerate(KINDS)}


class Grown:
    """An array that grows at its end. A view taken before keeps what it shows."""

    def __init__(self, dtype: npt.DTypeLike, width: int = 0) -> None:
        self._shape: tuple[int, ...] = (width,) if width else ()
        self._data = np.empty((0, *self._shape), dtype)
        self._size = 0

    def extend(self, values: npt.ArrayLike) -> None:
        new = np.asarray(values, self._data.dtype)
        size = self._size + len(new)
        if size > len(self._data):
            room = np.empty((max(size, min(2 * self._size, self._size + 50_000)), *self._shape), self._data.dtype)
            room[: self._size] = self._data[: self._size]
            self._data = room
        self._data[self._size : size] = new
        self._size = size

    @property
    def values(self) -> npt.NDArray[Any]:
        return self._data[: self._size]


class Codes:
    """Small integers for texts, in order of appearance."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def of(self, text: str) -> int:
        return self.known.setdefault(text, len(self.known))

    def among(self, texts: Sequence[str]) -> list[int]:
        return [self.known[t] for t in texts if t in self.known]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A namespace as of one head: everything a query needs, immutable."""

    head: Head
    view: ranking.View
    ids: npt.NDArray[np.int64]  # chunk id by index, ascending
    seqs: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.uint8]
    channels: npt.NDArray[np.int32]
    projects: npt.NDArray[np.int32]
    actors: tuple[str, ...]
    sessions: Codes
    channel_codes: Codes
    project_codes: Codes

    def rows(self, query: Query) -> npt.NDArray[np.int64] | None:
        """Indices of the chunks that the query's filters let through; None: all of them."""
        chunks, tests = self.view.chunks, []
        if query.kinds:
            tests.append(np.isin(self.kinds, [_KIND_CODE[k.value] for k in query.kinds]))
        if query.roles:
            tests.append(np.isin(chunks.role, [_ROLE_CODE[r.value] for r in query.roles]))
        if query.sessions:
            tests.append(np.isin(chunks.session, self.sessions.among(query.sessions)))
        if query.channels:
            tests.append(np.isin(self.channels, self.channel_codes.among(query.channels)))
        if query.projects:
            tests.append(np.isin(self.projects, self.project_codes.among(query.projects)))
        if query.since:
            tests.append(chunks.time >= micros(query.since))
        if query.until:
            tests.append(chunks.time < micros(query.until))
        return np.flatnonzero(np.logical_and.reduce(tests)) if tests else None

    def index_of(self, ids: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Indices of chunk ids; those unknown here are left out."""
        at = self.places(ids)
        return at[at >= 0]

    def places(self, ids: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Index of each chunk id, -1 where it is unknown here."""
        wanted = np.asarray(ids, np.int64)
        if not len(self.ids):
            return np.full(len(wanted), -1, np.int64)
        at = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        return np.where(self.ids[at] == wanted, at, -1)


class Arrays:
    """The arrays of one namespace. `refresh` may be called from any thread."""

    def __init__(self, driver: Driver, namespace: str, weights: ranking.Weights) -> None:
        self._driver = driver
        self._namespace = namespace
        self._weights = weights
        self._lock = threading.Lock()
        self._head = Head(namespace, epoch=-1)
        self._snapshot: Snapshot | None = None
        self._clear(self._head)

    def refresh(self) -> Snapshot:
        """The namespace as it is committed now."""
        with self._lock:
            return self._driver.read(self._namespace, self._follow)

    def follow(self, tx: Tx) -> Snapshot:
        """The same inside a read transaction, so that vectors can be read from the very same state."""
        with self._lock:
            return self._follow(tx)

    def _follow(self, tx: Tx) -> Snapshot:
        head = _head(tx, self._namespace)
        if head.epoch != self._head.epoch:
            self._clear(head)
        if self._snapshot is None or head.chunk > self._head.chunk or len(self._snapshot.ids) < len(self._ids.values):
            self._read(tx)
            self._snapshot = self._view(head)
        elif head != self._head:
            self._snapshot = _with_head(self._snapshot, head)
        self._head = head
        return self._snapshot

    def _read(self, tx: Tx) -> None:
        """All chunks beyond those held, in pages: each has the deadline of a statement, and what is read stays read."""
        while True:
            params = {"namespace": self._namespace, "after": self._head.chunk, "limit": _PAGE}
            rows = tx.fetch("chunks_after", params)
            self._extend(rows)
            if rows:
                self._head = replace(self._head, chunk=rows[-1][0])
            if len(rows) < _PAGE:
                return

    def _clear(self, head: Head) -> None:
        self._head = Head(head.namespace, 0, 0, 0, head.epoch)
        self._ids, self._seqs, self._time = Grown(np.int64), Grown(np.int64), Grown(np.int64)
        self._words, self._session, self._actor = Grown(np.int32), Grown(np.int32), Grown(np.int32)
        self._before, self._after = Grown(np.int32), Grown(np.int32)
        self._role, self._kind, self._flags = Grown(np.uint8), Grown(np.uint8), Grown(np.int32)
        self._channel, self._project = Grown(np.int32), Grown(np.int32)
        self._passage_chunk, self._passage_length = Grown(np.int32), Grown(np.int32)
        self._postings = Postings()
        self._sessions, self._actors, self._channels, self._projects = Codes(), Codes(), Codes(), Codes()
        self._last_of: dict[int, int] = {}  # session code -> index of its last chunk
        self._snapshot = None

    def _extend(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        ids, seqs, words, flags, terms, sessions, roles, actors, kinds, channels, projects, times = zip(
            *rows, strict=True
        )
        start = len(self._ids.values)
        session_codes = [-1 if s is None else self._sessions.of(s) for s in sessions]
        self._ids.extend(ids)
        self._seqs.extend(seqs)
        self._words.extend(words)
        self._flags.extend(flags)
        self._time.extend(times)
        self._session.extend(session_codes)
        self._role.extend([_ROLE_CODE.get(r, 0) for r in roles])
        self._kind.extend([_KIND_CODE.get(k, 0) for k in kinds])
        self._actor.extend([self._actors.of(a) for a in actors])
        self._channel.extend([self._channels.of(c) for c in channels])
        self._project.extend([self._projects.of(p) for p in projects])
        self._link(start, session_codes)
        part = unpack(terms)
        first = len(self._passage_chunk.values)
        self._passage_chunk.extend(part.chunk + start)
        self._passage_length.extend(part.length)
        self._postings.add(part.hash, part.passage + np.int32(first), part.count)

    def _link(self, start: int, sessions: Sequence[int]) -> None:
        """Neighbours within a session, in the order of application."""
        before, after = [-1] * len(sessions), [-1] * len(sessions)
        earlier = self._after.values
        copied = False
        for n, session in enumerate(sessions):
            if session < 0:
                continue
            last = self._last_of.get(session, -1)
            before[n] = last
            if last >= start:
                after[last - start] = start + n
            elif last >= 0:
                if not copied:  # a snapshot may hold the old array: edit a copy
                    fresh, copied = Grown(np.int32), True
                    fresh.extend(earlier)
                    self._after, earlier = fresh, fresh.values
                earlier[last] = start + n
            self._last_of[session] = start + n
        self._before.extend(before)
        self._after.extend(after)

    def _view(self, head: Head) -> Snapshot:
        chunks = ranking.Chunks(
            before=self._before.values,
            after=self._after.values,
            words=self._words.values,
            session=self._session.values,
            actor=self._actor.values,
            role=self._role.values,
            flags=self._flags.values,
            time=self._time.values,
        )
        passages = ranking.Passages(self._passage_chunk.values, self._passage_length.values, self._postings.frozen())
        return Snapshot(
            head=head,
            view=ranking.look(chunks, passages, self._weights),
            ids=self._ids.values,
            seqs=self._seqs.values,
            kinds=self._kind.values,
            channels=self._channel.values,
            projects=self._project.values,
            actors=tuple(self._actors.known),
            sessions=self._sessions,
            channel_codes=self._channels,
            project_codes=self._projects,
        )


def _with_head(snapshot: Snapshot, head: Head) -> Snapshot:
    return replace(snapshot, head=head)
