"""Where the journal's key comes from: a 0600 file, the system's keyring, or the environment.

A random data key per file seals the rows; it lies in that file, wrapped under the key-encryption key (KEK) found here.
A KEK is named by its id, a hash; the key itself is in no message, log or repr.
"""

from __future__ import annotations

import base64
import binascii
import errno
import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mnemic.errors import ConfigError, JournalDamaged, JournalError, StorageError, StorageFull, StorageReadOnly

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

KEY_FILE = "journal.key"
KEYRING_SERVICE = "mnemic"
_UNSAFE_BACKENDS = ("fail", "null", "plaintext", "debug")


@dataclass(frozen=True, slots=True)
class Kek:
    """A key-encryption key and where it was found: "file", "keyring" or "env:NAME"."""

    secret: bytes = field(repr=False)
    source: str

    @property
    def id(self) -> bytes:
        return hashlib.sha256(b"mnemic kek id" + self.secret).digest()[:16]


def find(folder: Path, source: str, store: UUID) -> Kek | None:
    """The key of `source`, or None where there is none yet. "auto" looks for the file only, then the keyring.

    Errors: ConfigError (unknown source, malformed or unset variable, no keyring), JournalError (key file not private).
    """
    match source.partition(":"):
        case ("auto", "", ""):
            return _from_file(folder) or _from_keyring(store, required=False)
        case ("file", "", ""):
            return _from_file(folder)
        case ("keyring", "", ""):
            return _from_keyring(store, required=True)
        case ("env", ":", name) if name:
            return _from_environment(name)
    raise ConfigError('journal.key must be "auto", "file", "keyring" or "env:NAME"')


def make(folder: Path, source: str, store: UUID) -> Kek:
    """A new random key, kept durably where `source` says before this returns; "auto" prefers a real keyring."""
    secret = os.urandom(32)
    if source == "keyring" or (source == "auto" and _backend() is not None):
        try:
            return _to_keyring(store, secret)
        except ConfigError:
            if source == "keyring":
                raise
    new_file(folder / KEY_FILE, base64.b64encode(secret) + b"\n")
    found = _from_file(folder)  # another process may have been first: what lies there is the key
    if found is None:
        raise JournalError(f"the new key file {folder / KEY_FILE} vanished; try again")
    return found


def protects(source: str) -> str:
    """One sentence for `doctor`: what a key from `source` keeps out and what it does not."""
    kind = source.partition(":")[0]
    return {
        "file": "a copy of the journal without its key file; not who can read this account's files or takes both",
        "keyring": "whoever reads the disk or a backup; not programs of this account while the keyring is unlocked",
        "env": "whoever reads the disk or a backup; not who can read this process's environment",
    }.get(kind, "unknown")


def wrap(kek: Kek, data_key: bytes, bound_to: bytes) -> bytes:
    """`data_key` sealed under `kek`, 60 bytes, bound to a store, journal, kid and purpose."""
    nonce = os.urandom(12)
    return nonce + AESGCM(kek.secret).encrypt(nonce, data_key, bound_to)


def unwrap(kek: Kek, wrapped: bytes, bound_to: bytes) -> bytes:
    """The data key. Errors: JournalDamaged, for the caller has compared the key ids: a wrong key does not come here."""
    try:
        return AESGCM(kek.secret).decrypt(wrapped[:12], wrapped[12:], bound_to)
    except InvalidTag:
        raise JournalDamaged("the journal's own key is damaged or was moved here from another file") from None


def new_file(path: Path, content: bytes) -> None:
    """Makes a 0600 file with `content`, whole and durable, or leaves the one that is there.

    By a link of a finished file, so no other process ever sees half of it; and no descriptor of `path` itself is
    opened, because closing one would drop the locks that SQLite holds on that file in this process.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
        finally:
            temporary.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise from_os(error, path) from error


def sync_folder(folder: Path) -> None:
    """Makes the names in `folder` durable (where folders can be synced: not on Windows)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def from_os(error: OSError, path: Path) -> StorageError:
    """The error of this package for a failed call of the system on `path`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StorageFull(f"no space left to write {path}; free some and try again")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StorageReadOnly(f"{path} cannot be written{whoami()}; check the permissions of {path.parent}")
    return StorageError(f"{path}: {error.strerror}{whoami()}")


def whoami() -> str:
    return f" by uid {os.geteuid()}" if hasattr(os, "geteuid") else ""


def _from_file(folder: Path) -> Kek | None:
    path = folder / KEY_FILE
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
                raise JournalError(f"{path} can be read by others; run: chmod 600 {path}")
            text = file.read(200)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"the key file {path} cannot be read{whoami()}: {error.strerror}") from error
    return Kek(_decoded(text, f"the key file {path}"), "file")


def _from_environment(name: str) -> Kek:
    text = os.environ.get(name)
    if not text:
        raise ConfigError(f"the journal's key is to come from the environment variable {name}, which is not set")
    return Kek(_decoded(text.encode(), f"the environment variable {name}"), f"env:{name}")


def _decoded(text: bytes, where: str) -> bytes:
    try:
        secret = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        secret = b""
    if len(secret) != 32:
        raise ConfigError(f"{where} does not hold 32 bytes in base64; make a key with: openssl rand -base64 32")
    return secret


def _backend() -> KeyringBackend | None:
    """The keyring, if the package is installed and its backend is a real one."""
    try:
        import keyring  # late: its backends cost more to import than the whole journal
        from keyring.errors import KeyringError
    except ImportError:
        return None
    try:
        backend = keyring.get_keyring()
    except (KeyringError, OSError, RuntimeError):
        return None
    return backend if _is_real(backend) else None


def _is_real(backend: object) -> bool:
    chained = getattr(backend, "backends", None)
    if chained is not None:
        return bool(chained) and all(_is_real(each) for each in chained)
    name = f"{type(backend).__module__}.{type(backend).__qualname__}".lower()
    return not any(word in name for word in _UNSAFE_BACKENDS)


def _from_keyring(store: UUID, *, required: bool) -> Kek | None:
    backend = _backend()
    if backend is None:
        if required:
            raise ConfigError(_NO_KEYRING)
        return None
    from keyring.errors import KeyringError

    try:
        text = backend.get_password(KEYRING_SERVICE, _account(store))
    except (KeyringError, OSError, RuntimeError) as error:
        if required:
            raise ConfigError(
                f"the keyring does not answer ({type(error).__name__}); unlock it and try again"
            ) from error
        return None
    return Kek(_decoded(text.encode(), "the keyring's entry"), "keyring") if text else None


def _to_keyring(store: UUID, secret: bytes) -> Kek:
    backend = _backend()
    if backend is None:
        raise ConfigError(_NO_KEYRING)
    from keyring.errors import KeyringError

    try:
        backend.set_password(KEYRING_SERVICE, _account(store), base64.b64encode(secret).decode())
    except (KeyringError, OSError, RuntimeError) as error:
        raise ConfigError(f"the keyring takes no key ({type(error).__name__}); unlock it and try again") from error
    found = _from_keyring(store, required=True)
    if found is None or found.secret != secret:
        raise ConfigError('the keyring did not keep the key it was given; use journal.key = "file"')
    return found


def _account(store: UUID) -> str:
    return f"journal:{store}"


_NO_KEYRING = (
    "no keyring that protects anything is here; install one (pip install 'mnemic[keyring]')"
    ' or use journal.key = "file"'
)
