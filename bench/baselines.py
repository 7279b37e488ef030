"""What the figures are held against: plain full-text search, exact NumPy search, one sync of the disk, and a bare
writer that commits in groups. Nothing of mnemic is in here."""

from __future__ import annotations

import os
import queue
import re
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path

import apsw
import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
_WORD = re.compile(r"\w+")


class FullText:
    """SQLite's FTS5 with the porter tokenizer and its own bm25(), in a file: the OR of a question's words."""

    def __init__(self, path: Path, stop: Iterable[str]) -> None:
        self._stop = frozenset(stop)
        self._db = apsw.Connection(str(path))
        self._db.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-262144")
        self._db.execute("CREATE VIRTUAL TABLE docs USING fts5(text, tokenize='porter unicode61')")

    def add(self, texts: Iterable[str]) -> None:
        with self._db:
            self._db.executemany("INSERT INTO docs (text) VALUES (?)", ((text,) for text in texts))

    def search(self, question: str, k: int) -> list[int]:
        words = [w for w in dict.fromkeys(_WORD.findall(question.lower())) if w not in self._stop]
        match = " OR ".join(f'"{w}"' for w in words)
        found = "SELECT rowid FROM docs WHERE docs MATCH ? ORDER BY bm25(docs) LIMIT ?"
        return [row[0] for row in self._db.execute(found, (match, k))] if match else []

    def close(self) -> None:
        self._db.close()


def exact(matrix: Matrix, query: Matrix, k: int) -> npt.NDArray[np.int64]:
    """Rows of the k nearest by dot product: the whole matrix, then a partition."""
    scores = matrix @ query
    best = np.argpartition(-scores, k)[:k] if k < len(scores) else np.arange(len(scores))
    return best[np.argsort(-scores[best])]


def sync_seconds(path: Path, times: int) -> list[float]:
    """How long each of `times` pages takes to reach the disk, written over a file that has its size already, as a
    write-ahead log in use has: appending would be dearer, and flatter whoever is held against it."""
    path.write_bytes(b"\0" * 4096 * times)
    file = os.open(path, os.O_RDWR)
    took = []
    try:
        os.fsync(file)
        for page in range(times):
            started = time.perf_counter()
            os.pwrite(file, b"x" * 4096, page * 4096)
            os.fdatasync(file)
            took.append(time.perf_counter() - started)
    finally:
        os.close(file)
    return took


class GroupWriter:
    """The least that keeps the promise: one thread, one table, one COMMIT at synchronous=FULL for all who wait."""

    ROWS = 256

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: queue.SimpleQueue[tuple[bytes, Future[int]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def submit(self, body: bytes) -> Future[int]:
        """The future is answered once the row is durable."""
        future: Future[int] = Future()
        self._queue.put((body, future))
        return future

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        db = apsw.Connection(str(self._path))
        db.execute("PRAGMA journal_mode=WAL").fetchall()
        db.execute("PRAGMA synchronous=FULL; CREATE TABLE log (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)").fetchall()
        while (first := self._queue.get()) is not None:
            batch = [first]
            while len(batch) < self.ROWS and not self._queue.empty():
                item = self._queue.get()
                if item is None:
                    self._queue.put(None)
                    break
                batch.append(item)
            with db:
                db.executemany("INSERT INTO log (body) VALUES (?)", ((body,) for body, _ in batch))
            for number, (_, future) in enumerate(batch):
                future.set_result(number)
        db.close()
