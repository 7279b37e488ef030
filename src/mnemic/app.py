"""The composition root: the only file that knows every adapter. Opening calls no network but a probe on loopback
when a new store chooses its embedder."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypedDict, Unpack
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mnemic import config as configuration
from mnemic.config import Config
from mnemic.domain import ranking
from mnemic.domain.types import Space
from mnemic.engine import memory, portal
from mnemic.engine.analysis import Analyser
from mnemic.engine.embedding import Embedders, Models
from mnemic.engine.judging import Judge
from mnemic.engine.parts import Engine
from mnemic.engine.sources import SourceText
from mnemic.engine.spool import Spool
from mnemic.errors import ConfigError, InvalidInput, MnemicError, Unreachable
from mnemic.integrations import documents as documents_of
from mnemic.models import pick, tokens
from mnemic.models.own import OwnEmbedder
from mnemic.ports import Clock, Embedder, Reranker
from mnemic.store import Store
from mnemic.store.driver import Driver
from mnemic.store.journal import Journal
from mnemic.store.vectors import MakeIndex

if TYPE_CHECKING:
    from mnemic.store.copying import Copied


class Opening(TypedDict, total=False):
    """How a memory is opened. `home`: where it lies (default: MNEMIC_HOME or the user's data folder). `url`: of the
    store. `namespace`: whose memory it is. `settings`: dotted keys, stronger than files and environment. `embedder`:
    one of your own instead of the configured. `clock`: aware UTC."""

    home: str | Path | None
    url: str | None
    namespace: str | None
    settings: Mapping[str, object]
    embedder: Embedder | None
    clock: Clock | None


class AsyncMemory(memory.AsyncMemory):
    __doc__ = memory.AsyncMemory.__doc__

    @classmethod
    async def open(cls, **opening: Unpack[Opening]) -> Self:
        """Open a memory, made on first use. Errors: ConfigError, StorageError, JournalError, ModelMissing."""
        config = _config(opening)
        engine = await asyncio.to_thread(assemble, config, opening)
        opened = cls(engine, _namespace(config.namespace))
        opened.start_worker()
        return opened


class Memory(portal.Memory):
    __doc__ = portal.Memory.__doc__

    @classmethod
    def open(cls, **opening: Unpack[Opening]) -> Self:
        """Open a memory, made on first use. Errors: ConfigError, StorageError, JournalError, ModelMissing."""
        door = portal.Portal()
        try:
            return cls(door, door.call(AsyncMemory.open(**opening)))
        except BaseException:
            door.stop()
            raise


def opened(config: Config, *, worker: bool = False) -> tuple[Memory, Engine]:
    """The memory of a loaded configuration, and what it is made of: for doors that run the steps themselves.

    Without `worker` no step runs but in `settle`. Errors: as `Memory.open`.
    """
    namespace = _namespace(config.namespace)
    engine = assemble(config)
    door = portal.Portal()
    behind = AsyncMemory(engine, namespace)
    if worker:
        door.loop.call_soon_threadsafe(behind.start_worker)
    return Memory(door, behind), engine


def _config(opening: Opening) -> Config:
    home = opening.get("home")
    overrides = dict(opening.get("settings", {}))
    for key, value in (("store.url", opening.get("url")), ("namespace", opening.get("namespace"))):
        if value is not None:
            overrides[key] = value
    return configuration.load(home=Path(home) if home else None, folder=Path.cwd(), overrides=overrides)[0]


def assemble(config: Config, opening: Opening | None = None) -> Engine:
    """Everything a memory is made of, opened. Blocking."""
    opening = opening or Opening()
    clock = opening.get("clock") or _now
    weights = ranking.Weights(fusion=ranking.Fusion(config.recall.fusion))
    analyser = Analyser(config.chunker, tokens.counter(config.chunker.tokenizer))
    judging, zone = Judge(config.filter, config.topics), zone_of(config)  # wrong settings show before a file is made
    driver = open_driver(config)
    try:
        store = open_store(config, driver, weights)
        journal = open_journal(config, store)
        try:
            spool = Spool(journal, store, analyser)
        except BaseException:
            journal.close()
            raise
    except BaseException:
        driver.close()
        raise
    return Engine(
        config=config,
        store=store,
        journal=journal,
        spool=spool,
        models=_models(config, opening.get("embedder")),
        analyser=analyser,
        judging=judging,
        clock=clock,
        zone=zone,
        weights=weights,
        waits_for_database=driver.dialect == "postgres",
        reranker=_reranker(config),
    )


def open_driver(config: Config) -> Driver:
    """The database of `store.url`. Errors: ConfigError, StorageError."""
    scheme = config.store_url.partition("://")[0]
    match scheme:
        case "sqlite":
            from mnemic.store.sqlite import open_sqlite

            return open_sqlite(config.store_url, config.store)
        case "postgresql" | "postgres":
            from mnemic.store.postgres import open_postgres

            return open_postgres(config.store_url, config.store, config.vector.ef_search)
    raise ConfigError(
        f"store.url {configuration.without_password(config.store_url)!r}: sqlite:///... or postgresql://..."
    )


def open_store(config: Config, driver: Driver, weights: ranking.Weights) -> Store:
    if config.vector.index_type != "memory":
        return Store(driver, make_index(config), weights)
    from mnemic.store.vectors.memory import MemoryIndex, MemoryVectors

    held, metric = MemoryVectors(driver), config.vector.similarity_metric
    return Store(
        driver, lambda _, namespace, space, dim: MemoryIndex(held, namespace, space, dim, metric), weights, held
    )


def make_index(config: Config) -> MakeIndex:
    """How vectors are searched (`vector.index_type`). Errors: ConfigError, ModelMissing."""
    metric = config.vector.similarity_metric
    match config.vector.index_type:
        case "exact":
            from mnemic.store.vectors.exact import ExactIndex

            return lambda driver, namespace, space, dimension: ExactIndex(driver, namespace, space, dimension, metric)
        case "pgvector":
            from mnemic.store.vectors.pgvector import pgvector_index

            return pgvector_index(metric)
        case "sqlite-vec":
            from mnemic.store.vectors.sqlite_vec import sqlite_vec_index

            return sqlite_vec_index(metric)
    raise ConfigError(f"vector.index_type {config.vector.index_type!r} is not available here")


def open_journal(config: Config, store: Store) -> Journal:
    folder = journal_folder(config)
    for place in (config.home, folder.parent):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        identity = store.upkeep.identity()
    except Unreachable:
        if not folder.is_dir():
            raise  # the first use at this URL needs the database
        identity = None  # the journal knows whose it is; the spool checks it when the database is back
    return Journal.open(
        folder,
        identity,
        config.journal.key,
        busy_timeout_s=3 * config.store.busy_timeout_ms / 1000,  # nothing stands behind the journal: be patient
        encrypt=config.journal.wal_encrypt,
    )


def journal_folder(config: Config) -> Path:
    """A journal belongs to one store: its folder is named after the store's URL without the password."""
    url = configuration.without_password(config.store_url)
    return config.home / "journal" / hashlib.sha256(url.encode()).hexdigest()[:16]


def documents(place: str, *, allow_private: bool) -> Iterator[SourceText | documents_of.Failure]:
    """The documents of a file, a folder or an address, as sources to ingest; what cannot be read is a Failure."""
    where = place if "://" in place else Path(place).expanduser().absolute()  # a source is known by its whole path
    for found in documents_of.read(where, documents_of.ReadOptions(allow_private=allow_private)):
        if isinstance(found, documents_of.Document):
            yield SourceText(found.uri, found.name, found.type, found.text, found.title)
        else:
            yield found


def copy_store(config: Config, source: str, target: str, progress: Callable[[Copied], None]) -> list[Copied]:
    """Copy one store into another (`store/copying.py`), after what is pending in the source's journal is applied.

    Errors: ConfigError (the same store twice), StorageError.
    """
    from mnemic.store.copying import copy

    file = Path(source.removeprefix("sqlite:///"))
    if source.startswith("sqlite:///") and not file.is_file():
        raise ConfigError(f"there is no store at {file}")
    if source == target:
        raise ConfigError("the source and the target are the same store")
    engine = assemble(replace(config, store=replace(config.store, url=source)))
    try:
        engine.spool.drain()
        goal = open_driver(replace(config, store=replace(config.store, url=target)))
        try:
            return copy(engine.store.driver, goal, progress)
        finally:
            goal.close()
    finally:
        engine.spool.close()
        engine.journal.close()
        engine.store.close()


def zone_of(config: Config) -> tzinfo:
    """The zone of times typed without one: `timezone`, else the machine's."""
    if not config.timezone:
        return datetime.now().astimezone().tzinfo or UTC
    try:
        return ZoneInfo(config.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(f"timezone {config.timezone!r} is not known; use a name such as Europe/Lisbon") from error


def _models(config: Config, own: Embedder | None) -> Models:
    settings = config.embeddings
    own = OwnEmbedder(own) if own is not None else None

    def choose(recorded: Space | None) -> Embedders:
        if own is not None:
            return _with_own(own, recorded)
        found = pick.choose(settings, environment=os.environ, recorded=recorded)
        return Embedders(found.embedder, found.reason, found.configured, found.better)

    def make(provider: str, model: str) -> Embedder:
        return pick.made(settings, provider, model, environment=os.environ)

    def of(space: Space) -> Embedder | None:
        try:
            return pick.choose(settings, environment=os.environ, recorded=space).embedder
        except MnemicError:
            return None

    return Models(choose, make, of)


def _reranker(config: Config) -> Callable[[], Reranker | None]:
    @cache
    def make() -> Reranker | None:
        if not config.vector.rerank_model:
            return None
        from mnemic.models.cross_encoder import reranker

        return reranker(config.vector, environment=os.environ)

    return make


def _with_own(own: Embedder, recorded: Space | None) -> Embedders:
    if recorded is None or recorded == own.space:
        return Embedders(own)
    both = f"the store has vectors of {recorded.label}, this embedder makes {own.space.label}"
    return Embedders(None, f"{both}: reindex to switch", configured=own)


def _namespace(name: str) -> str:
    if not name or len(name) > 200 or "\x00" in name:
        raise InvalidInput(f"the namespace {name!r} must have 1 to 200 characters and no NUL")
    return name


def _now() -> datetime:
    return datetime.now(UTC)
