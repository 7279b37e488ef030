"""The text of a PDF, page by page, by pypdf (the extra `docs`)."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

from mnemic.errors import ConfigError, InvalidInput

_MAX_PAGES = 10_000
# Whatever a damaged file makes the parser stumble over; it promises no error type of its own for all of them.
_DAMAGED = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, AssertionError, OSError,
    NotImplementedError, struct.error, zlib.error,
)  # fmt: skip


def read(raw: bytes, max_characters: int) -> tuple[str, str]:
    """Title and text. Errors: InvalidInput when the file is encrypted, damaged, has no text or more than the maximum;
    ConfigError without the extra."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise ConfigError("reading PDF files needs: pip install 'mnemic[docs]'") from error
    try:
        reader = PdfReader(io.BytesIO(raw), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise InvalidInput("the PDF is encrypted; save a copy without a password and ingest that")
        text = _pages(reader, max_characters)
        title = reader.metadata.title if reader.metadata else None
    except InvalidInput:
        raise
    except (PyPdfError, *_DAMAGED) as error:
        raise InvalidInput(f"the PDF is damaged ({type(error).__name__}: {str(error)[:120]})") from error
    if not text:
        raise InvalidInput("the PDF holds no text; if it is a scan, run it through text recognition first")
    return " ".join(title.split()) if isinstance(title, str) else "", text


def _pages(reader: Any, max_characters: int) -> str:
    pages: list[str] = []
    size = 0
    for number, page in enumerate(reader.pages, start=1):
        text = page.extract_text().strip()
        size += len(text)
        if number > _MAX_PAGES or size > max_characters:
            raise InvalidInput(f"the PDF holds more than {_MAX_PAGES} pages or {max_characters} characters; split it")
        if text:
            pages.append(text)
    return "\n\n".join(pages)
