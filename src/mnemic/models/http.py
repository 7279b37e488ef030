"""One thin client for every model behind HTTP: time-outs, tries, Retry-After, a circuit breaker, and clear errors.

A try that finds no answer (transport, time-out, 408, 409, 425, 429, 5xx) is repeated with full jitter; what is refused
for good (400, 401, 403, 404, a redirect) is not. Keys travel in headers only and never reach an error.
"""

from __future__ import annotations

import json
import random
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Lock
from typing import TYPE_CHECKING, Literal, NoReturn
from urllib.parse import urlsplit

from mnemic.errors import ConfigError, ModelError, ModelMisbehaved, ModelUnavailable
from mnemic.models.secrets import Secret

if TYPE_CHECKING:
    import httpx

TRIES = 5
QUERY_TRIES = 2  # somebody waits for the answer, and keyword search has one
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 20.0
LONGEST_RETRY_AFTER_S = 60.0  # asked to wait longer, we give up at once and leave it to the next round
CONNECT_S = 5.0
MOST_BYTES = 64 * 1024 * 1024  # 2048 vectors of 3072 numbers as text; more is not an answer
_AGAIN = frozenset({408, 409, 425, 429})

State = Literal["closed", "open", "half-open"]


@dataclass(frozen=True, slots=True)
class Timing:
    """Where time and chance come from."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to ask, and the settings an error should name. Errors: ConfigError for a URL that cannot be one."""

    who: str
    url: str
    key: Secret
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    key_setting: str = "embeddings.api_key"
    url_setting: str = "embeddings.base_url"
    model_setting: str = "embeddings.model"

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise ConfigError(f"{self.url_setting} is not a URL like https://host/v1")
        if parts.username is not None or parts.query or parts.fragment:
            raise ConfigError(f"{self.url_setting} holds more than an address; a key belongs into {self.key_setting}")

    @property
    def name(self) -> str:
        return f"{self.who} at {urlsplit(self.url).netloc}"


class Breaker:
    """After `failures` calls in a row without an answer, asks nobody for `rest_s` seconds; then lets one call try."""

    def __init__(self, *, failures: int = 3, rest_s: float = 30.0, now: Callable[[], float] = time.monotonic) -> None:
        self._limit = failures
        self._rest_s = rest_s
        self._now = now
        self._lock = Lock()
        self._failures = 0
        self._opened: float | None = None
        self._trying = False

    @property
    def state(self) -> State:
        with self._lock:
            return self._state()

    def admit(self, who: str) -> None:
        """Errors: ModelUnavailable while it is open, or while another call is the one that tries."""
        with self._lock:
            state = self._state()
            if state == "open" or (state == "half-open" and self._trying):
                left = max(0.0, (self._opened or 0.0) + self._rest_s - self._now())
                raise ModelUnavailable(f"{who} did not answer {self._failures} times; next try in {left:.0f} s")
            self._trying = state == "half-open"

    def answered(self) -> None:
        with self._lock:
            self._failures, self._opened, self._trying = 0, None, False

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            self._trying = False
            if self._failures >= self._limit:
                self._opened = self._now()

    def abandoned(self) -> None:
        """The call ended without a verdict (interrupted): the next one may try."""
        with self._lock:
            self._trying = False

    def _state(self) -> State:
        if self._opened is None:
            return "closed"
        return "open" if self._now() - self._opened < self._rest_s else "half-open"


class _NoAnswer(Exception):
    """A try that may succeed when repeated."""

    def __init__(self, why: str, wait_s: float | None = None) -> None:
        super().__init__(why)
        self.wait_s = wait_s


class Client:
    """POSTs JSON and returns the JSON that comes back. Safe from several threads; connects at the first call."""

    def __init__(self, target: Target, *, timeout_s: float = 30.0, timing: Timing | None = None) -> None:
        self.target = target
        self._timeout_s = timeout_s
        self._timing = timing or Timing()
        self.breaker = Breaker(now=self._timing.now)
        self._lock = Lock()
        self._http: httpx.Client | None = None

    def post(self, path: str, body: Mapping[str, object], *, tries: int = TRIES) -> object:
        """Errors: ModelUnavailable after the tries or while the breaker is open; ModelMisbehaved for something that is
        not JSON; ModelError for a refusal, naming the setting to change; ModelMissing when the key cannot be read."""
        key = self.target.key.reveal()  # first: a key that is not there is no failure of the endpoint
        self.breaker.admit(self.target.name)
        try:
            answer = self._patiently(path, json.dumps(body).encode(), key, tries)
        except ModelUnavailable:
            self.breaker.failed()
            raise
        except ModelError:
            self.breaker.answered()
            raise
        except BaseException:
            self.breaker.abandoned()
            raise
        self.breaker.answered()
        return answer

    def close(self) -> None:
        with self._lock:
            if self._http is not None:
                self._http.close()
                self._http = None

    def _patiently(self, path: str, body: bytes, key: str, tries: int) -> object:
        for number in range(1, tries + 1):
            try:
                return self._once(path, body, key)
            except _NoAnswer as error:
                wait_s = error.wait_s
                if wait_s is None:
                    wait_s = self._timing.chance() * min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (number - 1))
                if number == tries or wait_s > LONGEST_RETRY_AFTER_S:
                    tried = "once" if number == 1 else f"{number} times"
                    raise ModelUnavailable(f"{self.target.name}: {error}; tried {tried}") from error.__cause__
            self._timing.sleep(wait_s)
        raise AssertionError("a loop of at least one try returns or raises")

    def _once(self, path: str, body: bytes, key: str) -> object:
        import httpx  # late: 0.1 s that a memory with local embeddings need not pay

        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key:
            headers[self.target.key_header] = self.target.key_prefix + key
        limit = self._timing.now() + self._timeout_s
        try:
            with self._connected().stream("POST", self.target.url + path, content=body, headers=headers) as response:
                content = bytearray()
                for piece in response.iter_bytes():
                    content += piece
                    if len(content) > MOST_BYTES:
                        raise ModelMisbehaved(f"{self.target.name} answered more than {MOST_BYTES >> 20} MB")
                    if self._timing.now() > limit:  # each read came in time, the whole did not
                        raise _NoAnswer(f"no whole answer within {self._timeout_s:g} s (embeddings.timeout_s)")
        except httpx.TimeoutException as error:
            raise _NoAnswer(f"no answer within {self._timeout_s:g} s") from error
        except httpx.DecodingError as error:
            raise ModelMisbehaved(f"{self.target.name} answered a body that cannot be unpacked") from error
        except httpx.TransportError as error:
            raise _NoAnswer(f"cannot be reached ({_short(str(error)) or type(error).__name__})") from error
        if response.status_code != 200:
            self._refused(response, bytes(content))
        return self._json(bytes(content))

    def _connected(self) -> httpx.Client:
        import httpx

        with self._lock:
            if self._http is None:
                # Plain HTTP needs no certificates, and loading them costs 50 ms. This has none: it trusts nobody.
                plain = self.target.url.startswith("http://")
                self._http = httpx.Client(
                    verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
                    trust_env=False,
                    follow_redirects=False,
                    timeout=httpx.Timeout(self._timeout_s, connect=min(CONNECT_S, self._timeout_s)),
                )
            return self._http

    def _json(self, content: bytes) -> object:
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            kind = "a web page" if content.lstrip()[:1] == b"<" else "something that is not JSON"
            raise ModelMisbehaved(f"{self.target.name} answered {kind}; check {self.target.url_setting}") from error

    def _refused(self, response: httpx.Response, content: bytes) -> NoReturn:
        target, status = self.target, response.status_code
        said = target.key.redact(_said(content))
        tail = f" ({said})" if said else ""
        if said.startswith("insufficient_quota"):
            raise ModelUnavailable(f"{target.name}: the account's quota is used up{tail}")
        if status in _AGAIN or status >= 500:
            raise _NoAnswer(f"status {status}{tail}", _retry_after(response.headers.get("retry-after", "")))
        if status in (401, 403) or "api key" in said.lower():
            target.key.forget()
            raise ModelError(f"{target.name} refused the key, status {status}{tail}; check {target.key_setting}")
        if 300 <= status < 400:
            raise ModelError(
                f"{target.name} sends elsewhere, status {status}; set {target.url_setting} to the final URL"
            )
        if status == 404:
            settings = f"{target.url_setting} and {target.model_setting}"
            raise ModelError(f"{target.name} does not know this address or model, status 404{tail}; check {settings}")
        hint = "lower embeddings.batch" if status == 413 else f"check {target.model_setting}"
        raise ModelError(f"{target.name} refused the request, status {status}{tail}; {hint}")


def _retry_after(header: str) -> float | None:
    """Seconds to wait, from a number of seconds or a date; None when there is no usable one."""
    try:
        return max(0.0, float(header)) if float(header) == float(header) else None
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())


def _said(content: bytes) -> str:
    """The endpoint's own words about an error, short; never the whole body, which may repeat the texts we sent."""
    try:
        answer = json.loads(content)
    except ValueError:
        return ""
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict):
        code = error.get("code")
        words = str(error.get("message") or "")
        return _short(f"{code}: {words}" if isinstance(code, str) else words)
    return _short(error) if isinstance(error, str) else ""


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 160 else text[:157] + "..."
