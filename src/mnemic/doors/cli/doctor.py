"""`mnemic doctor`: what is well, what is not, and the command that mends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from mnemic.doors.checks import Check, failed, of_the_place, of_the_system
from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import Reply, safe
from mnemic.doors.logs import redacted
from mnemic.errors import ConfigError

app = typer.Typer(rich_markup_mode=None)

BROKEN = 4
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    repair: Annotated[bool, typer.Option("--repair", help="Drop damaged vectors; they are made again.")] = False
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 for warnings too.")] = False


@command(app, "doctor")
def doctor(door: Door, options: DoctorOptions) -> Reply:
    """Check everything. Exit code 0: well, 4: broken."""
    found = list(_checks(door, repair=options.repair))
    levels = {check.level for check in found}
    if options.repair and any(check.name == "vectors" and check.level == "warn" for check in found):
        from mnemic.doors.detached import start_worker

        start_worker(door.config.home, door.environment)
    code = BROKEN if "fail" in levels else 1 if options.strict and "warn" in levels else 0
    return Reply({"ok": "fail" not in levels, "checks": found}, _lines(door, found), exit_code=code)


def _checks(door: Door, *, repair: bool) -> Iterator[Check]:
    yield from of_the_system()
    try:
        config = door.config
    except ConfigError as error:
        yield failed("config", error, "correct or remove it there")
        return
    yield Check(
        "config", "ok", f"{sum(s.origin != 'default' for s in door.loaded[1])} settings differ from the default"
    )
    yield from of_the_place(config)
    from mnemic.doors.store_checks import of_the_store

    yield from of_the_store(config, repair=repair)


def _lines(door: Door, found: Sequence[Check]) -> Iterator[str]:
    width = max(len(check.name) for check in found)
    for check in found:
        level = door.out.styled(f"{check.level:<4}", _COLOURS[check.level])
        fix = f"  ->  {check.fix}" if check.fix else ""
        yield f"{level}  {check.name:<{width}}  {safe(redacted(check.text + fix))}"
