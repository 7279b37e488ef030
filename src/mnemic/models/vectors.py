"""What every embedder does with the texts it gets and the numbers it gives: cleaned once, checked in one place."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from mnemic.errors import ModelMisbehaved
from mnemic.ports import Matrix

REINDEX = "set embeddings.dimension to match, or run `mnemic reindex` to move the store to the new space"
_WORD = re.compile(r"[A-Za-z][a-z]*|[^\s]")


def clean(text: str) -> str:
    """The text as any tokenizer takes it: valid UTF-8 and no NUL, which C libraries read as the end."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")


def token_bound(text: str) -> int:
    """Tokens of `text` for models whose tokenizer is not at hand: more than any of them finds in prose, code, digits
    or unspaced script (a token every two letters of a word, one a symbol or digit, one a byte beyond ASCII)."""
    letters = 0
    for match in _WORD.finditer(text):
        piece = match[0]
        letters += (len(piece) + 1) // 2 if piece.isascii() else len(piece.encode("utf-8", "replace"))
    return letters + 2


def unit(vectors: npt.NDArray[np.floating]) -> Matrix:
    """Rows of length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def checked(answer: object, *, count: int, dimension: int, who: str) -> Matrix:
    """The answer of a model as float32 (count, dimension), every row finite and not zero.

    `dimension` 0: whatever the model has, as long as it is the same in every row.
    Errors: ModelMisbehaved, saying what came instead and what to do.
    """
    try:
        found = np.asarray(answer)
    except ValueError as error:
        raise ModelMisbehaved(f"{who} answered vectors of different lengths; check embeddings.model") from error
    if count == 0 and found.size == 0:
        return np.zeros((0, dimension), dtype=np.float32)
    if found.ndim < 1 or found.shape[0] != count:
        got = found.shape[0] if found.ndim else "no"
        raise ModelMisbehaved(f"{who} answered {got} vectors for {count} texts; check embeddings.model and base_url")
    if found.ndim != 2 or found.dtype.kind not in "fiu" or found.shape[1] == 0:
        raise ModelMisbehaved(f"{who} answered something else than vectors of numbers; check embeddings.model")
    if dimension and found.shape[1] != dimension:
        raise ModelMisbehaved(f"{who} answered {found.shape[1]} numbers a text where {dimension} are stored; {REINDEX}")
    with np.errstate(over="ignore"):
        vectors = found.astype(np.float32)
    if not np.isfinite(vectors).all():
        raise ModelMisbehaved(f"{who} answered NaN or infinite numbers; restart the model server or change the model")
    if not vectors.any(axis=1).all():
        raise ModelMisbehaved(f"{who} answered a vector of zeros; restart the model server or change the model")
    return vectors
