"""`mnemic completion`: the script that teaches a shell our commands and options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import Reply

app = typer.Typer(rich_markup_mode=None)


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


@command(app, "completion")
def completion(door: Door, shell: Annotated[Shell, typer.Argument(help="Of which shell.")]) -> Reply:
    """Print the completion script of a shell, such as: eval "$(mnemic completion bash)"."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="mnemic", complete_var="_MNEMIC_COMPLETE", shell=shell.value)
    return Reply({"shell": shell.value, "script": script}, [script])
