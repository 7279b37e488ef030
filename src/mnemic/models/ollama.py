"""Ollama's own /api/embed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mnemic.domain.types import Space
from mnemic.models.http import Client, Target
from mnemic.models.remote import Dialect, Model, Options, RemoteEmbedder, shortened

PROVIDER = "ollama"
BASE_URL = "http://127.0.0.1:11434"
DEFAULT = "nomic-embed-text"
_ASK = "Represent this sentence for searching relevant passages: "
# Prefixes as their makers demand; Ollama adds none. Windows are the context each model's Ollama build has.
MODELS = {
    "nomic-embed-text": Model(768, 2048, "search_document: ", "search_query: "),
    "mxbai-embed-large": Model(1024, 512, "", _ASK),
    "snowflake-arctic-embed": Model(1024, 512, "", _ASK),
    "embeddinggemma": Model(768, 2048, "title: none | text: ", "task: search result | query: "),
    "all-minilm": Model(384, 256),
    "bge-m3": Model(1024, 8192),
}
UNKNOWN = Model(0, 512)
ITEMS = 512


def embedder(options: Options) -> RemoteEmbedder:
    name = options.model or DEFAULT
    model = MODELS.get(name.removesuffix(":latest"), UNKNOWN)
    fewer = shortened(options, model)

    def body(texts: Sequence[str], query: bool) -> Mapping[str, object]:
        # truncate: an error is better than a text whose end was dropped silently
        request: dict[str, object] = {"model": name, "input": list(texts), "truncate": False}
        return request | {"dimensions": fewer} if fewer else request

    target = Target("ollama", (options.base_url or BASE_URL).rstrip("/"), options.key)
    client = Client(target, timeout_s=options.timeout_s, timing=options.timing)
    dimension = options.dimension or model.dimension
    space = Space(PROVIDER, name, dimension, "prefix-l2" if model.query else "l2")
    return RemoteEmbedder(space, Dialect("/api/embed", body, _vectors, ITEMS), client, model=model, batch=options.batch)


def _vectors(answer: object) -> list[object]:
    return list(answer["embeddings"])  # type: ignore[index]  # a wrong shape raises
