"""Reading chats out of files. `records` tells the format by the content; a new format is one more line in `FORMATS`."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from mnemic.errors import InvalidInput
from mnemic.integrations.importers import jsonl, plain
from mnemic.integrations.importers.record import Failure, ImportOptions, Record, Source, blocks

__all__ = ["FORMATS", "Failure", "Format", "ImportOptions", "Record", "records", "sniff"]

_HEAD_BYTES = 1 << 16
_BINARY = {
    b"PK\x03\x04": "a zip archive; unpack it and import the file inside",
    b"\x1f\x8b": "a gzip archive; unpack it first",
    b"SQLite format 3": "a SQLite database",
    b"%PDF-": "a PDF; `mnemic ingest` reads documents",
}
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True, slots=True)
class Format:
    """`matches` sees the first bytes of the file (UTF-8, no byte order mark); `read` gets all of them."""

    name: str
    matches: Callable[[bytes], bool]
    read: Callable[[Iterable[bytes], str, ImportOptions], Iterator[Record | Failure]]


FORMATS = (
    Format("JSON Lines", jsonl.is_lines, jsonl.read_lines),
    Format("JSON", jsonl.is_document, jsonl.read_document),
    Format("plain text", lambda head: True, plain.read),  # last: it takes what no other format claims
)
_DEFAULTS = ImportOptions()


def sniff(head: bytes) -> Format:
    """The format of a file that begins with `head`. Errors: InvalidInput for a file that is no text."""
    for magic, what in _BINARY.items():
        if head.startswith(magic):
            raise InvalidInput(f"this is {what}, not a chat in text form")
    return next(known for known in FORMATS if known.matches(head))


def records(stream: Source, name: str, options: ImportOptions = _DEFAULTS) -> Iterator[Record | Failure]:
    """The messages of a chat file in their order, and a Failure for each line that cannot be read.

    `stream`: a binary file or an iterable of bytes, read once and lazily, in constant memory; UTF-8, or UTF-16 with a
    byte order mark. `name`: for messages only.
    Errors, at the first `next`: InvalidInput when the file as a whole is not a chat, saying what is expected.
    """
    source = blocks(stream)
    head = b""
    for block in source:
        head += block
        if len(head) >= _HEAD_BYTES:
            break
    head, rest = _utf8(head, source)
    try:
        chosen = sniff(head)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error
    yield from chosen.read(chain((head,), rest), name, options)


def _utf8(head: bytes, rest: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            head = head.removeprefix(bom)
            if encoding == "utf-8":
                break
            decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
            return decoder.decode(head).encode(), _transcoded(decoder, rest)
    return head, rest


def _transcoded(decoder: codecs.IncrementalDecoder, rest: Iterator[bytes]) -> Iterator[bytes]:
    for block in rest:
        yield decoder.decode(block).encode()
    yield decoder.decode(b"", final=True).encode()
