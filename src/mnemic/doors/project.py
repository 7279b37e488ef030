"""Which project a folder belongs to, under a name that stays: never the folder's name alone.

A repository is known by where its worktrees meet (git's common folder), by its remote, and by its first commit. So its
subfolders, linked worktrees and symbolic links are one project, clones of one remote are one, and a repository that was
moved stays itself; two repositories that only share a name are two. What was decided is kept in `projects.json` in the
memory's home, so that a first commit or a new remote changes nothing. Outside of git it is the folder's real path.
The setting `project` overrides all this.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from uuid import uuid4

from mnemic.config import Config
from mnemic.errors import InvalidInput

REGISTRY = "projects.json"
GIT_SECONDS = 5.0
_OF_ANOTHER_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX")
_SCP = re.compile(r"(?:[^@/]+@)?([^:/]{2,}):(?!//)(.+)")  # git@host:path; one letter is a drive
_URL = re.compile(r"[a-z+]+://(?:[^@/]*@)?([^/:]*)(?::[0-9]+)?/(.+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Repository:
    """`common`: git's common folder, resolved. `remote`: as host/path, or "". `root`: the first commit, or ""."""

    id: str
    common: str
    remote: str
    root: str


def project_of(given: str, config: Config) -> str:
    """The project that `--project` names: a folder, or a project's name; "" when nothing was given or set.

    Errors: InvalidInput for a folder that is not there.
    """
    if config.project or not given:
        return config.project
    path = Path(given).expanduser()
    if path.exists():
        return resolve(path, config.home)
    if given.startswith((".", "~", "/")) or os.sep in given:
        raise InvalidInput(f"--project {given}: there is no such folder")
    return given


def resolve(path: Path, home: Path) -> str:
    """The stable id of the project that `path` is in."""
    folder = path.resolve()
    if not folder.is_dir():
        folder = folder.parent
    seen = _look(folder)
    if seen is None:
        return str(folder)
    known = _read(home)
    found = _known(seen, known) or replace(seen, id=_new_id(seen, known))
    settled = replace(seen, id=found.id)
    if settled not in known:
        others = [other for other in known if other.common != settled.common and not _moved(other, settled)]
        _write(home, [*others, settled])
    return settled.id


def _look(folder: Path) -> Repository | None:
    """What git says of a folder; None outside of git, or without git."""
    common = _git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if not common:
        return None
    remotes = _git(folder, "config", "--get-regexp", r"^remote\..*\.url$").splitlines()
    urls = dict(line.removeprefix("remote.").split(".url ", 1) for line in remotes if ".url " in line)
    remote = urls.get("origin") or next((urls[name] for name in sorted(urls)), "")
    roots = _git(folder, "rev-list", "--max-parents=0", "HEAD").split()
    return Repository("", str(Path(common).resolve()), _place(remote), min(roots, default=""))


def _known(seen: Repository, known: Sequence[Repository]) -> Repository | None:
    """The entry that is this repository."""
    here = next((entry for entry in known if _same_folder(entry.common, seen.common)), None)
    if here and (here.root in ("", seen.root) or (here.remote and here.remote == seen.remote)):
        return here
    by_remote = next((entry for entry in known if seen.remote and entry.remote == seen.remote), None)
    return by_remote or next((entry for entry in known if _moved(entry, seen)), None)


def _moved(entry: Repository, seen: Repository) -> bool:
    """Its first commit is here now, and where it was there is nothing any more."""
    return bool(seen.root) and entry.root == seen.root and not Path(entry.common).exists()


def _new_id(seen: Repository, known: Sequence[Repository]) -> str:
    """Readable and the same on every machine, as far as the repository has something of its own to go by."""
    folder = Path(seen.common)
    name = (folder.parent if folder.name == ".git" else folder).name.removesuffix(".git")
    own = seen.remote or seen.root
    if seen.remote:
        name = seen.remote.rsplit("/", 1)[-1]
    taken = {entry.id for entry in known}
    for basis in (own, f"{own} {seen.common}", uuid4().hex):
        ident = f"{name}-{blake2b(basis.encode('utf-8', 'surrogateescape'), digest_size=6).hexdigest()}"
        if basis and ident not in taken:
            return ident
    raise AssertionError("a random id was taken")


def _place(url: str) -> str:
    """host/path of a remote without scheme, user, password, port and `.git`, so that ssh and https are one."""
    url = url.strip()
    found = _URL.fullmatch(url) or _SCP.fullmatch(url)
    if found and found[1]:
        return f"{found[1]}/{found[2]}".lower().rstrip("/").removesuffix(".git")
    return str(Path(url.removeprefix("file://")).expanduser().resolve()) if url else ""


def _same_folder(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return Path(one).samefile(other)  # the same under another spelling, where case does not count
    except OSError:
        return False


def _git(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER_REPOSITORY}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env=environment,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return os.fsdecode(done.stdout).strip() if done.returncode == 0 else ""


def _read(home: Path) -> list[Repository]:
    try:
        rows = json.loads((home / REGISTRY).read_text(encoding="utf-8", errors="surrogateescape"))
        return [Repository(**row) for row in rows]
    except (OSError, ValueError, TypeError):
        return []


def _write(home: Path, entries: Sequence[Repository]) -> None:
    """Whole or not at all. Where it cannot be kept, ids still hold for all but moved repositories."""
    temporary = home / f".{REGISTRY}.{os.getpid()}"
    with contextlib.suppress(OSError):
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump([asdict(entry) for entry in entries], file, indent=1, ensure_ascii=False)
        temporary.replace(home / REGISTRY)
