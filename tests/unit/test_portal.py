"""`Memory` is `AsyncMemory` without an event loop: the same verbs with the same arguments."""

from __future__ import annotations

import inspect

from mnemic.engine.memory import AsyncMemory
from mnemic.engine.portal import Memory

ASYNC_ONLY = {"submit", "start_worker"}


def verbs(cls: type) -> dict[str, inspect.Signature]:
    members = inspect.getmembers(cls, inspect.isfunction)
    return {name: inspect.signature(f) for name, f in members if not name.startswith("_")}


def test_every_verb_is_on_both_sides_with_the_same_arguments() -> None:
    there, here = verbs(AsyncMemory), verbs(Memory)
    assert set(here) == set(there) - ASYNC_ONLY
    for name, signature in here.items():
        assert list(signature.parameters.values()) == list(there[name].parameters.values()), name
