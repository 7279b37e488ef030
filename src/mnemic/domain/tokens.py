"""What the domain knows of tokens: somebody can count them, and a token is at least one byte long."""

from __future__ import annotations

from collections.abc import Callable

TokenCounter = Callable[[str], int]
TOKENS_PER_CHARACTER = 4  # at most: a character is at most four bytes of UTF-8


def bytes_of(text: str) -> int:
    """The length of `text` in UTF-8, an upper bound of its tokens that needs no tokenizer."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def surely_fits(text: str, limit: int) -> bool:
    """Whether `text` has at most `limit` tokens in every byte-level tokenizer, found without one."""
    return len(text) <= limit and bytes_of(text) <= limit
