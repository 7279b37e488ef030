from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from mnemic.doors import logs


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    logger = logging.getLogger("mnemic")
    before = logger.level, logger.propagate, list(logger.handlers)
    yield logger
    logger.setLevel(before[0])
    logger.propagate, logger.handlers = before[1], before[2]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ana:s3cret@db:5432/m", "postgresql://ana:***@db:5432/m"),
        ("https://user:p%40ss@host/x?a=b", "https://user:***@host/x?a=b"),
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer ***"),
        ("api_key=abcdef123456 and more", "api_key=*** and more"),
        ('{"token": "abcdef123456"}', '{"token": "***"}'),
        ("the key sk-proj-abcdefghijklmnop is wrong", "the key *** is wrong"),
        ("nothing to hide at http://localhost:11434/api", "nothing to hide at http://localhost:11434/api"),
        ("the journal's key is not where it was", "the journal's key is not where it was"),
    ],
)
def test_secrets_are_taken_out(text: str, shown: str) -> None:
    assert logs.redacted(text) == shown


@pytest.mark.parametrize(
    ("verbosity", "lines"), [(0, ["warning"]), (1, ["info", "warning"]), (2, ["debug", "info", "warning"])]
)
def test_v_says_more(verbosity: int, lines: list[str], log: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(verbosity)
    for name in ("debug", "info", "warning"):
        getattr(logging.getLogger("mnemic.some.part"), name)(name)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.rsplit(" ", 1)[-1] for line in err.splitlines()] == lines


def test_arguments_and_tracebacks_are_redacted_too(log: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(1)
    try:
        raise ValueError("postgresql://ana:s3cret@db/m")
    except ValueError:
        log.exception("cannot reach %s", "https://bob:hunter22@host/")
    err = capsys.readouterr().err
    assert "s3cret" not in err
    assert "hunter22" not in err
    assert "ana:***@db" in err
