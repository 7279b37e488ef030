"""What a memory is made of, put together in `app.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo

from mnemic.config import Config
from mnemic.domain import ranking
from mnemic.engine.analysis import Analyser
from mnemic.engine.embedding import Models
from mnemic.engine.judging import Judge
from mnemic.engine.spool import Spool
from mnemic.ports import Clock, Reranker
from mnemic.store import Store
from mnemic.store.journal import Journal


@dataclass(frozen=True, slots=True)
class Engine:
    """`waits_for_database`: an acknowledgement means that the database has committed (a server's), not the journal.
    `reranker`: the configured one, made at the first call; None when there is none."""

    config: Config
    store: Store
    journal: Journal
    spool: Spool
    models: Models
    analyser: Analyser
    judging: Judge
    clock: Clock
    zone: tzinfo
    weights: ranking.Weights
    waits_for_database: bool
    reranker: Callable[[], Reranker | None]
