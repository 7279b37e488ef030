"""Every place that can hold what a person said. Erasing must reach each of them; `tests/test_house.py` holds this list
against the tables of the schema, so that a new table cannot be forgotten here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """`where`: a table, or a file as the user would find it. `holds`: what of a person's is in it."""

    where: str
    holds: str


TABLES_WITH_TEXT = (
    Place("events", "the text itself, who said it, where and when, and the caller's data"),
    Place("quarantine", "events whose id was taken by other content, whole"),
    Place("chunks", "places in the text, hashes of its terms, why it was kept or refused"),
    Place("vectors", "vectors, from which a text can be guessed"),
    Place("chunk_topics", "what each chunk is about"),
    Place("topics", "labels of topics, which may be phrases of a text"),
    Place("sources", "names, addresses and first sentences of what was ingested"),
    Place("usage", "which chunks were recalled on which day"),
)
TABLES_WITHOUT_TEXT = ("meta", "heads", "anchors", "spaces", "leases")
FILES = (
    Place("journal/*/journal.db, -wal, -shm", "every recorded event, sealed"),
    Place("mnemic.db-wal, mnemic.db-shm", "pages of the tables above on their way into the file"),
    Place("*.schema-N.bak", "the copy of the whole store that is made before its schema changes"),
    Place("backups and exports", "whatever the user wrote elsewhere; named in a receipt, not reached"),
)
