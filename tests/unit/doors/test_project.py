"""Scenario U77: the project of a folder is not the folder's name."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mnemic.config import Config
from mnemic.doors.project import project_of, resolve
from mnemic.errors import InvalidInput


def git(folder: Path, *arguments: str) -> None:
    same = {"GIT_AUTHOR_DATE": "2026-01-05T10:00:00Z", "GIT_COMMITTER_DATE": "2026-01-05T10:00:00Z"}
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    environment = {**os.environ, **same, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", "-C", str(folder), *who, *arguments], env=environment, check=True, capture_output=True)


def repository(folder: Path, remote: str = "", commit: bool = True) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init")
    if commit:  # the same author, time, tree and message everywhere: the same id of the first commit
        git(folder, "commit", "--allow-empty", "-m", "first")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home of mnemic"


def test_two_repositories_of_one_name_are_two_projects(tmp_path: Path, home: Path) -> None:
    acme, mine = repository(tmp_path / "acme" / "web"), repository(tmp_path / "mine" / "web")
    assert resolve(acme, home) != resolve(mine, home)
    assert resolve(acme, home) == resolve(acme, home)
    assert resolve(acme, home).startswith("web-")


def test_worktree_subfolder_and_link_are_the_repository(tmp_path: Path, home: Path) -> None:
    web = repository(tmp_path / "acme" / "web")
    (web / "src" / "deep").mkdir(parents=True)
    git(web, "worktree", "add", str(tmp_path / "wt-fix"))
    (tmp_path / "link").symlink_to(web / "src")
    first = resolve(web, home)
    for place in (web / "src" / "deep", tmp_path / "wt-fix", tmp_path / "link", web / ".git"):
        assert resolve(place, home) == first, place


def test_a_moved_repository_stays_itself(tmp_path: Path, home: Path) -> None:
    web = repository(tmp_path / "acme" / "web")
    before = resolve(web, home)
    moved = tmp_path / "elsewhere" / "site"
    moved.parent.mkdir()
    web.rename(moved)
    assert resolve(moved, home) == before
    assert resolve(repository(tmp_path / "acme" / "web"), home) != before  # the place is taken by another one


def test_clones_of_one_remote_are_one_whatever_the_protocol(tmp_path: Path, home: Path) -> None:
    ssh = repository(tmp_path / "a" / "web", "git@example.org:Acme/Web.git")
    https = repository(tmp_path / "b" / "site", "https://ana:secret@example.org/acme/web")
    other = repository(tmp_path / "c" / "web", "https://example.org/other/web.git")
    assert resolve(ssh, home) == resolve(https, home) != resolve(other, home)
    assert resolve(ssh, home) == resolve(https, tmp_path / "another home")  # on another machine, say
    assert "secret" not in (home / "projects.json").read_text()


def test_a_first_commit_and_a_new_remote_change_nothing(tmp_path: Path, home: Path) -> None:
    web = repository(tmp_path / "web", commit=False)
    before = resolve(web, home)
    git(web, "commit", "--allow-empty", "-m", "first")
    assert resolve(web, home) == before
    git(web, "remote", "add", "origin", "https://example.org/acme/web.git")
    assert resolve(web, home) == before


def test_outside_of_git_it_is_the_real_path(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "plain folder"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    assert resolve(tmp_path / "link", home) == str(folder.resolve())
    assert not home.exists()


def test_the_setting_overrides_and_names_are_names(tmp_path: Path, home: Path) -> None:
    assert project_of(str(tmp_path), Config(home=home, project="mine")) == "mine"
    assert project_of("", Config(home=home, project="mine")) == "mine"
    assert project_of("", Config(home=home)) == ""
    assert project_of("web-0123456789ab", Config(home=home)) == "web-0123456789ab"
    with pytest.raises(InvalidInput, match="no such folder"):
        project_of("./nowhere", Config(home=home))


def test_a_damaged_registry_is_no_outage(tmp_path: Path, home: Path) -> None:
    web = repository(tmp_path / "web", "https://example.org/acme/web")
    before = resolve(web, home)
    (home / "projects.json").write_text("{")
    assert resolve(web, home) == before
