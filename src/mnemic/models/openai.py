"""Any OpenAI-compatible /v1/embeddings: OpenAI, llama.cpp, vLLM, LM Studio, LocalAI, Mistral ..."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mnemic.domain.types import Space
from mnemic.models.http import Client, Target
from mnemic.models.remote import Dialect, Model, Options, RemoteEmbedder, shortened

PROVIDER = "openai"
BASE_URL = "https://api.openai.com/v1"
DEFAULT = "text-embedding-3-small"
MODELS = {
    "text-embedding-3-small": Model(1536, 8191),
    "text-embedding-3-large": Model(3072, 8191),
    "text-embedding-ada-002": Model(1536, 8191),
}
UNKNOWN = Model(0, 512)  # the shortest window among common models
ITEMS = 2048


def embedder(options: Options) -> RemoteEmbedder:
    """`dimensions` is sent only when the vectors are to be shorter than the model's own."""
    name = options.model or DEFAULT
    model = MODELS.get(name, UNKNOWN)
    fewer = shortened(options, model)

    def body(texts: Sequence[str], query: bool) -> Mapping[str, object]:
        request: dict[str, object] = {"model": name, "input": list(texts), "encoding_format": "float"}
        return request | {"dimensions": fewer} if fewer else request

    target = Target("openai", (options.base_url or BASE_URL).rstrip("/"), options.key)
    client = Client(target, timeout_s=options.timeout_s, timing=options.timing)
    space = Space(PROVIDER, name, options.dimension or model.dimension, "l2")
    return RemoteEmbedder(
        space, Dialect("/embeddings", body, _vectors, ITEMS), client, model=model, batch=options.batch
    )


def _vectors(answer: object) -> list[object]:
    """By `index`, which servers may answer in any order."""
    rows: list[object] = [None] * len(answer["data"])  # type: ignore[index]  # a wrong shape raises
    for place, item in enumerate(answer["data"]):  # type: ignore[index]
        index = item.get("index", place)
        if not 0 <= index < len(rows) or rows[index] is not None:
            raise ValueError("an index twice or out of range")
        rows[index] = item["embedding"]
    return rows
