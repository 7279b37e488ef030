"""Keys: literal, from the environment, from a command; never shown."""

import sys

import pytest

from mnemic.errors import ModelMissing
from mnemic.models.secrets import Secret


def test_a_literal_is_itself() -> None:
    assert Secret(" sk-abc ", {}).reveal() == "sk-abc"


def test_none_is_none() -> None:
    assert Secret("", {}).reveal() == ""
    assert not Secret("", {})


def test_env_is_looked_up_at_the_first_use_and_remembered() -> None:
    environment = {"KEY": "one"}
    secret = Secret("env:KEY", environment)
    environment["KEY"] = "two"
    assert secret.reveal() == "two"
    environment["KEY"] = "three"
    assert secret.reveal() == "two"
    secret.forget()
    assert secret.reveal() == "three"


def test_env_that_is_not_set_names_the_variable() -> None:
    with pytest.raises(ModelMissing, match="env:KEY, but KEY is not set"):
        Secret("env:KEY", {}).reveal()


def test_a_command_gives_its_first_line() -> None:
    assert Secret(f"cmd:{sys.executable} -c 'print(\"sk-cmd\\nnote\")'", {}).reveal() == "sk-cmd"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("no-such-command-here", "could not be started"),
        ("", "could not be started"),
        ("un'closed", "could not be started"),
        (f"{sys.executable} -c 'raise SystemExit(3)'", "ended with code 3 and no key"),
        (f"{sys.executable} -c ''", "ended with code 0 and no key"),
    ],
)
def test_a_command_that_fails_says_how(command: str, says: str) -> None:
    with pytest.raises(ModelMissing, match=says):
        Secret(f"cmd:{command}", {}).reveal()


def test_a_key_no_header_can_carry_is_refused_without_being_shown() -> None:
    for bad in ("sk abc", "sk-abc\nX: y", "sk-ä"):
        with pytest.raises(ModelMissing) as caught:
            Secret(bad, {}).reveal()
        assert "abc" not in str(caught.value)
        assert "ä" not in str(caught.value)


def test_it_is_never_shown() -> None:
    secret = Secret("sk-abc", {})
    secret.reveal()
    assert "sk-abc" not in f"{secret!r} {secret}"
    assert secret.redact("wrong key sk-abc given") == "wrong key *** given"
