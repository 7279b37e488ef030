"""Rules of the journal that hold for any input."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.errors import Conflict, JournalDamaged, SchemaTooNew
from mnemic.store.journal import Anchor, Entry, Journal
from mnemic.store.journal.seal import Place, Seal, Stored, fresh_nonces

PLACE = Place(UUID(int=1), UUID(int=2), 1)
SEALS = {encrypt: Seal(b"k" * 32, PLACE, encrypt=encrypt) for encrypt in (True, False)}

namespaces = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
entries = st.builds(
    Entry, st.binary(min_size=16, max_size=16), namespaces, st.binary(min_size=32, max_size=32), st.binary(max_size=300)
)


def seal(entry: Entry, encrypt: bool = True, seq: int = 7) -> Stored:
    return SEALS[encrypt].seal(seq, entry, b"p" * 32, fresh_nonces(1)[0])


@given(entries, st.booleans(), st.integers(1, 2**32 - 1))
def test_what_is_sealed_opens_to_itself(entry: Entry, encrypt: bool, seq: int) -> None:
    row = seal(entry, encrypt, seq)
    opener = SEALS[not encrypt]  # how a row is read depends on the row, not on the setting
    assert opener.open(row) == entry
    assert opener.follows(row, b"p" * 32)
    assert not opener.follows(row, b"q" * 32)
    assert (len(row.ct) - 16 * encrypt) % 64 == 0


@given(entries, st.booleans(), st.sampled_from(["id", "ns", "nonce", "ct", "chain"]), st.data())
def test_any_flipped_bit_shows(entry: Entry, encrypt: bool, column: str, data: st.DataObject) -> None:
    row = seal(entry, encrypt)
    value = bytearray(getattr(row, column))
    if not value:
        return
    bit = data.draw(st.integers(0, 8 * len(value) - 1))
    value[bit // 8] ^= 1 << bit % 8
    altered = row._replace(**{column: bytes(value)})
    assert not SEALS[True].follows(altered, b"p" * 32)
    if encrypt and column != "chain":
        with pytest.raises(JournalDamaged, match="journal event 7 "):
            SEALS[True].open(altered)


@given(entries, st.integers(1, 2**32 - 1))
def test_a_row_opens_at_its_own_place_only(entry: Entry, seq: int) -> None:
    row = seal(entry)
    if seq != row.seq:
        with pytest.raises(JournalDamaged):
            SEALS[True].open(row._replace(seq=seq))
    for place in (Place(UUID(int=3), PLACE.journal, 1), Place(PLACE.store, PLACE.journal, 2)):
        with pytest.raises(JournalDamaged):
            Seal(b"k" * 32, place, encrypt=True).open(row)


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_in_place_of_a_row_are_refused(ct: bytes, encrypt: bool) -> None:
    row = Stored(1, b"i" * 16, b"n" * 16, 1, b"o" * 12 if encrypt else b"", ct, b"c" * 32)
    assert not SEALS[True].follows(row, b"p" * 32)
    try:
        SEALS[True].open(row)
    except (JournalDamaged, SchemaTooNew):
        return
    assert not encrypt, "only a plain row may look like one without being one"


@given(st.binary(max_size=400))
def test_the_chain_is_hmac_sha256(message: bytes) -> None:
    key = hmac.digest(b"k" * 32, b"mnemic journal chain\x01", "sha256")
    assert SEALS[True]._mac(message) == hmac.digest(key, message, "sha256")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.lists(st.tuples(st.integers(1, 12), st.integers(0, 9)), max_size=6)),
            st.tuples(st.just("submit"), st.lists(st.tuples(st.integers(1, 12), st.integers(0, 9)), max_size=6)),
            st.tuples(st.just("reopen"), st.just([])),
        ),
        max_size=12,
    )
)
def test_the_journal_is_a_list_with_unique_ids(steps: list[tuple[str, list[tuple[int, int]]]]) -> None:
    """Against a model: a list. Content 9 of an id is another content than the rest, hence a conflict."""

    def entry(number: int, content: int) -> Entry:
        body = b"%d/%d" % (number, content == 9)
        return Entry(number.to_bytes(16, "big"), "home", hashlib.sha256(body).digest(), body)

    with TemporaryDirectory() as folder:
        model: list[Entry] = []
        journal = Journal.open(Path(folder), UUID(int=1), "file")
        for verb, values in steps:
            given_entries = [entry(*value) for value in values]
            if verb == "reopen":
                journal.close()
                journal = Journal.open(Path(folder), UUID(int=1))
            elif verb == "append":
                after, expected = _applied(model, given_entries)
                if None in expected:
                    with pytest.raises(Conflict):
                        journal.append(given_entries)
                else:
                    assert journal.append(given_entries) == expected
                    model = after
            else:
                model, expected = _applied(model, given_entries)
                futures = [journal.submit(each) for each in given_entries]
                answers = [None if isinstance(f.exception(), Conflict) else f.result() for f in futures]
                assert answers == expected
        rows = journal.read(0)
        assert [row.entry for row in rows] == model
        assert journal.head() == len(model)
        journal.check(Anchor(rows[-1].seq, rows[-1].chain) if rows else Anchor(0, b""))
        assert journal.verify().ok
        journal.close()


def _applied(model: list[Entry], given_entries: list[Entry]) -> tuple[list[Entry], list[int | None]]:
    after, seqs = list(model), list[int | None]()
    for each in given_entries:
        place = next((n for n, known in enumerate(after) if known.id == each.id), None)
        if place is None:
            after.append(each)
            seqs.append(len(after))
        else:
            seqs.append(place + 1 if after[place] == each else None)
    return after, seqs
