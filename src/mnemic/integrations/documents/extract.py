"""From the bytes of a document to its text: which reader, which encoding.

Text files are taken as they are; HTML, PDF and DOCX are read into text with Markdown headings. Bytes become text by, in
this order: a byte order mark, the encoding the server or the page names, UTF-16 that shows by its zeros, UTF-8, and a
guess (marked `charset_guessed`). What still does not decode is U+FFFD (marked `text_replaced`).
"""

from __future__ import annotations

import codecs
import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from mnemic.errors import InvalidInput, MnemicError

DocumentType = Literal["document", "repo", "web"]

_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_DOCUMENTS = {
    "txt": "text/plain", "text": "text/plain", "log": "text/plain", "md": "text/markdown", "markdown": "text/markdown",
    "rst": "text/x-rst", "org": "text/x-org", "adoc": "text/asciidoc", "tex": "text/x-tex", "csv": "text/csv",
    "tsv": "text/tab-separated-values", "html": "text/html", "htm": "text/html", "xhtml": "text/html",
    "pdf": "application/pdf", "docx": _DOCX,
}  # fmt: skip
_SUFFIXES = (
    "py pyi js mjs cjs jsx ts tsx vue svelte java kt kts scala groovy gradle c h cc cpp cxx hpp hh cs fs go rs rb "
    "php swift m mm d zig nim r jl lua pl pm ex exs erl hs ml clj dart sh bash zsh fish ps1 bat cmd sql css scss less "
    "xml json jsonl yaml yml toml ini cfg conf properties proto graphql tf cmake mk vim el lisp scm asm s ipynb"
)
_CODE = frozenset(_SUFFIXES.split())
_NAMES = frozenset(
    {"dockerfile", "makefile", "readme", "license", "licence", "notice", "changelog", "authors", "contributing",
     "procfile", "gemfile", "rakefile", "justfile", "todo", "copying", "install"}
)  # fmt: skip
_READ_AS_TEXT = re.compile(r"text/.*|application/(?:[\w.-]+\+)?(?:json|xml|yaml|toml|javascript|x-ndjson|x-sh|sql)")
_DECLARED = re.compile(
    rb"""<meta[^>]{0,200}?charset\s{0,4}=\s{0,4}["']?\s{0,4}([A-Za-z0-9_:.-]{2,40})""", re.IGNORECASE
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
_KANA, _HANGUL, _HAN, _CYRILLIC = "[\u3041-\u30fa]", "[\uac00-\ud7a3]", "[\u4e00-\u9fff]", "[\u0430-\u044f]"
# Which script tells the encoding, and what share of the letters beyond ASCII it then has at least.
_SCRIPTS = (
    ("shift_jis", _KANA, 0.3), ("euc_jp", _KANA, 0.3), ("euc_kr", _HANGUL, 0.8), ("gb18030", _HAN, 0.3),
    ("big5", _HAN, 0.3), ("cp1251", _CYRILLIC, 0.3),
)  # fmt: skip
# Python knows these as encodings, but they interpret what they decode, or take quadratic time for it.
_NO_CHARSETS = frozenset({"unicode-escape", "raw-unicode-escape", "idna", "punycode", "utf-7", "mbcs", "oem"})
_SURROGATE = re.compile("[\ud800-\udfff]")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(\S.{0,300})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """One text. `uri`: its path or address as given. `name`: short, for people; within its folder for a `repo`.

    `digest`: SHA-256 of the text, hexadecimal. `marks`: `charset_guessed`, `text_replaced`.
    """

    uri: str
    name: str
    type: DocumentType
    media: str
    text: str
    title: str
    digest: str
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """What could not be read, and why; the rest of the batch goes on."""

    uri: str
    reason: MnemicError


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """`max_bytes`: of one file. `max_files`: of one folder. `allow_private`: whether a URL may lead to this machine and
    its networks, on any port."""

    max_bytes: int = 64 * 1024 * 1024
    max_files: int = 50_000
    allow_private: bool = False


@dataclass(frozen=True, slots=True)
class Raw:
    """The bytes of a document, and what is known of them. `charset`: what the server says, or ""."""

    uri: str
    name: str
    type: DocumentType
    media: str
    body: bytes
    charset: str = ""


def media_of(name: str) -> str:
    """The media type a file's name tells, "" for a name that tells none."""
    path = PurePath(name)
    suffix = path.suffix.lower().removeprefix(".")
    if suffix in _DOCUMENTS:
        return _DOCUMENTS[suffix]
    if suffix in _CODE:
        return f"text/x-{suffix}"
    return "text/plain" if path.stem.lower() in _NAMES else ""


def extract(raw: Raw, options: ReadOptions) -> Document:
    """The document. Errors: InvalidInput when there is no text to be had from it, ConfigError for a missing extra."""
    media = _media(raw)
    marks: tuple[str, ...] = ()
    title = ""
    match media:
        case "application/pdf":
            from mnemic.integrations.documents import pdf

            title, text = pdf.read(raw.body, options.max_bytes)
        case _ if media == _DOCX:
            from mnemic.integrations.documents import docx

            title, text = docx.read(raw.body)
        case "text/html" | "application/xhtml+xml":
            from mnemic.integrations.documents import html

            page, marks = decoded(raw.body, raw.charset or _declared(raw.body))
            title, text = html.read(page)
        case _:
            text, marks = decoded(raw.body, raw.charset)
    if not text.strip():
        raise InvalidInput("the file is empty")
    text, title = _SURROGATE.sub("\ufffd", text), _SURROGATE.sub("\ufffd", title)
    if media in ("text/markdown", _DOCX, "text/html") and not title and (found := _HEADING.search(text)):
        title = found[1].rstrip(" #")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Document(raw.uri, raw.name, raw.type, media, text, title, digest, marks)


def _media(raw: Raw) -> str:
    """The media type by the first bytes where they tell, else as declared. Errors: InvalidInput for what is no text."""
    head = raw.body[:1024].lstrip()
    if head.startswith(b"%PDF-"):
        return "application/pdf"
    if raw.media in ("application/pdf", _DOCX):
        return raw.media
    if _binary(raw.body):
        raise InvalidInput("not a text, HTML, PDF or DOCX file")
    if raw.media in ("", "application/octet-stream"):
        return "text/html" if head[:15].lower().startswith((b"<!doctype html", b"<html")) else "text/plain"
    if not _READ_AS_TEXT.fullmatch(raw.media):
        raise InvalidInput(f"{raw.media} cannot be read; readable are text, HTML, PDF and DOCX")
    return raw.media


def _binary(body: bytes) -> bool:
    head = body[:8192]
    return b"\0" in head and not _bom(head)[0] and not _zeros(head)


def _bom(body: bytes) -> tuple[str, bytes]:
    return next(((name, bom) for bom, name in _BOMS if body.startswith(bom)), ("", b""))


def _zeros(body: bytes) -> str:
    """UTF-16 without a mark, where mostly ASCII text leaves every other byte zero."""
    head = body[:8192]
    even, odd, half = head[0::2].count(0), head[1::2].count(0), len(head) / 2
    if half < 4:
        return ""
    if odd > 0.7 * half and even < 0.05 * half:
        return "utf-16-le"
    return "utf-16-be" if even > 0.7 * half and odd < 0.05 * half else ""


def _declared(body: bytes) -> str:
    found = _DECLARED.search(body[:4096])
    return found[1].decode("ascii") if found else ""


def decoded(body: bytes, declared: str = "") -> tuple[str, tuple[str, ...]]:
    """The text and its marks, by the rule in the head of this file. Line ends become `\\n`."""
    bom, mark = _bom(body)
    for encoding in (bom, declared, _zeros(body), "utf-8"):
        if text := _strictly(body.removeprefix(mark) if encoding == bom else body, encoding):
            return _lines(text), ()
    if bom:
        return _lines(body.removeprefix(mark).decode(bom, "replace")), ("text_replaced",)
    flawed = body.decode("utf-8", "replace")
    if flawed.count("\ufffd") * 4 < len(body.translate(None, bytes(range(128)))):
        return _lines(flawed), ("text_replaced",)
    text = body.decode(_guess(body), "replace")
    return _lines(text), ("charset_guessed", "text_replaced") if "\ufffd" in text else ("charset_guessed",)


def _strictly(body: bytes, encoding: str) -> str:
    """The text, or "" when the encoding is unknown, is none of text, or does not fit."""
    try:
        # `decode` itself refuses the codecs that are no text encodings, such as zlib.
        return body.decode(encoding) if encoding and _canonical(encoding) not in _NO_CHARSETS else ""
    except (UnicodeError, LookupError):
        return ""


def _canonical(encoding: str) -> str:
    return codecs.lookup(encoding).name.replace("_", "-")


def _guess(body: bytes) -> str:
    """A legacy encoding. In Western texts the letters beyond ASCII are few among many; elsewhere they are the most."""
    sample = body[: 1 << 16]
    high = sum(byte > 0x7F for byte in sample)
    if high < 0.4 * sum(byte > 0x40 for byte in sample):
        return "cp1252"
    for encoding, script, share in _SCRIPTS:
        text = next((text for cut in range(4) if (text := _strictly(sample[: len(sample) - cut], encoding))), "")
        if len(re.findall(script, text)) > share * len(re.findall(r"[^\x00-\x7f]", text)):
            return encoding
    return "cp1252"


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
