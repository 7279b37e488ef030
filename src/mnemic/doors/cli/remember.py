"""`mnemic remember`: keep a note, or any other event."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import Reply
from mnemic.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from mnemic.domain.types import JsonValue
    from mnemic.engine.asking import Said

app = typer.Typer(rich_markup_mode=None)

Text = Annotated[str, typer.Argument(help="What to keep; `-` reads it from stdin.", show_default=False)]


@dataclass(frozen=True, slots=True)
class RememberOptions:
    session: Annotated[str | None, typer.Option(help="The session it belongs to.")] = None
    at: Annotated[str | None, typer.Option(help="When it happened: 2026-01-05, 2026-01-05T10:00, yesterday.")] = None
    role: Annotated[str, typer.Option(help="user, assistant, system or tool.")] = "user"
    actor: Annotated[str, typer.Option(help="The name of who said it.")] = ""
    channel: Annotated[str, typer.Option(help="Where it was said.")] = ""
    kind: Annotated[str, typer.Option(help="note, message, document, a perception ...")] = "note"
    importance: Annotated[float | None, typer.Option(help="0 to 1.")] = None
    data: Annotated[str, typer.Option(help="A JSON object to keep beside the text.")] = ""
    project: Annotated[str, typer.Option(help="A folder of the project, or a project's name.")] = ""


@command(app, "remember")
def remember(door: Door, text: Text, options: RememberOptions) -> Reply:
    """Keep a text. It is durable and searchable when this returns."""
    said = _said(door, options)
    with door.memory() as memory:
        receipt = memory.record(door.text(text), **said)
        try:
            seq, spooled = int(memory.get(receipt.id).seq), receipt.spooled
        except NotFound:  # the store is held by somebody: it is applied later
            seq, spooled = 0, True
    where = "kept; it becomes searchable as soon as the store is free" if spooled else f"kept as number {seq}"
    return Reply({"id": receipt.id, "seq": seq, "spooled": spooled}, [f"{where} ({receipt.id})"])


def _said(door: Door, options: RememberOptions) -> Said:
    from mnemic.doors.project import project_of

    said: Said = {
        "role": options.role,
        "kind": options.kind,
        "session": options.session,
        "channel": options.channel,
        "actor": options.actor,
        "at": options.at,
        "importance": options.importance,
        "data": _object(options.data),
    }
    project = project_of(options.project, door.config)
    if project:
        said["project"] = project
    return said


def _object(text: str) -> dict[str, JsonValue]:
    if not text:
        return {}
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"--data is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidInput('--data must be a JSON object, such as {"source": "phone"}')
    return value
