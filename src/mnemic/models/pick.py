"""Which embedder a store uses: decided once, when it is new; afterwards the space it was made with is kept.

`auto` takes the first that is there: Ollama on this machine, Gemini or OpenAI when their key is set for mnemic (a key
lying in the environment is no consent), the local model, feature hashing. A store whose space cannot be made any more
gets no embedder instead of a lesser one: vectors of two spaces do not mix.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from time import monotonic
from urllib.parse import urlsplit

from mnemic.config import EmbeddingsConfig
from mnemic.domain.types import Space
from mnemic.errors import ConfigError, ModelError, ModelMissing
from mnemic.models import local, multilingual
from mnemic.models.hashing import SPACE as HASHING
from mnemic.models.hashing import HashingEmbedder
from mnemic.models.remote import Options
from mnemic.models.secrets import Secret
from mnemic.ports import Embedder

PROBE_S = 0.2
OLLAMA_PORT = 11434
_KEYS = {"openai": ("OPENAI_API_KEY",), "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY")}
_ENDPOINTS = ("ollama", "openai", "gemini")
_RANK = {"hashing": 0, "local": 1}  # the others know more than these


@dataclass(frozen=True, slots=True)
class Choice:
    """`embedder`: of the recorded space, or of a new store; None: recall is by keyword only, `reason` says why.

    `configured`: the embedder the settings name, where it is not the recorded one (`mnemic reindex` switches to it).
    `better`: a space with more understanding that could be had here. `reason` may also explain a modest choice.
    """

    embedder: Embedder | None
    reason: str = ""
    recorded: Space | None = None
    configured: Embedder | None = None
    better: Space | None = None


def choose(config: EmbeddingsConfig, *, environment: Mapping[str, str], recorded: Space | None) -> Choice:
    """Calls no network, except one look whether Ollama answers on loopback: for a new store and `auto` only.

    Errors: ModelMissing or ConfigError when a new store cannot have the provider that is set; ConfigError for settings
    that contradict each other.
    """
    if config.provider == "none":
        return Choice(None, "embeddings are switched off (embeddings.provider = none)", recorded)
    if recorded is not None:
        return _as_recorded(config, environment, recorded)
    if config.provider != "auto":
        return Choice(_made(config, environment, asked=config.dimension != 0))
    return _first_there(config, environment)


def made(config: EmbeddingsConfig, provider: str, model: str, *, environment: Mapping[str, str]) -> Embedder:
    """The embedder somebody names, to move a store to; "" as model: the provider's default. Calls no network.

    Address, key and dimension of the settings count only when they are for this provider.
    Errors: ModelMissing, ConfigError.
    """
    named = config.provider == provider
    if not named:
        config = replace(config, dimension=0)
        if _meant(config) != provider or config.provider != "auto":
            config = replace(config, base_url="", api_key="")
    model = model or (config.model if named else "")
    return _made(replace(_for(provider, config), model=model), environment, asked=config.dimension != 0)


def _first_there(config: EmbeddingsConfig, environment: Mapping[str, str]) -> Choice:
    asked = config.dimension != 0
    url = _ollama_url(config, environment)
    if _answers(url, config.model):
        return Choice(_made(replace(config, provider="ollama", base_url=url, api_key=""), environment, asked=asked))
    endpoint = _meant(config)
    if endpoint:
        return Choice(_made(_for(endpoint, config), environment, asked=asked))
    note = _unclear(config)
    missing = local.missing()
    if not missing:
        return Choice(local.LocalEmbedder(threads=config.threads), note)
    return Choice(HashingEmbedder(), f"{note}; {missing}" if note else missing)


def _as_recorded(config: EmbeddingsConfig, environment: Mapping[str, str], recorded: Space) -> Choice:
    """The embedder of the recorded space beside the one the settings name."""
    embedder, reason = _attempt(_settings_of(config, recorded), environment, asked=config.dimension != 0)
    configured: Embedder | None = None
    if embedder is None:
        reason = f"the store was made with {recorded.label}: {reason}"
    elif embedder.space != recorded:
        configured, embedder = embedder, None
    if config.provider != "auto" and _differs(config, recorded):
        configured, why = _attempt(config, environment, asked=config.dimension != 0)
        reason = reason or why
    if configured is not None:
        both = f"the store has vectors of {recorded.label}, the settings name {configured.space.label}"
        reason = (
            f"{reason}; {both}" if reason else f"{both}: `mnemic reindex` switches, the old space is kept until then"
        )
    return Choice(embedder, reason, recorded, configured, _better(config, environment, recorded))


def _attempt(config: EmbeddingsConfig, environment: Mapping[str, str], *, asked: bool) -> tuple[Embedder | None, str]:
    try:
        return _made(config, environment, asked=asked), ""
    except (ModelError, ConfigError) as error:
        return None, str(error)


def _differs(config: EmbeddingsConfig, recorded: Space) -> bool:
    """An unset model or dimension means: whatever the store has."""
    return (
        config.provider != recorded.provider
        or (config.provider in _ENDPOINTS and config.model not in ("", recorded.model))
        or config.dimension not in (0, recorded.dimension)
    )


def _settings_of(config: EmbeddingsConfig, recorded: Space) -> EmbeddingsConfig:
    """The settings that make the recorded space; without address and key when those are for another vendor."""
    meant = _meant(config) if config.provider == "auto" else config.provider
    if meant not in ("", recorded.provider):
        config = replace(config, base_url="", api_key="")
    model = recorded.model if recorded.provider in _ENDPOINTS else ""
    space: dict[str, object] = {"provider": recorded.provider, "model": model, "dimension": recorded.dimension}
    return replace(config, **space)  # type: ignore[arg-type]  # `_made` refuses a provider it does not know


def _better(config: EmbeddingsConfig, environment: Mapping[str, str], recorded: Space) -> Space | None:
    if config.provider != "auto":
        return None
    rank = _RANK.get(recorded.provider, 2)
    endpoint = _meant(config)
    if endpoint and rank < 2:
        made, _ = _attempt(_for(endpoint, config), environment, asked=config.dimension != 0)
        return made.space if made else None
    return local.SPACE if rank < 1 and not local.missing() else None


def _made(config: EmbeddingsConfig, environment: Mapping[str, str], *, asked: bool) -> Embedder:
    """The embedder of exactly these settings. Errors: ModelMissing, ConfigError."""
    match config.provider:
        case "hashing":
            _fixed(config, HASHING)
            return HashingEmbedder()
        case "local":
            _fixed(config, local.SPACE)
            _there(local.missing())
            return local.LocalEmbedder(threads=config.threads)
        case "multilingual":
            _fixed(config, multilingual.SPACE)
            _there(multilingual.missing())
            return multilingual.MultilingualEmbedder(threads=config.threads)
        case "ollama":
            from mnemic.models import ollama

            address = replace(config, base_url=_ollama_url(config, environment))
            return ollama.embedder(_options(address, environment, asked))
        case "openai":
            from mnemic.models import openai

            return openai.embedder(_options(config, environment, asked))
        case "gemini":
            from mnemic.models import gemini

            return gemini.embedder(_options(config, environment, asked))
    raise ModelMissing(
        f"this release knows no embeddings provider {config.provider!r}; `mnemic reindex` moves the store"
    )


def _there(missing: str) -> None:
    if missing:
        raise ModelMissing(missing)


def _fixed(config: EmbeddingsConfig, space: Space) -> None:
    """These models are what they are; a setting that asks for another is a mistake, not a wish."""
    if config.dimension not in (0, space.dimension):
        raise ConfigError(
            f"embeddings.dimension is {config.dimension}, but {space.provider} has {space.dimension}; unset it"
        )
    if config.model not in ("", space.model):
        raise ConfigError(
            f"embeddings.model is {config.model!r}, but {space.provider} has only {space.model}; unset it"
        )


def _options(config: EmbeddingsConfig, environment: Mapping[str, str], asked: bool) -> Options:
    """Errors: ModelMissing when the vendor's own address is asked without a key."""
    setting = config.api_key
    names = _KEYS.get(config.provider, ())
    if not setting and not config.base_url and names:  # a vendor's key is not for whoever else is at `base_url`
        found = [name for name in names if environment.get(name)]
        if not found:
            raise ModelMissing(
                f'{config.provider} needs a key: set embeddings.api_key = "env:{names[0]}" and export it'
            )
        setting = f"env:{found[0]}"
    return Options(
        model=config.model,
        dimension=config.dimension,
        asked=asked,
        base_url=config.base_url,
        key=Secret(setting, environment),
        timeout_s=config.timeout_s,
        batch=config.batch,
    )


def _for(provider: str, config: EmbeddingsConfig) -> EmbeddingsConfig:
    return replace(config, provider=provider)  # type: ignore[arg-type]  # `_made` refuses one it does not know


def _meant(config: EmbeddingsConfig) -> str:
    """The vendor an `api_key` under `auto` is for: "gemini", "openai", or "" when nothing tells. Never a guess: a key
    sent to the wrong vendor is given away."""
    if not config.api_key:
        return ""
    kind, _, rest = config.api_key.partition(":")
    host = urlsplit(config.base_url).hostname or ""
    if host:
        return "gemini" if host.endswith(".googleapis.com") else "openai"
    if kind == "env":
        return next((vendor for vendor, names in _KEYS.items() if rest.strip() in names), "")
    if config.model.startswith(("gemini-", "models/gemini-")):
        return "gemini"
    return "openai" if config.model.startswith("text-embedding-3-") else ""


def _unclear(config: EmbeddingsConfig) -> str:
    if config.api_key and not _meant(config):
        return "embeddings.api_key is set but not for whom: set embeddings.provider to gemini or openai"
    if config.base_url and not config.api_key:
        return "embeddings.base_url is set but nothing usable answers there: set embeddings.provider"
    return ""


def _ollama_url(config: EmbeddingsConfig, environment: Mapping[str, str]) -> str:
    """`base_url`, else OLLAMA_HOST (host, host:port, :port or URL, as Ollama takes it), else the usual place."""
    if config.base_url and (config.provider == "ollama" or not config.api_key):
        return config.base_url
    host = environment.get("OLLAMA_HOST", "").strip().rstrip("/")
    scheme, there, rest = host.rpartition("://")
    try:
        parts = urlsplit(f"{scheme or 'http'}://{rest}")
        name, port = parts.hostname or "127.0.0.1", parts.port
    except ValueError:
        raise ConfigError("OLLAMA_HOST is no host:port; correct it or set embeddings.base_url") from None
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 - where a server listens is not where to call
    name = f"[{name}]" if ":" in name else name
    usual = {"http": 80, "https": 443}.get(scheme, OLLAMA_PORT) if there else OLLAMA_PORT
    return f"{scheme or 'http'}://{name}:{port or usual}{parts.path}"


def _answers(url: str, model: str) -> bool:
    """Whether Ollama is at this loopback address and has the model. Elsewhere is not looked: nobody agreed to it."""
    from http.client import HTTPConnection, HTTPException  # late: only a new store asks

    from mnemic.models import ollama

    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or not _loopback(parts.hostname):
        return False
    end = monotonic() + PROBE_S
    connection = HTTPConnection(parts.hostname, parts.port or 80, timeout=PROBE_S)
    try:
        connection.request("GET", parts.path.rstrip("/") + "/api/tags")
        response = connection.getresponse()
        content = b""
        while piece := response.read1(65_536):
            content += piece
            if monotonic() > end or len(content) > 4_000_000:
                return False
        names = {str(item["name"]).removesuffix(":latest") for item in json.loads(content)["models"]}
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return False
    finally:
        connection.close()
    return response.status == 200 and (model or ollama.DEFAULT).removesuffix(":latest") in names


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
