"""What `mnemic doctor` looks at inside: the database, the journal, the vectors. Each step tells what stops it, and the
next one goes on as far as it can without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mnemic import app
from mnemic.config import Config
from mnemic.doors.checks import Check, failed
from mnemic.errors import ConfigError, MnemicError, SchemaTooNew, StorageDamaged, WrongKey

if TYPE_CHECKING:
    from mnemic.engine.parts import Engine
    from mnemic.engine.status import Status
    from mnemic.store.driver import Driver
    from mnemic.store.journal import Journal


def of_the_store(config: Config, *, repair: bool) -> Iterator[Check]:
    file = _file(config)
    if file is not None and not file.exists():
        yield _no_store(config, file)
        return
    healthy = False
    for check, fine in _database(config):
        healthy = fine
        yield check
    if not healthy:
        return
    try:
        memory, engine = app.opened(config)
    except MnemicError as error:
        yield failed("config" if isinstance(error, ConfigError) else "journal", error, _fix_of(error))
        return
    with memory:
        yield from _reranker(engine)
        yield from _journal(engine.journal, engine.spool.pending())
        yield from _vectors(engine, repair=repair)
        try:
            now = memory.status()
        except MnemicError as error:
            yield failed("embedder", error)
            return
        yield _embedder(now)
        yield _missing(now)
        yield _worker(config, now)
        if now.quarantined:
            text = f"{now.quarantined} events came with an id that was taken; they are kept apart"
            yield Check("quarantine", "warn", text, "look at their source; it gives one id to two things")


def _reranker(engine: Engine) -> Iterator[Check]:
    if not engine.config.vector.rerank_model:
        return
    try:
        found = engine.reranker()
        if found is not None:
            found.rerank("a question", ["a text"])
    except MnemicError as error:
        yield Check("re-ranker", "warn", str(error), "correct vector.rerank_model, or unset it")
    else:
        yield Check("re-ranker", "ok", "answers")


def _file(config: Config) -> Path | None:
    if config.store_url.startswith("sqlite:///") and not config.store_url.endswith(":memory:"):
        return Path(config.store_url.removeprefix("sqlite:///")).absolute()
    return None


def _no_store(config: Config, file: Path) -> Check:
    near = sorted({*file.parent.glob("*.db"), *file.parent.glob("*.db.*"), *config.home.glob("*.db*")})
    near = [other for other in near if other.stat().st_size]
    if near:
        text = f"{file} does not exist, but {near[0]} does"
        return Check("store", "warn", text, "set store.url to it, or `mnemic restore` it")
    return Check("store", "ok", f"{file} is made on first use")


def _database(config: Config) -> Iterator[tuple[Check, bool]]:
    """Checks of the database alone, and whether one may go on."""
    from mnemic.store.driver import migrations

    try:
        driver = app.open_driver(config)
    except MnemicError as error:
        yield failed("store", error, _fix_of(error)), False
        return
    try:
        schema = migrations(driver.dialect)[-1][0]
        yield Check("store", "ok", f"{driver.dialect}, schema {schema}, {driver.size_bytes() / 1e6:.1f} MB"), True
        yield _integrity(driver)
        yield from ((Check("advice", "warn", told, ""), True) for told in driver.advice())
    finally:
        driver.close()


def _integrity(driver: Driver) -> tuple[Check, bool]:
    try:
        wrong = driver.check()
    except MnemicError as error:
        return failed("integrity", error, "mnemic restore BACKUP --yes"), False
    if wrong:
        return Check("integrity", "fail", "; ".join(wrong[:3]), "mnemic restore BACKUP --yes"), False
    return Check("integrity", "ok", "the database is whole"), True


def _journal(journal: Journal, pending: int) -> Iterator[Check]:
    try:
        now, found = journal.status(), journal.verify()
    except MnemicError as error:
        yield failed("journal", error, _fix_of(error))
        return
    level = "ok" if now.encrypt and not found.plain else "warn"
    fix = "" if level == "ok" else "set journal.wal_encrypt = true"
    yield Check("journal key", level, f"from the {now.key_source}; protects against {now.protects}", fix)  # type: ignore[arg-type]
    if not found.ok:
        bad = [f"events {found.bad[0]}..." if found.bad else "", f"gaps {found.gaps[:3]}" if found.gaps else ""]
        what = ", ".join(filter(None, bad)) or "its chain or its pages"
        text = f"does not verify: {what}; what was applied is safe in the store"
        yield Check("journal", "fail", text, "mnemic backup FILE, then restore it with --exact")
    elif now.stopped:
        yield Check("journal", "fail", now.stopped)
    else:
        yield Check("journal", "ok", f"{found.rows} events, chain whole")
    if pending:
        yield Check("pending", "warn", f"{pending} recorded events are not in the store yet", "mnemic status")
    else:
        yield Check("pending", "ok", "everything that was recorded is in the store")


def _vectors(engine: Engine, *, repair: bool) -> Iterator[Check]:
    """Stored vectors of the wrong length: found by loading them all."""
    damaged = 0
    try:
        for head in engine.store.chunks.heads():
            state = engine.store.indexes.state(head.namespace)
            if state.dense is None or state.space is None or not state.dense.damaged:
                continue
            damaged += len(state.dense.damaged)
            if repair:
                engine.store.vectors.drop(head.namespace, state.space.id, state.dense.damaged)
    except MnemicError as error:
        yield failed("vectors", error)
        return
    if damaged and repair:
        yield Check(
            "vectors",
            "warn",
            f"{damaged} damaged ones dropped; the worker makes them again",
            "mnemic work --until-idle",
        )
    elif damaged:
        yield Check("vectors", "fail", f"{damaged} are damaged and count as missing", "mnemic doctor --repair")
    else:
        yield Check("vectors", "ok", "all that are stored have the right length")


def _embedder(now: Status) -> Check:
    if not now.embedder:
        return Check("embedder", "warn", now.notice or "none: recall is by keyword only", "mnemic reindex")
    if now.better:
        return Check("embedder", "warn", f"{now.embedder}; {now.better} would understand more", "mnemic reindex")
    if now.notice:
        return Check("embedder", "warn", f"{now.embedder}: {now.notice}")
    return Check("embedder", "ok", now.embedder)


def _missing(now: Status) -> Check:
    if now.work.failure:
        return Check("missing", "warn", f"the last step failed: {now.work.failure}", "mnemic work --until-idle -v")
    if now.work.missing and now.embedder:
        return Check("missing", "ok", f"{now.work.missing} vectors are still to be made; recall finds those by words")
    return Check("missing", "ok", "every chunk that gets a vector has one" if now.embedder else "no vectors are made")


def _worker(config: Config, now: Status) -> Check:
    if now.work.holder:
        return Check("worker", "ok", f"{now.work.holder} has the lease")
    if not config.worker.enabled:
        return Check("worker", "warn", "switched off (worker.enabled = false)", "run: mnemic work")
    return Check("worker", "ok", "none runs; reading commands start one when there is work")


def _fix_of(error: MnemicError) -> str:
    match error:
        case SchemaTooNew():
            return "pip install -U mnemic"
        case WrongKey():
            return "bring the key back to where it was (journal.key)"
        case StorageDamaged():
            return "mnemic restore BACKUP --yes"
    return ""
