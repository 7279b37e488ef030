"""Fetching a URL, against real servers on loopback. The guard is whole in every test: names resolve by a table, and
only the last step, the connection to the address it allowed, is led to the loopback server."""

from __future__ import annotations

import gzip
import re
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpcore
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mnemic.errors import DeadlineExceeded, InvalidInput, MnemicError, NotFound
from mnemic.integrations.documents import Document, Failure, ReadOptions, read
from mnemic.integrations.documents.fetch import FetchPolicy, Page, fetch, is_public

Answer = Callable[[BaseHTTPRequestHandler], None]
PUBLIC = "93.184.216.34"


def answer(
    body: bytes = b"<h1>Hours</h1>", media: str | None = "text/html; charset=UTF-8", status: int = 200, **headers: str
) -> Answer:
    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        if media is not None:
            handler.send_header("Content-Type", media)
        if "Content_Length" not in headers:
            handler.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return send


@dataclass
class Site:
    """A server on loopback; `seen`: the Host and path of each request."""

    routes: dict[str, Answer]
    port: int = 0
    seen: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def site(routes: dict[str, Answer], tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    found = Site(routes)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.seen.append((self.headers["Host"], self.path))
            try:
                found.routes.get(self.path.partition("?")[0], answer(status=404))(self)
            except OSError:
                self.close_connection = True  # the client had enough

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    found.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Network(httpcore.SyncBackend):
    """Leads each public address to loopback, and notes to which address the guard wanted to go."""

    def __init__(self, port: int, dead: Sequence[str] = ()) -> None:
        self.port = port
        self.dead = dead
        self.asked: list[tuple[str, int]] = []

    def connect_tcp(  # type: ignore[override]
        self, host: str, port: int, timeout: float | None = None, **rest: object
    ) -> httpcore.NetworkStream:
        self.asked.append((host, port))
        if host in self.dead:
            raise httpcore.ConnectError("refused")
        return super().connect_tcp("127.0.0.1", self.port, timeout)


@dataclass
class Names:
    """A resolver with a table; each look-up takes the next answer, the last one stays."""

    table: dict[str, list[list[str]]]
    asked: list[str] = field(default_factory=list)

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.table.get(host)
        if not answers:
            raise OSError("Name or service not known")
        return answers.pop(0) if len(answers) > 1 else answers[0]


def policy(port: int, *, dead: Sequence[str] = (), **table: list[list[str]]) -> tuple[FetchPolicy, Network, Names]:
    network = Network(port, dead)
    known = {name.replace("_", "."): answers for name, answers in table.items()}
    names = Names({"good.example": [[PUBLIC]], **known})
    return FetchPolicy(resolve=names, network=network), network, names


def test_a_page_comes_with_its_own_host_from_the_address_that_was_checked() -> None:
    with site({"/a": answer("<h1>ñ</h1>".encode())}) as server:
        rules, network, names = policy(server.port)
        page = fetch("http://good.example/a?q=ñ&r=a%20b#part", rules)
    assert page == Page("http://good.example/a?q=%C3%B1&r=a%20b", "text/html", "utf-8", "<h1>ñ</h1>".encode())
    assert server.seen == [("good.example", "/a?q=%C3%B1&r=a%20b")]
    assert network.asked == [(PUBLIC, 80)]
    assert names.asked == ["good.example"]


def test_a_name_is_looked_up_once_so_a_second_answer_is_never_used() -> None:
    with site({"/": answer()}) as server:
        rules, network, names = policy(server.port, rebind_example=[[PUBLIC], ["127.0.0.1"]])
        fetch("http://rebind.example/", rules)
    assert names.asked == ["rebind.example"]
    assert network.asked == [(PUBLIC, 80)]


@pytest.mark.parametrize(
    "addresses",
    [["10.0.0.1"], [PUBLIC, "192.168.1.1"], [PUBLIC, "::1"], ["169.254.169.254"], ["fd00::1"], ["64:ff9b::7f00:1"]],
)
def test_one_address_that_is_not_public_refuses_the_name(addresses: list[str]) -> None:
    rules, network, _ = policy(1, inside_example=[addresses])
    with pytest.raises(InvalidInput, match="not a public address; refused"):
        fetch("http://inside.example/", rules)
    assert network.asked == []


HIDDEN = """
    0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.254 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1
    172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1
    239.1.1.1 240.0.0.1 255.255.255.255 :: ::1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 64:ff9b::a9fe:a9fe
    64:ff9b::10.0.0.1 64:ff9b:1::808:808 100::1 2001:: 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:db8::1
    2002:7f00:1:: 2002:808:808:: fc00::1 fd12:3456::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1 5f00::1 nonsense
"""


@pytest.mark.parametrize(
    "address",
    HIDDEN.split(),
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", PUBLIC, "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001::1", "64:ff9b::808:808"]
)
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)


INSIDE = [
    "http://127.0.0.1/", "http://[::1]/", "http://0.0.0.0/", "http://[::]/", "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/", "http://[0:0:0:0:0:ffff:a9fe:a9fe]/", "http://169.254.169.254/latest/meta-data/",
    "http://[64:ff9b::7f00:1]/", "http://[fe80::1]/", "http://[fd00:ec2::254]/", "http://10.1.2.3/",
    "http://100.100.100.200/",
    "http://192.168.0.1/", "http://172.16.0.1/", "http://１２７.０.０.１/", "http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/",
]  # fmt: skip
TRICKS = [
    "http://2130706433/", "http://017700000001/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/",
    "http://127.1/", "http://127.0.1/", "http://0/", "http://127.0.0.1./", "http://127.0.0.01/", "http://1.2.3.4.5/",
    "http://0x7f.1./", "http://127.0.0.1%2f@good.example/", "http://127.0.0.1%00.good.example/",
    "http://good.example%2f.x/",
    "http://user@good.example/", "http://user:pw@good.example/", "http://good.example@127.0.0.1/", "http://@127.0.0.1/",
    "http://good.example\\@127.0.0.1/", "http:\\\\127.0.0.1/", "http://good.example /", "http://good.example/a b",
    "http://good.exa\tmple/", "http://good.example\r\nX-A: b/", "http://good.example/\r\nX-A: b",
    "http://good.example\0/",
    "http://[fe80::1%25eth0]/", "http://[2606:4700::1%eth0]/", "http://[::1/", "http://]/", "http:///x", "http://",
    "http:",
    "//good.example/", "good.example", "", "http://.example/", "http://good..example/", "http://*/",
    "file:///etc/passwd", "ftp://good.example/", "gopher://good.example/", "data:text/html,x", "javascript:alert(1)",
    "http://good.example:22/", "http://good.example:6379/", "http://good.example:0/", "http://good.example:99999/",
    "http://good.example:8080/", "https://good.example:7437/", "http://good.example:80:80/", "http://good.example:８０８/",
    "http://" + "a" * 64 + ".example/", "http://good.example/" + "a" * 5000, "http://\u202egood.example/",
]  # fmt: skip


@pytest.mark.parametrize("url", INSIDE + TRICKS)
def test_no_trick_of_the_url_connects_anywhere(url: str) -> None:
    rules, network, _ = policy(1)
    with pytest.raises(InvalidInput):
        fetch(url, rules)
    assert network.asked == []


@pytest.mark.parametrize("host", ["localhost", "localhost.", "ip6-localhost"])
def test_this_machine_by_the_systems_own_resolver(host: str) -> None:
    with pytest.raises(MnemicError):
        fetch(f"http://{host}/")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "to",
    [*INSIDE, "http://inside.example/", "file:///etc/passwd", "//127.0.0.1/", "http://a:b@good.example/",
     "http://good.example:22/"],
)  # fmt: skip
def test_a_redirect_is_under_the_same_rules(status: int, to: str) -> None:
    with site({"/": answer(status=status, Location=to.encode().decode("latin-1"))}) as server:
        rules, network, _ = policy(server.port, inside_example=[["10.0.0.1"]])
        with pytest.raises(InvalidInput):
            fetch("http://good.example/", rules)
    assert network.asked == [(PUBLIC, 80)]


def test_three_redirects_are_followed_and_not_four() -> None:
    chain = {
        f"/{n}": answer(status=302, Location=f"{n + 1}" if n % 2 else f"http://other.example/{n + 1}") for n in range(4)
    }
    with site({**chain, "/4": answer(b"there", "text/plain")}) as server:
        rules, _, names = policy(server.port, other_example=[["8.8.8.8"]])
        assert fetch("http://good.example/1", rules) == Page("http://other.example/4", "text/plain", "", b"there")
        assert names.asked == ["good.example", "good.example", "other.example", "other.example"]
        with pytest.raises(InvalidInput, match="more than 3 redirects"):
            fetch("http://good.example/0", rules)
    assert server.seen[:4] == [
        ("good.example", "/1"),
        ("good.example", "/2"),
        ("other.example", "/3"),
        ("other.example", "/4"),
    ]


def test_a_body_over_the_limit_is_refused_stated_or_not() -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain")
        handler.end_headers()
        while True:
            handler.wfile.write(b"x" * 65536)

    bomb = gzip.compress(b"0" * 30_000_000)
    routes = {
        "/stated": answer(b"x", Content_Length=str(11 * 1024**2)),
        "/endless": endless,
        "/packed": answer(bomb, Content_Encoding="gzip"),
        "/enough": answer(b"x" * 10 * 1024**2),
    }
    with site(routes) as server:
        rules, _, _ = policy(server.port)
        for path in ("stated", "endless", "packed"):
            with pytest.raises(InvalidInput, match="larger than 10 MB"):
                fetch(f"http://good.example/{path}", rules)
        assert len(fetch("http://good.example/enough", rules).body) == 10 * 1024**2


def test_a_packed_page_is_unpacked_and_a_broken_one_refused() -> None:
    whole = gzip.compress(b"hello " * 1000)
    routes = {
        "/whole": answer(whole, Content_Encoding="gzip"),
        "/cut": answer(whole[:-12], Content_Encoding="gzip"),
        "/other": answer(zlib.compress(b"x"), Content_Encoding="br"),
        "/false": answer(b"not packed", Content_Encoding="gzip"),
    }
    with site(routes) as server:
        rules, _, _ = policy(server.port)
        assert fetch("http://good.example/whole", rules).body == b"hello " * 1000
        for path, what in (("cut", "cut short"), ("other", "not asked for"), ("false", "damaged")):
            with pytest.raises(MnemicError, match=what):
                fetch(f"http://good.example/{path}", rules)


@pytest.mark.parametrize("where", ["silence", "headers", "body"])
def test_a_slow_server_is_left_when_the_time_is_over(where: str) -> None:
    stop = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        if where == "body":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n")
        elif where == "headers":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-A: ")
        while not stop.wait(0.02):  # each byte well within any time limit of a single read
            if where != "silence":
                handler.wfile.write(b"x")

    with site({"/": drip}) as server:
        rules, _, _ = policy(server.port)
        before = time.monotonic()
        with pytest.raises(DeadlineExceeded, match=r"not answered in 0\.4 s"):
            fetch("http://good.example/", replace(rules, timeout_s=0.4))
        assert 0.35 < time.monotonic() - before < 2
        stop.set()


def test_a_resolver_that_hangs_is_left_too() -> None:
    stop = threading.Event()

    def resolve(host: str, port: int) -> Sequence[str]:
        stop.wait(30)
        return [PUBLIC]

    with pytest.raises(DeadlineExceeded, match="its address could not be found"):
        fetch("http://good.example/", FetchPolicy(resolve=resolve, timeout_s=0.1))
    stop.set()


def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    with site({"/": answer()}) as server:
        rules, network, _ = policy(server.port, dead=["8.8.8.8"], two_example=[["8.8.8.8", PUBLIC]])
        assert fetch("http://two.example/", rules).media == "text/html"
    assert network.asked == [("8.8.8.8", 80), (PUBLIC, 80)]


@pytest.mark.parametrize(
    ("media", "found", "charset"),
    [("text/html", "text/html", ""), ("Text/HTML; Charset=\"ISO-8859-1\"", "text/html", "iso-8859-1"), (None, "", ""),
     ("application/pdf", "application/pdf", ""), ("application/json", "application/json", ""),
     ("application/atom+xml; charset=utf-8", "application/atom+xml", "utf-8")],
)  # fmt: skip
def test_types_that_can_be_read(media: str | None, found: str, charset: str) -> None:
    with site({"/": answer(media=media)}) as server:
        page = fetch("http://good.example/", policy(server.port)[0])
    assert (page.media, page.charset) == (found, charset)


@pytest.mark.parametrize("media", ["image/png", "video/mp4", "application/zip", "audio/mpeg"])
def test_types_that_cannot(media: str) -> None:
    with (
        site({"/": answer(media=media)}) as server,
        pytest.raises(InvalidInput, match=f"is {re.escape(media)}, which"),
    ):
        fetch("http://good.example/", policy(server.port)[0])


def test_other_answers_are_errors_of_ours() -> None:
    def nonsense(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"SSH-2.0-x\r\n")

    def gone(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nabc")

    routes = {"/500": answer(status=500), "/nonsense": nonsense, "/cut": gone, "/none": answer(status=302)}
    with site(routes) as server:
        rules, _, _ = policy(server.port)
        with pytest.raises(NotFound, match="status 404"):
            fetch("http://good.example/missing", rules)
        for path in ("500", "nonsense", "cut", "none"):
            with pytest.raises(MnemicError, match=rf"good\.example/{path}"):
                fetch(f"http://good.example/{path}", rules)
        with pytest.raises(MnemicError, match="cannot be found"):
            fetch("http://unknown.example/", rules)


def test_nothing_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine good.example login me password secret")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    got: list[dict[str, str]] = []

    def note(handler: BaseHTTPRequestHandler) -> None:
        got.append(dict(handler.headers.items()))
        answer()(handler)

    with site({"/": note}) as server:
        fetch("http://good.example/", policy(server.port)[0])
    assert sorted(got[0]) == ["Accept", "Accept-Encoding", "Host", "User-Agent"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "good.example")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.now() - timedelta(days=2))
        .not_valid_after(datetime.now() + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("good.example")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "good.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


def test_tls_is_checked_for_the_name_and_not_for_the_address(certificate: Path) -> None:
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate)
    greeted: list[str | None] = []
    serving.sni_callback = lambda socket, name, context: greeted.append(name)
    trusting = ssl.create_default_context(cafile=str(certificate))
    with site({"/": answer(b"there", "text/plain")}, serving) as server:
        rules, network, _ = policy(server.port, other_example=[[PUBLIC]])
        assert fetch("https://good.example/", replace(rules, tls=trusting)).body == b"there"
        assert (greeted, network.asked, server.seen) == (["good.example"], [(PUBLIC, 443)], [("good.example", "/")])
        for url, tls in (("https://other.example/", trusting), ("https://good.example/", None)):
            with pytest.raises(MnemicError, match=r"(?i)certificate"):
                fetch(url, replace(rules, tls=tls))
        assert len(server.seen) == 1


def test_reading_a_local_page_needs_leave() -> None:
    page = "<title>Heat</title><h1>The boiler</h1><p>It hums.</p>"
    with site({"/a/": answer(page.encode("latin-1"), "text/html; charset=latin-1")}) as server:
        url = f"http://127.0.0.1:{server.port}/a/"
        (found,) = read(url, ReadOptions(allow_private=True))
        (refused,) = read(url)
    assert isinstance(found, Document)
    assert (found.uri, found.name, found.type) == (url, f"127.0.0.1:{server.port}/a", "web")
    assert (found.title, found.text, found.media) == ("Heat", "# The boiler\n\nIt hums.", "text/html")
    assert isinstance(refused, Failure)
    assert f"port {server.port} is refused" in str(refused.reason)
    assert len(server.seen) == 1
