"""Any text can be kept and any text can be asked."""

from __future__ import annotations

from uuid import UUID

import pytest

from mnemic import Memory
from mnemic.domain.drafts import Draft
from tests.conftest import OpenMemory
from tests.contract.corpus import BEGIN
from tests.fakes import FakeEmbedder

pytestmark = pytest.mark.usefixtures("back_end")

LITERALS = {
    "co-pilot": "we call him our co-pilot at the airfield",
    "can't": "I can't open the blue gate",
    "GB/s": "the link does 40 GB/s on a good day",
    "src:main": "look it up under src:main please",
    '"half quote': 'he left a "half quote in the letter',
    "(open": "there is an (open bracket in line nine",
    "v2.0.1": "the release v2.0.1 broke the importer",
    "C++": "her parser is written in C++ and Zig",
    "a*": "the pattern a* matches far too much",
    "^x": "press ^x to leave the editor",
    "AND": "the gate is AND not NAND in this circuit",
    "salt AND": "salt AND vinegar on the chips",
    "NOT near NEAR(": "type NOT near NEAR( into the box",
    "col:val": "filters look like col:val there",
    "100%": "the battery shows 100% since noon",
    "under_score": "rename it to under_score everywhere",
    "\\": "a path such as C:\\temp needs a \\ twice",
    ";--": "someone typed ;-- into the form",
}


def test_u63_every_literal_finds_its_memory(open_memory: OpenMemory) -> None:
    memory = open_memory(vector__enabled=False)
    memory.record_many(Draft(text, session=f"s{n}") for n, text in enumerate(LITERALS.values()))
    for asked, text in LITERALS.items():
        assert text in [hit.text for hit in memory.recall(asked)], asked
    assert len(memory.recall(" ".join(["word", "gate", "salt"] * 100))) >= 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("今晚把窑炉的温度降到八百度", ["窑炉", "温度", "八百度"]),
        ("キャンプ用の寝袋を洗う", ["寝袋"]),
        ("고양이 사료를 주문했다", ["사료"]),
    ],
)
def test_u64_cjk_is_found_by_the_lexical_arm(open_memory: OpenMemory, text: str, words: list[str]) -> None:
    memory = open_memory(vector__enabled=False)
    memory.record(text)
    for word in words:
        hits = memory.recall(word)
        assert [(h.text, h.found_by) for h in hits] == [(text, ("keyword",))], word
    assert list(memory.recall("冰箱")) == []


def test_u67_unstorable_characters_are_replaced_and_neighbours_untouched(memory: Memory) -> None:
    def drafts() -> list[Draft]:
        made = [Draft(f"ordinary turn {n} of a long transcript", id=UUID(int=n + 1), at=BEGIN) for n in range(100)]
        made[36] = Draft("a\x00b is what the tool printed", id=UUID(int=37), at=BEGIN)
        made[37] = Draft("half a smile \ud83d ends here", id=UUID(int=38), at=BEGIN)
        made[38] = Draft(
            "data too", id=UUID(int=39), at=BEGIN, data={"k\ud83d": "v\x00", "list": ["\udc00", {"deep": "\x00"}]}
        )
        made[39] = Draft(b"caf\xe9 au lait".decode("utf-8", "surrogateescape"), id=UUID(int=40), at=BEGIN)
        made[40] = Draft("\ufffe and \u202e are legal, if odd", id=UUID(int=41), at=BEGIN)
        return made

    first = memory.record_many(drafts())
    assert [(r.seq, r.spooled) for r in first] == [(n, False) for n in range(1, 101)]
    assert memory.record_many(drafts()) == first
    events = memory.events()
    assert len(events) == 100
    assert events[36].text == "a\ufffdb is what the tool printed"
    assert events[37].text == "half a smile \ufffd ends here"
    assert events[38].data == {"k\ufffd": "v\ufffd", "list": ["\ufffd", {"deep": "\ufffd"}]}
    assert events[39].text == "caf\ufffd au lait"
    assert events[40].text == "\ufffe and \u202e are legal, if odd"
    assert [e.text for e in events if e.seq not in range(37, 42)] == [
        f"ordinary turn {n} of a long transcript" for n in range(100) if n not in range(36, 41)
    ]
    assert memory.recall("what the tool printed")[0].event.seq == 37


KINDS = ("message", "note", "document", "eye_read", "body_bash", "nose_error", "outcome_done")


def test_u60_every_kind_is_found_by_word_alone_and_by_vector_alone(open_memory: OpenMemory) -> None:
    embedder = FakeEmbedder({word: _unit(n) for n, word in enumerate(KINDS)}, dimension=16)
    lexical = open_memory(embedder=embedder, filter__enabled=False)
    for n, kind in enumerate(KINDS):
        lexical.record(f"the nonsense word of it is wobble{n}x and it belongs to {kind}", kind=kind, session=f"s{n}")
    lexical.settle()
    vector = open_memory(embedder=embedder, recall__fusion="vector", vector__similarity_threshold=0.9)
    embedder.down = True
    for n, kind in enumerate(KINDS):
        found = lexical.recall(f"wobble{n}x")
        assert [h.event.kind for h in found] == [kind]
        assert any("keyword search only" in notice for notice in found.notices)
    embedder.down = False
    for kind in KINDS:
        hits = vector.recall(f"zzz {kind}", kinds=[kind])
        assert [(h.event.kind, h.found_by[-1]) for h in hits] == [(kind, "vector")]


def _unit(n: int) -> list[float]:
    return [1.0 if i == n else 0.0 for i in range(16)]
