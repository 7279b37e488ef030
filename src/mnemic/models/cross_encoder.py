"""Re-rankers: a cross-encoder reads question and text together. An ONNX file of yours, or any /v1/rerank endpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import numpy.typing as npt

from mnemic.config import VectorConfig
from mnemic.errors import ModelMisbehaved, ModelMissing
from mnemic.models.http import QUERY_TRIES, Client, Target, Timing
from mnemic.models.secrets import Secret
from mnemic.models.vectors import clean
from mnemic.ports import Reranker

INSTALL = "pip install 'mnemic[local]'"
MAX_TOKENS = 512  # of question and text together
BATCH = 16
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")

_Ids = npt.NDArray[np.int64]


def reranker(config: VectorConfig, *, environment: Mapping[str, str], api_key: str = "") -> Reranker:
    """The one `vector.rerank_model` names. Errors: ModelMissing when none is set or the file is not there."""
    model = config.rerank_model
    if not model:
        raise ModelMissing(
            "vector.rerank is on, but vector.rerank_model is empty: set an ONNX file or a /v1/rerank URL"
        )
    if model.startswith(("http://", "https://")):
        parts = urlsplit(model)  # the model's name, where the server has several, stands after "#"
        return EndpointReranker(urlunsplit(parts._replace(fragment="")), parts.fragment, Secret(api_key, environment))
    return OnnxReranker(Path(model).expanduser())


class OnnxReranker:
    """A cross-encoder from a file, its `tokenizer.json` beside it. Loaded at the first `rerank`.

    The model answers (n, 1) or (n,): the logit of "relevant"; or (n, 2): logits of "not" and "relevant".
    Errors: ModelMissing for a file that is not there or no ONNX; ModelMisbehaved for another shape or no number.
    """

    def __init__(self, path: Path, *, threads: int = 0) -> None:
        self._path = path
        self._tokenizer_path = path.parent / "tokenizer.json"
        for file in (path, self._tokenizer_path):
            if not file.is_file():
                raise ModelMissing(
                    f"vector.rerank_model: {file} is not there; a re-ranker is model.onnx + tokenizer.json"
                )
        self._threads = threads or min(os.cpu_count() or 1, 4)
        self._lock = Lock()
        self._loaded: tuple[Any, Any] | None = None

    @property
    def name(self) -> str:
        return self._path.parent.name or self._path.stem

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        if not texts:
            return []
        with self._lock:
            self._loaded = self._loaded or self._load()
        tokenizer, session = self._loaded
        pairs = tokenizer.encode_batch([(clean(query), clean(text)) for text in texts])
        wanted = [given.name for given in session.get_inputs()]
        order = sorted(range(len(pairs)), key=lambda number: len(pairs[number].ids))
        scores = [0.0] * len(texts)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            feed = _feed([pairs[row] for row in rows])
            answer = session.run(None, {name: feed[name] for name in wanted})[0]
            for row, score in zip(rows, _relevance(answer, len(rows), self.name), strict=True):
                scores[row] = score
        return scores

    def _load(self) -> tuple[Any, Any]:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ModelMissing(f"a re-ranker from a file needs onnxruntime and tokenizers: {INSTALL}") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            session = onnxruntime.InferenceSession(str(self._path), options, providers=["CPUExecutionProvider"])
            tokenizer = Tokenizer.from_file(str(self._tokenizer_path))
        except Exception as error:
            raise ModelMissing(f"vector.rerank_model: {self._path} or its tokenizer.json cannot be loaded") from error
        unknown = [given.name for given in session.get_inputs() if given.name not in _INPUTS]
        if unknown:
            raise ModelMisbehaved(f"{self.name} wants the inputs {', '.join(unknown)}; it is no text cross-encoder")
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)  # of question and text, the longer one first
        return tokenizer, session


class EndpointReranker:
    """Cohere, Jina, llama-server, vLLM, TEI: `results: [{index, relevance_score}]` for every text, in any order.

    Scores between 0 and 1 are kept; an answer with others is taken for logits.
    Errors: as `Client.post`; ModelMisbehaved unless every text has exactly one finite score.
    """

    def __init__(
        self, url: str, model: str, key: Secret, *, timeout_s: float = 10.0, timing: Timing | None = None
    ) -> None:
        where = "vector.rerank_model"
        target = Target(
            "the re-ranker", url.rstrip("/"), key, key_setting=where, url_setting=where, model_setting=where
        )
        self._client = Client(target, timeout_s=timeout_s, timing=timing)
        self._model = model

    @property
    def name(self) -> str:
        return self._model or self._client.target.name

    def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        if not texts:
            return []
        documents = [clean(text) for text in texts]
        body: dict[str, object] = {"query": clean(query), "documents": documents, "top_n": len(documents)}
        if self._model:
            body["model"] = self._model
        answer = self._client.post("", body, tries=QUERY_TRIES)
        who = self._client.target.name
        try:
            found = [(item["index"], item["relevance_score"]) for item in answer["results"]]  # type: ignore[index]
        except (KeyError, TypeError) as error:
            raise ModelMisbehaved(f"{who} answered no results with index and relevance_score; check its URL") from error
        if not all(type(index) is int and type(score) in (int, float) and isfinite(score) for index, score in found):
            raise ModelMisbehaved(f"{who} answered a score or an index that is no number")
        if sorted(index for index, _ in found) != list(range(len(texts))):
            raise ModelMisbehaved(f"{who} scored {len(found)} texts of {len(texts)}, or one twice")
        scores = np.array([score for _, score in sorted(found)], dtype=np.float64)
        inside = bool(((scores >= 0) & (scores <= 1)).all())
        return [float(score) for score in (scores if inside else _sigmoid(scores))]

    def close(self) -> None:
        self._client.close()


def _feed(pairs: Sequence[Any]) -> dict[str, _Ids]:
    width = max(len(pair.ids) for pair in pairs)
    feed = {name: np.zeros((len(pairs), width), dtype=np.int64) for name in _INPUTS}
    for row, pair in enumerate(pairs):
        length = len(pair.ids)
        feed["input_ids"][row, :length] = pair.ids
        feed["attention_mask"][row, :length] = 1
        feed["token_type_ids"][row, :length] = pair.type_ids
    return feed


def _relevance(answer: object, count: int, who: str) -> list[float]:
    """Logits to 0..1."""
    logits = np.asarray(answer)
    if logits.shape not in ((count,), (count, 1), (count, 2)) or logits.dtype.kind != "f":
        shape = "x".join(map(str, logits.shape))
        raise ModelMisbehaved(
            f"{who} answered {shape} for {count} texts; a cross-encoder answers {count}x1 or {count}x2"
        )
    if not np.isfinite(logits).all():
        raise ModelMisbehaved(f"{who} answered NaN or infinite scores")
    logits = logits.astype(np.float64)
    if logits.shape == (count, 2):
        logits = logits[:, 1] - logits[:, 0]  # the softmax of two is the sigmoid of their difference
    return [float(score) for score in _sigmoid(logits.reshape(count))]


def _sigmoid(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * logits)))  # no overflow at either end
