"""The text of a Word document, headings, lists and tables in the manner of Markdown, by python-docx (extra `docs`)."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from mnemic.errors import ConfigError, InvalidInput

MAX_FILES = 50_000
MAX_BYTES = 200 * 1024 * 1024  # unpacked
MAX_RATIO = 100
_SMALL = 1024 * 1024  # an entry below this is harmless whatever its ratio
_PROPERTIES = "docProps/core.xml"
_HEADING = re.compile(r"Heading ([1-6])", re.IGNORECASE)


def read(raw: bytes) -> tuple[str, str]:
    """Title and text. Errors: InvalidInput when the file is no Word document, is damaged, unpacks to too much or holds
    no text; ConfigError without the extra."""
    names = _checked(raw)
    try:
        from docx import Document
        from docx.opc.exceptions import OpcError
        from lxml.etree import LxmlError  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ConfigError("reading DOCX files needs: pip install 'mnemic[docs]'") from error
    try:
        document = Document(io.BytesIO(raw))
        text = "\n".join(_lines(document)).strip()
        # Without the part, the library makes one up, with a title.
        title = document.core_properties.title if _PROPERTIES in names else ""
    except (OpcError, LxmlError, zipfile.BadZipFile, zlib.error, OSError, ValueError, TypeError, LookupError,
            AttributeError, RecursionError, NotImplementedError) as error:  # fmt: skip
        raise InvalidInput(f"not a readable Word document ({type(error).__name__}: {str(error)[:120]})") from error
    if not text:
        raise InvalidInput("the document holds no text")
    return " ".join(title.split()), text


def _checked(raw: bytes) -> frozenset[str]:
    """The names in the archive, after its directory was found harmless. Sizes there bind: `zipfile` stops an entry at
    its declared size and checks its sum, so a file cannot unpack to more than it admits.

    Errors: InvalidInput for what is no zip archive or unpacks to more than the limits.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InvalidInput("not a Word document: it is not a zip archive, or is cut short") from error
    total = sum(entry.file_size for entry in entries)
    if len(entries) > MAX_FILES or total > MAX_BYTES:
        raise InvalidInput(f"the document unpacks to more than {MAX_BYTES // 1024**2} MB or {MAX_FILES} files; refused")
    for entry in entries:
        if entry.file_size > max(_SMALL, MAX_RATIO * entry.compress_size):
            raise InvalidInput(f"the document unpacks to more than {MAX_RATIO} times its size; refused")
        if entry.flag_bits & 0x1:
            raise InvalidInput("the document is encrypted; save a copy without a password and ingest that")
    return frozenset(entry.filename for entry in entries)


def _lines(document: Any) -> Iterator[str]:
    was_item = False
    for block in document.iter_inner_content():
        is_table = hasattr(block, "rows")
        text = "\n".join(_rows(block)) if is_table else _paragraph(block)
        if not text:
            continue
        is_item = not is_table and text.lstrip().startswith(("- ", "1. "))
        if not (is_item and was_item):
            yield ""
        yield text
        was_item = is_item


def _paragraph(paragraph: Any) -> str:
    text: str = paragraph.text.strip()
    style = paragraph.style.name if paragraph.style is not None and paragraph.style.name else ""
    if not text:
        return ""
    if heading := _HEADING.match(style):
        return "#" * int(heading[1]) + f" {text}"
    if style == "Title":
        return f"# {text}"
    if style.startswith("List Bullet"):
        return f"- {text}"
    return f"1. {text}" if style.startswith("List Number") else text


def _rows(table: Any) -> Iterator[str]:
    for row in table.rows:
        cells: list[str] = []
        seen = set()
        for cell in row.cells:  # a cell that spans columns comes once a column
            if id(cell._tc) not in seen:
                seen.add(id(cell._tc))
                cells.append(" ".join(cell.text.split()))
        if any(cells):
            yield "| " + " | ".join(cells) + " |"
