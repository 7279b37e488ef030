"""The journal in front of the store: sealed, durable, replayed. `log.py` states the promises."""

from mnemic.store.journal.log import Anchor, Journal, Status, Verification
from mnemic.store.journal.seal import Entry, Row

__all__ = ["Anchor", "Entry", "Journal", "Row", "Status", "Verification"]
