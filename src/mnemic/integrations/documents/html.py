"""The text of a web page, headings kept in the manner of Markdown.

With the extra `web`, trafilatura finds the main text. Without it, or where it finds next to nothing (short pages are
not what it is made for), the whole page is read and what stands around a text (`_AROUND`) is left out.

The reader below is not `html.parser`: up to the 2025 releases of Python that takes time quadratic in the length of some
broken pages (ten seconds for 40 KB of `<a b='`). Here a page is cut at each `<` and every piece is looked at once.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

from mnemic.errors import InvalidInput

_ENOUGH = 200  # characters; below, the main text was likely not found
# Beyond these, trafilatura takes minutes (quadratic in list items: 16 s for 8,000 of them); the reader below does not.
_MAX_TAGS, _MAX_ITEMS = 50_000, 2_000
_MAX_INDENT = 8  # lists nested deeper are not indented further: that would make a page of `<ul>` quadratic
_AROUND = frozenset({"nav", "footer", "header", "noscript", "template", "svg", "dialog"})
_RAW = frozenset({"script", "style", "title", "textarea", "iframe", "noembed", "noframes", "xmp"})  # hold no tags
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt",
     "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html", "main", "nav", "ol", "p", "section",
     "summary", "table", "tbody", "tfoot", "thead", "ul"}
)  # fmt: skip
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_TAG = re.compile(r"""(/?)([a-zA-Z][a-zA-Z0-9:-]*)(?:[\s/](?:[^>"']|"[^"]*"|'[^']*')*+)?>""")
_ITEM = re.compile(r"<li\b", re.IGNORECASE)
_LOOSE_TAG = re.compile(r"(/?)([a-zA-Z][a-zA-Z0-9:-]*)[^>]*>")  # with a quote left open


def read(page: str) -> tuple[str, str]:
    """Title and text of an HTML page. Errors: InvalidInput when there is no text in it."""
    whole = _Reader(page, _AROUND).read()
    if not whole.text:  # a `<nav>` that is never closed takes everything
        whole = _Reader(page, frozenset()).read()
    text = _main_text(page)
    if len(text) < _ENOUGH:
        text = whole.text
    if not text:
        raise InvalidInput("the page holds no text; pages that a script fills in the browser cannot be read")
    return whole.title, text


def _main_text(page: str) -> str:
    """The main text by trafilatura, "" without it, when it finds none or when the page is too much for it."""
    if page.count("<") > _MAX_TAGS or len(_ITEM.findall(page)) > _MAX_ITEMS:
        return ""
    try:
        import trafilatura
        from lxml.etree import LxmlError  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return ""
    try:
        found = trafilatura.extract(
            page, output_format="markdown", include_formatting=True, include_tables=True, include_comments=False
        )
    except (LxmlError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return ""  # the other reader takes any page
    return found.strip() if isinstance(found, str) else ""


@dataclass(frozen=True, slots=True)
class _Page:
    title: str
    text: str


@dataclass(slots=True)
class _Reader:
    page: str
    around: frozenset[str]
    out: list[str] = field(default_factory=list)
    line: list[str] = field(default_factory=list)  # what is gathered for the block that is open
    filled: bool = False  # with more than space
    prefix: str = ""
    title: list[str] = field(default_factory=list)
    heading: str = ""  # the first h1
    raw: str = ""  # the element that is open and holds no tags
    skipped: str = ""  # the element that is left out, and how deep in it we are
    depth: int = 0
    lists: int = 0
    pre: int = 0
    comment: bool = False

    def read(self) -> _Page:
        first, *pieces = self.page.split("<")
        self._text(first)
        for piece in pieces:
            self._piece(piece)
        self._flush()
        title = _one_line("".join(self.title)) or self.heading
        return _Page(title, "".join(self.out).strip())

    def _piece(self, piece: str) -> None:
        """What follows one `<`, up to the next."""
        if self.comment or piece.startswith("!--"):
            _, closed, rest = piece.partition("-->")
            self.comment = not closed
            self._text(rest)
            return
        found = _TAG.match(piece) or _LOOSE_TAG.match(piece)
        name = found[2].lower() if found else ""
        if self.raw and not (found and found[1] and name == self.raw):
            self._text("<" + piece)
        elif found:
            (self._close if found[1] else self._open)(name)
            self._text(piece[found.end() :])
        elif piece[:1] in ("!", "?", "/"):
            self._text(piece.partition(">")[2])
        elif not re.match("[a-zA-Z]", piece):  # `a < b`; a tag cut short at the end of the page is no text
            self._text("<" + piece)

    def _text(self, text: str) -> None:
        if self.raw == "title" and not self.skipped:
            self.title.append(text)
        elif not self.raw and not self.skipped:
            self.line.append(text)
            self.filled = self.filled or bool(text.strip())

    def _open(self, name: str) -> None:
        if name in _RAW:
            self.raw = name
        elif self.skipped:
            self.depth += name == self.skipped
        elif name in self.around:
            self._flush()
            self.skipped, self.depth = name, 1
        elif name in _HEADINGS:
            self._flush(_HEADINGS[name])
        elif name == "li":
            self._flush("  " * min(self.lists - 1, _MAX_INDENT) + "- ")
        elif name in ("td", "th"):
            self.line.append(" | " if self.filled else "")
        elif name in _BLOCKS or name in ("br", "tr", "pre"):
            self._block(name)

    def _block(self, name: str) -> None:
        kept = self.prefix if self.prefix.endswith("- ") and not self.filled else ""
        self._flush("> " if name == "blockquote" else kept)  # `<li><p>` is still the item
        self.lists += name in ("ul", "ol")
        self.pre += name == "pre"

    def _close(self, name: str) -> None:
        if name == self.raw:
            self.raw = ""
        elif self.skipped:
            self.depth -= name == self.skipped
            if not self.depth:
                self.skipped = ""
        elif name in _HEADINGS or name in _BLOCKS or name in ("li", "tr", "pre"):
            self._flush()
            self.lists = max(0, self.lists - (name in ("ul", "ol")))
            self.pre = max(0, self.pre - (name == "pre"))

    def _flush(self, prefix: str = "") -> None:
        """Ends the open block; the next one begins with `prefix`."""
        text = "".join(self.line)
        self.line.clear()
        self.filled = False
        text = _unescaped(text).strip("\n").rstrip() if self.pre else _one_line(text)
        if text.strip():
            if self.prefix == "# " and not self.heading:
                self.heading = text
            tight = self.prefix.endswith("- ") and self.out and self.out[-1].lstrip().startswith("- ")
            self.out.append(("\n" if tight else "\n\n") + self.prefix + text)
        self.prefix = prefix


def _one_line(text: str) -> str:
    return " ".join(_unescaped(text).split())


def _unescaped(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # a character number of thousands of digits
        return text
