"""`mnemic demo`: a small conversation is recorded and recalled, in a folder of its own that is gone afterwards."""

from __future__ import annotations

import json
import tempfile
import time
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mnemic import config as configuration
from mnemic.config import Config
from mnemic.doors.cli.door import Door
from mnemic.doors.cli.options import command
from mnemic.doors.cli.output import Reply, one_line, safe
from mnemic.doors.cli.recall import hit_data

if TYPE_CHECKING:
    from mnemic.app import Memory
    from mnemic.domain.drafts import Draft
    from mnemic.domain.types import Hit, Recalled

app = typer.Typer(rich_markup_mode=None)

SHOWN = 2  # hits a question


@command(app, "demo")
def demo(door: Door) -> Reply:
    """Record a small conversation and recall it. Your own memory is not touched."""
    from mnemic.app import opened
    from mnemic.models import local

    began = time.monotonic()
    better = local.missing()
    with tempfile.TemporaryDirectory(prefix="mnemic-demo-", ignore_cleanup_errors=True) as folder:
        memory, _ = opened(_config(Path(folder), "hashing" if better else "local"))
        with memory:
            drafts = _conversation()
            memory.record_many(drafts)
            memory.settle()
            asked = [(question, _ask(memory, question)) for question in _questions()]
            embedder = memory.status().embedder
    seconds = round(time.monotonic() - began, 2)
    sessions = len({draft.session for draft in drafts})
    data = {
        "embedder": embedder,
        "better": better,
        "events": len(drafts),
        "sessions": sessions,
        "seconds": seconds,
        "questions": [_as_data(question, found) for question, found in asked],
    }
    head = f"Recorded {len(drafts)} messages of {sessions} conversations: Mara, Tom and an assistant, March to April."
    lines = [head, f"Meaning is compared by: {embedder}", *_lines(door, asked), *_closing(better, seconds)]
    return Reply(data, lines)


def _config(home: Path, provider: str) -> Config:
    """Defaults alone: no setting of the user may lead to the user's memory, keyring or a network."""
    overrides = {
        "embeddings.provider": provider,
        "journal.key": "file",
        "namespace": "demo",
        "timezone": "UTC",
        "worker.enabled": False,
    }
    return configuration.load({"MNEMIC_HOME": str(home)}, home=home, overrides=overrides)[0]


def _conversation() -> list[Draft]:
    from datetime import datetime

    from mnemic.domain.drafts import Draft

    rows = (json.loads(line) for line in _data("conversation.jsonl").splitlines())
    return [Draft(**{**row, "at": datetime.fromisoformat(row["at"])}) for row in rows]


def _questions() -> list[dict[str, Any]]:
    found = tomllib.loads(_data("questions.toml"))
    return [*found["question"], found["filtered"]]


def _data(name: str) -> str:
    return (resources.files("mnemic") / "data" / "demo" / name).read_text(encoding="utf-8")


def _ask(memory: Memory, question: dict[str, Any]) -> Recalled:
    return memory.recall(question["text"], k=SHOWN, since=question.get("since"))


def _as_data(question: dict[str, Any], found: Recalled) -> dict[str, object]:
    return {**question, "hits": [hit_data(hit) | {"reasons": _reasons(hit, question["text"])} for hit in found.hits]}


def _lines(door: Door, asked: list[tuple[dict[str, Any], Recalled]]) -> Iterator[str]:
    for question, found in asked:
        since = f"  (only since {question['since']})" if "since" in question else ""
        yield ""
        yield door.out.styled(f"? {safe(question['text'])}{since}", "bold")
        yield door.out.styled(f"  {question['why']}", "dim")
        for hit in found.hits:
            yield f"  {hit.score:.2f}  {one_line(hit.text)}"
            for reason in _reasons(hit, question["text"]):
                yield door.out.styled(f"        {safe(reason)}", "dim")


def _reasons(hit: Hit, question: str) -> list[str]:
    from mnemic.doors.cli.reasons import FAR, matched_words, nearness

    event = hit.event
    speaker = event.actor or f"the {event.role}"
    reasons = [f"said by {speaker} on {event.at:%d %B} in {event.session!r}"]
    words = matched_words(question, hit.text, event.actor)
    if words:
        reasons.append(f"the same words: {', '.join(words)}")
    similarity = hit.parts.get("similarity")
    if similarity is not None and similarity >= FAR:
        reasons.append(f"{nearness(similarity)}: {similarity:.2f} of 1")
    elif not words:
        reasons.append("stands beside what matches")
    return reasons


def _closing(better: str, seconds: float) -> list[str]:
    advice = (
        [f"Better: {better}"]
        if better
        else ["Better for other languages than English: pip install 'mnemic[multilingual]'"]
    )
    steps = [
        "",
        f"All of this took {seconds} s, and its folder is gone again.",
        'Your turn: mnemic remember "..." and mnemic recall "..."',
    ]
    return ["", *advice, *steps]
