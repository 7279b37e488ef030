"""Settings from TOML, JSON and the environment, each value with its origin.

Precedence, first wins: `MNEMIC_SECTION__KEY` in the environment, the project file `.mnemic.toml`, the user's
`config.toml`, their `config.json`, the default. Flags of the command line are applied by the doors. In the environment
lists are JSON.
Below `app.py` settings are handed down; nothing else reads the environment.
"""

from __future__ import annotations

import json
import logging
import os
import tomllib
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from mnemic.config.pasted import Ignored, translated
from mnemic.config.settings import Config
from mnemic.errors import ConfigError

log = logging.getLogger("mnemic.config")

Origin = str  # "default", "environment MNEMIC_...", or the path of a file
PROJECT_FILE = ".mnemic.toml"
SECRET_KEYS = frozenset({"api_key", "token"})
_LEAST: Mapping[str, float] = {
    "vector.top_k": 1,
    "vector.ef_search": 1,
    "worker.batch": 1,
    "worker.poll_ms": 1,
    "worker.lease_s": 1,
    "store.busy_timeout_ms": 0,
    "store.readers": 1,
    "store.query_deadline_ms": 1,
    "record.max_bytes": 1,
    "embeddings.dimension": 0,
    "embeddings.batch": 1,
    "embeddings.timeout_s": 0.001,
    "recall.embed_timeout_ms": 1,
    "recall.rerank_timeout_ms": 1,
}
NOT_IN_PROJECT = frozenset({"api_key", "token", "base_url", "url"})  # a checked-out folder must not redirect data


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of `mnemic config list`. Secrets are masked in `shown`."""

    key: str
    value: object
    origin: Origin

    @property
    def shown(self) -> object:
        if self.key.rsplit(".", 1)[-1] in SECRET_KEYS and self.value:
            return "********"
        if self.key == "store.url":
            return without_password(str(self.value))
        return list(self.value) if isinstance(self.value, tuple) else self.value


def without_password(url: str) -> str:
    """The URL with its password masked, fit for logs and errors."""
    head, separator, tail = url.partition("://")
    credentials, at, rest = tail.rpartition("@")
    if not separator or not at or ":" not in credentials:
        return url
    return f"{head}://{credentials.split(':', 1)[0]}:***@{rest}"


def default_home(environment: Mapping[str, str]) -> Path:
    """`MNEMIC_HOME`, else `$XDG_DATA_HOME/mnemic`, else `~/.local/share/mnemic` (or the system's like)."""
    if environment.get("MNEMIC_HOME"):
        return Path(environment["MNEMIC_HOME"]).expanduser().absolute()
    from platformdirs import user_data_dir  # late: costs a few ms that most starts need not pay

    return Path(user_data_dir("mnemic", appauthor=False))


def user_file(environment: Mapping[str, str], home: Path) -> Path:
    """Where the user's TOML lies: in MNEMIC_HOME when that is set, else in the system's configuration folder."""
    if environment.get("MNEMIC_HOME"):
        return home / "config.toml"
    from platformdirs import user_config_dir

    return Path(user_config_dir("mnemic", appauthor=False)) / "config.toml"


def load(
    environment: Mapping[str, str] | None = None,
    *,
    home: Path | None = None,
    folder: Path | None = None,
    overrides: Mapping[str, object] | None = None,
) -> tuple[Config, tuple[Setting, ...]]:
    """The configuration and where each value comes from.

    `folder`: where to look for the project file, upwards. `overrides`: dotted keys from flags or Python, strongest.
    Errors: ConfigError for an unknown key (with the nearest known one), a wrong type, or TOML that does not parse.
    """
    environment = os.environ if environment is None else environment
    home = home.absolute() if home else default_home(environment)
    known = {key for key, _ in _leaves(Config())}
    values: dict[str, tuple[object, Origin]] = {}
    for path, banned in _files(environment, home, folder):
        for key, value in _read(path):
            _check(key, known, str(path))
            if key.rsplit(".", 1)[-1] in banned:
                raise ConfigError(f"{path}: {key} may not be set by a project file; put it in your own config")
            values[key] = (value, str(path))
    for name, text in _environment_keys(environment):
        key = name[len("MNEMIC_") :].lower().replace("__", ".")
        _check(key, known, f"environment variable {name}")
        values[key] = (text, f"environment {name}")
    for key, value in (overrides or {}).items():
        _check(key, known, "argument")
        values[key] = (value, "argument")
    config = _build(Config, "", values)
    leaves = dict(_leaves(config))
    for key, least in _LEAST.items():
        value = leaves[key]
        if isinstance(value, int | float) and value < least:
            where = values[key][1] if key in values else "default"
            raise ConfigError(f"{where}: {key} = {value} must be at least {least}")
    config = replace(config, home=home)
    settings = tuple(
        Setting(key, value, values[key][1] if key in values else "default") for key, value in _leaves(config)
    )
    return config, settings


def _environment_keys(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in sorted(environment.items()):
        if name.startswith("MNEMIC_") and name != "MNEMIC_HOME":
            yield name, text


def _files(environment: Mapping[str, str], home: Path, folder: Path | None) -> Iterator[tuple[Path, frozenset[str]]]:
    """Files that exist, weakest first, with the last parts of keys that they may not set."""
    user = user_file(environment, home)
    for path, banned in ((user.with_suffix(".json"), frozenset[str]()), (user, frozenset[str]())):
        if path.exists():  # a folder of that name is an error when it is read, not nothing
            yield path, banned
    project = _project_file(folder)
    if project is not None:
        yield project, NOT_IN_PROJECT


def _read(path: Path) -> Iterator[tuple[str, object]]:
    table = _json(path) if path.suffix == ".json" else _toml(path)
    for found in translated(_flatten(table)):
        if isinstance(found, Ignored):
            log.info("%s: %s has no effect: %s", path, found.key, found.why)
        else:
            yield found


def _json(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    if not isinstance(table, dict):
        raise ConfigError(f"{path} holds no JSON object")
    return table


def _project_file(folder: Path | None) -> Path | None:
    for place in [folder, *folder.parents] if folder else []:
        if (place / PROJECT_FILE).is_file():
            return place / PROJECT_FILE
    return None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _check(key: str, known: set[str], where: str) -> None:
    if key in known and key != "home":
        return
    near = get_close_matches(key, known, n=1, cutoff=0.5) or get_close_matches(
        key.rsplit(".", 1)[-1], [k.rsplit(".", 1)[-1] for k in known], n=1
    )
    hint = f"; did you mean {near[0]}?" if near else "; `mnemic config list` shows the known keys"
    raise ConfigError(f"{where}: unknown setting {key!r}{hint}")


def _leaves(config: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    for item in fields(config):  # type: ignore[arg-type]
        value = getattr(config, item.name)
        if is_dataclass(value):
            yield from _leaves(value, f"{prefix}{item.name}.")
        else:
            yield prefix + item.name, value


def _build(cls: type[Any], prefix: str, values: Mapping[str, tuple[object, Origin]]) -> Any:
    hints = get_type_hints(cls)
    made: dict[str, object] = {}
    for item in fields(cls):
        key = prefix + item.name
        if is_dataclass(hints[item.name]):
            made[item.name] = _build(hints[item.name], key + ".", values)
        elif key in values:
            made[item.name] = _coerce(key, hints[item.name], *values[key])
        elif item.default is not MISSING:
            made[item.name] = item.default
    return cls(**made)


def _coerce(key: str, hint: object, value: object, origin: Origin) -> object:
    """The value in the type of the setting. Text from the environment is read as that type."""
    try:
        return _typed(hint, value)
    except (ValueError, TypeError, KeyError) as error:
        wanted = " | ".join(map(str, get_args(hint))) if get_origin(hint) is Literal else _plain(hint)
        shown = "a value" if key.rsplit(".", 1)[-1] in SECRET_KEYS else repr(value)
        raise ConfigError(f"{origin}: {key} = {shown} is not {wanted}") from error


def _plain(hint: object) -> str:
    if get_origin(hint) is tuple:
        return 'a list of strings (in the environment as JSON: ["a", "b"])'
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path"}
    return names.get(hint, str(hint))  # type: ignore[call-overload, no-any-return]


def _typed(hint: object, value: object) -> object:
    origin = get_origin(hint)
    if origin is Literal:
        if value not in get_args(hint):
            raise ValueError(value)
        return value
    if origin in (Union, types.UnionType):
        if value is None or value in ("", "none", "null"):
            return None
        return _typed(next(a for a in get_args(hint) if a is not type(None)), value)
    if origin is tuple:
        items = json.loads(value) if isinstance(value, str) else value
        if not isinstance(items, list | tuple) or not all(isinstance(i, str) for i in items):
            raise TypeError(value)
        return tuple(items)
    if hint is bool:
        if isinstance(value, bool):
            return value
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[str(value).lower()]
    if hint in (int, float):
        if isinstance(value, bool) or (hint is int and isinstance(value, float)):
            raise TypeError(value)
        return int(str(value)) if hint is int else float(str(value))
    if not isinstance(value, str):
        raise TypeError(value)
    return Path(value) if hint is Path else value
