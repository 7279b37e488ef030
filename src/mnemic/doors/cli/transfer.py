"""`mnemic import` and `mnemic export`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TextIO

import typer

from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import SCHEMA_VERSION, Reply, clock, dumps, one_line
from mnemic.doors.cli.progress import Advance, progress
from mnemic.errors import InvalidInput, MnemicError

if TYPE_CHECKING:
    from mnemic.app import Memory
    from mnemic.domain.types import Event
    from mnemic.engine.parts import Engine
    from mnemic.integrations.importers import Failure
    from mnemic.integrations.incoming import Incoming

app = typer.Typer(rich_markup_mode=None)

BATCH = 500
SHOWN_FAILURES = 20

File = Annotated[str, typer.Argument(metavar="FILE", help="JSON Lines, JSON or a plain-text chat; `-` is stdin.")]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    session: Annotated[str | None, typer.Option(help="The session of what names none [default: the file's name].")] = (
        None
    )
    channel: Annotated[str, typer.Option(help="The channel of what names none.")] = ""
    project: Annotated[str, typer.Option(help="A folder of the project, or a project's name.")] = ""
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and count; keep nothing.")] = False


@dataclass(slots=True)
class Tally:
    """What happened to the rows of a file."""

    imported: int = 0
    skipped: int = 0
    failed: int = 0
    failures: list[dict[str, object]] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    first: datetime | None = None
    last: datetime | None = None

    def fail(self, line: int, reason: str) -> None:
        self.failed += 1
        if len(self.failures) < SHOWN_FAILURES:
            self.failures.append({"line": line, "reason": reason})

    def saw(self, event: Event) -> None:
        self.first = min(self.first or event.at, event.at)
        self.last = max(self.last or event.at, event.at)
        if event.session:
            self.sessions.add(event.session)


@command(app, "import")
def import_(door: Door, file: File, options: ImportOptions) -> Reply:
    """Take over chats, or an export. What is there already is skipped."""
    from mnemic.doors.detached import start_worker

    tally = Tally()
    with _opened(file) as (stream, name), door.opened() as (memory, engine):
        size = os.fstat(stream.fileno()).st_size or None if file != "-" else None
        with progress(f"importing {name}", size, quiet=door.out.as_json) as advance:
            rows = _rows(door, (stream, name, advance), options)
            for batch in _batches(rows, BATCH):
                _take(memory, engine, batch, tally, dry=options.dry_run)
        if tally.imported and not options.dry_run:
            memory.restore_sources()
        left = bool(tally.imported) and not options.dry_run
    if left and door.config.worker.enabled:
        start_worker(door.config.home, door.environment)
    return _imported(door, tally, dry=options.dry_run)


def _rows(door: Door, source: tuple[BinaryIO, str, Advance], options: ImportOptions) -> Iterator[Incoming | Failure]:
    from mnemic.doors.project import project_of
    from mnemic.integrations import importers
    from mnemic.integrations.incoming import Place, incoming

    stream, name, advance = source
    record = door.config.record
    reading = importers.ImportOptions(zone=door.zone, future_tolerance=timedelta(seconds=record.future_tolerance_s))
    session = options.session or Path(name).stem
    project = project_of(options.project, door.config)
    return incoming(
        _counted(stream, advance), name, reading, Place(door.config.namespace, session, options.channel, project)
    )


def _take(memory: Memory, engine: Engine, batch: list[Incoming | Failure], tally: Tally, *, dry: bool) -> None:
    from mnemic.engine.importing import take
    from mnemic.integrations.incoming import Incoming

    events: list[Event] = []
    lines: dict[object, int] = {}
    for row in batch:
        if not isinstance(row, Incoming):
            tally.fail(row.line, str(row.reason))
            continue
        try:
            event = memory.make(row.draft)
        except InvalidInput as error:
            tally.fail(row.line, f"line {row.line}: {error}")
            continue
        events.append(replace(event, recorded_at=row.recorded_at) if row.recorded_at else event)
        lines[event.id] = row.line
        tally.saw(event)
    if dry:
        tally.imported += len(events)
        return
    taken = take(engine, memory.namespace, events)
    tally.imported += taken.new
    tally.skipped += taken.known
    for ident in taken.conflicts:
        tally.fail(lines[ident], f"line {lines[ident]}: the id {ident} is there with other content, which stays")


def _imported(door: Door, tally: Tally, *, dry: bool) -> Reply:
    span = f", {clock(tally.first, door.zone)} to {clock(tally.last, door.zone)}" if tally.first and tally.last else ""
    verb = "would be imported" if dry else "imported"
    line = (
        f"{tally.imported} {verb}, {tally.skipped} were there already, {tally.failed} could not be read "
        f"({len(tally.sessions)} sessions{span})"
    )
    notices = [one_line(str(failure["reason"]), 300) for failure in tally.failures]
    if tally.failed > len(notices):
        notices.append(f"... and {tally.failed - len(notices)} more")
    data = {
        "imported": tally.imported,
        "skipped": tally.skipped,
        "failed": tally.failed,
        "sessions": len(tally.sessions),
        "first": tally.first,
        "last": tally.last,
        "failures": tally.failures,
        "dry_run": dry,
    }
    return Reply(data, [line], notices, 1 if tally.failed else 0)


@contextlib.contextmanager
def _opened(file: str) -> Iterator[tuple[BinaryIO, str]]:
    if file == "-":
        yield sys.stdin.buffer, "stdin"
        return
    try:
        stream = Path(file).expanduser().open("rb")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from error
    with stream:
        yield stream, Path(file).name


def _counted(stream: BinaryIO, advance: Advance) -> Iterator[bytes]:
    done = 0
    try:
        while block := stream.read(1 << 16):
            yield block
            done += len(block)
            advance(done)
    except OSError as error:  # a folder, a broken disk
        raise InvalidInput(f"the file cannot be read: {error.strerror}") from error


def _batches(rows: Iterable[Incoming | Failure], size: int) -> Iterator[list[Incoming | Failure]]:
    batch: list[Incoming | Failure] = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


@command(app, "export")
def export(
    door: Door,
    out: Annotated[Path | None, typer.Option("--out", help="Write to this file instead of stdout.")] = None,
) -> Reply:
    """Write every event as a line of JSON, without loss."""
    with door.memory() as memory:
        events = _all_events(memory)
        if out is not None:
            count = _to_file(out, events)
            return Reply({"exported": count, "out": out}, [f"{count} events written to {out}"])
        if door.out.as_json:
            _as_one_object(memory.namespace, events)
        else:
            _as_lines(sys.stdout, events)
    return Reply({}, printed=True)


def _all_events(memory: Memory) -> Iterator[Event]:
    after = 0
    while page := memory.events(after=after, limit=BATCH):
        yield from page
        after = int(page[-1].seq)


def _as_lines(stream: TextIO, events: Iterable[Event]) -> int:
    from mnemic.integrations.interchange import line_of

    count = 0
    for event in events:
        stream.write(line_of(event) + "\n")
        count += 1
    return count


def _as_one_object(namespace: str, events: Iterable[Event]) -> None:
    from mnemic.integrations.interchange import line_of

    head = dumps({"schema_version": SCHEMA_VERSION, "namespace": namespace})
    sys.stdout.write(head.removesuffix("}") + ', "events": [')
    for number, event in enumerate(events):
        sys.stdout.write((", " if number else "") + line_of(event))
    sys.stdout.write("]}\n")


def _to_file(path: Path, events: Iterable[Event]) -> int:
    """Whole or not at all, and for nobody else to read."""
    part = path.with_name(f"{path.name}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            count = _as_lines(file, events)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except (OSError, MnemicError):
        part.unlink(missing_ok=True)
        raise
    return count
