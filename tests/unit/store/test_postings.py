"""The forward index and its inversion."""

from __future__ import annotations

import numpy as np

from mnemic.domain.terms import term_hash
from mnemic.store.postings import Postings, pack, unpack


def test_a_chunk_survives_packing() -> None:
    part = unpack([pack([{"a": 2, "b": 1}, {"a": 1}]), pack([{"c": 3}])])
    assert part.chunk.tolist() == [0, 0, 1]
    assert part.length.tolist() == [3, 1, 3]
    assert part.passage.tolist() == [0, 0, 1, 2]
    assert part.count.tolist() == [2, 1, 1, 3]
    assert part.hash.tolist() == [term_hash(t) for t in ("a", "b", "a", "c")]


def test_a_chunk_without_terms_has_no_passage() -> None:
    part = unpack([pack([]), pack([{"x": 1}]), pack([])])
    assert part.chunk.tolist() == [1]
    assert unpack([]).chunk.tolist() == []


def test_a_torn_forward_index_loses_its_tail_only() -> None:
    part = unpack([pack([{"a": 1, "b": 1}])[:-3]])
    assert part.hash.tolist() == [term_hash("a")]


def test_counts_too_large_for_their_field_are_capped() -> None:
    assert unpack([pack([{"a": 100_000}])]).count.tolist() == [65_535]


def test_postings_are_found_whatever_the_batches_they_came_in() -> None:
    random = np.random.default_rng(1)
    hashes = random.integers(0, 50, 3_000)
    passages = np.sort(random.integers(0, 400, 3_000)).astype(np.int32)
    counts = random.integers(1, 9, 3_000).astype(np.uint16)
    postings = Postings()
    for part in np.array_split(np.arange(3_000), 37):
        postings.add(hashes[part], passages[part], counts[part])
    find = postings.frozen()
    for term in range(50):
        found = find(term)
        assert found is not None
        where = hashes == term
        assert found[0].tolist() == passages[where].tolist()
        assert found[1].tolist() == counts[where].tolist()
    assert find(51) is None


def test_a_frozen_lookup_does_not_see_later_postings() -> None:
    postings = Postings()
    postings.add(np.array([1]), np.array([0], np.int32), np.array([1], np.uint16))
    before = postings.frozen()
    postings.add(np.array([1]), np.array([1], np.int32), np.array([1], np.uint16))
    found = before(1)
    assert found is not None
    assert found[0].tolist() == [0]
