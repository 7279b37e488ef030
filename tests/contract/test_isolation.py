"""Nobody's memory shows in another's: not a text, not a score, not an existence."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

import psycopg
import pytest

from mnemic.domain.drafts import Draft
from mnemic.errors import MnemicError, NotFound
from mnemic.store.driver import Tx
from tests.conftest import OpenMemory, open_store
from tests.contract.corpus import QUESTIONS, conversation
from tests.postgres import Server

NAMES = ("u1", "u1x", "U1", "u%", "u_1")
SECRETS = ("zanzibar", "quokka", "marimba", "halberd", "tapioca")


@pytest.mark.usefixtures("back_end")
def test_u74_each_user_finds_the_own_word_only(open_memory: OpenMemory) -> None:
    memories = {name: open_memory(namespace=name) for name in NAMES}
    for name, secret in zip(NAMES, SECRETS, strict=True):
        memories[name].record(f"my secret word is {secret}, do not tell the others", session="s")
    memories["u1"].settle()  # the steps of all namespaces
    for name, own in zip(NAMES, SECRETS, strict=True):
        mine = f"my secret word is {own}, do not tell the others"
        assert [hit.text for hit in memories[name].recall(f"is the secret word {own}?")] == [mine]
        for secret in SECRETS:
            assert {hit.text for hit in memories[name].recall(f"is the secret word {secret}?")} <= {mine}
        assert [own in event.text for event in memories[name].events()] == [True]
        assert [s.events for s in memories[name].sessions()] == [1]


@pytest.mark.usefixtures("back_end")
def test_u74_a_misspelt_filter_is_an_error(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.record("something to be found by nobody but its owner")
    with pytest.raises((MnemicError, TypeError)):
        memory.recall("something", userid="u1")  # type: ignore[call-arg]


@pytest.mark.usefixtures("back_end")
def test_u75_both_arms_keep_to_the_namespace(open_memory: OpenMemory) -> None:
    first, second = open_memory(namespace="first"), open_memory(namespace="second")
    first.record("Captain Yarrow sailed from Bristol with a parrot", session="s")
    second.record("Captain Yarrow grows tulips in a greenhouse", session="s")
    first.settle()  # the steps of all namespaces
    for question in ("Captain Yarrow", "who is he?"):
        assert {h.text for h in first.recall(question)} <= {"Captain Yarrow sailed from Bristol with a parrot"}
        assert {h.text for h in second.recall(question)} <= {"Captain Yarrow grows tulips in a greenhouse"}
    assert len(first.recall("Captain Yarrow")) == len(second.recall("Captain Yarrow")) == 1


@pytest.mark.usefixtures("back_end")
def test_u78_a_foreign_id_is_no_permission(open_memory: OpenMemory) -> None:
    mine, other = open_memory(namespace="mine"), open_memory(namespace="other")
    ident = uuid4()
    mine.record("a private thought that nobody else may read", id=ident)
    other.record("an unrelated note")
    with pytest.raises(NotFound) as foreign:
        other.get(ident)
    with pytest.raises(NotFound) as absent:
        other.get(uuid4())
    assert str(foreign.value).replace(str(ident), "") == str(absent.value).replace(str(absent.value).split()[4], "")
    assert other.get(1).text == "an unrelated note"


@pytest.mark.usefixtures("back_end")
def test_twin_scores_do_not_move_with_a_neighbours_rows(open_memory: OpenMemory) -> None:
    """Statistics are a namespace's own: order *and* scores are equal with and without 10,000 rows of another."""
    mine = open_memory(namespace="mine")
    mine.record_many(conversation())
    mine.settle()

    def answers() -> list[tuple[str, float]]:
        return [(h.event.id.hex, h.score) for q in QUESTIONS for h in mine.recall(q)]

    alone = answers()
    neighbour = open_memory(namespace="neighbour", vector__enabled=False)
    neighbour.record_many(
        Draft(f"Ana repaired the kiln in Porto, copy {n}", session=f"s{n // 100}") for n in range(10_000)
    )
    assert neighbour.status().events == 10_000
    assert answers() == alone
    assert len(alone) > 20


# -- PostgreSQL's second lock, with the first one broken on purpose


def _all_texts(tx: Tx) -> list[str]:
    """What a query that forgot its `namespace = ...` would see."""
    connection = tx._connection  # type: ignore[attr-defined]
    return [row[0] for row in connection.execute("SELECT text FROM events ORDER BY text").fetchall()]


def test_row_level_security_holds_for_a_query_that_forgot_its_namespace(
    both: Mapping[str, str], open_memory: OpenMemory, server: Server
) -> None:
    url = both["postgres"]
    for name in ("u1", "u%"):
        open_memory(url, namespace=name).record(f"the text of {name}")
    store = open_store(url)
    assert store.driver.read("u1", _all_texts) == ["the text of u1"]
    assert store.driver.read("u%", _all_texts) == ["the text of u%"]
    assert store.driver.read("", _all_texts) == []
    assert store.driver.check() == []
    # The control: without the policy the same query sees everything, and the doctor notices.
    with psycopg.connect(server.admin_url(url.partition("@/")[2].partition("?")[0]), autocommit=True) as admin:
        admin.execute("ALTER TABLE events DISABLE ROW LEVEL SECURITY")
    assert store.driver.read("u1", _all_texts) == ["the text of u%", "the text of u1"]
    assert [problem.split(":")[0] for problem in store.driver.check()] == ["row-level security is off on events"]
    store.close()


def test_every_table_with_a_namespace_is_protected(both: Mapping[str, str]) -> None:
    store = open_store(both["postgres"])
    store.chunks.heads()
    counters = {"heads"}
    with psycopg.connect(both["postgres"]) as connection:
        rows = connection.execute(
            "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity FROM pg_class AS c JOIN pg_attribute AS a "
            "ON a.attrelid = c.oid WHERE c.relkind = 'r' AND a.attname = 'namespace' AND c.relnamespace = "
            "current_schema()::regnamespace"
        ).fetchall()
    assert {name for name, protected in rows if not protected} == counters
    assert len(rows) >= 5
    store.close()


def test_a_superuser_works_and_is_advised(both: Mapping[str, str], open_memory: OpenMemory, server: Server) -> None:
    url = both["postgres"].replace("mnemic@", "postgres@")
    memory = open_memory(url)
    memory.record("written by a superuser, who bypasses the second lock")
    assert [h.text for h in memory.recall("superuser")] == ["written by a superuser, who bypasses the second lock"]
    store = open_store(url)
    assert ["bypasses row-level security" in line for line in store.driver.advice()] == [True]  # type: ignore[attr-defined]
    store.close()
