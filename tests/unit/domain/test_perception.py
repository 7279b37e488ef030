"""The ten perceptions: one readable line, the particulars in `data`, nothing more than the sense tells."""

from __future__ import annotations

import pytest

from mnemic.domain import perception
from mnemic.domain.drafts import Draft
from mnemic.domain.types import Kind
from mnemic.errors import InvalidInput


@pytest.mark.parametrize(
    ("draft", "kind", "text"),
    [
        (perception.eye_read(["a.py", "b.py"]), Kind.EYE_READ, "read a.py, b.py"),
        (perception.eye_read("a.py", lines=(3, 9)), Kind.EYE_READ, "read a.py lines 3-9"),
        (perception.eye_search("def f", path="src", hits=2), Kind.EYE_SEARCH, "searched 'def f' in src: 2 hits"),
        (perception.body_tool("locate", {"name": "f"}, success=True), Kind.BODY_TOOL, "tool locate(name=f) ok"),
        (perception.body_bash("pytest", output="1 passed"), Kind.BODY_BASH, "$ pytest\nexit 0\n1 passed"),
        (
            perception.tongue_write("a.py", what="a parser", lines=40),
            Kind.TONGUE_WRITE,
            "wrote a.py (40 lines): a parser",
        ),
        (perception.tongue_edit("a.py", "-x\n+y"), Kind.TONGUE_EDIT, "edited a.py\n-x\n+y"),
        (perception.nose_error("KeyError: 'k'", context="a.py:7"), Kind.NOSE_ERROR, "error: KeyError: 'k' [a.py:7]"),
        (perception.nose_warning("deprecated"), Kind.NOSE_WARNING, "warning: deprecated"),
        (perception.outcome_task("fix login", scope="auth"), Kind.OUTCOME_TASK, "task: fix login (scope: auth)"),
        (perception.outcome_done("fixed login", score=0.95), Kind.OUTCOME_DONE, "done: fixed login (score 0.95)"),
    ],
)
def test_each_sense_says_one_thing(draft: Draft, kind: Kind, text: str) -> None:
    assert (draft.kind, draft.text, draft.role) == (kind.value, text, "tool")


def test_particulars_are_data_and_the_unsaid_is_absent() -> None:
    assert perception.body_bash("ls", exit_code=2, duration_ms=7).data == {
        "command": "ls",
        "exit_code": 2,
        "duration_ms": 7,
    }
    assert perception.eye_search("x").data == {"pattern": "x"}
    assert perception.body_tool("t", {}, success=False).data == {"tool": "t", "arguments": {}, "success": False}


def test_long_output_keeps_its_head_and_tail() -> None:
    text = perception.body_bash("make", output="a" * 5_000 + "THE END").text
    assert len(text) < 2_100
    assert text.endswith("THE END")
    assert " ... " in text


@pytest.mark.parametrize("score", [-0.1, 1.1])
def test_a_score_lies_between_0_and_1(score: float) -> None:
    with pytest.raises(InvalidInput, match="not between 0 and 1"):
        perception.outcome_done("x", score=score)
