"""Feature hashing of term frequencies: no model, no download, always there (X10).

Every term of the keyword pipeline falls into one of 256 buckets with a sign, both from its 64-bit hash, weighted
1 + ln(count); the sum is brought to length 1. Two texts are near when they share words; meaning it does not know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log

import numpy as np

from mnemic.domain.terms import analyse, term_hash
from mnemic.domain.types import Space
from mnemic.models.vectors import unit
from mnemic.ports import Matrix

DIMENSION = 256
SPACE = Space("hashing", "tf", DIMENSION, "terms-signed-l2")
MAX_TOKENS = 1_000_000  # linear in the text: nothing has to be cut for it


class HashingEmbedder:
    """Never fails. The same text gives the same vector on every machine; a text without terms gives zeros."""

    @property
    def space(self) -> Space:
        return SPACE

    @property
    def max_tokens(self) -> int:
        return MAX_TOKENS

    def count(self, text: str) -> int:
        """An upper bound: the white-space tokens."""
        return len(text.split())

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Matrix:
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float64)
        for vector, text in zip(vectors, texts, strict=True):
            counts: Counter[str] = Counter()
            for passage in analyse(text).passages:
                counts.update(passage)
            for term, number in counts.items():
                code = term_hash(term)
                vector[code & 0xFF] += (1.0 if code & 0x100 else -1.0) * (1.0 + log(number))
        return unit(vectors)
