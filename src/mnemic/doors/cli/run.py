"""From words to a command to an exit code. A command's module is imported when it is asked for, and no other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from mnemic.doors.cli.door import Door
from mnemic.doors.cli.errors import report
from mnemic.doors.cli.options import CommonOptions, Flat, common_of, flat_options, signature_of
from mnemic.doors.cli.output import set_up_streams
from mnemic.version import __version__

# Every command and where it lives, in the order of `mnemic --help`.
COMMANDS = {
    "remember": "remember",
    "recall": "recall",
    "show": "show",
    "events": "show",
    "sessions": "show",
    "import": "transfer",
    "export": "transfer",
    "ingest": "curate",
    "source": "curate",
    "sources": "curate",
    "topics": "topics",
    "hygiene": "hygiene",
    "status": "status",
    "doctor": "doctor",
    "reindex": "reindex",
    "work": "work",
    "backup": "keep",
    "restore": "keep",
    "db": "db",
    "config": "settings",
    "demo": "demo",
    "completion": "completion",
}


class _Commands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in self.commands:
            module = import_module(f"mnemic.doors.cli.{COMMANDS[cmd_name]}")
            self.commands.update(get_group(module.app).commands)
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"no such command {args[0]!r}" + (f"; did you mean {near[0]}" if near else ""))
        return super().resolve_command(ctx, args)


def _root(context: typer.Context, version: bool = False, **given: Any) -> int:
    """Long-term memory for AI chats and agents. One log, and what matters comes back."""
    context.obj = common_of(context, given)
    if version:
        print(f"mnemic {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        from mnemic.doors.cli.status import welcome

        door = Door(context.obj)
        raise typer.Exit(door.out.reply(welcome(door)))
    return 0


def _application() -> Any:
    flat: Flat = {"version": (bool, typer.Option(False, "--version", "-V", help="Show the version."))}
    flat |= flat_options(CommonOptions)
    _root.__signature__ = signature_of(flat)  # type: ignore[attr-defined]
    _root.__annotations__ = {"context": typer.Context} | {name: hint for name, (hint, _) in flat.items()}
    app = typer.Typer(
        cls=_Commands, invoke_without_command=True, rich_markup_mode=None, add_completion=True, callback=_root
    )
    return get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    set_up_streams()
    as_json = "--json" in arguments
    try:
        code = _application().main(list(arguments), prog_name="mnemic", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except typer.Abort:
        return report(KeyboardInterrupt(), as_json=as_json)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last line: people get words, not a traceback
        return report(error, as_json=as_json)
