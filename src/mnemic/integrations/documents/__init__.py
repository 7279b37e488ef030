"""Documents out of files, folders and web pages, as text. `read` never raises: what cannot be read is a Failure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mnemic.errors import MnemicError
from mnemic.integrations.documents.extract import Document, Failure, Raw, ReadOptions, extract
from mnemic.integrations.documents.files import read_path

__all__ = ["Document", "Failure", "ReadOptions", "read"]

_URL = re.compile(r"\s*[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_DEFAULTS = ReadOptions()


def read(place: str | Path, options: ReadOptions = _DEFAULTS) -> Iterator[Document | Failure]:
    """The documents of a file, a folder (in the order of its names) or an http(s) URL, one at a time."""
    if isinstance(place, str) and _URL.match(place):
        yield _page(place.strip(), options)
    else:
        yield from read_path(Path(place), options)


def _page(url: str, options: ReadOptions) -> Document | Failure:
    from mnemic.integrations.documents.fetch import FetchPolicy, fetch  # late: files need no network client

    try:
        page = fetch(url, FetchPolicy.private() if options.allow_private else FetchPolicy())
        name = re.sub(r"^https?://|[?#].*$|/$", "", page.url)
        return extract(Raw(page.url, name, "web", page.media, page.body, page.charset), options)
    except MnemicError as error:
        return Failure(url, error)
