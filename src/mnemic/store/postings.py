"""The keyword index: stored with each chunk as a forward index, inverted in the process.

A chunk's row holds, for each of its passages, the hashes of its terms with their counts (12 bytes a posting). Reading
the rows of a namespace and sorting them by hash gives the postings lists; the file holds no words beside the text
itself, nothing can be stale on disk, both databases give the same numbers, and a namespace's statistics are its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mnemic.domain.terms import term_hash

Hashes = npt.NDArray[np.int64]
Passages = npt.NDArray[np.int32]
Counts = npt.NDArray[np.uint16]

_POSTING = struct.Struct("<qHH")
_DTYPE = np.dtype([("hash", "<i8"), ("passage", "<u2"), ("count", "<u2")])
_MERGE_BELOW = 2_000_000  # postings; larger segments are left alone, so that sorting never doubles the memory
_CAP = 0xFFFF


def pack(passages: Sequence[Mapping[str, int]]) -> bytes:
    """The forward index of a chunk."""
    flat: list[int] = []
    for number, passage in enumerate(passages):
        for term, count in passage.items():
            flat += term_hash(term), min(number, _CAP), min(count, _CAP)
    return _packer(len(flat) // 3).pack(*flat)


@lru_cache(maxsize=1_024)
def _packer(postings: int) -> struct.Struct:
    return struct.Struct("<" + "qHH" * postings)


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Forward indexes of a run of chunks: per passage its chunk (0 = the first of the run) and its length; per posting
    its hash, passage (0 = the first of the run) and count."""

    chunk: npt.NDArray[np.int32]
    length: npt.NDArray[np.int32]
    hash: Hashes
    passage: Passages
    count: Counts


def unpack(blobs: Iterable[bytes]) -> Unpacked:
    kept = list(blobs)
    sizes = np.fromiter((len(b) // _POSTING.size for b in kept), np.int64, len(kept))
    rows = np.frombuffer(b"".join(b[: len(b) // _POSTING.size * _POSTING.size] for b in kept), _DTYPE)
    chunk_of = np.repeat(np.arange(len(kept), dtype=np.int32), sizes)
    # A passage is a (chunk, number) pair; both ascend, so a change in either begins the next passage.
    begins = np.empty(len(rows), bool)
    if len(rows):
        begins[0] = True
        begins[1:] = (np.diff(chunk_of) != 0) | (np.diff(rows["passage"].astype(np.int32)) != 0)
    passage = (np.cumsum(begins) - 1).astype(np.int32)
    length = np.bincount(passage, weights=rows["count"]).astype(np.int32) if len(rows) else np.zeros(0, np.int32)
    return Unpacked(chunk_of[begins], length, rows["hash"].astype(np.int64), passage, rows["count"].copy())


class _Segment:
    """Postings sorted by hash; passages ascend within a hash."""

    def __init__(self, hashes: Hashes, passages: Passages, counts: Counts) -> None:
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1)) if len(ordered) else np.zeros(0, np.int64)
        self.keys = ordered[starts]
        self.bounds = np.append(starts, len(ordered))
        self.passages = passages[order]
        self.counts = counts[order]

    def __len__(self) -> int:
        return len(self.passages)

    def find(self, key: int) -> tuple[Passages, Counts] | None:
        at = int(np.searchsorted(self.keys, key))
        if at == len(self.keys) or self.keys[at] != key:
            return None
        part = slice(self.bounds[at], self.bounds[at + 1])
        return self.passages[part], self.counts[part]

    def merged(self, later: _Segment) -> _Segment:
        hashes = [np.repeat(s.keys, np.diff(s.bounds)) for s in (self, later)]
        return _Segment(
            np.concatenate(hashes),
            np.concatenate([self.passages, later.passages]),
            np.concatenate([self.counts, later.counts]),
        )


class Postings:
    """Inverted index that grows: each batch is a segment, and small neighbours are merged."""

    def __init__(self) -> None:
        self._segments: tuple[_Segment, ...] = ()

    def add(self, hashes: Hashes, passages: Passages, counts: Counts) -> None:
        """Postings of passages later than all before. Readers of the old segments are not disturbed."""
        for start in range(0, len(hashes), _MERGE_BELOW):
            part = slice(start, start + _MERGE_BELOW)
            segments = [*self._segments, _Segment(hashes[part], passages[part], counts[part])]
            while len(segments) > 1 and _should_merge(segments[-2], segments[-1]):
                segments[-2:] = [segments[-2].merged(segments[-1])]
            self._segments = tuple(segments)

    def frozen(self) -> Lookup:
        return Lookup(self._segments)


def _should_merge(older: _Segment, newer: _Segment) -> bool:
    return len(older) < 8 * len(newer) + 1_000 and len(older) + len(newer) <= _MERGE_BELOW


@dataclass(frozen=True, slots=True)
class Lookup:
    """Postings as of one moment: term hash -> (passages ascending, counts)."""

    segments: tuple[_Segment, ...]

    def __call__(self, key: int) -> tuple[Passages, Counts] | None:
        found = [f for s in self.segments if (f := s.find(key)) is not None]
        if len(found) <= 1:
            return found[0] if found else None
        return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])
