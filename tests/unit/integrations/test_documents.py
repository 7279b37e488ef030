"""Documents out of files and folders: what is read, in which order, and what is refused before it does harm."""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import sys
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.errors import ConfigError, InvalidInput, MnemicError, NotFound
from mnemic.integrations.documents import Document, Failure, ReadOptions, read
from mnemic.integrations.documents.extract import Raw, decoded, extract, media_of
from mnemic.integrations.documents.html import _Reader
from mnemic.integrations.documents.ignore import ignored, rules


def one(place: Path | str, options: ReadOptions | None = None) -> Document:
    (found,) = read(place, options or ReadOptions())
    assert isinstance(found, Document), found
    return found


def refused(place: Path | str, options: ReadOptions | None = None) -> str:
    (found,) = read(place, options or ReadOptions())
    assert isinstance(found, Failure), found
    return str(found.reason)


def write(path: Path, content: str | bytes = "text\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def names(found: list[Document | Failure]) -> list[str]:
    return [item.name if isinstance(item, Document) else f"! {Path(item.uri).name}: {item.reason}" for item in found]


def pdf(*pages: str, title: str = "") -> bytes:
    """A PDF of one line a page, written by hand."""
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for index, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * index} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects.append(f"<< /Title ({title}) >>")
    out, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    end = (
        f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    )
    return f"{out}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{end}".encode("latin-1")


def docx() -> bytes:
    from docx import Document as Word

    word = Word()
    word.core_properties.title = "Boiler"
    word.add_heading("The boiler", 1)
    word.add_paragraph("It hums.")
    word.add_heading("Parts", 2)
    word.add_paragraph("valve", style="List Bullet")
    word.add_paragraph("pump", style="List Bullet")
    table = word.add_table(rows=2, cols=2)
    for cell, text in zip(
        (cell for row in table.rows for cell in row.cells), ("part", "price", "pump", "80"), strict=True
    ):
        cell.text = text
    stream = io.BytesIO()
    word.save(stream)
    return stream.getvalue()


def test_a_text_file_is_taken_as_it_is(tmp_path: Path) -> None:
    place = write(tmp_path / "mem ory" / "notes.txt", "one\r\ntwo  \n")
    assert one(place) == Document(
        uri=str(place), name="notes.txt", type="document", media="text/plain", text="one\ntwo  \n", title="",
        digest=hashlib.sha256(b"one\ntwo  \n").hexdigest(),
    )  # fmt: skip


def test_markdown_keeps_its_headings_and_gives_the_title(tmp_path: Path) -> None:
    found = one(write(tmp_path / "a.md", "intro\n\n# The boiler #\n\n## Parts\n"))
    assert (found.title, found.media, found.text) == (
        "The boiler",
        "text/markdown",
        "intro\n\n# The boiler #\n\n## Parts\n",
    )


def test_a_pdf(tmp_path: Path) -> None:
    found = one(write(tmp_path / "a.pdf", pdf("First page", "Second page", title="Manual")))
    assert (found.title, found.text, found.media) == ("Manual", "First page\n\nSecond page", "application/pdf")


def test_a_pdf_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("secret"))))
    writer.encrypt("password", algorithm="AES-256")
    writer.write(tmp_path / "locked.pdf")
    assert "encrypted" in refused(tmp_path / "locked.pdf")
    assert "no text" in refused(write(tmp_path / "scan.pdf", pdf("")))
    assert "damaged" in refused(write(tmp_path / "cut.pdf", pdf("x")[:40]))


def test_a_pdf_with_more_text_than_the_limit_is_refused() -> None:
    with pytest.raises(InvalidInput, match="more than 10000 pages or 8 characters"):
        extract(Raw("x", "x", "document", "application/pdf", pdf("First", "Second")), ReadOptions(max_bytes=8))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_pdf_raises_nothing_but_our_own(data: st.DataObject) -> None:
    body = bytearray(pdf("First page", "Second page", title="Manual"))
    for _ in range(data.draw(st.integers(1, 12))):
        body[data.draw(st.integers(9, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        extract(Raw("x", "x", "document", "application/pdf", bytes(body)), ReadOptions())
    except MnemicError as error:
        assert isinstance(error, InvalidInput)


def test_a_word_document(tmp_path: Path) -> None:
    found = one(write(tmp_path / "a.docx", docx()))
    assert found.title == "Boiler"
    assert found.text == (
        "# The boiler\n\nIt hums.\n\n## Parts\n\n- valve\n- pump\n\n| part | price |\n| pump | 80 |"
    )  # fmt: skip


def test_a_zip_bomb_is_refused_before_it_unpacks(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"0" * 50_000_000)
    assert "100 times its size" in refused(write(tmp_path / "bomb.docx", bomb.getvalue()))

    many = io.BytesIO()
    noise = os.urandom(1 << 20)
    with zipfile.ZipFile(many, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(11):
            archive.writestr(f"{number}.xml", noise[:200_000] + b"0" * 19_000_000)
    assert "more than 200 MB" in refused(write(tmp_path / "many.docx", many.getvalue()))


def test_an_entry_that_lies_about_its_size_is_stopped_there(tmp_path: Path) -> None:
    stream = io.BytesIO(docx())
    with zipfile.ZipFile(stream) as archive:
        size = archive.getinfo("word/document.xml").file_size
    lied = stream.getvalue().replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little"))
    assert "not a readable Word document" in refused(write(tmp_path / "lie.docx", lied))


def test_entities_in_a_word_document_are_not_expanded(tmp_path: Path) -> None:
    word = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    levels = b"".join(b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10) for n in range(1, 10))
    entities = b'<!DOCTYPE w [<!ENTITY e0 "ha"><!ENTITY file SYSTEM "file:///etc/passwd">' + levels + b"]>"
    text = b"<w:p><w:r><w:t>start</w:t><w:t>&e9;</w:t><w:t>&file;</w:t></w:r></w:p>"
    body = entities + b"<w:document " + word + b"><w:body>" + text + b"</w:body></w:document>"
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(docx())) as given_, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        for name in given_.namelist():
            made.writestr(name, body if name == "word/document.xml" else given_.read(name))
    (found,) = read(write(tmp_path / "laughs.docx", stream.getvalue()))
    assert isinstance(found, Failure) or found.text == "start"


@pytest.mark.parametrize("body", [b"", b"PK\x03\x04", b"not a zip", docx()[:500], docx()[:-30]])
def test_a_broken_word_document_says_so(tmp_path: Path, body: bytes) -> None:
    assert "Word document" in refused(write(tmp_path / "a.docx", body))


@pytest.mark.parametrize(("name", "module", "extra"), [("a.pdf", "pypdf", "docs"), ("a.docx", "docx", "docs")])
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str, extra: str
) -> None:
    write(tmp_path / name, docx() if name.endswith("docx") else pdf("x"))
    monkeypatch.setitem(sys.modules, module, None)
    write(tmp_path / "b.txt")
    broken, good = read(tmp_path)
    assert isinstance(broken, Failure)
    assert isinstance(broken.reason, ConfigError)
    assert f"pip install 'mnemic[{extra}]'" in str(broken.reason)
    assert names([good]) == ["b.txt"]


PAGE = """<!doctype html><html><head><title>Heat &amp; water</title><style>p > a {x: y}</style>
<script>if (a < b) document.write("<p>no</p>")</script></head><body><header>site</header><nav><ul><li>menu</ul></nav>
<!-- <p>hidden</p> --><h1>The <em>boiler</em></h1><p>It   hums
at night.<br>Second line &lt;b&gt; a < b</p><h2>Parts</h2><ul><li>valve<li><p>pump</p><ul><li>seal</li></ul></li></ul>
<table><tr><th>part<th>price</tr><tr><td>pump</td><td>80</td></tr></table><pre>
a = 1
  b</pre><blockquote>said</blockquote><img src=x onerror=alert(1)><footer>legal</footer></body></html>"""
READ = (
    "# The boiler\n\nIt hums at night.\n\nSecond line <b> a < b\n\n## Parts\n\n- valve\n- pump\n  - seal\n\n"
    "part | price\n\npump | 80\n\na = 1\n  b\n\n> said"
)


def test_a_page_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    found = one(write(tmp_path / "a.html", PAGE))
    assert (found.title, found.media) == ("Heat & water", "text/html")
    assert found.text == READ


def test_a_page_with_the_extra_keeps_headings_and_drops_what_is_around(tmp_path: Path) -> None:
    body = "".join(
        f"<h2>Part {n}</h2><p>The boiler hums at night, and the pump beside it is warm to the hand.</p>"
        for n in range(9)
    )
    article = f"<article><h1>The boiler</h1>{body}</article>"
    page = f"<html><head><title>Heat</title></head><body><nav>menu</nav>{article}<footer>legal</footer>"
    found = one(write(tmp_path / "a.html", page))
    assert found.title == "Heat"
    assert [line for line in found.text.splitlines() if line.startswith("#")] == [
        "# The boiler",
        *(f"## Part {n}" for n in range(9)),
    ]
    assert not {"menu", "legal"} & set(found.text.split())


def test_a_short_page_is_read_whole(tmp_path: Path) -> None:
    found = one(write(tmp_path / "a.html", "<h1>Hours</h1><p>Open at nine.</p><nav>menu</nav>"))
    assert (found.title, found.text) == ("Hours", "# Hours\n\nOpen at nine.")


def test_a_page_whose_navigation_never_ends_is_read_all_the_same(tmp_path: Path) -> None:
    assert one(write(tmp_path / "a.html", "<nav>menu<p>Open at nine.")).text == "menu\n\nOpen at nine."


def test_a_page_without_text_says_so(tmp_path: Path) -> None:
    assert "no text" in refused(write(tmp_path / "a.html", "<html><script>app()</script><div id=root></div>"))


@pytest.mark.parametrize(
    "piece",
    [
        "<!--",
        "<a",
        "<a b='",
        '<a b="',
        "</",
        "<![CDATA[",
        "<div>",
        "&#1",
        "<title>",
        "<nav>",
        "<li>",
        "<td> x",
        "<td> ",
        "<ul><li>x",
    ],
)
def test_a_hostile_page_costs_time_in_proportion(piece: str) -> None:
    page = piece * (1_000_000 // len(piece))
    before = time.process_time()
    _Reader(page, frozenset({"nav"})).read()
    assert time.process_time() - before < 8


@pytest.mark.parametrize("piece", ["<li>x", "<LI>x", "<ul><li>x", "<p>x ", "<td>x", "<b><i>x"])
def test_a_hostile_page_costs_little_with_the_extra_too(piece: str) -> None:
    page = (piece * (300_000 // len(piece))).encode()
    before = time.process_time()
    extract(Raw("x", "x", "web", "text/html", page), ReadOptions())
    assert time.process_time() - before < 8


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="<>/!-'\"=&;#x1ab pliavt\n", max_size=120))
def test_any_page_is_read_or_refused(page: str) -> None:
    found = _Reader(page, frozenset({"nav", "svg"})).read()
    assert isinstance(found.text, str)


@pytest.mark.parametrize(
    ("body", "text", "marks"),
    [
        ("ñandú 😀".encode(), "ñandú 😀", ()),
        ("ñandú".encode("utf-8-sig"), "ñandú", ()),
        ("ñandú 😀".encode("utf-16"), "ñandú 😀", ()),
        (codecs.BOM_UTF32_BE + "ñandú".encode("utf-32-be"), "ñandú", ()),
        ("plain words in it".encode("utf-16-le"), "plain words in it", ()),
        ("plain words in it".encode("utf-16-be"), "plain words in it", ()),
        ("un café à la crème".encode("cp1252"), "un café à la crème", ("charset_guessed",)),
        ("«Привет, как дела?» — спросил он".encode("cp1251"), "«Привет, как дела?» — спросил он", ("charset_guessed",)),
        ("これはテストです。".encode("shift_jis"), "これはテストです。", ("charset_guessed",)),
        ("これはテストです。".encode("euc_jp"), "これはテストです。", ("charset_guessed",)),
        ("안녕하세요 여러분".encode("euc_kr"), "안녕하세요 여러분", ("charset_guessed",)),
        ("今天天气很好,我们去公园。".encode("gb18030"), "今天天气很好,我们去公园。", ("charset_guessed",)),
        ("ñandú ñandú ñandú".encode() + b"\xff", "ñandú ñandú ñandú\ufffd", ("text_replaced",)),
        (codecs.BOM_UTF8 + b"a\xffb", "a\ufffdb", ("text_replaced",)),
        (b"a\x00b", "a\0b", ()),
    ],
)  # fmt: skip
def test_bytes_become_text(body: bytes, text: str, marks: tuple[str, ...]) -> None:
    assert decoded(body) == (text, marks)


@pytest.mark.parametrize("charset", ["zlib", "no-such", "unicode_escape", "idna", "utf-8", "rot13", "x" * 40])
def test_a_charset_that_does_not_fit_is_not_believed(charset: str) -> None:
    assert decoded(rb"C:\new\table caf" + b"\xe9", charset)[0] == r"C:\new\table café"


def test_a_page_may_name_its_own_charset(tmp_path: Path) -> None:
    page = '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-2"><p>Příliš žluťoučký kůň</p>'
    found = one(write(tmp_path / "a.html", page.encode("iso-8859-2")))
    assert (found.text, found.marks) == ("Příliš žluťoučký kůň", ())


@given(st.binary(max_size=300))
def test_any_bytes_decode_to_text_that_can_be_stored(body: bytes) -> None:
    decoded(body)[0].encode()


def test_what_a_name_tells() -> None:
    known = ("a.PY", "a.tar.gz", "Dockerfile", "README", "x/LICENSE.txt", "a.docx", "a")
    assert [media_of(name) for name in known] == [
        "text/x-py", "", "text/plain", "text/plain", "text/plain",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "",
    ]  # fmt: skip


def test_a_file_is_known_by_its_content_where_its_name_tells_nothing(tmp_path: Path) -> None:
    assert one(write(tmp_path / "page", "<!DOCTYPE html><h1>Hours</h1>")).title == "Hours"
    assert one(write(tmp_path / "manual.bin", pdf("First"))).media == "application/pdf"
    assert one(write(tmp_path / "data.xyz", "plain")).text == "plain"
    assert refused(write(tmp_path / "x.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")) == "not a text, HTML, PDF or DOCX file"


def test_a_file_over_the_limit_is_refused_without_reading_it(tmp_path: Path) -> None:
    place = tmp_path / "big.txt"
    with place.open("wb") as stream:
        stream.truncate(1 << 30)  # a gigabyte that takes no space
    before = time.process_time()
    assert refused(place) == "1024.0 MB, and the limit is 64 MB; split it"
    assert time.process_time() - before < 0.2


def test_what_is_not_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert refused(tmp_path / "pipe.txt") == "not a regular file"
    (missing,) = read(tmp_path / "none.txt")
    assert isinstance(missing, Failure)
    assert isinstance(missing.reason, NotFound)
    assert refused("a\0b.txt") == "cannot be read: embedded null byte"
    assert "empty" in refused(write(tmp_path / "empty.txt", b" \n"))


def test_other_schemes_are_no_paths() -> None:
    for url in ("file:///etc/passwd", "ftp://x.example/a", "FILE://x/a.txt"):
        assert "only http and https" in refused(url)


def test_a_folder_is_read_in_order_without_what_is_not_its_own(tmp_path: Path) -> None:
    for name in ("src/b.py", "src/a.py", "README.md", "docs/z.txt", "Z.rs", "a b.go", "Makefile", "src/deep/er/c.ts"):
        write(tmp_path / name)
    for name in (
        ".git/config.txt",
        ".hidden.md",
        "node_modules/x/index.js",
        "src/__pycache__/a.py",
        "env/lib/x.py",
        "venv/y.py",
    ):
        write(tmp_path / name)
    write(tmp_path / "env/pyvenv.cfg")
    write(tmp_path / "logo.png", b"\x89PNG\0")
    write(tmp_path / "src/__init__.py", b"")
    found = list(read(tmp_path))
    assert names(found) == [
        "Makefile", "README.md", "Z.rs", "a b.go", "docs/z.txt", "src/a.py", "src/b.py", "src/deep/er/c.ts"
    ]  # fmt: skip
    assert {item.type for item in found if isinstance(item, Document)} == {"repo"}
    assert found[5].uri == str(tmp_path / "src/a.py")


def test_gitignore_files_are_honoured(tmp_path: Path) -> None:
    write(tmp_path / ".gitignore", "*.log\n/build/\n!keep.log\n# note\n\nsecret\n")
    write(tmp_path / "sub/.gitignore", "*.txt\n")
    for name in ("a.log", "keep.log", "build/x.py", "sub/build/x.py", "sub/a.txt", "a.txt", "sub/secret/x.py", "x.py"):
        write(tmp_path / name)
    assert names(list(read(tmp_path))) == ["a.txt", "keep.log", "sub/build/x.py", "x.py"]


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a/b/c.py", True), ("/*.py", "a/c.py", False), ("/*.py", "c.py", True), ("a/*.py", "a/c.py", True),
        ("a/*.py", "x/a/c.py", False), ("**/a/*.py", "x/y/a/c.py", True), ("a/**/c.py", "a/c.py", True),
        ("a/**/c.py", "a/x/y/c.py", True), ("a/**", "a", False), ("a/**", "a/b", True), ("doc?", "docs", True),
        ("[ab].py", "b.py", True), ("[!ab].py", "b.py", False), ("\\#x", "#x", True), ("x/", "x", False),
        ("*a*b*", "xaxbx", True),
        ("*" * 40 + "b", "a" * 200, False), ("**/**/**/x", "a/" * 30 + "y", False),
    ],
)  # fmt: skip
def test_patterns(pattern: str, path: str, expected: bool) -> None:
    assert ignored(tuple(path.strip("/").split("/")), folder=False, known=rules(pattern)) is expected


def test_a_pattern_for_folders_holds_for_folders() -> None:
    assert ignored(("x",), folder=True, known=rules("x/"))


def test_links_out_of_the_folder_are_reported_and_not_followed(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside/secret.txt")
    root = tmp_path / "root"
    write(root / "a.txt")
    (root / "out.txt").symlink_to(outside)
    (root / "outdir").symlink_to(outside.parent)
    (root / "within.txt").symlink_to(root / "a.txt")
    (root / "loop").symlink_to(root)
    (root / "gone.txt").symlink_to(root / "none")
    (root / "self.txt").symlink_to(root / "self.txt")
    assert names(list(read(root))) == [
        "a.txt",
        "! gone.txt: a link that leads nowhere; skipped",
        "! out.txt: a link that leads out of the folder; not followed",
        "! outdir: a link that leads out of the folder; not followed",
        "! self.txt: a link that leads nowhere; skipped",
    ]


def test_a_folder_exchanged_for_a_link_during_the_walk_does_not_lead_out(tmp_path: Path) -> None:
    write(tmp_path / "outside/x.txt", "secret")
    write(tmp_path / "root/a.txt")
    write(tmp_path / "root/sub/x.txt", "mine")
    documents = read(tmp_path / "root")
    first = next(documents)
    (tmp_path / "root/sub").rename(tmp_path / "root/moved")
    (tmp_path / "root/sub").symlink_to(tmp_path / "outside")
    rest = list(documents)
    assert "secret" not in [item.text for item in (first, *rest) if isinstance(item, Document)]


def test_a_linked_root_is_the_users_own_choice(tmp_path: Path) -> None:
    write(tmp_path / "real/a.txt")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert names(list(read(tmp_path / "link"))) == ["a.txt"]


def test_one_bad_file_does_not_stop_the_batch(tmp_path: Path) -> None:
    write(tmp_path / "a.txt")
    write(tmp_path / "b.pdf", b"%PDF-1.4 broken")
    write(tmp_path / "c.txt", b"\0\1\2")
    write(tmp_path / "d.txt", "x" * 2_000)
    os.mkfifo(tmp_path / "e.txt")
    write(tmp_path / "f.txt")
    found = list(read(tmp_path, ReadOptions(max_bytes=1_000)))
    assert [isinstance(item, Document) for item in found] == [True, False, False, False, False, True]


def test_a_folder_has_a_limit_of_files(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path / f"{number}.txt")
    found = list(read(tmp_path, ReadOptions(max_files=3)))
    assert names(found)[:3] == ["0.txt", "1.txt", "2.txt"]
    assert [str(item.reason) for item in found if isinstance(item, Failure)] == [
        "more than 3 files; the rest is not read"
    ]


def test_a_name_that_is_not_utf_8_can_be_stored(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    (tmp_path / "C:\\new\\table.txt").write_text("x")
    found = list(read(tmp_path))
    assert names(found) == ["C:\\new\\table.txt", "caf\ufffd.txt"]
    assert found[0].uri == f"{tmp_path}/C:\\new\\table.txt"
