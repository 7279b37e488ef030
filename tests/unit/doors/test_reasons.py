from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from mnemic.domain.types import Chunk, ChunkId, Event, EventId, Hit, Kind, Role
from mnemic.doors.cli.reasons import matched_words, reason, who

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def hit(text: str, found_by: tuple[str, ...], actor: str = "", role: Role = Role.USER, **parts: float) -> Hit:
    ident = EventId(UUID(int=1))
    event = Event(ident, Kind.MESSAGE, text, NOW, NOW, actor=actor, role=role)
    return Hit(Chunk(ChunkId(1), ident, text, 0, len(text)), event, 0.5, found_by, parts)


@pytest.mark.parametrize(
    ("question", "text", "words"),
    [
        ("where is staging?", "The staging server moved", ["staging"]),
        ("Where did they MOVE?", "The server moved to 10.0.1.5", ["MOVE"]),
        ("is it 10.0.1.5?", "moved to 10.0.1.5", ["10.0.1.5"]),
        ("夜景", "港の夜景を見たいです", ["夜景"]),
        ("what is it", "what it is", []),
        ("Ana Ana", "Ana lives in Porto", ["Ana"]),
    ],
)
def test_the_words_that_matched_are_those_of_the_question(question: str, text: str, words: list[str]) -> None:
    assert matched_words(question, text) == words


def test_the_name_of_the_speaker_counts_as_a_word() -> None:
    assert matched_words("what did Mara say", "I like beans", "Mara") == ["Mara"]


def test_a_reason_names_words_and_nearness() -> None:
    found = hit("The staging server moved", ("keyword", "vector"), similarity=0.49)
    assert reason(found, "where is staging?") == "words: staging; near in meaning (0.49)"


def test_a_reason_is_honest_about_what_only_its_neighbours_hold() -> None:
    assert reason(hit("Yes, gladly.", ("vector",), similarity=0.05), "staging") == "stands beside what matches"
    assert reason(hit("C++ and so on", ("literal",)), "++") == "holds it to the letter"


def test_who_said_it() -> None:
    assert who(hit("x", (), actor="Mara").event) == "Mara"
    assert who(hit("x", ()).event) == "you"
    assert who(hit("x", (), role=Role.ASSISTANT).event) == "assistant"
