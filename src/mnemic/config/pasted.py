"""Configuration blocks of other memory systems, pasted as they are: the one place that knows their names.

A block stands under `memory`, in TOML or JSON. Three dialects meet there without clashing: a text pipeline (embeddings,
vector, chunker, topics, filter, hygiene), a broker with compaction, and perception memory with an encrypted log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mnemic.errors import ConfigError

PREFIX = "memory."

# Sections whose keys are ours already.
_SECTIONS = ("embeddings", "vector", "chunker", "topics", "filter", "hygiene")

_KEYS: Mapping[str, str] = {
    "max_recall_items": "vector.top_k",
    "rag_top_k": "vector.top_k",
    "recall_relevance_threshold": "vector.similarity_threshold",
    "broker_budget_ms": "context.deadline_ms",
    "wal_encrypt": "journal.wal_encrypt",
    "embeddings.dimensions": "embeddings.dimension",
    "embeddings.top_k": "vector.top_k",
    "embeddings.similarity_threshold": "vector.similarity_threshold",
    "embeddings.store.type": "vector.index_type",
    "sqlite.path": "store.url",
    "postgres.url": "store.url",
    "index_interval_s": "worker.poll_ms",
}

_VALUES: Mapping[str, Callable[[object], object]] = {
    "index_interval_s": lambda seconds: int(float(str(seconds)) * 1000),
    "sqlite.path": lambda path: f"sqlite:///{path}",
}

# Settings of features that come later; accepted, so that a pasted block works, and reported as not used yet.
_LATER = frozenset(
    {
        "enabled",
        "max_contexts",
        "auto_recall",
        "compact_threshold",
        "keep_recent",
        "keep_first",
        "compact_model",
        "compact_fallback_model",
        "active_threads.enabled",
        "active_threads.window_hours",
        "active_threads.max_lines",
    }
)
_BACKENDS = frozenset({"embeddings", "sqlite", "postgres", "memory"})


@dataclass(frozen=True, slots=True)
class Ignored:
    """A key that was read and has no effect, and why."""

    key: str
    why: str


def translated(pairs: Iterator[tuple[str, object]]) -> Iterator[tuple[str, object] | Ignored]:
    """Keys under `memory.` as ours; all others as they are. Errors: ConfigError for a backend mnemic has not."""
    for key, value in pairs:
        if not key.startswith(PREFIX):
            yield key, value
            continue
        name = key.removeprefix(PREFIX)
        if name == "backend":
            yield _backend(key, value)
        elif name in _KEYS:
            yield _KEYS[name], _VALUES[name](value) if name in _VALUES else value
        elif name in _LATER:
            yield Ignored(key, "not used by this version")
        elif name.split(".", 1)[0] in _SECTIONS and name.count(".") == 1:
            yield name, value
        elif name.startswith("embeddings."):  # {"<provider>": {"model": ..., "api_key": ...}}
            yield f"embeddings.{name.rsplit('.', 1)[-1]}", value
        else:
            yield name, value


def _backend(key: str, value: object) -> Ignored:
    if value not in _BACKENDS:
        known = ", ".join(sorted(_BACKENDS))
        raise ConfigError(f"{key} = {value!r} is not known; known are {known}; store.url says where memory lies")
    return Ignored(key, "store.url says where memory lies")
