"""Reading a file, or the files of a folder in a fixed order, without leaving the folder.

A folder is walked by what `.gitignore` allows, without hidden entries, virtual environments and installed packages.
Links are not followed: one that stays inside names a file read in its own place, one that leads out is reported.
Each file is opened component by component from the open folder, links refused at every step, so that a folder exchanged
for a link between the walk and the read does not lead out either (where the system can: not on Windows).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from mnemic.errors import InvalidInput, MnemicError, NotFound
from mnemic.integrations.documents.extract import Document, Failure, Raw, ReadOptions, extract, media_of
from mnemic.integrations.documents.ignore import Rule, ignored, rules

_SKIPPED = frozenset({"node_modules", "bower_components", "__pycache__", "site-packages", "venv", "virtualenv"})
_MAX_DEPTH = 64
_MAX_IGNORE_BYTES = 1024 * 1024
_BENEATH = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
# Not blocking: a pipe without a writer must not hold us up before we see that it is one.
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def read_path(place: Path, options: ReadOptions) -> Iterator[Document | Failure]:
    """The document of a file, or the documents of a folder as type `repo`. Nothing is raised."""
    if place.is_dir():
        yield from _folder(place, options)
        return
    uri = _shown(str(place))
    try:
        raw = Raw(uri, _shown(place.name), "document", media_of(place.name), _body(place, None, options.max_bytes))
        yield extract(raw, options)
    except MnemicError as error:
        yield Failure(uri, error)


def _folder(root: Path, options: ReadOptions) -> Iterator[Document | Failure]:
    count = 0
    for found in _walk(root, (), (), root.resolve()):
        if isinstance(found, Failure):
            yield found
            continue
        count += 1
        uri = _shown(str(root.joinpath(*found.parts)))
        if count > options.max_files:
            yield Failure(_shown(str(root)), InvalidInput(f"more than {options.max_files} files; the rest is not read"))
            return
        name = _shown("/".join(found.parts))
        try:
            body = _body(root, found.parts, options.max_bytes)
            if body.strip():  # an empty `__init__.py` is nothing to report
                yield extract(Raw(uri, name, "repo", found.media, body), options)
        except MnemicError as error:
            yield Failure(uri, error)


@dataclass(frozen=True, slots=True)
class _File:
    parts: tuple[str, ...]
    media: str


def _walk(root: Path, parts: tuple[str, ...], known: tuple[Rule, ...], inside: Path) -> Iterator[_File | Failure]:
    """The readable files below, files and folders together in the order of their names."""
    folder = root.joinpath(*parts)
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        yield Failure(_shown(str(folder)), _denied(error))
        return
    names = {entry.name for entry in entries}
    if "pyvenv.cfg" in names:
        return
    if ".gitignore" in names:
        known = (*known, *_ignore_file(root, parts))
    for entry in entries:
        below = (*parts, entry.name)
        if entry.name.startswith(".") or entry.name in _SKIPPED:
            continue
        is_folder = entry.is_dir(follow_symlinks=False)
        if ignored(below, folder=is_folder, known=known):
            continue
        if entry.is_symlink():
            yield from _link(Path(entry.path), inside)
        elif is_folder and len(below) > _MAX_DEPTH:
            yield Failure(_shown(entry.path), InvalidInput(f"folders nested deeper than {_MAX_DEPTH}; not read"))
        elif is_folder:
            yield from _walk(root, below, known, inside)
        elif media := media_of(entry.name):
            yield _File(below, media)


def _ignore_file(root: Path, parts: tuple[str, ...]) -> tuple[Rule, ...]:
    try:
        text = _body(root, (*parts, ".gitignore"), _MAX_IGNORE_BYTES).decode("utf-8", "replace")
    except MnemicError:
        return ()  # a link or a monster; the files are read as if it were not there
    return rules(text, parts)


def _link(link: Path, inside: Path) -> Iterator[Failure]:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        yield Failure(_shown(str(link)), InvalidInput("a link that leads nowhere; skipped"))
        return
    if not target.is_relative_to(inside):
        yield Failure(_shown(str(link)), InvalidInput("a link that leads out of the folder; not followed"))


def _body(root: Path, parts: tuple[str, ...] | None, max_bytes: int) -> bytes:
    """The bytes of a regular file; `parts`: below the folder `root`, without links. Refused by size before it is read.

    Errors: NotFound, InvalidInput.
    """
    try:
        with ExitStack() as opened:
            file = _open(root, parts, opened)
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise InvalidInput("not a regular file")
            if status.st_size > max_bytes:
                raise _too_large(status.st_size, max_bytes)
            with os.fdopen(os.dup(file), "rb") as stream:
                body = stream.read(max_bytes + 1)  # it may have grown since
            if len(body) > max_bytes:
                raise _too_large(len(body), max_bytes)
            return body
    except FileNotFoundError as error:
        raise NotFound("there is no such file") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if isinstance(error, MnemicError):
            raise
        raise _denied(error) from error


def _open(root: Path, parts: tuple[str, ...] | None, opened: ExitStack) -> int:
    if parts is None or not _BENEATH:
        return _kept(os.open(root.joinpath(*parts or ()), _FLAGS), opened)
    at = _kept(os.open(root, _FLAGS | os.O_DIRECTORY), opened)
    *folders, name = parts
    for folder in folders:
        at = _kept(os.open(folder, _FLAGS | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at), opened)
    return _kept(os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=at), opened)


def _kept(file: int, opened: ExitStack) -> int:
    opened.callback(os.close, file)
    return file


def _too_large(size: int, max_bytes: int) -> InvalidInput:
    return InvalidInput(f"{size / 1024**2:.1f} MB, and the limit is {max_bytes / 1024**2:g} MB; split it")


def _denied(error: OSError | ValueError) -> InvalidInput:
    return InvalidInput(f"cannot be read: {getattr(error, 'strerror', None) or error}")


def _shown(path: str) -> str:
    """A path as text that can be stored: bytes of a name that are not UTF-8 become U+FFFD, all else is as it is."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
