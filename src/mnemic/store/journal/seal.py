"""A row of the journal: how it is sealed, chained and opened. Pure: bytes in, bytes out, no file.

    AAD    magic 4 | store 16 | kid 4 | seq 8 | id 16 | namespace tag 16                        64 bytes
    plain  version 1 | digest 32 | len(namespace) 2 | len(body) 4 | namespace | body | zeros    to a multiple of 64
    ct     AES-256-GCM(seal key, random 96-bit nonce, plain, AAD)       or `plain` itself when encryption is off
    chain  HMAC-SHA256(chain key, previous chain | AAD | nonce | ct)

The AAD binds a row to its place, its id and its namespace, so a row that was moved, swapped or copied does not open.
The chain runs over ciphertext: rows that were lost, inserted or replayed show without opening anything.
"""

from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass
from hmac import compare_digest
from hmac import digest as hmac_digest
from typing import NamedTuple
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mnemic.errors import InvalidInput, JournalDamaged, SchemaTooNew

SEALED = b"MJ1\0"
PLAIN = b"MJ1p"
BUCKET = 64  # sizes leak in steps of this many bytes
VERSION = 1
MAX_NAMESPACE_BYTES = 1_024
_AAD = struct.Struct(">4s16sIQ16s16s")
_HEADER = struct.Struct(">B32sHI")
_NAMESPACES_REMEMBERED = 4_096


@dataclass(frozen=True, slots=True)
class Entry:
    """What a caller hands in. `digest`, a hash of the content, tells a repeat from a conflict. `body` is opaque."""

    id: bytes
    namespace: str
    digest: bytes
    body: bytes

    def __post_init__(self) -> None:
        if len(self.id) != 16 or len(self.digest) != 32:
            raise InvalidInput("a journal entry needs an id of 16 bytes and a digest of 32")
        if not 0 < len(self.namespace.encode(errors="replace")) <= MAX_NAMESPACE_BYTES:
            raise InvalidInput(f"a namespace has 1 to {MAX_NAMESPACE_BYTES} bytes")


@dataclass(frozen=True, slots=True)
class Row:
    """An entry that was read back and verified. `(seq, chain)` of the last applied row is the store's anchor."""

    seq: int
    entry: Entry
    chain: bytes


class Stored(NamedTuple):
    """A row as it lies in the file, in the order of the columns (a tuple, so that SQLite binds it as it is)."""

    seq: int
    id: bytes
    ns: bytes
    kid: int
    nonce: bytes
    ct: bytes
    chain: bytes


@dataclass(frozen=True, slots=True)
class Place:
    """What a data key is bound to: one journal of one store."""

    store: UUID
    journal: UUID
    kid: int


class Seal:
    """Seals and opens the rows of one file. Its three keys are derived once from the file's data key (RFC 5869 expand).

    Safe in several threads. `encrypt=False` writes plain rows; they are chained, hence tamper-evident, all the same.
    """

    def __init__(self, data_key: bytes, place: Place, *, encrypt: bool) -> None:
        self.encrypt = encrypt
        self._place = place
        self._store = place.store.bytes
        self._gcm = AESGCM(_expand(data_key, b"mnemic journal seal"))
        self._namespace_key = _expand(data_key, b"mnemic journal namespace")
        self._mac = _Mac(_expand(data_key, b"mnemic journal chain"))
        self._tags: dict[str, bytes] = {}
        self.genesis = self._mac(b"genesis" + place.store.bytes + place.journal.bytes)

    def __repr__(self) -> str:
        return f"Seal({self._place!r}, encrypt={self.encrypt})"

    def tag(self, namespace: str) -> bytes:
        """The namespace as the file shows it: keyed, so that a guess cannot be confirmed without the key."""
        tag = self._tags.get(namespace)
        if tag is None:
            if len(self._tags) >= _NAMESPACES_REMEMBERED:
                self._tags.clear()
            tag = self._tags[namespace] = hmac_digest(self._namespace_key, namespace.encode(), "sha256")[:16]
        return tag

    def seal(self, seq: int, entry: Entry, previous: bytes, nonce: bytes) -> Stored:
        """The row at place `seq`, chained to `previous`, the chain of the row before it (or `genesis`).

        `nonce`: one of `fresh_nonces`, never used before.
        """
        ns = self.tag(entry.namespace)
        plain = _pack(entry)
        if self.encrypt:
            aad = _AAD.pack(SEALED, self._store, self._place.kid, seq, entry.id, ns)
            ct = self._gcm.encrypt(nonce, plain, aad)
        else:
            aad = _AAD.pack(PLAIN, self._store, self._place.kid, seq, entry.id, ns)
            nonce, ct = b"", plain
        return Stored(seq, entry.id, ns, self._place.kid, nonce, ct, self._mac(previous + aad + nonce + ct))

    def follows(self, row: Stored, previous: bytes) -> bool:
        """Whether `row` is the very row that was written after the one whose chain is `previous`."""
        return compare_digest(self._mac(previous + self._aad(row) + row.nonce + row.ct), row.chain)

    def open(self, row: Stored) -> Entry:
        """The entry in `row`. Errors: JournalDamaged naming the seq; SchemaTooNew.

        A plain row has no tag of its own: only `follows` vouches for it.
        """
        plain = row.ct
        if row.nonce:
            if row.kid != self._place.kid:
                raise JournalDamaged(f"journal event {row.seq} is sealed under key {row.kid}, which is not here")
            try:
                plain = self._gcm.decrypt(row.nonce, row.ct, self._aad(row))
            except InvalidTag as error:
                raise JournalDamaged(
                    f"journal event {row.seq} was altered or is damaged; run `mnemic doctor`"
                ) from error
        return _unpack(row, plain)

    def _aad(self, row: Stored) -> bytes:
        return _AAD.pack(SEALED if row.nonce else PLAIN, self._store, row.kid, row.seq, row.id, row.ns)


def fresh_nonces(count: int) -> list[bytes]:
    """Random nonces, 96 bits each, by one call: each call lets go of the interpreter, and getting it back is dear."""
    pool = os.urandom(12 * count)
    return [pool[start : start + 12] for start in range(0, 12 * count, 12)]


class _Mac:
    """HMAC-SHA256 under one key, the key's two blocks hashed beforehand: half the time of `hmac.digest`."""

    def __init__(self, key: bytes) -> None:
        block = key.ljust(64, b"\0")
        self._inner = hashlib.sha256(bytes(b ^ 0x36 for b in block))
        self._outer = hashlib.sha256(bytes(b ^ 0x5C for b in block))

    def __call__(self, message: bytes) -> bytes:
        inner = self._inner.copy()
        inner.update(message)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()


def _expand(key: bytes, info: bytes) -> bytes:
    return hmac_digest(key, info + b"\x01", "sha256")


def _pack(entry: Entry) -> bytes:
    namespace = entry.namespace.encode()
    plain = _HEADER.pack(VERSION, entry.digest, len(namespace), len(entry.body)) + namespace + entry.body
    return plain.ljust(-(-len(plain) // BUCKET) * BUCKET, b"\0")


def _unpack(row: Stored, plain: bytes) -> Entry:
    if plain[:1] > bytes([VERSION]):
        raise SchemaTooNew(f"journal event {row.seq} was written by a newer mnemic; upgrade this one")
    try:
        _, digest, namespace_size, body_size = _HEADER.unpack_from(plain)
        start = _HEADER.size + namespace_size
        if len(plain) < start + body_size:
            raise ValueError("shorter than its header says")
        return Entry(row.id, plain[_HEADER.size : start].decode(), digest, plain[start : start + body_size])
    except (struct.error, ValueError) as error:  # InvalidInput and UnicodeDecodeError are ValueErrors
        raise JournalDamaged(f"journal event {row.seq} is damaged: {error}; run `mnemic doctor`") from error
