"""A process that records and says what was acknowledged, until it is killed.

usage: writer.py FOLDER STORE FIRST honest|early

From FIRST on it submits numbered entries in bursts and prints `NUMBER SEQ` for each acknowledgement. `honest` prints
when the future resolves; `early`, the positive control, prints at once what it hopes for.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from uuid import UUID

from mnemic.store.journal import Entry, Journal

BURST = 8


def entry(number: int) -> Entry:
    body = b"what was said, number %d" % number
    return Entry(number.to_bytes(16, "big"), "home", hashlib.sha256(body).digest(), body)


def say(number: int, seq: int) -> None:
    os.write(1, b"%d %d\n" % (number, seq))  # one call per line: a kill never leaves an acknowledgement in a buffer


def main(folder: str, store: str, first: str, mode: str) -> None:
    journal = Journal.open(Path(folder), UUID(store), "file")
    number = int(first)
    while True:
        burst = range(number, number + BURST)
        futures = [journal.submit(entry(each)) for each in burst]
        for each, future in zip(burst, futures, strict=True):
            if mode == "early":
                say(each, 0)
            else:
                say(each, future.result())
        number += BURST


if __name__ == "__main__":
    main(*sys.argv[1:])
