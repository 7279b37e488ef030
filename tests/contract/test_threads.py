"""One memory, many threads and loops."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mnemic import AsyncMemory, Memory
from tests.conftest import OpenMemory
from tests.fakes import FakeEmbedder

SETTINGS = {"worker.enabled": False, "journal.key": "file"}


@pytest.mark.usefixtures("back_end")
def test_u51_sixteen_threads_see_the_same(memory: Memory) -> None:
    def work(thread: int) -> int:
        for n in range(10):
            memory.record(f"thread{thread} wrote line{n} of its own")
            assert memory.recall(f"thread{thread} line{n}")[0].text == f"thread{thread} wrote line{n} of its own"
        return len(memory.events(limit=1_000))

    with ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(work, range(16)))
    assert max(seen) <= 160
    texts = [e.text for e in memory.events()]
    assert sorted(texts) == sorted(f"thread{t} wrote line{n} of its own" for t in range(16) for n in range(10))
    for thread in range(16):
        own = [text for text in texts if text.startswith(f"thread{thread} ")]
        assert own == [f"thread{thread} wrote line{n} of its own" for n in range(10)]


def test_u51_two_event_loops(url: str, tmp_path: Path) -> None:
    async def work(name: str) -> None:
        memory = await AsyncMemory.open(
            home=tmp_path / "home", url=url, settings=SETTINGS, embedder=FakeEmbedder(), namespace="shared"
        )
        async with memory:
            await asyncio.gather(*(memory.record(f"{name} says {n}") for n in range(25)))
            return [hit.text for hit in await memory.recall(f"{name} says 7", k=1)]

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: asyncio.run(work(name)), ("alpha", "omega")))
    with Memory.open(home=tmp_path / "home", url=url, settings=SETTINGS, namespace="shared") as memory:
        texts = sorted(e.text for e in memory.events())
        assert [memory.recall(f"{name} says 7", k=1)[0].text for name in ("alpha", "omega")] == [
            "alpha says 7",
            "omega says 7",
        ]
    assert texts == sorted(f"{name} says {n}" for name in ("alpha", "omega") for n in range(25))


@pytest.mark.usefixtures("back_end")
def test_u51_closing_twice_is_safe(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.record("something")
    memory.close()
    memory.close()
