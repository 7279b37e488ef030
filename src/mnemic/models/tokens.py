"""Counting tokens as `cl100k_base` does, without the network: its ranks are part of this package.

The ranks (MIT, OpenAI) are read at the first count, about 0.15 s and 60 MB, and checked against the published SHA-256.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from mnemic.domain.tokens import TokenCounter
from mnemic.errors import ConfigError, ModelMissing

if TYPE_CHECKING:
    import tiktoken

CL100K = "cl100k_base"
_RANKS = "data/cl100k_base.tiktoken.gz"
_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"  # of the unpacked ranks
_PATTERN = (  # how cl100k_base cuts text before it merges bytes
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_SLICE = 16_384  # characters; merging one endless word costs more than linear time


def counter(name: str) -> TokenCounter:
    """The counter of a tokenizer; nothing is loaded before the first call. Errors: ConfigError for an unknown name."""
    if name != CL100K:
        raise ConfigError(f"chunker.tokenizer = {name!r} is not known; this version counts with {CL100K!r}")
    return count_cl100k


def count_cl100k(text: str) -> int:
    """The number of cl100k_base tokens in `text`, special tokens read as plain text, in linear time.

    Exact while every 16,384 characters hold a space after a non-space; each longer run may add a token or two.
    """
    encoding = _cl100k()
    if len(text) <= _SLICE:
        return len(encoding.encode_ordinary(text))
    return sum(len(encoding.encode_ordinary(text[start:stop])) for start, stop in _slices(text))


def _slices(text: str) -> list[tuple[int, int]]:
    """Slices of at most `_SLICE` characters, cut before a space that follows a non-space: no token spans that place."""
    slices = []
    start = 0
    while start < len(text):
        stop = min(start + _SLICE, len(text))
        if stop < len(text):
            space = text.rfind(" ", start + 1, stop)
            while space > start and text[space - 1].isspace():
                space = text.rfind(" ", start + 1, space)
            stop = space if space > start else stop
        slices.append((start, stop))
        start = stop
    return slices


@cache  # an immutable table; two threads that race here build it twice and keep one
def _cl100k() -> tiktoken.Encoding:
    import tiktoken

    raw = gzip.decompress(files("mnemic").joinpath(_RANKS).read_bytes())
    if hashlib.sha256(raw).hexdigest() != _SHA256:
        raise ModelMissing(f"mnemic/{_RANKS} is damaged; reinstall mnemic")
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, raw.splitlines())}
    return tiktoken.Encoding(CL100K, pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})
