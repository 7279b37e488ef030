"""What was altered, moved, lost or brought from elsewhere is found, and named by its seq."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
from pathlib import Path
from uuid import UUID

import apsw
import pytest

from mnemic.errors import JournalDamaged, JournalError, SchemaTooNew, WrongKey
from mnemic.store.journal import Anchor, Entry, Journal

STORE = UUID(int=1)


def entry(number: int, namespace: str = "home") -> Entry:
    body = b"text %d" % number
    return Entry(number.to_bytes(16, "big"), namespace, hashlib.sha256(body).digest(), body)


@pytest.fixture(params=[True, False], ids=["sealed", "plain"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A closed journal of ten rows."""
    with Journal.open(tmp_path, STORE, "file", encrypt=request.param) as journal:
        journal.append([entry(n) for n in range(1, 11)])
    return tmp_path


def anchor_of(folder: Path, seq: int) -> Anchor:
    with Journal.open(folder, STORE) as journal:
        return Anchor(seq, journal.read(seq - 1, 1)[0].chain)


def tamper(folder: Path, *changes: str) -> None:
    """As somebody would who has the file, but not the key."""
    raw = apsw.Connection(str(folder / "journal.db"))
    for name in ("journal_follows", "journal_keeps", "journal_stays", "meta_keeps", "keys_keep"):
        raw.execute(f"DROP TRIGGER {name}")
    for change in changes:
        raw.execute(change)
    raw.close()


def flip(folder: Path, column: str, seq: int) -> None:
    """One bit, in the middle of the column."""
    raw = apsw.Connection(str(folder / "journal.db"))
    raw.execute("DROP TRIGGER journal_keeps")
    value = bytearray(raw.execute(f"SELECT {column} FROM journal WHERE seq = ?", (seq,)).get)
    value[len(value) // 2] ^= 1
    raw.execute(f"UPDATE journal SET {column} = ? WHERE seq = ?", (bytes(value), seq))
    raw.close()


@pytest.mark.parametrize("column", ["ct", "id", "ns"])
def test_one_flipped_bit_is_found_and_named(folder: Path, column: str) -> None:
    flip(folder, column, 4)
    with Journal.open(folder, STORE) as journal:
        assert [row.seq for row in journal.read(0)] == [1, 2, 3]
        with pytest.raises(JournalDamaged, match=r"journal event 4\b"):
            journal.read(3)
        assert [row.seq for row in journal.read(4)] == [5, 6, 7, 8, 9, 10]
        found = journal.verify()
        assert (found.ok, found.bad, found.gaps) == (False, (4,), ())


def test_a_flipped_bit_of_the_chain_is_found(folder: Path) -> None:
    flip(folder, "chain", 4)
    with Journal.open(folder, STORE) as journal:
        with pytest.raises(JournalDamaged, match="journal event 4 was altered"):
            journal.read(3)
        assert (journal.verify().bad, journal.verify().chain_ok) == ((4, 5), False)


def test_two_rows_that_swapped_their_text_are_found(folder: Path) -> None:
    tamper(
        folder,
        "CREATE TEMP TABLE before AS SELECT * FROM journal",
        "UPDATE journal SET (nonce, ct) = (SELECT nonce, ct FROM before WHERE seq = 9 - journal.seq)"
        " WHERE seq IN (2, 7)",
    )
    with Journal.open(folder, STORE) as journal:
        assert journal.verify().bad == (2, 7)
        with pytest.raises(JournalDamaged, match="journal event 2"):
            journal.read(1)


def test_a_row_copied_to_another_namespace_is_found(tmp_path: Path) -> None:
    with Journal.open(tmp_path, STORE, "file") as journal:
        journal.append([entry(1, "mine"), entry(2, "yours")])
    tamper(
        tmp_path,
        "INSERT INTO journal SELECT 3, id, (SELECT ns FROM journal WHERE seq = 2), kid, nonce, ct, chain"
        " FROM journal WHERE seq = 1",
    )
    with Journal.open(tmp_path, STORE) as journal:
        with pytest.raises(JournalDamaged, match="journal event 3"):
            journal.read(2)
        assert journal.verify().bad == (3,)


def test_an_old_row_replayed_at_the_end_is_found(folder: Path) -> None:
    tamper(folder, "INSERT INTO journal SELECT 11, zeroblob(16), ns, kid, nonce, ct, chain FROM journal WHERE seq = 3")
    with Journal.open(folder, STORE) as journal:
        assert journal.verify().bad == (11,)


def test_a_sealed_row_cannot_be_passed_off_as_plain(tmp_path: Path) -> None:
    with Journal.open(tmp_path, STORE, "file") as journal:
        journal.append([entry(1)])
    with Journal.open(tmp_path, STORE, encrypt=False) as journal:
        journal.append([entry(2)])
    tamper(tmp_path, "UPDATE journal SET nonce = x'', ct = (SELECT ct FROM journal WHERE seq = 2) WHERE seq = 1")
    with Journal.open(tmp_path, STORE) as journal, pytest.raises(JournalDamaged, match="journal event 1"):
        journal.read(0)


def test_rows_lost_below_the_anchor_are_named(folder: Path) -> None:
    anchor = anchor_of(folder, 9)
    tamper(folder, "DELETE FROM journal WHERE seq >= 7")
    with Journal.open(folder, STORE) as journal:
        assert journal.verify().ok, "without the anchor nothing can show that the end is missing"
        with pytest.raises(JournalDamaged, match="journal events 7-9 are missing"):
            journal.check(anchor)


def test_rows_lost_and_written_anew_below_the_anchor_are_found(folder: Path) -> None:
    anchor = anchor_of(folder, 9)
    tamper(folder, "DELETE FROM journal WHERE seq >= 7")
    with Journal.open(folder, STORE) as journal:
        journal.append([entry(n) for n in range(20, 30)])
        with pytest.raises(JournalDamaged, match="journal events 1-9 are not those the store has applied"):
            journal.check(anchor)


@pytest.mark.parametrize(("anchor", "lost"), [(3, (6, 7)), (3, (4, 4)), (0, (1, 2)), (6, (6, 6))])
def test_a_gap_after_the_anchor_is_named(folder: Path, anchor: int, lost: tuple[int, int]) -> None:
    good = anchor_of(folder, anchor) if anchor else Anchor(0, b"")
    tamper(folder, f"DELETE FROM journal WHERE seq BETWEEN {lost[0]} AND {lost[1]}")
    with Journal.open(folder, STORE) as journal:
        with pytest.raises(JournalDamaged, match=f"journal events {lost[0]}-{lost[1]} are missing"):
            journal.check(good)
        with pytest.raises(JournalDamaged, match=f"journal events {lost[0]}-{lost[1]} are missing"):
            journal.read(lost[0] - 1)
        found = journal.verify()
        assert (found.gaps, found.bad, found.chain_ok) == ((lost,), (), False)


def test_another_key_is_refused_by_name_and_changes_nothing(folder: Path) -> None:
    key, before = folder / "journal.key", (folder / "journal.db").read_bytes()
    kept = key.read_bytes()
    with Journal.open(folder, STORE) as journal:
        ours = journal.status().key_id
    other = os.urandom(32)
    key.write_bytes(base64.b64encode(other))
    theirs = hashlib.sha256(b"mnemic kek id" + other).hexdigest()[:32]
    with pytest.raises(WrongKey, match=f"{ours}.*{theirs}") as caught:
        Journal.open(folder, STORE)
    assert base64.b64encode(other).decode() not in str(caught.value)
    assert (folder / "journal.db").read_bytes() == before
    key.write_bytes(kept)
    with Journal.open(folder, STORE) as journal:
        assert journal.head() == 10


@pytest.mark.parametrize("source", ["auto", "file"])
def test_a_key_that_is_gone_is_never_replaced_by_a_new_one(folder: Path, source: str) -> None:
    (folder / "journal.key").unlink()
    with pytest.raises(WrongKey, match=r"not where it should be \(file\); bring it back"):
        Journal.open(folder, STORE, source)
    assert not (folder / "journal.key").exists()


def test_a_journal_of_another_store_is_refused(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("journal.db", "journal.key"):
        shutil.copy2(folder / name, elsewhere / name)
    with pytest.raises(JournalError, match=f"belongs to the store {STORE}, not to {UUID(int=2)}"):
        Journal.open(elsewhere, UUID(int=2))


def test_a_journal_that_was_given_another_owner_does_not_open(folder: Path) -> None:
    tamper(folder, f"UPDATE meta SET store_id = x'{UUID(int=2).hex}'")
    with pytest.raises(JournalDamaged, match="moved here from another file"):
        Journal.open(folder, UUID(int=2))


def test_a_format_of_the_future_asks_for_an_upgrade(folder: Path) -> None:
    tamper(folder, "UPDATE meta SET format = 2")
    with pytest.raises(SchemaTooNew, match="newer mnemic"):
        Journal.open(folder, STORE)


def test_a_file_that_is_no_database_is_called_damaged(folder: Path) -> None:
    (folder / "journal.db").write_bytes(b"not a database, but long enough to have a header of 100 bytes" * 20)
    with pytest.raises(JournalDamaged, match=r"journal\.db is damaged"):
        Journal.open(folder, STORE)


def test_a_lost_header_is_called_damaged(folder: Path) -> None:
    raw = apsw.Connection(str(folder / "journal.db"))
    raw.execute("DROP TRIGGER meta_stays")
    raw.execute("DELETE FROM meta")
    raw.close()
    with pytest.raises(JournalDamaged, match="lost its header"):
        Journal.open(folder, STORE)


def test_a_repeat_of_a_damaged_row_fails_alone(tmp_path: Path) -> None:
    with Journal.open(tmp_path, STORE, "file") as journal:
        journal.append([entry(1), entry(2)])
    flip(tmp_path, "ct", 1)
    with Journal.open(tmp_path, STORE) as journal:
        futures = [journal.submit(entry(n)) for n in (1, 2, 3)]
        with pytest.raises(JournalDamaged, match="journal event 1"):
            futures[0].result()
        assert [future.result() for future in futures[1:]] == [2, 3]
