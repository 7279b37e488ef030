"""mnemic: long-term memory for AI chats and agents. One log, and what matters comes back in the next prompt.

from mnemic import Memory

with Memory.open() as memory:
    memory.record("I moved to Porto in March", session="s1")
    memory.recall("where do I live?")[0].text
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mnemic.version import __version__

if TYPE_CHECKING:
    from mnemic.app import AsyncMemory, Memory
    from mnemic.domain.drafts import Draft
    from mnemic.domain.types import Chunk, Event, Hit, Kind, Query, Recalled, Receipt, Role, Space, Trust
    from mnemic.errors import MnemicError

_WHERE = {
    "AsyncMemory": "mnemic.app",
    "Memory": "mnemic.app",
    "Draft": "mnemic.domain.drafts",
    "MnemicError": "mnemic.errors",
} | dict.fromkeys(
    ("Chunk", "Event", "Hit", "Kind", "Query", "Recalled", "Receipt", "Role", "Space", "Trust"), "mnemic.domain.types"
)

__all__ = [
    "AsyncMemory",
    "Chunk",
    "Draft",
    "Event",
    "Hit",
    "Kind",
    "Memory",
    "MnemicError",
    "Query",
    "Recalled",
    "Receipt",
    "Role",
    "Space",
    "Trust",
    "__version__",
]


def __getattr__(name: str) -> object:
    """Names are loaded when asked for: `mnemic --version` should not pay for NumPy."""
    if name in _WHERE:
        from importlib import import_module

        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'mnemic' has no attribute {name!r}")
