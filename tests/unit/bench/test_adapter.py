from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Doc:
    id: str
    text: str
    session: str
    when: datetime | None = None
    speaker: str = ""


def test_a_persons_name_becomes_the_actor_and_leaves_the_text() -> None:
    from adapter import draft_of

    draft = draft_of(Doc("D1:1", "Ana: I moved to Porto", "session_1", datetime(2026, 1, 5, 10), "Ana"))
    assert (draft.text, draft.actor, draft.role, draft.session) == ("I moved to Porto", "Ana", "user", "session_1")
    assert draft.at == datetime(2026, 1, 5, 10, tzinfo=UTC)


def test_the_two_roles_of_a_chat_are_roles_and_no_names() -> None:
    from adapter import draft_of

    draft = draft_of(Doc("7", "assistant: Take the train", "b1", None, "assistant"))
    assert (draft.text, draft.actor, draft.role, draft.at) == ("Take the train", "", "assistant", None)


@pytest.mark.parametrize("text", ["Note: the speaker is Ana", "Ana went home", "no speaker at all"])
def test_only_the_speakers_own_prefix_is_taken_off(text: str) -> None:
    from adapter import without_speaker

    assert without_speaker(text, "Ana") == text
    assert without_speaker(text, "") == text


def test_documents_are_found_by_their_own_ids_and_the_store_is_gone_afterwards() -> None:
    from adapter import Mnemic

    docs = [
        Doc("a", "Ana: The staging server moved to rack two", "s1", datetime(2026, 1, 5), "Ana"),
        Doc("empty", "Ana:   ", "s1", datetime(2026, 1, 5), "Ana"),
        Doc("b", "Sourdough wants a night in the fridge", "seed"),
    ]
    memory = Mnemic(embedder="hashing")
    memory.add(docs)
    assert memory.search("where is the staging server?", 10)[0] == "a"
    assert memory.search("sourdough fridge", 10, now=datetime(2026, 2, 1))[0] == "b"
    folder = Path(memory._folder.name)
    memory.close()
    assert not folder.exists()


def test_a_view_is_refused_as_long_as_there_is_none() -> None:
    from adapter import Mnemic

    with pytest.raises(ValueError, match="view"):
        Mnemic(embedder="hashing", view="agent")
