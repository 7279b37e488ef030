"""Taste as a gate: sizes, signatures, and lists that must not drift apart."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from mnemic.engine import forgetting
from mnemic.store.driver import migrations, named_queries

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FUNCTIONS = [
    (path, node)
    for path in SOURCES
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
]


def where(path: Path, node: ast.AST | None = None) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


def test_no_file_is_longer_than_400_lines() -> None:
    assert [where(p) for p in SOURCES if len(p.read_text(encoding="utf-8").splitlines()) > 400] == []


def test_no_function_is_longer_than_50_lines() -> None:
    long = [(p, n) for p, n in FUNCTIONS if (n.end_lineno or n.lineno) - n.lineno + 1 > 50]
    assert [where(*item) for item in long] == []


def test_no_function_takes_more_than_six_parameters() -> None:
    """The receiver does not count; neither do the commands of the command line, whose options are parameters."""

    def count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        return len(arguments) - (arguments[:1] in (["self"], ["cls"]))

    many = [(p, n) for p, n in FUNCTIONS if count(n) > 6 and "doors/cli" not in p.as_posix()]
    assert [where(*item) for item in many] == []


def test_engine_and_domain_pass_values_not_dictionaries_of_anything() -> None:
    rooms = [p for p in SOURCES if p.parent.name in ("engine", "domain")]
    assert [where(p) for p in rooms if re.search(r"def .*dict\[str, Any\]", p.read_text(encoding="utf-8"))] == []


def test_both_dialects_know_the_same_queries() -> None:
    assert sorted(named_queries("sqlite.sql")) == sorted(named_queries("postgres.sql"))


def test_both_dialects_have_the_same_migrations() -> None:
    assert [n for n, _ in migrations("sqlite")] == [n for n, _ in migrations("postgres")]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_every_table_is_on_the_list_of_places_that_hold_text_or_not(dialect: str) -> None:
    script = "\n".join(script for _, script in migrations(dialect))
    tables = set(re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", script, re.IGNORECASE))
    listed = {place.where for place in forgetting.TABLES_WITH_TEXT} | set(forgetting.TABLES_WITHOUT_TEXT)
    assert tables == listed


def test_sql_is_never_built_from_text() -> None:
    built = re.compile(r"""f["'](?:SELECT|INSERT|UPDATE|DELETE|CREATE)\b""", re.IGNORECASE)
    assert [where(p) for p in SOURCES if built.search(p.read_text(encoding="utf-8"))] == []


def test_nothing_evaluates_or_unpickles() -> None:
    banned = {"eval", "exec", "pickle", "marshal", "shelve"}
    found = [
        where(path, node)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in banned)
        or (isinstance(node, ast.Import) and {a.name for a in node.names} & banned)
    ]
    assert found == []
