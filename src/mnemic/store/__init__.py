"""The store: rows to values and back. `Store` is loaded when asked for: a hook that appends to the journal should not
pay for NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mnemic.store.store import Store

__all__ = ["Store"]


def __getattr__(name: str) -> object:
    if name == "Store":
        from mnemic.store.store import Store

        return Store
    raise AttributeError(f"module 'mnemic.store' has no attribute {name!r}")
