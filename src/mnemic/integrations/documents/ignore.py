"""The patterns of `.gitignore`, as far as a folder is read: comments, `!`, a leading, middle or trailing `/`, `*`, `?`,
`[a-z]` and `**`, of the folder and of the folders in it. Not: git's own lists outside of the folder. Pure.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_MAX_RULES = 2_000  # of one file


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern. `base`: the folder of its file, as parts below the root. `parts`: globs, one a path component."""

    base: tuple[str, ...]
    parts: tuple[str, ...]
    keep: bool
    folders_only: bool


def rules(text: str, base: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """The rules of one `.gitignore` in the folder `base`, in their order."""
    found = []
    for line in text.splitlines()[:_MAX_RULES]:
        pattern = line.rstrip()
        keep = pattern.startswith("!")
        pattern = pattern[1:] if keep else pattern
        if not pattern or pattern.startswith("#"):
            continue
        pattern = pattern[1:] if pattern[:2] in ("\\#", "\\!") else pattern
        parts = tuple(part for part in pattern.split("/") if part)
        if "/" not in pattern.rstrip("/"):
            parts = ("**", *parts)  # without a slash it holds at any depth
        if parts:
            found.append(Rule(base, parts, keep, pattern.endswith("/")))
    return tuple(found)


def ignored(path: tuple[str, ...], *, folder: bool, known: Sequence[Rule]) -> bool:
    """Whether the last rule that matches says so. Parents are the caller's: a folder that is ignored is not entered."""
    for rule in reversed(known):
        if rule.folders_only and not folder:
            continue
        if path[: len(rule.base)] == rule.base and _matches(rule.parts, path[len(rule.base) :]):
            return not rule.keep
    return False


def _matches(globs: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Whether the globs are the whole path, where `**` is any number of components, at its end at least one.

    Goes back to the last `**` only: linear in the globs for each component.
    """
    glob = part = 0
    star, tried = -1, 0
    while part < len(path):
        if glob < len(globs) and globs[glob] == "**":
            if glob == len(globs) - 1:
                return True
            star, tried = glob, part
            glob += 1
        elif glob < len(globs) and _component(globs[glob]).match(path[part]):
            glob, part = glob + 1, part + 1
        elif star >= 0:
            tried += 1
            glob, part = star + 1, tried
        else:
            return False
    return glob == len(globs)


@lru_cache(maxsize=4096)
def _component(glob: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(glob))
