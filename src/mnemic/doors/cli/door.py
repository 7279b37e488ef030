"""What a command holds: its common options, the configuration, a way to open the memory, a way to print."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mnemic import config as configuration
from mnemic.config import Config, Setting
from mnemic.doors import logs
from mnemic.doors.cli.output import Output
from mnemic.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import tzinfo

    from mnemic.app import Memory
    from mnemic.engine.parts import Engine


@dataclass(frozen=True, slots=True)
class Common:
    """The values of the options that every command has."""

    as_json: bool = False
    home: Path | None = None
    namespace: str | None = None
    verbose: int = 0


class Door:
    """Nothing is read or opened before a command asks for it."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.out = Output(as_json=common.as_json)
        logs.set_up(common.verbose)

    @cached_property
    def environment(self) -> dict[str, str]:
        """`--home` means what `MNEMIC_HOME` means."""
        home = self.common.home
        return {**os.environ, **({"MNEMIC_HOME": str(home.expanduser().absolute())} if home else {})}

    @cached_property
    def loaded(self) -> tuple[Config, tuple[Setting, ...]]:
        """Errors: ConfigError."""
        overrides = {"namespace": self.common.namespace} if self.common.namespace else {}
        return configuration.load(self.environment, folder=_folder(), overrides=overrides)

    @property
    def config(self) -> Config:
        return self.loaded[0]

    @cached_property
    def zone(self) -> tzinfo:
        from mnemic.app import zone_of

        return zone_of(self.config)

    @contextlib.contextmanager
    def opened(self, config: Config | None = None) -> Iterator[tuple[Memory, Engine]]:
        """The memory and what it is made of, for the time of one command. No step runs by itself."""
        from mnemic.app import opened

        memory, engine = opened(config or self.config)
        with memory:
            yield memory, engine

    @contextlib.contextmanager
    def memory(self) -> Iterator[Memory]:
        with self.opened() as (memory, _):
            yield memory

    def text(self, given: str, *, limit: int | None = None) -> str:
        """An argument as text; `-` is what stdin holds. Bytes that are no UTF-8 become U+FFFD."""
        if given != "-":
            return given.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        most = self.config.record.max_bytes if limit is None else limit
        raw = sys.stdin.buffer.read(most + 16)
        if len(raw) > most:
            raise InvalidInput(
                f"stdin holds more than {most:,} bytes (record.max_bytes); split it, or `mnemic import` it as a chat"
            )
        return raw.decode("utf-8-sig", "replace").removesuffix("\n").removesuffix("\r")


def _folder() -> Path | None:
    try:
        return Path.cwd()
    except FileNotFoundError:  # somebody removed the folder we stand in
        return None
