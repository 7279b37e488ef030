"""Google's batchEmbedContents, with a task type for what is stored and another for what is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mnemic.domain.types import Space
from mnemic.models.http import Client, Target
from mnemic.models.remote import Dialect, Model, Options, RemoteEmbedder, shortened

PROVIDER = "gemini"
BASE_URL = "https://generativelanguage.googleapis.com/v1beta"
DEFAULT = "gemini-embedding-001"
MODELS = {"gemini-embedding-001": Model(3072, 2048), "text-embedding-004": Model(768, 2048)}
UNKNOWN = Model(0, 2048)
ITEMS = 100


def embedder(options: Options) -> RemoteEmbedder:
    """Vectors below the model's own dimension come unnormalised; all are brought to length 1 here."""
    name = (options.model or DEFAULT).removeprefix("models/")
    model = MODELS.get(name, UNKNOWN)
    fewer = shortened(options, model)

    def body(texts: Sequence[str], query: bool) -> Mapping[str, object]:
        same: dict[str, object] = {
            "model": f"models/{name}",
            "taskType": "RETRIEVAL_QUERY" if query else "RETRIEVAL_DOCUMENT",
        }
        if fewer:
            same["outputDimensionality"] = fewer
        return {"requests": [same | {"content": {"parts": [{"text": text}]}} for text in texts]}

    target = Target(
        "gemini", (options.base_url or BASE_URL).rstrip("/"), options.key, key_header="x-goog-api-key", key_prefix=""
    )
    client = Client(target, timeout_s=options.timeout_s, timing=options.timing)
    space = Space(PROVIDER, name, options.dimension or model.dimension, "retrieval-l2")
    dialect = Dialect(f"/models/{name}:batchEmbedContents", body, _vectors, ITEMS)
    return RemoteEmbedder(space, dialect, client, model=model, batch=options.batch)


def _vectors(answer: object) -> list[object]:
    return [item["values"] for item in answer["embeddings"]]  # type: ignore[index]  # a wrong shape raises
