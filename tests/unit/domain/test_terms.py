"""What counts as a term, and that any string is legal."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.domain.terms import PASSAGE_WORDS, Analysis, Flag, analyse, query_terms, term_hash


def indexed(text: str, actor: str = "") -> set[str]:
    return {term for passage in analyse(text, actor).passages for term in passage}


def finds(question: str, text: str) -> bool:
    """Every term the question asks for is in the text, and it asks for something."""
    return bool(query_terms(question)) and set(query_terms(question)) <= indexed(text)


def test_a_turn_becomes_stems_with_counts_and_its_speaker() -> None:
    assert analyse("She painted, and he paints paintings!", "Mel O'Brien") == Analysis(
        words=6, passages=({"paint": 3, "mel": 1, "o": 1, "brien": 1},), flags=0
    )


def test_the_speaker_stands_in_every_passage() -> None:
    found = analyse("The kiln was cold again this morning. " * 20, "Mel")
    assert [passage["mel"] for passage in found.passages] == [1] * 4
    assert found.words == 140


def test_whole_sentences_are_packed_to_forty_words() -> None:
    sentence = "One two three four five six seven eight nine ten eleven twelve. "
    assert [p["twelv"] for p in analyse(sentence * 7).passages] == [3, 3, 1]
    assert PASSAGE_WORDS == 40


def test_a_line_ends_a_sentence() -> None:
    assert len(analyse("word " * 30 + "\n" + "other " * 30).passages) == 2


def test_irregular_forms_are_one_term() -> None:
    assert query_terms("went gone going bought children won winning") == ["go", "bui", "child", "win"]


@pytest.mark.parametrize("text", ["", "   ", "the of and", "Can't you?", "!!! --- ..."])
def test_a_question_of_function_words_and_signs_asks_for_nothing(text: str) -> None:
    assert query_terms(text) == []


def test_contractions_and_possessives_are_no_terms_of_their_own() -> None:
    assert query_terms("Caroline's don't it\u2019s we\u2019ll won't can't") == ["carolin"]


@pytest.mark.parametrize(
    "literal",
    [
        *("C++", "GB/s", "src:main", "v2.0.1", "10.0.1.5", "foo_bar", "col:val", "100%", "{HOST}", "#tag", "a@b.c"),
        *("--flag", "C:\\new\\table", "co-pilot", "O'Brien", "$1,200", "3.14", "7:30pm", "C#"),
    ],
)
def test_a_token_with_symbols_is_found_by_its_letters_and_only_by_them(literal: str) -> None:
    assert finds(literal, f"We looked at {literal}, and then left.")
    assert finds(literal, f"(\u201c{literal}\u201d).")
    whole = [term for term in query_terms(literal) if term.startswith("=")]
    assert len(whole) == 1
    assert whole[0] not in indexed("C GB s src main v2 0 1 10 5 foo bar col val 100 HOST tag b flag new table co pilot")


def test_the_parts_of_a_token_with_symbols_are_found_too() -> None:
    assert query_terms("see src/main.py") == ["see", "src", "main", "py", "=src/main.py"]


def test_prose_makes_no_literals() -> None:
    prose = "Well, \"she\" (Anna) didn't -- as they'd say -- *stop*; it's [over]... isn't it? 'Yes!' **Bold**: `code`."
    assert [term for term in indexed(prose) if term.startswith("=")] == []


def test_thousands_are_one_number() -> None:
    assert query_terms("1,200,000") == query_terms("1200000") == ["1200000"]


@pytest.mark.parametrize(
    ("question", "text", "found"),
    [
        ("窑炉", "今晚把窑炉的温度降到八百度", True),
        ("温度", "今晚把窑炉的温度降到八百度", True),
        ("八百度", "今晚把窑炉的温度降到八百度", True),
        ("冰箱", "今晚把窑炉的温度降到八百度", False),
        ("炉", "今晚把窑炉的温度降到八百度", True),
        ("사료", "고양이 사료를 샀다", True),
        ("寝袋", "キャンプ用の寝袋を洗う", True),
        ("北京", "我下周去北京出差", True),
        ("东京", "我下周去北京出差", False),
        ("ไทย", "ฉันชอบอาหารไทยมาก", True),
        ("ｶﾒﾗ", "新しいカメラを買った", True),
    ],
)
def test_unspaced_scripts_are_found_inside_running_text(question: str, text: str, found: bool) -> None:
    assert finds(question, text) is found


def test_a_question_asks_for_pairs_and_the_index_holds_characters_too() -> None:
    assert query_terms("八百度") == ["八百", "百度"]
    assert indexed("八百度") == {"八", "百", "度", "八百", "百度"}


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("cafe", "Café"),
        ("Café", "cafe"),
        ("NAÏVE", "naive"),
        ("strasse", "Straße"),
        ("ＡＢＣ", "abc"),
        ("Αθήνα", "αθηνα"),
        ("smorrebrod", "smørrebrød"),
        ("שלום", "שָׁלוֹם"),
        ("محمد", "مُحَمَّد"),
        ("हिन्दी", "मुझे हिन्दी पसंद है।"),
        ("👍", "fine 👍🏽!"),
        ("❤", "I ❤️ it"),
    ],
)
def test_forms_of_one_word_are_one_term(question: str, text: str) -> None:
    assert finds(question, text)


def test_diacritics_that_make_other_letters_stay() -> None:
    assert not finds("мои", "мой")
    assert not finds("は", "ば")


@given(st.text(max_size=60))
def test_composed_and_decomposed_text_are_the_same(text: str) -> None:
    once = unicodedata.normalize("NFC", text)
    assert query_terms(once) == query_terms(unicodedata.normalize("NFD", once))


@given(st.text(st.characters(), max_size=80))
def test_any_text_is_legal_and_finds_itself(text: str) -> None:
    assert set(query_terms(text)) <= indexed(text)
    assert "" not in indexed(text)
    assert all(-(2**63) <= term_hash(term) < 2**63 for term in query_terms(text))


def test_nul_and_lone_surrogates_are_text() -> None:
    assert query_terms("\x00 kiln \ud800") == ["kiln"]
    assert term_hash("\ud800") == term_hash("\ud800")


def test_hashes_never_change() -> None:
    assert term_hash("kiln") == 3711486578448607601  # b2sum -l 64, big-endian, signed
    assert term_hash("=c++") == -6332255581547498161


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("Why?", Flag.QUESTION | Flag.ASKS),
        ("How was Lisbon? Did the rain stop?", Flag.QUESTION | Flag.ASKS | Flag.NAME),
        ("I was there. Were you?", Flag.QUESTION | Flag.SELF),
        ("We met yesterday.", Flag.TIME | Flag.SELF),
        ("It was in May.", Flag.TIME | Flag.NAME),
        ("It may rain, so march on.", Flag(0)),
        ("See you at 7:30pm.", Flag.TIME | Flag.NUMBER),
        ("Released 2023-04-05.", Flag.TIME | Flag.NUMBER),
        ("She has three cats.", Flag.NUMBER),
        ("Please always use tabs.", Flag.WISH),
        ("Make sure that it compiles.", Flag.WISH),
        ("They read Dune.", Flag.NAME),
        ("Dune was read.", Flag(0)),
    ],
)
def test_what_a_text_holds(text: str, flags: Flag) -> None:
    assert Flag(analyse(text).flags) == flags


@pytest.mark.parametrize(
    "text",
    [
        "a" * 2_000_000,
        "x.y:" * 50_000,
        "\U0001f600" * 100_000,
        "窑炉的" * 20_000,
        "e" + "\u0301" * 100_000,
        "'" * 100_000,
        "n't" * 30_000,
        "111," * 30_000,
        "?!" * 50_000,
        "\n" * 100_000,
        "word " * 20_000,
    ],
    ids=[
        "letters",
        "symbols",
        "emoji",
        "han",
        "marks",
        "quotes",
        "contractions",
        "thousands",
        "stops",
        "lines",
        "words",
    ],
)
def test_huge_texts_take_time_in_proportion(text: str) -> None:
    start = time.process_time()
    found = analyse(text)
    query_terms(text)
    assert time.process_time() - start < 5
    assert max((sum(passage.values()) for passage in found.passages), default=0) <= 4 * PASSAGE_WORDS
