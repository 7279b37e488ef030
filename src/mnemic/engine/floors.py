"""The least plain similarity at which the vector arm alone may surface a chunk, by embedding space.

Chosen on development data (`docs/benchmarks.md`): below the floor lie fewer than 1 in 100 of the wanted turns and most
of what has nothing to do with the question. A floor cuts only its own arm: what keyword search found is never dropped.
"""

from __future__ import annotations

from mnemic.domain.types import Space

_FLOORS = {
    "local": 0.10,
    "hashing": 0.10,
    "multilingual": 0.75,  # e5 vectors lie close together: unrelated texts measure about .70
    "ollama": 0.35,
}
_OTHER = 0.08


def floor_of(space: Space) -> float:
    return _FLOORS.get(space.provider, _OTHER)
