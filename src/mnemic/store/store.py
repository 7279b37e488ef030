"""One concrete class over a small driver; the seam is SQL."""

from __future__ import annotations

from mnemic.domain import ranking
from mnemic.store.chunks import Chunks, Vectors
from mnemic.store.driver import Driver
from mnemic.store.events import Events
from mnemic.store.indexes import Indexes
from mnemic.store.sources import Sources
from mnemic.store.upkeep import Upkeep
from mnemic.store.vectors import MakeIndex


class Store:
    """Blocking and thread-safe. Every call names its namespace; no query crosses it."""

    def __init__(
        self, driver: Driver, make_index: MakeIndex, weights: ranking.Weights, vectors: Vectors | None = None
    ) -> None:
        self.driver = driver
        self.indexes = Indexes(driver, make_index, weights)
        self.events = Events(driver)
        self.chunks = Chunks(driver)
        self.vectors = vectors or Vectors(driver)
        self.sources = Sources(driver)
        self.upkeep = Upkeep(driver)

    def close(self) -> None:
        self.driver.close()
