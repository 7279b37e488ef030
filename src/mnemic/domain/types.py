"""The words of mnemic as values: frozen, slotted, and without behaviour beyond reading themselves.

Times are aware and in UTC. Ids of events are 128 bits, made by whoever records; `seq` is given when an event is
applied and is the integer by which spans, transcripts and people refer to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NewType, overload
from uuid import UUID

EventId = NewType("EventId", UUID)
Seq = NewType("Seq", int)  # 1, 2, 3 ... within a namespace, in the order of application
ChunkId = NewType("ChunkId", int)  # 1, 2, 3 ... within a namespace
SessionId = NewType("SessionId", str)
Namespace = NewType("Namespace", str)

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
Data = Mapping[str, JsonValue]


class Role(StrEnum):
    """Who speaks. A person who is not the user is `user` with an actor's name."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class Kind(StrEnum):
    """What sort of thing happened; `domain/perception.py` documents the ten perceptions."""

    MESSAGE = "message"
    NOTE = "note"
    MARKER = "marker"
    DOCUMENT = "document"
    EDIT = "edit"
    EYE_READ = "eye_read"
    EYE_SEARCH = "eye_search"
    BODY_TOOL = "body_tool"
    BODY_BASH = "body_bash"
    TONGUE_WRITE = "tongue_write"
    TONGUE_EDIT = "tongue_edit"
    NOSE_ERROR = "nose_error"
    NOSE_WARNING = "nose_warning"
    OUTCOME_TASK = "outcome_task"
    OUTCOME_DONE = "outcome_done"


class Trust(StrEnum):
    """Where a text comes from, most trusted first; never raised by summarising."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    WEB = "web"
    IMPORT = "import"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. `seq` is 0 until the event is applied to the store."""

    id: EventId
    kind: Kind
    text: str
    at: datetime
    recorded_at: datetime
    seq: Seq = Seq(0)
    session: SessionId | None = None
    channel: str = ""
    role: Role = Role.USER
    actor: str = ""
    project: str = ""
    importance: float = 0.5
    trust: Trust = Trust.USER
    data: Data = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What `record` answers. `spooled`: durable in the journal, not yet in the database; `seq` is then 0."""

    id: EventId
    seq: Seq
    spooled: bool


@dataclass(frozen=True, slots=True)
class Span:
    """A run of events of one session, both ends included: the provenance of everything derived."""

    session: SessionId | None
    first: Seq
    last: Seq


@dataclass(frozen=True, slots=True)
class Space:
    """An embedding space. Vectors of two spaces are never compared."""

    provider: str
    model: str
    dimension: int
    scheme: str = ""  # normalisation, prefixes, task types: whatever else makes vectors comparable

    @property
    def label(self) -> str:
        tail = f"/{self.scheme}" if self.scheme else ""
        return f"{self.provider}/{self.model}/{self.dimension}{tail}"


@dataclass(frozen=True, slots=True)
class Chunk:
    """The unit of retrieval: characters `start` to `stop` of the text of event `event`."""

    id: ChunkId
    event: EventId
    text: str
    start: int
    stop: int
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A question to the memory. Empty tuples and None do not filter; `since` is included, `until` excluded."""

    text: str
    k: int = 10
    kinds: tuple[Kind, ...] = ()
    roles: tuple[Role, ...] = ()
    topics: tuple[str, ...] = ()
    sessions: tuple[SessionId, ...] = ()
    channels: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    rerank: bool = False


WEAK_BELOW = 0.3


@dataclass(frozen=True, slots=True)
class Hit:
    """A recalled chunk, the event it stands in, and why it surfaced.

    `score`: 0 to 1, higher is better (`domain/ranking.py` states the scale of each fusion).
    `found_by`: the arms that proposed it ("keyword", "vector", "literal").
    `parts`: every number that made the score, by name.
    `others`: further chunks of the same event that also matched, best first.
    """

    chunk: Chunk
    event: Event
    score: float
    found_by: tuple[str, ...]
    parts: Mapping[str, float]
    others: tuple[ChunkId, ...] = ()

    @property
    def text(self) -> str:
        return self.chunk.text

    @property
    def weak(self) -> bool:
        """Whether this may well have nothing to do with the question.

        Asked about its own conversation, the best hit of a store scores below .54 once in a hundred; asked about
        somebody else's, above .54 once in ten, and the median is .16 (`WEAK_BELOW` lies between).
        """
        return self.score < WEAK_BELOW


@dataclass(frozen=True, slots=True)
class Recalled(Sequence[Hit]):
    """The answer to a query: its hits, best first, and what the asker should know about the answer.

    `pending`: events that are durable but not yet searchable. `notices`: degradations in plain words.
    """

    hits: tuple[Hit, ...]
    pending: int = 0
    notices: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)
