"""How a command declares its options: as the fields of a dataclass, so that `def` stays short.

A command is a function `(door, arguments..., options) -> Reply`. `command` gives Typer the flat signature, fills the
dataclasses from it, adds the options that every command has, and prints the reply.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.models import OptionInfo

from mnemic.doors.cli.door import Common, Door
from mnemic.doors.cli.errors import report, stdout_is_gone
from mnemic.doors.cli.output import Reply

Flat = dict[str, tuple[object, object]]  # option -> (annotation, default)


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """The options of every command; before its name they mean the same."""

    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout instead of text.")] = False
    home: Annotated[Path | None, typer.Option("--home", help="Where the memory lies, instead of MNEMIC_HOME.")] = None
    namespace: Annotated[str | None, typer.Option("--namespace", help="Whose memory it is.")] = None
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, show_default=False, help="Logs to stderr; twice for more.")
    ] = 0


def command(app: typer.Typer, name: str, **settings: Any) -> Callable[[Callable[..., Reply]], Callable[..., Reply]]:
    """Make a function a command of `app`."""

    def register(function: Callable[..., Reply]) -> Callable[..., Reply]:
        app.command(name, **settings)(_flattened(function))
        return function

    return register


def common_of(context: typer.Context, given: Mapping[str, Any]) -> Common:
    """What was given after the command's name, else before it."""
    before = context.obj if isinstance(context.obj, Common) else Common()
    return Common(
        as_json=given["as_json"] or before.as_json,
        home=given["home"] or before.home,
        namespace=given["namespace"] or before.namespace,
        verbose=max(given["verbose"], before.verbose),
    )


def signature_of(flat: Flat) -> inspect.Signature:
    parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for name, (hint, default) in flat.items():
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=default))
    return inspect.Signature(parameters)


def flat_options(options: type[Any]) -> Flat:
    hints = get_type_hints(options, include_extras=True)
    for name, hint in hints.items():
        _name_the_value(name, hint)
    return {item.name: (hints[item.name], _default(item)) for item in fields(options)}


def _name_the_value(name: str, hint: Any) -> None:
    """`--since SINCE` in the help, not `--since <list[str]>`."""
    for info in getattr(hint, "__metadata__", ()):
        takes_value = hint.__origin__ not in (bool, bool | None) and not getattr(info, "count", False)
        if isinstance(info, OptionInfo) and takes_value:
            info.metavar = info.metavar or name.upper()


def _flattened(function: Callable[..., Reply]) -> Callable[..., int]:
    grouped, flat = _parameters(function)
    flat |= flat_options(CommonOptions)

    def run(context: typer.Context, **given: Any) -> int:
        door = Door(common_of(context, given))
        arguments: dict[str, object] = {name: given[name] for name in given if name in grouped and not grouped[name]}
        for name, kind in grouped.items():
            if kind is not None:
                arguments[name] = kind(**{item.name: _value(given[item.name]) for item in fields(kind)})
        try:
            return door.out.reply(function(door, **arguments))
        except BrokenPipeError:
            stdout_is_gone()
            return 0
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - people get words, not a traceback
            return report(error, as_json=door.out.as_json)

    run.__signature__ = signature_of(flat)  # type: ignore[attr-defined]
    run.__annotations__ = {"context": typer.Context} | {name: hint for name, (hint, _) in flat.items()}
    run.__doc__ = function.__doc__
    run.__name__ = function.__name__
    return run


def _parameters(function: Callable[..., Reply]) -> tuple[dict[str, type[Any] | None], Flat]:
    """Each parameter with its dataclass (None: an argument of its own), and all of them flat."""
    grouped: dict[str, type[Any] | None] = {}
    flat: Flat = {}
    for name, hint, default in _annotated(function):
        if isinstance(hint, type) and is_dataclass(hint):
            grouped[name] = hint
            flat |= flat_options(hint)
        else:
            grouped[name] = None
            flat[name] = (hint, default)
    return grouped, flat


def _annotated(function: Callable[..., Reply]) -> Iterator[tuple[str, object, object]]:
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:  # the first is the door
        yield name, hints[name], parameter.default


def _value(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _default(item: Field[Any]) -> object:
    if item.default is not MISSING:
        return item.default
    if item.default_factory is not MISSING:
        return item.default_factory()
    return inspect.Parameter.empty
