"""What a question asks for beside its words."""

from __future__ import annotations

import numpy as np
import pytest

from mnemic.domain.cues import ASSISTANT, USER, Day, ask, said_on
from mnemic.domain.terms import Flag, term_hash

ACTORS = ("", "Caroline", "Mel O'Brien", "田中")


def test_a_question_carries_its_terms_hashed_and_marks_literals() -> None:
    question = ask("Where is foo_bar?", ACTORS)
    assert question.terms == ("foo", "bar", "=foo_bar")
    assert question.hashes == tuple(term_hash(term) for term in question.terms)
    assert question.literal == (False, False, True)


@pytest.mark.parametrize(
    ("text", "actors"),
    [
        ("What did Caroline paint?", (1,)),
        ("caroline's kiln", (1,)),
        ("Did O'Brien and Caroline meet?", (1, 2)),
        ("田中さんは何を買った?", (3,)),
        ("What did Bob paint?", ()),
        ("", ()),
    ],
)
def test_speakers_are_named_in_any_form(text: str, actors: tuple[int, ...]) -> None:
    assert ask(text, ACTORS).actors == actors


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("When does my sprint end?", USER),
        ("What are we building?", USER),
        ("Which library did you recommend for my app?", ASSISTANT),
        ("What was your advice about caching?", ASSISTANT),
        ("Can you suggest a library?", -1),
        ("Could you tell me when I fixed it?", USER),
        ("What is the capital of France?", -1),
        ("What did Caroline tell me?", -1),
    ],
)
def test_whose_turns_a_question_means(text: str, role: int) -> None:
    assert ask(text, ACTORS).role == role


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("When did Caroline move?", Flag.TIME),
        ("How long was the trip?", Flag.TIME),
        ("How many days are left?", Flag.TIME),
        ("Do you remember when I moved?", Flag.TIME),
        ("How many commits were merged?", Flag.NUMBER),
        ("How did it feel when Caroline moved?", Flag(0)),
        ("Where does Caroline live?", Flag.NAME),
        ("What book did Caroline read?", Flag.NAME),
        ("What did Caroline read?", Flag(0)),
        ("Where do I put the config?", Flag.WISH),
        ("Could you write a function?", Flag.WISH),
    ],
)
def test_what_the_answer_should_hold(text: str, answer: Flag) -> None:
    assert Flag(ask(text, ACTORS).answer) == answer


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on 7 May 2023", (Day(2023, 5, 7),)),
        ("on May 7th, 2023", (Day(2023, 5, 7),)),
        ("the 3rd of June", (Day(0, 6, 3),)),
        ("in August of 2022 or sept 2021", (Day(2022, 8, 0), Day(2021, 9, 0))),
        ("in July", (Day(0, 7, 0),)),
        ("on 2023-05-07", (Day(2023, 5, 7),)),
        ("it may march on", ()),
        ("2023-13-40", ()),
    ],
)
def test_dates_that_are_named(text: str, days: tuple[Day, ...]) -> None:
    assert ask(text, ACTORS).days == days


def test_said_on_compares_what_is_named() -> None:
    time = np.array(["2023-05-07T23:59", "2023-05-08", "2022-05-07", "1969-05-07"], "datetime64[us]").astype(np.int64)
    assert said_on((Day(2023, 5, 7),), time).tolist() == [True, False, False, False]
    assert said_on((Day(0, 5, 7),), time).tolist() == [True, False, True, True]
    assert said_on((Day(2023, 5, 0),), time).tolist() == [True, True, False, False]
    assert said_on((Day(2022, 5, 7), Day(2023, 5, 8)), time).tolist() == [False, True, True, False]


def test_a_question_about_questions_says_so() -> None:
    assert ask("What did Caroline ask?", ACTORS).about_asking
    assert not ask("What was the task?", ACTORS).about_asking
