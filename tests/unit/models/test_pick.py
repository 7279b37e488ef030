"""Which embedder a store gets, once."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mnemic.config import EmbeddingsConfig
from mnemic.domain.types import Space
from mnemic.errors import ConfigError, ModelMissing
from mnemic.models import local, pick
from mnemic.models.hashing import SPACE as HASHING
from mnemic.models.pick import choose

LOCAL = local.SPACE
SMALL = Space("openai", "text-embedding-3-small", 1536, "l2")
GEMINI = Space("gemini", "gemini-embedding-001", 3072, "retrieval-l2")
GEMINI_768 = Space("gemini", "gemini-embedding-001", 768, "retrieval-l2")
NOMIC = Space("ollama", "nomic-embed-text", 768, "prefix-l2")
DEAF = {"OLLAMA_HOST": "127.0.0.1:9"}  # nobody listens at the discard port


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "missing", lambda: "")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "missing", lambda: "local embeddings need onnxruntime: pip install 'mnemic[local]'")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str, model: str) -> bool:
        raise AssertionError(f"{url} was asked")

    monkeypatch.setattr(pick, "_answers", refuse)


@pytest.fixture
def ollama() -> Iterator[str]:
    """An Ollama that has nomic-embed-text."""

    class Tags(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"models": [{"name": "nomic-embed-text:latest"}]}).encode()
            self.send_response(200 if self.path == "/api/tags" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Tags)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def space(
    config: EmbeddingsConfig, environment: dict[str, str] | None = None, recorded: Space | None = None
) -> Space | None:
    embedder = choose(config, environment=environment or DEAF, recorded=recorded).embedder
    return embedder.space if embedder else None


# ---- a new store, auto


def test_auto_takes_ollama_when_it_answers_on_loopback(ollama: str, installed: None) -> None:
    assert space(EmbeddingsConfig(), {"OLLAMA_HOST": ollama}) == NOMIC
    assert space(EmbeddingsConfig(base_url=f"http://{ollama}"), DEAF) == NOMIC


def test_auto_passes_by_an_ollama_without_the_model(ollama: str, installed: None) -> None:
    assert space(EmbeddingsConfig(model="bge-m3"), {"OLLAMA_HOST": ollama}) == LOCAL


def test_auto_asks_no_ollama_on_another_machine(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import http.client

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(http.client, "HTTPConnection", refuse)
    assert space(EmbeddingsConfig(), {"OLLAMA_HOST": "192.0.2.7:11434"}) == LOCAL
    assert space(EmbeddingsConfig(), {"OLLAMA_HOST": "https://ollama.example"}) == LOCAL


def test_auto_takes_the_local_model_and_else_hashing_with_the_reason(installed: None) -> None:
    assert space(EmbeddingsConfig()) == LOCAL


def test_auto_without_the_extra_is_hashing_and_says_what_would_be_better(bare: None) -> None:
    choice = choose(EmbeddingsConfig(), environment=DEAF, recorded=None)
    assert choice.embedder is not None
    assert choice.embedder.space == HASHING
    assert choice.reason == "local embeddings need onnxruntime: pip install 'mnemic[local]'"


def test_a_key_lying_in_the_environment_is_no_consent(installed: None) -> None:
    keys = DEAF | {"OPENAI_API_KEY": "sk-x", "GEMINI_API_KEY": "AIza", "GOOGLE_API_KEY": "AIza"}
    assert space(EmbeddingsConfig(), keys) == LOCAL


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (EmbeddingsConfig(api_key="env:GEMINI_API_KEY"), GEMINI),
        (EmbeddingsConfig(api_key="env:OPENAI_API_KEY"), SMALL),
        (EmbeddingsConfig(api_key="k", model="gemini-embedding-001"), GEMINI),
        (EmbeddingsConfig(api_key="k", model="text-embedding-3-small"), SMALL),
        (EmbeddingsConfig(api_key="k", base_url="https://llm.example/v1"), SMALL),
        (EmbeddingsConfig(api_key="k", base_url="https://generativelanguage.googleapis.com/v1beta"), GEMINI),
    ],
)
def test_auto_takes_the_vendor_whose_key_is_set_for_mnemic(
    config: EmbeddingsConfig, expected: Space, installed: None
) -> None:
    assert space(config) == expected


def test_a_key_for_nobody_in_particular_is_sent_to_nobody(installed: None) -> None:
    choice = choose(EmbeddingsConfig(api_key="k"), environment=DEAF, recorded=None)
    assert choice.embedder is not None
    assert choice.embedder.space == LOCAL
    assert choice.reason == "embeddings.api_key is set but not for whom: set embeddings.provider to gemini or openai"


# ---- a new store, a provider that is set


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (EmbeddingsConfig(provider="hashing"), HASHING),
        (EmbeddingsConfig(provider="local"), LOCAL),
        (EmbeddingsConfig(provider="ollama"), NOMIC),
        (EmbeddingsConfig(provider="ollama", model="mine"), Space("ollama", "mine", 0, "l2")),
        (EmbeddingsConfig(provider="openai", api_key="k"), SMALL),
        (EmbeddingsConfig(provider="openai", base_url="http://h/v1", model="m"), Space("openai", "m", 0, "l2")),
        (EmbeddingsConfig(provider="openai", api_key="k", dimension=512), Space("openai", SMALL.model, 512, "l2")),
        (
            EmbeddingsConfig(provider="gemini", api_key="k", dimension=768),
            GEMINI_768,
        ),
    ],
)
def test_a_set_provider_is_taken_without_asking_anybody(
    config: EmbeddingsConfig, expected: Space, installed: None, no_network: None
) -> None:
    assert space(config) == expected


def test_a_set_provider_may_use_the_vendors_own_variable_at_the_vendors_own_address_only(no_network: None) -> None:
    assert space(EmbeddingsConfig(provider="openai"), {"OPENAI_API_KEY": "sk-x"}) == SMALL
    config = EmbeddingsConfig(provider="openai", base_url="http://h/v1")
    elsewhere = choose(config, environment={"OPENAI_API_KEY": "sk-x"}, recorded=None).embedder
    assert elsewhere._client.target.key.reveal() == ""  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (EmbeddingsConfig(provider="local"), r"pip install 'mnemic\[local\]'"),
        (EmbeddingsConfig(provider="openai"), 'set embeddings.api_key = "env:OPENAI_API_KEY"'),
        (EmbeddingsConfig(provider="gemini"), 'set embeddings.api_key = "env:GEMINI_API_KEY"'),
    ],
)
def test_a_set_provider_that_is_not_there_is_an_error(config: EmbeddingsConfig, says: str, bare: None) -> None:
    with pytest.raises(ModelMissing, match=says):
        choose(config, environment=DEAF, recorded=None)


def test_settings_that_contradict_each_other_are_an_error() -> None:
    for config in (
        EmbeddingsConfig(provider="hashing", dimension=768),
        EmbeddingsConfig(provider="local", model="bge"),
    ):
        with pytest.raises(ConfigError, match="unset it"):
            choose(config, environment={}, recorded=None)


def test_none_is_none() -> None:
    choice = choose(EmbeddingsConfig(provider="none"), environment={}, recorded=LOCAL)
    assert choice.embedder is None
    assert "switched off" in choice.reason


# ---- a store that has its space


def test_auto_keeps_the_recorded_space_and_asks_nobody(installed: None, no_network: None) -> None:
    for recorded in (HASHING, LOCAL, NOMIC):
        choice = choose(EmbeddingsConfig(), environment={}, recorded=recorded)
        assert choice.embedder is not None
        assert choice.embedder.space == recorded
        assert choice.configured is None
        assert choice.reason == ""


def test_a_recorded_dimension_is_kept_when_the_setting_is_gone(no_network: None) -> None:
    short = Space("openai", "text-embedding-3-small", 512, "l2")
    assert space(EmbeddingsConfig(provider="openai", api_key="k"), {}, short) == short
    foreign = Space("openai", "bge-large", 1024, "l2")
    assert space(EmbeddingsConfig(provider="openai", base_url="http://h/v1"), {}, foreign) == foreign


def test_a_better_one_is_named_and_not_taken(installed: None, no_network: None) -> None:
    choice = choose(EmbeddingsConfig(), environment={}, recorded=HASHING)
    assert choice.embedder is not None
    assert choice.embedder.space == HASHING
    assert choice.better == LOCAL
    assert choose(EmbeddingsConfig(), environment={}, recorded=LOCAL).better is None
    assert choose(EmbeddingsConfig(api_key="env:OPENAI_API_KEY"), environment={}, recorded=LOCAL).better == SMALL


def test_a_space_that_cannot_be_made_gets_no_embedder_and_never_a_lesser_one(bare: None, no_network: None) -> None:
    for config in (EmbeddingsConfig(), EmbeddingsConfig(provider="local")):
        choice = choose(config, environment={}, recorded=LOCAL)
        assert choice.embedder is None
        assert choice.reason == (
            "the store was made with local/all-MiniLM-L6-v2-int8/384/a7-mean-l2: "
            "local embeddings need onnxruntime: pip install 'mnemic[local]'"
        )


def test_a_vendors_space_without_its_key_gets_no_embedder(no_network: None) -> None:
    choice = choose(EmbeddingsConfig(), environment={"OPENAI_API_KEY": ""}, recorded=SMALL)
    assert choice.embedder is None
    assert 'set embeddings.api_key = "env:OPENAI_API_KEY"' in choice.reason


def test_another_provider_than_the_recorded_one_names_both(installed: None, no_network: None) -> None:
    choice = choose(EmbeddingsConfig(provider="openai", api_key="k"), environment={}, recorded=LOCAL)
    assert choice.embedder is not None
    assert choice.configured is not None
    assert (choice.embedder.space, choice.recorded, choice.configured.space) == (LOCAL, LOCAL, SMALL)
    assert LOCAL.label in choice.reason
    assert SMALL.label in choice.reason
    assert "mnemic reindex" in choice.reason


def test_another_model_or_dimension_names_both(no_network: None) -> None:
    for config in (
        EmbeddingsConfig(provider="openai", api_key="k", model="text-embedding-3-large"),
        EmbeddingsConfig(provider="openai", api_key="k", dimension=512),
    ):
        choice = choose(config, environment={}, recorded=SMALL)
        assert choice.embedder is not None
        assert choice.embedder.space == SMALL
        assert choice.configured is not None
        assert choice.configured.space in (
            Space("openai", "text-embedding-3-large", 3072, "l2"),
            Space("openai", "text-embedding-3-small", 512, "l2"),
        )


def test_a_key_is_never_handed_to_the_vendor_of_the_old_space(no_network: None) -> None:
    config = EmbeddingsConfig(
        provider="gemini", api_key="AIza-secret", base_url="https://generativelanguage.googleapis.com/v1beta"
    )
    choice = choose(config, environment={}, recorded=SMALL)
    assert choice.embedder is None
    assert choice.configured is not None
    assert choice.configured.space == GEMINI


def test_a_space_of_another_release_gets_no_embedder_but_the_new_one(installed: None, no_network: None) -> None:
    old = Space("local", "all-MiniLM-L6-v2-int8", 384, "cls-l2")
    choice = choose(EmbeddingsConfig(), environment={}, recorded=old)
    assert choice.embedder is None
    assert choice.configured is not None
    assert choice.configured.space == LOCAL
    unknown = choose(EmbeddingsConfig(), environment={}, recorded=Space("future", "m", 8))
    assert unknown.embedder is None
    assert "knows no embeddings provider 'future'" in unknown.reason


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":8080", "http://127.0.0.1:8080"),
        ("box:1234", "http://box:1234"),
        ("http://box", "http://box:80"),
        ("https://box/sub/", "https://box:443/sub"),
        ("[::1]:99", "http://[::1]:99"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(host: str, url: str) -> None:
    assert pick._ollama_url(EmbeddingsConfig(), {"OLLAMA_HOST": host}) == url


def test_an_ollama_host_that_is_none_is_an_error() -> None:
    with pytest.raises(ConfigError, match="OLLAMA_HOST"):
        choose(EmbeddingsConfig(provider="ollama"), environment={"OLLAMA_HOST": "box:port"}, recorded=None)


# ---- moving a store


def test_the_one_somebody_names_is_made_without_another_vendors_key(installed: None, no_network: None) -> None:
    config = EmbeddingsConfig(provider="openai", api_key="sk-x", model="text-embedding-3-large", dimension=256)
    assert pick.made(config, "local", "", environment={}).space == LOCAL
    assert pick.made(config, "openai", "", environment={}).space == Space("openai", config.model, 256, "l2")
    with pytest.raises(ModelMissing, match="gemini needs a key"):
        pick.made(config, "gemini", "", environment={})
    assert pick.made(config, "gemini", "", environment={"GEMINI_API_KEY": "AIza"}).space == GEMINI
    assert pick.made(EmbeddingsConfig(api_key="env:OPENAI_API_KEY"), "openai", "", environment={}).space == SMALL
    with pytest.raises(ModelMissing, match="knows no embeddings provider 'word2vec'"):
        pick.made(config, "word2vec", "", environment={})
