"""What can be set: frozen dataclasses, one per room. Below `app.py` they are handed down; nothing else reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class StoreConfig:
    url: str = ""  # sqlite:///path or postgresql://...; empty: <home>/mnemic.db
    busy_timeout_ms: int = 5_000
    readers: int = 4
    query_deadline_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class JournalConfig:
    key: str = "auto"  # auto | keyring | file | env:NAME (32 bytes, base64)
    wal_encrypt: bool = True
    spool_wait_ms: int = 2_000  # how long `record` waits for a database server before it answers "spooled"


@dataclass(frozen=True, slots=True)
class RecordConfig:
    max_bytes: int = 4 * 1024 * 1024
    future_tolerance_s: int = 86_400


@dataclass(frozen=True, slots=True)
class EmbeddingsConfig:
    provider: Literal["auto", "local", "hashing", "multilingual", "ollama", "openai", "gemini", "none"] = "auto"
    model: str = ""
    dimension: int = 0  # 0: the model's own
    base_url: str = ""
    api_key: str = field(default="", repr=False)  # the key, env:NAME or cmd:COMMAND
    threads: int = 0  # 0: one per core, at most 4
    timeout_s: float = 30.0
    batch: int = 64


@dataclass(frozen=True, slots=True)
class VectorConfig:
    enabled: bool = True
    index_type: Literal["exact", "sqlite-vec", "pgvector", "memory"] = "exact"
    similarity_metric: Literal["cosine", "dot_product", "euclidean"] = "cosine"
    top_k: int = 10
    similarity_threshold: float | None = None  # None: the space's own floor
    rerank: bool = False
    rerank_model: str = ""  # path of an ONNX file, or the URL of a /v1/rerank endpoint
    ef_search: int = 64


@dataclass(frozen=True, slots=True)
class ChunkerConfig:
    strategy: Literal["token", "semantic"] = "token"
    max_tokens: int = 512
    overlap_tokens: int = 64
    tokenizer: str = "cl100k_base"
    min_tokens: int = 64
    breakpoint_threshold: float = 0.3


@dataclass(frozen=True, slots=True)
class TopicsConfig:
    enabled: bool = True
    max_topics_per_entry: int = 3
    taxonomy: Literal["auto", "fixed", "hybrid"] = "auto"
    custom_topics: tuple[str, ...] = ()
    min_confidence: float = 0.6


@dataclass(frozen=True, slots=True)
class FilterConfig:
    enabled: bool = True
    autosave_threshold: float = 0.4
    novelty_threshold: float = 0.85
    min_length: int = 20
    max_length: int = 10_000
    exclude_patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecallConfig:
    fusion: Literal["absolute", "rrf", "weighted", "vector", "keyword"] = "absolute"
    share_of_best: float = 0.0  # drop hits below this share of the best score; 0 keeps all k
    rerank_timeout_ms: int = 2_000
    embed_timeout_ms: int = 3_000  # how long a question waits for its vector before it is keyword search


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    enabled: bool = True
    poll_ms: int = 2_000
    lease_s: float = 30.0
    batch: int = 128


@dataclass(frozen=True, slots=True)
class ContextConfig:
    sources: bool = False
    tokens: int = 1_200
    deadline_ms: int = 800


@dataclass(frozen=True, slots=True)
class ServerConfig:
    host: str = "127.0.0.1"
    port: int = 7437
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class UpstreamConfig:
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    model: str = ""


@dataclass(frozen=True, slots=True)
class HygieneConfig:
    enabled: bool = False
    schedule: Literal["hourly", "daily", "weekly"] = "daily"
    max_entries: int = 10_000
    prune_after_days: int = 90
    dedup_similarity_threshold: float = 0.95


@dataclass(frozen=True, slots=True)
class Config:
    home: Path = Path()
    timezone: str = ""  # IANA name for times typed without a zone; empty: the machine's
    namespace: str = "default"
    project: str = ""  # the name of the project, instead of the one found from its folder and repository
    store: StoreConfig = StoreConfig()
    journal: JournalConfig = JournalConfig()
    record: RecordConfig = RecordConfig()
    embeddings: EmbeddingsConfig = EmbeddingsConfig()
    vector: VectorConfig = VectorConfig()
    chunker: ChunkerConfig = ChunkerConfig()
    topics: TopicsConfig = TopicsConfig()
    filter: FilterConfig = FilterConfig()
    recall: RecallConfig = RecallConfig()
    worker: WorkerConfig = WorkerConfig()
    context: ContextConfig = ContextConfig()
    server: ServerConfig = ServerConfig()
    upstream: UpstreamConfig = UpstreamConfig()
    hygiene: HygieneConfig = HygieneConfig()

    @property
    def store_url(self) -> str:
        return self.store.url or f"sqlite:///{self.home / 'mnemic.db'}"
