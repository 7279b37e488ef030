"""`mnemic config`: every setting with its value and where that comes from."""

from __future__ import annotations

import json

import typer

from mnemic import config as configuration
from mnemic.config import Setting, without_password
from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import Reply, plain, safe

app = typer.Typer(rich_markup_mode=None)
config = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Show the settings and where they come from.")
app.add_typer(config, name="config")


@command(config, "list")
def list_(door: Door) -> Reply:
    """List every setting with its value and its origin."""
    _, settings = door.loaded
    width = max(len(setting.key) for setting in settings)
    rows = [{"key": s.key, "value": plain(s.shown), "origin": _origin(door, s)} for s in settings]
    lines = []
    for row in rows:
        line = f"{row['key']:<{width}} = {safe(json.dumps(row['value'], ensure_ascii=False))}"
        changed = row["origin"] != "default"
        lines.append(f"{door.out.styled(line, 'bold') if changed else line}  ({safe(str(row['origin']))})")
    return Reply({"settings": rows}, lines)


@command(config, "path")
def path(door: Door) -> Reply:
    """Show where the configuration, the memory and its journal lie."""
    from mnemic.app import journal_folder

    now = door.config
    paths = {
        "config": configuration.user_file(door.environment, now.home),
        "home": now.home,
        "store": without_password(now.store_url),
        "journal": journal_folder(now),
    }
    return Reply(paths, [f"{name:<8} {safe(str(where))}" for name, where in paths.items()])


def _origin(door: Door, setting: Setting) -> str:
    if setting.key == "home" and door.common.home:
        return "--home"
    if setting.key == "namespace" and door.common.namespace:
        return "--namespace"
    if setting.key == "home" and door.environment.get("MNEMIC_HOME"):
        return "environment MNEMIC_HOME"
    return setting.origin
