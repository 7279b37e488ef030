"""Several processes append to one file at once: nobody sees BUSY, nothing is lost, order is one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from uuid import UUID

from mnemic.store.journal import Journal

STORE = UUID(int=1)
WRITER = """
import hashlib, json, sys
from pathlib import Path
from uuid import UUID
from mnemic.store.journal import Entry, Journal

def entry(number):
    body = b"text %d" % number
    return Entry(number.to_bytes(16, "big"), "home", hashlib.sha256(body).digest(), body)

own = int(sys.argv[2])
sys.stdin.read(1)  # all start together
journal = Journal.open(Path(sys.argv[1]), UUID(int=1), "file")
seqs = {}
for n in range(1, 101):
    seqs[own * 1000 + n] = journal.submit(entry(own * 1000 + n)).result()
    seqs[n] = journal.append([entry(n)])[0]  # the same hundred in each process
journal.close()
print(json.dumps([str(journal.id), seqs]))
"""


def test_four_processes_append_200_rows_each_to_a_file_that_none_of_them_found(tmp_path: Path) -> None:
    """A hundred of each are shared: every process gets the same seq for them."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(1, 5)
    ]
    for each in children:
        assert each.stdin is not None
        each.stdin.write("g")
        each.stdin.flush()
    answers = [each.communicate(timeout=120) for each in children]
    assert [each.returncode for each in children] == [0] * 4, [error for _, error in answers]
    ids, seqs = zip(*(json.loads(out) for out, _ in answers), strict=True)
    assert len(set(ids)) == 1, "one of them made the journal, the others found it"
    shared = [{number: seq for number, seq in each.items() if int(number) <= 100} for each in seqs]
    assert shared == [shared[0]] * 4
    every: dict[str, int] = {}
    for each in seqs:
        every |= each
    assert sorted(every.values()) == list(range(1, 501))
    with Journal.open(tmp_path, STORE) as journal:
        assert journal.verify().ok
        stored = {str(int.from_bytes(row.entry.id, "big")): row.seq for row in journal.read(0)}
    assert stored == every


def test_importing_the_journal_brings_nothing_heavy() -> None:
    """A hook pays for this import. Seen without the package around it, whose rooms have their own weight."""
    script = """
import sys, types
from pathlib import Path
import importlib.util
root = Path(importlib.util.find_spec("mnemic").origin).parent
for name, path in (("mnemic", root), ("mnemic.store", root / "store")):
    sys.modules[name] = module = types.ModuleType(name)
    module.__path__ = [str(path)]
import mnemic.store.journal
heavy = ("numpy", "pydantic", "asyncio", "keyring", "importlib.metadata", "httpx", "rich", "typer", "platformdirs")
print([name for name in heavy if name in sys.modules])
print(sorted(name for name in sys.modules if name.startswith("mnemic.")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy, ours = done.stdout.splitlines()
    assert heavy == "[]"
    assert ours == str(
        ["mnemic.errors", "mnemic.store", "mnemic.store.journal"]
        + [f"mnemic.store.journal.{name}" for name in ("file", "group", "keys", "log", "seal")]
    )
