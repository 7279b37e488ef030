"""Which embedder answers for which space. The brand behind an embedder is known in `app.py` alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mnemic.domain.types import Space
from mnemic.ports import Embedder


@dataclass(frozen=True, slots=True)
class Embedders:
    """`serving`: makes vectors of the store's space (None: keyword search only, `reason` says why).
    `configured`: what the settings name when that is another one. `better`: a space that could be had here."""

    serving: Embedder | None
    reason: str = ""
    configured: Embedder | None = None
    better: Space | None = None


# (the store's recorded space or None) -> Embedders. Calls no endpoint but a probe on loopback for a new store.
ChooseEmbedders = Callable[[Space | None], Embedders]
# (provider, model) -> an embedder, for a reindex. Errors: ConfigError, ModelMissing.
MakeEmbedder = Callable[[str, str], Embedder]
# A space that the store knows -> its embedder, or None where it cannot be made here.
EmbedderOf = Callable[[Space], Embedder | None]


@dataclass(frozen=True, slots=True)
class Models:
    choose: ChooseEmbedders
    make: MakeEmbedder
    of: EmbedderOf
