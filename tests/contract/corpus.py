"""A small made-up conversation of several sessions, the same each time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

from mnemic.domain.drafts import Draft

BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)
PEOPLE = ("Ana", "Bruno", "Chiara", "Dmitri")
THINGS = (
    "the kiln",
    "a red bicycle",
    "the staging server",
    "her violin",
    "the pear trees",
    "our tax return",
    "the roof",
)
DEEDS = ("repaired", "sold", "painted", "forgot about", "asked for", "moved", "photographed", "insured")
PLACES = ("in Porto", "near the old mill", "at the office", "on the balcony", "in Ghent", "behind the school")
WHEN = ("yesterday", "last week", "in May", "on Monday", "before the storm", "after lunch")

QUESTIONS = (
    "who repaired the kiln?",
    "where is the staging server?",
    "what happened in Porto in May",
    "Ana and the red bicycle",
    "what did Chiara sell near the old mill",
    "pear trees",
    "violin Ghent Monday",
    "did anybody insure the roof before the storm",
    "photographed",
    "what is there about quantum chess",
)


def conversation(size: int = 200, seed: int = 7) -> list[Draft]:
    random = Random(seed)
    return [
        Draft(
            f"{random.choice(PEOPLE)} {random.choice(DEEDS)} {random.choice(THINGS)} {random.choice(PLACES)} "
            f"{random.choice(WHEN)}, number {n}",
            id=UUID(int=seed * 1_000_000 + n + 1),
            role="user" if n % 2 == 0 else "assistant",
            session=f"s{n // 12}",
            channel="tui" if n % 3 else "api",
            actor=PEOPLE[n % 4] if n % 5 == 0 else "",
            at=BEGIN + timedelta(hours=n),
        )
        for n in range(size)
    ]
