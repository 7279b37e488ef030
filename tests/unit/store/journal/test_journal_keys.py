"""Where the key comes from, what is refused, and that it shows nowhere."""

from __future__ import annotations

import base64
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import keyring
import keyring.backends.fail
import keyring.backends.null
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from mnemic.errors import ConfigError, JournalDamaged, JournalError, StorageError, WrongKey
from mnemic.store.journal import Entry, Journal, keys

STORE = UUID(int=1)
ENTRY = Entry(b"i" * 16, "home", b"d" * 32, b"body")


class Safe(KeyringBackend):
    """A keyring as a desktop has one."""

    priority = 5

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked("locked")
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise KeyringLocked("locked")
        self.held[service, username] = password


class PlaintextKeyring(Safe):
    """Named as the one in `keyrings.alt` that writes passwords to a file as they are."""


@pytest.fixture(autouse=True)
def none_but_ours() -> Iterator[None]:
    before = keyring.get_keyring()
    keyring.set_keyring(keyring.backends.fail.Keyring())
    yield
    keyring.set_keyring(before)


@pytest.fixture
def safe() -> Safe:
    backend = Safe()
    keyring.set_keyring(backend)
    return backend


def source(folder: Path, key: str = "auto") -> str:
    with Journal.open(folder, STORE, key) as journal:
        assert journal.append([ENTRY]) == [1]
        return journal.status().key_source


def test_without_a_keyring_a_private_file_is_made_and_found_again(tmp_path: Path) -> None:
    assert source(tmp_path) == "file"
    key = tmp_path / "journal.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(base64.b64decode(key.read_text())) == 32
    text = key.read_text()
    assert (source(tmp_path), source(tmp_path, "file"), key.read_text()) == ("file", "file", text)


def test_auto_uses_a_real_keyring_and_leaves_no_key_beside_the_journal(tmp_path: Path, safe: Safe) -> None:
    assert source(tmp_path) == "keyring"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.db"]
    assert list(safe.held) == [("mnemic", f"journal:{STORE}")]
    assert (source(tmp_path), source(tmp_path, "keyring")) == ("keyring", "keyring")


def test_auto_prefers_a_key_file_that_is_there(tmp_path: Path, safe: Safe) -> None:
    (tmp_path / "journal.key").write_bytes(base64.b64encode(b"k" * 32))
    (tmp_path / "journal.key").chmod(0o600)
    assert source(tmp_path) == "file"
    assert safe.held == {}


@pytest.mark.parametrize("backend", [keyring.backends.null.Keyring(), PlaintextKeyring()])
def test_auto_does_not_trust_a_keyring_that_protects_nothing(tmp_path: Path, backend: KeyringBackend) -> None:
    keyring.set_keyring(backend)
    assert source(tmp_path) == "file"
    with pytest.raises(ConfigError, match=r"pip install 'mnemic\[keyring\]'"):
        Journal.open(tmp_path / "other", STORE, "keyring")


def test_a_locked_keyring_is_no_place_for_a_new_key_but_the_only_one_for_its_own(tmp_path: Path, safe: Safe) -> None:
    assert source(tmp_path / "a", "keyring") == "keyring"
    safe.locked = True
    assert source(tmp_path / "b") == "file"
    with pytest.raises(ConfigError, match="unlock it"):
        Journal.open(tmp_path / "a", STORE, "keyring")
    with pytest.raises(ConfigError, match="unlock it"):
        Journal.open(tmp_path / "a", STORE)
    safe.locked = False
    safe.held.clear()
    with pytest.raises(WrongKey, match=r"not where it should be \(keyring\)"):
        Journal.open(tmp_path / "a", STORE)


def test_a_later_start_does_not_import_keyring_for_a_key_in_a_file(tmp_path: Path) -> None:
    assert source(tmp_path, "file") == "file"
    script = (
        "import sys, uuid, pathlib; from mnemic.store.journal import Journal;"
        "j = Journal.open(pathlib.Path(sys.argv[1]), uuid.UUID(int=1));"
        "print(j.head(), 'keyring' in sys.modules); j.close()"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "1 False\n"


def test_a_key_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_KEY", base64.b64encode(b"e" * 32).decode())
    assert source(tmp_path, "env:OUR_KEY") == "env:OUR_KEY"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.db"]
    assert source(tmp_path) == "env:OUR_KEY", "auto remembers"
    monkeypatch.setenv("OUR_KEY", base64.b64encode(b"f" * 32).decode())
    with pytest.raises(WrongKey, match="env:OUR_KEY holds"):
        Journal.open(tmp_path, STORE)
    monkeypatch.delenv("OUR_KEY")
    with pytest.raises(ConfigError, match="environment variable OUR_KEY, which is not set"):
        Journal.open(tmp_path, STORE)


@pytest.mark.parametrize("text", ["c2hvcnQ=", "not base64 at all!", base64.b64encode(b"x" * 33).decode()])
def test_a_malformed_key_is_refused_without_showing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("OUR_KEY", text)
    with pytest.raises(ConfigError, match="OUR_KEY does not hold 32 bytes in base64") as caught:
        Journal.open(tmp_path, STORE, "env:OUR_KEY")
    assert text not in str(caught.value)
    monkeypatch.setenv("OUR_KEY", base64.b64encode(b"e" * 32).decode())
    assert source(tmp_path, "env:OUR_KEY") == "env:OUR_KEY", "the failed start left nothing behind"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_key_file_that_others_can_read_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    source(tmp_path, "file")
    key = tmp_path / "journal.key"
    key.chmod(mode)
    with pytest.raises(JournalError, match=f"run: chmod 600 {key}"):
        Journal.open(tmp_path, STORE)
    key.chmod(0o600)
    assert source(tmp_path) == "file"


@pytest.mark.parametrize("key", ["", "env:", "passphrase", "file:x", "keyring:x", "AUTO"])
def test_an_unknown_source_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=r'"auto", "file", "keyring" or "env:NAME"'):
        Journal.open(tmp_path, STORE, key)


def test_a_key_file_that_cannot_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    source(tmp_path, "file")
    (tmp_path / "journal.key").unlink()
    (tmp_path / "journal.key").mkdir()
    with pytest.raises(StorageError, match=r"journal\.key cannot be read"):
        Journal.open(tmp_path, STORE)


def test_a_wrapped_key_opens_only_where_it_was_wrapped_for() -> None:
    kek = keys.Kek(b"k" * 32, "file")
    wrapped = keys.wrap(kek, b"d" * 32, b"here")
    assert len(wrapped) == 60
    assert keys.unwrap(kek, wrapped, b"here") == b"d" * 32
    with pytest.raises(JournalDamaged):
        keys.unwrap(kek, wrapped, b"elsewhere")


def test_a_new_file_never_replaces_one_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "key"
    keys.new_file(path, b"first")
    keys.new_file(path, b"second")
    assert path.read_bytes() == b"first"
    assert [each.name for each in tmp_path.iterdir()] == ["key"]


def test_keys_show_in_no_repr_log_or_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = os.urandom(32)
    text = base64.b64encode(secret).decode()
    key = tmp_path / "journal.key"
    key.write_text(text)
    key.chmod(0o600)
    with Journal.open(tmp_path, STORE) as journal:
        shown = [
            repr(journal),
            repr(journal.status()),
            repr(journal._seal),
            repr(keys.Kek(secret, "file")),
            caplog.text,
        ]
        shown.append(repr(journal._unlocked))
    key.write_text(text[:-4])
    with pytest.raises(ConfigError) as caught:
        Journal.open(tmp_path, STORE)
    shown.append(repr(caught.value))
    assert [
        each for each in shown if text[:12] in each or secret.hex()[:12] in each or repr(secret)[2:12] in each
    ] == []
