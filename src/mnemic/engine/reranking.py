"""A second look at the best hits by a model that reads question and text together. Whatever goes wrong, the first order
stands, and the answer says so."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from mnemic.domain.types import Hit
from mnemic.engine.questions import Run
from mnemic.errors import MnemicError
from mnemic.ports import Reranker

LOOK_AT = 20  # hits that are scored again; the rest keep their places behind them


async def reranked(
    find: Callable[[], Reranker | None], question: str, hits: Sequence[Hit], timeout_s: float, run: Run
) -> tuple[tuple[Hit, ...], str]:
    """(hits in their new order, a notice or ""). `parts["rerank"]` is the model's score, 0 to 1."""
    try:
        reranker: Reranker | None = await run(find)
    except MnemicError as error:
        return tuple(hits), f"not re-ranked: {error}"
    if reranker is None:
        return tuple(hits), "not re-ranked: no model is configured (vector.rerank_model)"
    looked_at = list(hits[:LOOK_AT])
    if not looked_at:
        return tuple(hits), ""
    try:
        scores = await asyncio.wait_for(run(reranker.rerank, question, [h.text for h in looked_at]), timeout_s)
    except TimeoutError:
        return tuple(hits), f"not re-ranked: {reranker.name} took longer than {timeout_s:g} s"
    except MnemicError as error:
        return tuple(hits), f"not re-ranked: {error}"
    if len(scores) != len(looked_at) or not all(math.isfinite(score) for score in scores):
        return tuple(hits), f"not re-ranked: {reranker.name} did not score every text"
    scored = [
        replace(hit, parts={**hit.parts, "rerank": round(float(score), 6)})
        for hit, score in zip(looked_at, scores, strict=True)
    ]
    order = sorted(range(len(scored)), key=lambda n: (-scores[n], n))
    return (*(scored[n] for n in order), *hits[LOOK_AT:]), ""
