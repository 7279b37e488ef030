"""What `mnemic doctor` looks at outside of the store: the interpreter, SQLite, the settings, the folder and its disk.

Nothing here changes anything, and nothing needs a working store.
"""

from __future__ import annotations

import os
import platform
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mnemic.config import Config
from mnemic.errors import MnemicError

Level = Literal["ok", "warn", "fail"]

SQLITE_FLOOR = (3, 51, 3)
LITTLE_BYTES, TOO_LITTLE_BYTES = 500_000_000, 20_000_000
_NETWORK = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "glusterfs",
    "fuse.sshfs",
    "fuse.rclone",
    "davfs",
)


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `doctor`. `fix`: the command that helps, or what to do; empty when nothing needs to be done."""

    name: str
    level: Level
    text: str
    fix: str = ""


def failed(name: str, error: MnemicError | OSError, fix: str = "") -> Check:
    return Check(name, "fail", str(error), fix)


def of_the_system() -> Iterator[Check]:
    """Python and SQLite."""
    yield Check("python", "ok", f"{platform.python_version()} on {platform.system()}")  # an older one cannot import us
    try:
        import apsw
    except ImportError as error:
        yield Check("sqlite", "fail", f"apsw is missing: {error}", "pip install -U apsw")
        return
    sqlite = apsw.sqlite_lib_version()
    extensions = "can" if hasattr(apsw.Connection, "enable_load_extension") else "cannot"
    if tuple(map(int, sqlite.split("."))) < SQLITE_FLOOR:
        yield Check("sqlite", "fail", f"{sqlite} can lose commits; 3.51.3 is needed", "pip install -U apsw")
    else:
        yield Check("sqlite", "ok", f"{sqlite}, {extensions} load extensions; its full-text search is not needed")


def of_the_place(config: Config) -> Iterator[Check]:
    """The time zone, the folder, who can read it, its disk."""
    yield _zone(config)
    home = config.home
    if not home.exists():
        yield Check("home", "ok", f"{home} is made on first use")
        return
    yield _permissions(home)
    yield _disk(home)
    kind = _file_system(home)
    if kind in _NETWORK:
        where = f"{home} lies on a network file system ({kind}), where locks and syncs do not hold"
        yield Check("file system", "warn", where, "set MNEMIC_HOME to a folder on a local disk, or use PostgreSQL")
    else:
        yield Check("file system", "ok", kind or "local, as far as can be seen")


def _zone(config: Config) -> Check:
    from mnemic.app import zone_of

    try:
        zone = zone_of(config)
    except MnemicError as error:
        return failed("timezone", error, "unset timezone, or pip install tzdata")
    return Check("timezone", "ok", f"{config.timezone or zone} for times typed without a zone")


def _permissions(home: Path) -> Check:
    if os.name != "posix":
        return Check("permissions", "ok", "as the system sets them")
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        return Check(
            "permissions", "fail", f"{home} cannot be written by uid {os.geteuid()}", f"chown or chmod 700 {home}"
        )
    if stat.S_IMODE(home.stat().st_mode) & 0o077:
        return Check("permissions", "warn", f"others can look into {home}", f"chmod 700 {home}")
    places = [*home.iterdir(), *home.glob("journal/*/*")]
    files = [file for file in places if file.is_file() and file.name != "config.toml"]
    config_file = home / "config.toml"
    if config_file.is_file():
        files.append(config_file)
    for file in files:
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            return Check("permissions", "warn", f"others can read {file}", f"chmod 600 {file}")
    return Check("permissions", "ok", f"only uid {home.stat().st_uid} can read {home}")


def _disk(home: Path) -> Check:
    try:
        free = shutil.disk_usage(home).free
    except OSError as error:
        return failed("disk", error)
    text = f"{free / 1e9:.1f} GB free"
    if free < TOO_LITTLE_BYTES:
        return Check("disk", "fail", text, f"free some space for {home}")
    return Check(
        "disk", "warn" if free < LITTLE_BYTES else "ok", text, "" if free >= LITTLE_BYTES else "free some space"
    )


def _file_system(home: Path) -> str:
    """The type of the file system under a folder, where the system tells (Linux)."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    here = home.resolve()
    best, kind = "", ""
    for line in mounts:
        _, point, found, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        if (here == Path(point) or Path(point) in here.parents) and len(point) >= len(best):
            best, kind = point, found
    return kind
