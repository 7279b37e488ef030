"""A worker that outlives the command which started it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

LOG = "worker.log"
LOG_BYTES = 1_000_000  # then it begins anew


def start_worker(home: Path, environment: Mapping[str, str]) -> None:
    """Start `mnemic work --until-idle` on its own: a session of its own, no descriptor, lock or terminal of ours, its
    words in `worker.log`. It ends at once when another worker has the lease. Where no process can be started, the
    next command tries again."""
    words = [sys.executable, "-m", "mnemic.doors.main", "work", "--until-idle", "--unless-busy"]
    detached: dict[str, object] = {"start_new_session": True}
    if sys.platform == "win32":
        detached = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    try:
        with _log(home) as log:
            process = subprocess.Popen(  # type: ignore[call-overload]
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(environment),
                close_fds=True,
                **detached,
            )
    except OSError:
        return
    process.returncode = 0  # nobody waits for it: we end before it, and then it is the system's child


def _log(home: Path) -> _File:
    path = home / LOG
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    if path.exists() and path.stat().st_size > LOG_BYTES:
        flags |= os.O_TRUNC
    return _File(os.open(path, flags, 0o600))


class _File:
    """A descriptor that is closed."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __enter__(self) -> int:
        return self.descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)
