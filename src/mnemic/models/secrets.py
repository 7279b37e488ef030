"""Keys: `api_key` is the key itself, `env:NAME` or `cmd:COMMAND`, read when first needed and never shown."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Mapping
from threading import Lock

from mnemic.errors import ModelMissing

COMMAND_SECONDS = 20.0  # a password manager may ask its user


class Secret:
    """A key that is looked up at its first use. `repr` and `str` hide it; `redact` takes it out of a text."""

    def __init__(self, setting: str, environment: Mapping[str, str], *, name: str = "embeddings.api_key") -> None:
        self._setting = setting.strip()
        self._environment = environment
        self._name = name
        self._lock = Lock()
        self._value: str | None = None

    def __bool__(self) -> bool:
        return bool(self._setting)

    def __repr__(self) -> str:
        return "Secret(set)" if self._setting else "Secret(empty)"

    def reveal(self) -> str:
        """The key; "" when none is set. Errors: ModelMissing when the variable or the command does not give one."""
        with self._lock:
            if self._value is None:
                self._value = self._look_up()
            return self._value

    def forget(self) -> None:
        """Look it up again next time: the endpoint refused it, so it may have been replaced."""
        with self._lock:
            self._value = None

    def redact(self, text: str) -> str:
        """`text` without the key, should it have crept in."""
        return text.replace(self._value, "***") if self._value else text

    def _look_up(self) -> str:
        kind, colon, rest = self._setting.partition(":")
        if not colon or kind not in ("env", "cmd"):
            return _usable(self._setting, self._name)
        if kind == "cmd":
            return _usable(_run(rest, self._name), self._name)
        value = self._environment.get(rest.strip(), "")
        if not value.strip():
            raise ModelMissing(f"{self._name} is env:{rest}, but {rest} is not set; export it or set the key itself")
        return _usable(value.strip(), self._name)


def _usable(value: str, name: str) -> str:
    # a header takes visible ASCII only, and the error of the HTTP library would show the key
    if not all("!" <= letter <= "~" for letter in value):
        raise ModelMissing(f"{name} holds a blank, a line break or a letter no key has; copy it again")
    return value


def _run(command: str, name: str) -> str:
    def failed(why: str) -> ModelMissing:
        return ModelMissing(f"{name}: the command {why}; run it by hand to see what it says")

    runner: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run
    try:
        done = runner(shlex.split(command), capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise failed(f"gave no key within {COMMAND_SECONDS:.0f} s") from None
    except (OSError, ValueError, IndexError):
        raise failed("could not be started") from None
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        raise failed(f"ended with code {done.returncode} and {'a' if lines else 'no'} key")
    return lines[0].strip()
