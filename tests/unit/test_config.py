"""Settings: precedence, types, origins, and errors that name the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from mnemic.config import Config, load, without_password
from mnemic.errors import ConfigError


def config(tmp_path: Path, environment: dict[str, str] | None = None, **more: object) -> Config:
    return load({"MNEMIC_HOME": str(tmp_path), **(environment or {})}, **more)[0]  # type: ignore[arg-type]


def test_the_home_names_the_default_store(tmp_path: Path) -> None:
    assert config(tmp_path).store_url == f"sqlite:///{tmp_path}/mnemic.db"


def test_environment_beats_project_beats_user_beats_default(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[vector]\ntop_k = 1\nef_search = 1\n[chunker]\nmax_tokens = 100\n")
    project = tmp_path / "repo" / "deep"
    project.mkdir(parents=True)
    (tmp_path / "repo" / ".mnemic.toml").write_text("[vector]\ntop_k = 2\nef_search = 2\n")
    made = config(tmp_path, {"MNEMIC_VECTOR__TOP_K": "3"}, folder=project)
    assert (made.vector.top_k, made.vector.ef_search, made.chunker.max_tokens) == (3, 2, 100)
    assert made.chunker.overlap_tokens == 64


def test_each_value_tells_where_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[vector]\ntop_k = 4\n")
    settings = {s.key: s for s in load({"MNEMIC_HOME": str(tmp_path), "MNEMIC_TIMEZONE": "Europe/Lisbon"})[1]}
    assert settings["vector.top_k"].origin == str(tmp_path / "config.toml")
    assert settings["timezone"].origin == "environment MNEMIC_TIMEZONE"
    assert settings["chunker.max_tokens"].origin == "default"


def test_lists_are_json_in_the_environment(tmp_path: Path) -> None:
    made = config(tmp_path, {"MNEMIC_TOPICS__CUSTOM_TOPICS": '["a", "b c"]'})
    assert made.topics.custom_topics == ("a", "b c")


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"MNEMIC_VECTOR__TOPK": "3"}, ["vector.topk", "did you mean vector.top_k?"]),
        ({"MNEMIC_VECTOR__TOP_K": "many"}, ["vector.top_k = 'many'", "a whole number"]),
        ({"MNEMIC_VECTOR__ENABLED": "perhaps"}, ["true or false"]),
        ({"MNEMIC_VECTOR__INDEX_TYPE": "faiss"}, ["exact | sqlite-vec | pgvector | memory"]),
        ({"MNEMIC_TOPICS__CUSTOM_TOPICS": "a,b"}, ["as JSON"]),
        ({"MNEMIC_NOTHING": "1"}, ["unknown setting 'nothing'"]),
    ],
)
def test_a_wrong_setting_is_an_error_that_says_what_is_right(
    tmp_path: Path, environment: dict[str, str], words: list[str]
) -> None:
    with pytest.raises(ConfigError) as error:
        config(tmp_path, environment)
    assert all(word in str(error.value) for word in words)


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[vector\n")
    with pytest.raises(ConfigError, match=r"config\.toml is not valid TOML"):
        config(tmp_path)


@pytest.mark.parametrize(
    "line", ['[embeddings]\napi_key = "x"', '[upstream]\nbase_url = "http://x"', '[store]\nurl = "x"']
)
def test_a_project_file_may_not_say_where_data_goes(tmp_path: Path, line: str) -> None:
    (tmp_path / ".mnemic.toml").write_text(line)
    with pytest.raises(ConfigError, match="may not be set by a project file"):
        config(tmp_path, folder=tmp_path)


def test_secrets_are_masked_where_settings_are_shown(tmp_path: Path) -> None:
    environment = {
        "MNEMIC_HOME": str(tmp_path),
        "MNEMIC_EMBEDDINGS__API_KEY": "s3cret",
        "MNEMIC_STORE__URL": "postgresql://ann:hunter2@db/x",
    }
    made, settings = load(environment)
    shown = {s.key: s.shown for s in settings}
    assert shown["embeddings.api_key"] == "********"
    assert shown["store.url"] == "postgresql://ann:***@db/x"
    assert "s3cret" not in repr(made.embeddings)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("postgresql://u:p@w@h/d", "postgresql://u:***@h/d"),
        ("sqlite:///a/b.db", "sqlite:///a/b.db"),
    ],
)
def test_passwords_do_not_survive_in_urls(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_a_wrong_secret_is_not_repeated_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[embeddings]\napi_key = 12345678\n")
    with pytest.raises(ConfigError) as error:
        config(tmp_path)
    assert "12345678" not in str(error.value)


PIPELINE = """
[memory]
backend = "embeddings"

[memory.embeddings]
provider = "ollama"
model = "nomic-embed-text"
dimension = 768

[memory.vector]
enabled = true
index_type = "sqlite-vec"
top_k = 10
similarity_threshold = 0.5

[memory.chunker]
strategy = "semantic"
max_tokens = 1024
min_tokens = 64
breakpoint_threshold = 0.3

[memory.topics]
enabled = true
taxonomy = "hybrid"
custom_topics = ["coding", "architecture", "debugging", "planning"]

[memory.filter]
enabled = true
autosave_threshold = 0.4
novelty_threshold = 0.85
"""

BROKER = """{"memory": {"enabled": true, "index_interval_s": 60, "broker_budget_ms": 800, "rag_top_k": 5,
  "compact_threshold": 60, "keep_recent": 40, "keep_first": 2, "compact_model": "ollama:gemma4:31b-cloud",
  "compact_fallback_model": "", "embeddings": {"provider": "openai", "openai": {"model": "text-embedding-3-small",
  "api_key": "env:KEY"}}, "active_threads": {"enabled": true, "window_hours": 6, "max_lines": 3}}}"""

PERCEPTION = """{"memory": {"enabled": true, "max_contexts": 5, "auto_recall": true, "wal_encrypt": false}}"""


def test_a_pasted_block_of_the_text_pipeline_works(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(PIPELINE)
    made = config(tmp_path)
    assert (made.embeddings.provider, made.embeddings.model, made.embeddings.dimension) == (
        "ollama",
        "nomic-embed-text",
        768,
    )
    assert (made.vector.index_type, made.vector.similarity_threshold) == ("sqlite-vec", 0.5)
    assert (made.chunker.strategy, made.chunker.max_tokens) == ("semantic", 1024)
    assert made.topics.custom_topics == ("coding", "architecture", "debugging", "planning")
    assert made.filter.novelty_threshold == 0.85


def test_a_pasted_block_of_the_broker_works(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(BROKER)
    made = config(tmp_path)
    assert (made.vector.top_k, made.context.deadline_ms, made.worker.poll_ms) == (5, 800, 60_000)
    assert (made.embeddings.provider, made.embeddings.model) == ("openai", "text-embedding-3-small")
    assert made.embeddings.api_key == "env:KEY"


def test_a_pasted_block_of_perception_memory_works(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(PERCEPTION)
    assert config(tmp_path).journal.wal_encrypt is False


def test_toml_beats_json_and_a_wrong_pasted_key_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(PERCEPTION)
    (tmp_path / "config.toml").write_text("[journal]\nwal_encrypt = true\n")
    assert config(tmp_path).journal.wal_encrypt is True
    (tmp_path / "config.json").write_text('{"memory": {"rag_topk": 3}}')
    with pytest.raises(ConfigError, match="unknown setting 'rag_topk'"):
        config(tmp_path)
    (tmp_path / "config.json").write_text('{"memory": {"backend": "markdown"}}')
    with pytest.raises(ConfigError, match="'markdown' is not known"):
        config(tmp_path)


@pytest.mark.parametrize("name", ["VECTOR__TOP_K", "WORKER__BATCH", "STORE__READERS"])
def test_a_number_that_makes_no_sense_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"environment MNEMIC_\w+: [a-z_.]+ = 0 must be at least 1"):
        config(tmp_path, {f"MNEMIC_{name}": "0"})


def test_a_folder_in_the_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        config(tmp_path)
