"""One guarded GET: a URL a person or a model names must not reach what only this machine can reach.

A URL is taken apart once, its host looked up once, and every address found must be a public one; the connection goes
to those very addresses, with the host's own name in `Host`, in the TLS greeting and in the certificate check. Each
redirect is a new URL under the same rules. No proxy, no cookies, no credentials, nothing from the environment.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import httpcore  # comes with httpx, and has the door that it lacks: connecting to a chosen address
import httpx

from mnemic.errors import DeadlineExceeded, InvalidInput, MnemicError, NotFound

Resolve = Callable[[str, int], Sequence[str]]
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

READABLE = re.compile(
    r"text/.*|application/(?:xhtml\+xml|pdf|json|xml|yaml|toml|x-ndjson|octet-stream|[\w.-]+\+(?:json|xml)"
    r"|vnd\.openxmlformats-officedocument\.wordprocessingml\.document)|"
)
_CONNECT_S = 5.0  # for one address, before the next is tried
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HOST = re.compile(r"(?:[a-z0-9_-]{1,63}\.){0,126}[a-z0-9_-]{1,63}\.?")
_NUMERIC_END = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\.?$", re.IGNORECASE)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")
_TUNNELS = tuple(map(ipaddress.ip_network, ("2001::/32", "2002::/16", "192.88.99.0/24")))  # Teredo, 6to4 and its relay


def system_addresses(host: str, port: int) -> Sequence[str]:
    """The addresses of a host by the system's resolver. Errors: OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """`ports`: None allows any. `resolve`, `network` and `tls` are the system's own; tests give theirs."""

    allow_private: bool = False
    ports: frozenset[int] | None = frozenset({80, 443})
    max_bytes: int = 10 * 1024 * 1024  # also after unpacking
    max_redirects: int = 3
    timeout_s: float = 15.0  # for everything together
    resolve: Resolve = system_addresses
    network: httpcore.NetworkBackend | None = None
    tls: ssl.SSLContext | None = None

    @classmethod
    def private(cls) -> FetchPolicy:
        """For `--allow-private`: this machine and its networks, on any port."""
        return cls(allow_private=True, ports=None)


@dataclass(frozen=True, slots=True)
class Page:
    """`url`: where it was found in the end. `media`: lower case, without parameters; `charset` from them, or ""."""

    url: str
    media: str
    charset: str
    body: bytes


@dataclass(frozen=True, slots=True)
class _Target:
    scheme: str
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == {"http": 80, "https": 443}[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"


_DEFAULTS = FetchPolicy()


def fetch(url: str, policy: FetchPolicy = _DEFAULTS) -> Page:
    """The page at `url`. Blocking, at most `timeout_s`.

    Errors: InvalidInput for a URL, address, redirect, type or size that is refused; NotFound for 404 and 410;
    DeadlineExceeded; MnemicError when the server does not answer, or answers with another status.
    """
    deadline = time.monotonic() + policy.timeout_s
    for _ in range(policy.max_redirects + 1):
        target = _target(url, policy)
        addresses = _addresses(target, policy, deadline)
        found = _get(target, addresses, policy, deadline)
        if isinstance(found, Page):
            return found
        url = found
    raise InvalidInput(f"more than {policy.max_redirects} redirects; the last to {url[:200]!r}")


def _target(url: str, policy: FetchPolicy) -> _Target:
    """The parts of the URL, by this one parser only; what is sent is put together from them."""
    shown = repr(url[:200])
    if len(url) > 4096 or re.search(r"[\x00-\x20\x7f\\]", url):
        raise InvalidInput(f"{shown} is not a URL: spaces, control characters or backslashes, or too long")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode().lower()
    except ValueError as error:  # also a name that cannot be encoded
        raise InvalidInput(f"{shown} is not a URL: {error}") from error
    if parts.scheme not in ("http", "https"):
        raise InvalidInput(f"{shown}: only http and https can be read")
    if "@" in parts.netloc:
        raise InvalidInput("a URL with a user name or password is refused; nothing was fetched")
    literal = _literal(host)
    # A host that ends in a number is an address to some (`0x7f.1`, `2130706433`); only the plain form is one here.
    if "%" in host or (not literal and (not _HOST.fullmatch(host) or _NUMERIC_END.search(host))):
        raise InvalidInput(f"{shown}: the host {host!r} is no name and no plain address")
    port = {"http": 80, "https": 443}[parts.scheme] if port is None else port
    if not port or (policy.ports is not None and port not in policy.ports):
        raise InvalidInput(
            f"{shown}: port {port} is refused; allowed: {', '.join(map(str, sorted(policy.ports or ())))}"
            " (--allow-private lifts this for addresses of your own)"
        )
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]|") if parts.query else ""
    return _Target(parts.scheme, str(literal or host), port, path + query)


def _literal(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_public(address: str) -> bool:
    """Whether an address is one of the public internet, seen through the forms that hide another inside."""
    found = _literal(address)
    if isinstance(found, ipaddress.IPv6Address):
        if found in _NAT64:  # on a network without IPv4 every public host is behind it
            return is_public(str(ipaddress.IPv4Address(found.packed[12:])))
        if found not in _UNICAST:  # also the IPv4-mapped, unique local, link-local and those with a zone
            return False
    return (
        found is not None
        and found.is_global
        and not (found.is_multicast or found.is_reserved or found.is_unspecified)
        and not any(found.version == tunnel.version and found in tunnel for tunnel in _TUNNELS)
    )


def _addresses(target: _Target, policy: FetchPolicy, deadline: float) -> Sequence[str]:
    """Where to connect. Errors: InvalidInput when any of the addresses is not public."""
    found = [target.host] if _literal(target.host) else _resolved(target, policy, deadline)
    hidden = [] if policy.allow_private else [address for address in found if not is_public(address)]
    if hidden:
        raise InvalidInput(
            f"{target.host} is at {hidden[0]}, which is not a public address; refused (--allow-private allows it)"
        )
    return found


def _resolved(target: _Target, policy: FetchPolicy, deadline: float) -> Sequence[str]:
    """The one lookup, in a thread that is left behind when the resolver takes too long: it cannot be interrupted."""
    answer: list[Sequence[str] | OSError | UnicodeError] = []

    def ask() -> None:
        try:
            answer.append(policy.resolve(target.host, target.port))
        except (OSError, UnicodeError) as error:
            answer.append(error)

    asking = threading.Thread(target=ask, name="mnemic-resolve", daemon=True)
    asking.start()
    asking.join(max(0.0, deadline - time.monotonic()))
    match answer:
        case []:
            raise DeadlineExceeded(f"{target.host}: its address could not be found in {policy.timeout_s:g} s")
        case [Exception() as error]:
            raise MnemicError(f"{target.host}: its address cannot be found: {error}") from error
        case [found] if found:
            return found  # type: ignore[return-value]  # the exceptions are handled above
    raise MnemicError(f"{target.host} has no address")


def _get(target: _Target, addresses: Sequence[str], policy: FetchPolicy, deadline: float) -> Page | str:
    """The page, or the URL it redirects to."""
    network = _Pinned(addresses, policy.network or httpcore.SyncBackend(), deadline)
    tls = policy.tls or httpx.create_ssl_context(trust_env=False)
    timeout = dict.fromkeys(("connect", "read", "write", "pool"), policy.timeout_s)
    try:
        with (
            httpcore.ConnectionPool(ssl_context=tls, network_backend=network, retries=0) as pool,
            pool.stream(
                "GET",
                httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path),
                headers=[
                    ("Host", target.url.split("/")[2]),
                    ("User-Agent", "mnemic"),
                    ("Accept", "text/html, text/*;q=0.9, application/pdf;q=0.9, */*;q=0.5"),
                    ("Accept-Encoding", "gzip, identity"),
                ],
                extensions={"timeout": timeout},
            ) as response,
        ):
            return _answer(target, response, policy)
    except httpcore.TimeoutException as error:
        raise DeadlineExceeded(f"{target.url}: not answered in {policy.timeout_s:g} s") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, ssl.SSLError, OSError) as error:
        raise MnemicError(f"{target.url} cannot be read: {error or type(error).__name__}") from error


def _answer(target: _Target, response: httpcore.Response, policy: FetchPolicy) -> Page | str:
    headers = {name.lower(): value.decode("latin-1") for name, value in response.headers}
    if response.status in _REDIRECTS and b"location" in headers:
        return urljoin(target.url, headers[b"location"])
    if response.status in (404, 410):
        raise NotFound(f"{target.url} is not there (status {response.status})")
    if response.status != 200:
        raise MnemicError(f"{target.url} answered with status {response.status}")
    media, _, parameters = headers.get(b"content-type", "").partition(";")
    media = media.strip().lower()
    if not READABLE.fullmatch(media):
        raise InvalidInput(f"{target.url} is {media}, which cannot be read; readable are text, HTML, PDF and DOCX")
    charset = re.search(r"""charset\s{0,4}=\s{0,4}["']?([\w.:-]{2,40})""", parameters, re.IGNORECASE)
    length = headers.get(b"content-length", "")
    if length.isdecimal() and len(length) < 19 and int(length) > policy.max_bytes:
        raise _too_large(target, policy)
    body = _body(target, response.iter_stream(), headers.get(b"content-encoding", "").strip().lower(), policy)
    return Page(target.url, media, charset[1].lower() if charset else "", body)


def _body(target: _Target, stream: Iterable[bytes], encoding: str, policy: FetchPolicy) -> bytes:
    """The bytes, unpacked: counted as they come and as they unpack, for lengths that servers state may be false."""
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise InvalidInput(f"{target.url} is sent as {encoding[:40]!r}, which was not asked for")
    body = bytearray()
    received = 0
    unpack = zlib.decompressobj(31) if "gzip" in encoding else None
    for block in stream:
        received += len(block)
        try:
            body += unpack.decompress(block, policy.max_bytes + 1 - len(body)) if unpack else block
        except zlib.error as error:
            raise MnemicError(f"{target.url}: the packed page is damaged: {error}") from error
        if max(received, len(body)) > policy.max_bytes or (unpack and unpack.unconsumed_tail):
            raise _too_large(target, policy)
    if unpack and not unpack.eof:
        raise MnemicError(f"{target.url}: the packed page is cut short")
    return bytes(body)


def _too_large(target: _Target, policy: FetchPolicy) -> InvalidInput:
    return InvalidInput(
        f"{target.url} is larger than {policy.max_bytes / 1024**2:g} MB; download it and ingest the file"
    )


class _Pinned(httpcore.NetworkBackend):
    """Connects to the given addresses only, whatever host is asked for, and lets no operation outlive the deadline."""

    def __init__(self, addresses: Sequence[str], network: httpcore.NetworkBackend, deadline: float) -> None:
        self._addresses = addresses
        self._network = network
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        for last, address in _marked_last(self._addresses):
            try:
                wait = min(_CONNECT_S, _left(self._deadline))
                return _Bounded(self._network.connect_tcp(address, port, wait), self._deadline)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if last:
                    raise
        raise httpcore.ConnectError("no address")


class _Bounded(httpcore.NetworkStream):
    """A stream whose every step ends by the deadline: a server that drips a byte now and then gains nothing."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(self._deadline))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._deadline))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Bounded(self._stream.start_tls(ssl_context, server_hostname, _left(self._deadline)), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the time is over")
    return left


def _marked_last(addresses: Sequence[str]) -> Iterator[tuple[bool, str]]:
    for index, address in enumerate(addresses, start=1):
        yield index == len(addresses), address
