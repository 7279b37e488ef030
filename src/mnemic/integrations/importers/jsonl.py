"""Chats as JSON: one object a line, one array of such objects, or objects with `messages` as model APIs take them.

An object is a message under any of the names in `_KEYS`; what has no name there is kept in `data["other"]`. `content`
may be a list of parts: texts are kept in their order, an image is noted as `[image]`, and a part of unknown type is
kept as it is in `data["parts"]`.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from mnemic.domain.types import JsonValue, Role
from mnemic.errors import InvalidInput
from mnemic.integrations.importers.record import (
    ROLE_WORDS,
    Failure,
    Ids,
    ImportOptions,
    Record,
    clean,
    clean_json,
    ids,
    lines,
    text_marks,
    too_long,
    when,
)

EXPECTED = 'expected messages such as {"role": "user", "content": "...", "session": "...", "at": "2026-01-05T10:00Z"}'

Object = dict[str, JsonValue]

# Each meaning with its names, the best first.
_KEYS = {
    "content": ("content", "text", "message", "body"),
    "role": ("role",),
    "actor": ("actor", "speaker", "name", "author", "sender"),
    "session": ("session", "session_id", "sessionId", "conversation", "conversation_id", "conversationId", "thread",
                "thread_id"),
    "at": ("at", "timestamp", "created_at", "createdAt", "time", "date", "ts"),
    "id": ("id", "message_id", "uuid"),
    "channel": ("channel",),
    "kind": ("kind",),
    "data": ("data",),
    "tool_calls": ("tool_calls",),
}  # fmt: skip
_MEANINGS = {name: (meaning, rank) for meaning, names in _KEYS.items() for rank, name in enumerate(names)}
_TEXTS = frozenset({"text", "input_text", "output_text"})
_IMAGES = frozenset({"image_url", "image", "input_image", "image_asset_pointer"})
_SPACE = re.compile(r"[\s,]*")
_LABEL = re.compile(r"[\w.-]{1,40}")
_BLOCK_CHARACTERS = 1 << 20


def is_lines(head: bytes) -> bool:
    """Whether `head` begins a file with one JSON object a line."""
    first, *others = head.lstrip().split(b"\n")[:50]
    if not first.startswith(b"{"):
        return False
    if _is_object(first):
        return True
    # A broken first line must not hide the good ones. In one object laid out over lines, the inner ones are indented.
    return any(_is_object(line) for line in others if line.startswith(b"{"))


def is_document(head: bytes) -> bool:
    """Whether `head` begins one JSON value. `[2026-01-05 10:00] Ana: hi` does not."""
    return re.match(rb"""\s*(\{|\[\s*(\{|\[|"|\]|$))""", head) is not None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(_loads(line.decode(errors="replace")), dict)
    except InvalidInput:
        return False


def _loads(text: str) -> object:
    try:
        return json.loads(text, parse_constant=lambda word: None)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"not valid JSON: {error}") from error


def read_lines(pieces: Iterable[bytes], name: str, options: ImportOptions) -> Iterator[Record | Failure]:
    """The messages of a file with one object a line; a line that cannot be read is a Failure."""
    with ids() as known:
        for number, raw in lines(pieces, options.max_bytes):
            if raw is None:
                yield too_long(name, number, options.max_bytes)
                continue
            text = raw.decode(errors="replace")
            if not text.strip():
                continue
            try:
                found = _loads(text)
            except InvalidInput as error:
                yield _failure(name, number, error)
                continue
            yield from _messages(found, _Place(name, number), known, options)


def read_document(pieces: Iterable[bytes], name: str, options: ImportOptions) -> Iterator[Record | Failure]:
    """The messages of one array or object, element by element. From a place that is no JSON on, nothing can be read.

    Errors: InvalidInput for the tree of a ChatGPT export, which is not a list of messages.
    """
    with ids() as known:
        number = 0
        try:
            for number, (found, outer) in enumerate(_Elements(pieces, options.max_bytes), start=1):
                if isinstance(found, dict) and "mapping" in found and number == 1:
                    raise InvalidInput(f"{name}: this looks like a ChatGPT export, which has its own tree; {EXPECTED}")
                yield from _messages(found, _Place(name, number), known, options, outer)
        except _Broken as error:
            yield _failure(name, number + 1, InvalidInput(f"{error}; what follows is not read"))


def _failure(name: str, line: int, reason: Exception) -> Failure:
    return Failure(name, line, InvalidInput(f"{name}, line {line}: {reason}"))


class _Broken(Exception):
    """The JSON ends or breaks here."""


class _Elements:
    """The elements of a JSON array, or of the `messages` of an object, one at a time: memory holds the largest of them.

    Yields each with the object around it, as far as it came before the messages. Values may follow one another.
    """

    def __init__(self, pieces: Iterable[bytes], max_bytes: int) -> None:
        self._pieces = iter(pieces)
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._parse = json.JSONDecoder(parse_constant=lambda word: None).raw_decode
        self._max = max_bytes
        self._text, self._at, self._ended = "", 0, False

    def __iter__(self) -> Iterator[tuple[object, Object]]:
        while character := self._peek():
            if character == "[":
                self._at += 1
                yield from ((element, {}) for element in self._array())
            elif character == "{":
                self._at += 1
                yield from self._object()
            else:
                raise _Broken(f"not valid JSON at {self._shown()}")

    def _array(self) -> Iterator[object]:
        while (character := self._peek()) != "]":
            if not character:
                raise _Broken("the JSON ends inside an array")
            yield self._value()
        self._at += 1

    def _object(self) -> Iterator[tuple[object, Object]]:
        outer: Object = {}
        streamed = False
        while (character := self._peek()) != "}":
            key = self._value() if character == '"' else None
            if not isinstance(key, str) or self._peek() != ":":
                raise _Broken(f"not valid JSON at {self._shown()}" if character else "the JSON ends inside an object")
            self._at += 1
            if key == "messages" and self._peek() == "[":
                self._at += 1
                session = _Conversation(outer)
                yield from ((element, session.around(element)) for element in self._array())
                streamed = True
            else:
                outer[key] = cast(JsonValue, self._value())
        self._at += 1
        if not streamed:
            yield outer, {}

    def _value(self) -> object:
        """The next value, reading on while it is not whole."""
        self._peek()
        while True:
            try:
                value, end = self._parse(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if len(self._text) - self._at > self._max or not self._truncated(error) or not self._more():
                    raise _Broken(f"not valid JSON at {self._shown()}") from error
                continue
            # A number at the end of what is read so far may go on.
            if end == len(self._text) and self._more():
                continue
            self._at = end
            return cast(object, value)

    def _truncated(self, error: Exception) -> bool:
        """Whether more text may mend this error: it lies at the end, or is a string that has not ended."""
        return isinstance(error, json.JSONDecodeError) and (
            error.msg.startswith("Unterminated string") or error.pos > len(self._text) - 16
        )

    def _peek(self) -> str:
        while True:
            self._at = cast(re.Match[str], _SPACE.match(self._text, self._at)).end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _more(self) -> bool:
        """Doubles what is in view, so that a large value is parsed a few times and not once a block."""
        if self._ended:
            return False
        wanted = max(_BLOCK_CHARACTERS, len(self._text) - self._at)
        parts, size = [self._text[self._at :]], 0
        while size < wanted and not self._ended:
            piece = next(self._pieces, None)
            self._ended = piece is None
            parts.append(self._decode.decode(piece or b"", final=self._ended))
            size += len(parts[-1])
        self._text, self._at = "".join(parts), 0
        return size > 0

    def _shown(self) -> str:
        return repr(self._text[self._at : self._at + 40]) if self._at < len(self._text) else "its end"


class _Conversation:
    """What an object with `messages` says of all of them. One without a name is named by its first message."""

    def __init__(self, outer: Mapping[str, JsonValue]) -> None:
        names = (*_KEYS["session"], "id", "uuid")
        session = next((outer[key] for key in names if isinstance(outer.get(key), str | int)), None)
        self._session = session
        self._about: Object = {"channel": channel} if (channel := outer.get("channel")) else {}

    def around(self, message: object) -> Object:
        if self._session is None:
            digest = hashlib.sha256(json.dumps(message, sort_keys=True, default=str).encode()).hexdigest()
            self._session = f"conversation-{digest[:16]}"
        return {**self._about, "session": self._session}


@dataclass(frozen=True, slots=True)
class _Place:
    name: str
    line: int


def _messages(
    found: object, place: _Place, known: Ids, options: ImportOptions, outer: Object | None = None
) -> Iterator[Record | Failure]:
    """The message, or the messages of the conversation, that one JSON value is."""
    if isinstance(found, dict) and isinstance(found.get("messages"), list):
        conversation = _Conversation(found)
        for message in found["messages"]:
            yield _record(message, conversation.around(message), place, known, options)
    else:
        yield _record(found, outer or {}, place, known, options)


def _record(found: object, outer: Object, place: _Place, known: Ids, options: ImportOptions) -> Record | Failure:
    try:
        if not isinstance(found, dict):
            raise InvalidInput(f"not an object; {EXPECTED}")
        cleaned = cast(Object, clean_json(found))
        if isinstance(
            inner := cleaned.get("message"), dict
        ):  # {"timestamp": ..., "message": {"role": ..., "content": ...}}
            cleaned = {key: value for key, value in cleaned.items() if key != "message"} | inner
        return _message(outer | cleaned, place.line, known, options)
    except InvalidInput as error:
        return _failure(place.name, place.line, error)


def _message(found: Object, line: int, known: Ids, options: ImportOptions) -> Record:
    named, other = _named(found)
    kind = _word(named["kind"]) or "message"
    role, actor, kind = _speaker(named["role"], named["actor"], kind)
    text, parts = _text(named["content"])
    calls = named["tool_calls"]
    if not text and isinstance(calls, list) and calls:
        text = "\n".join(f"[tool call: {_call_name(call)}]" for call in calls)
    if not text.strip():
        raise InvalidInput("an empty message")
    at, marks = when(named["at"], options)
    extra = {"time": named["at"] if "time_unreadable" in marks else None, "parts": parts, "tool_calls": calls}
    given = named["data"]
    data = (given if isinstance(given, dict) else {}) | {key: value for key, value in extra.items() if value}
    if given and not isinstance(given, dict):
        other["data"] = given
    session = _word(named["session"]) or None
    said = (session, role, actor, named["at"], named["channel"], kind, text, parts, calls)
    return Record(
        role=role,
        text=text,
        session=session,
        at=at,
        external_id=known.given(session, _word(named["id"])) if _word(named["id"]) else known.derived(*said),
        line=line,
        actor=actor,
        channel=_word(named["channel"]),
        kind=kind,
        data=data | ({"other": other} if other else {}),
        marks=marks + text_marks(text),
    )


def _named(found: Object) -> tuple[Object, Object]:
    """The values by their meaning, and the rest: what has no name here, and what a better name overrules."""
    named: Object = dict.fromkeys(_KEYS)
    chosen: dict[str, str] = {}
    other: Object = {}
    for key, value in found.items():
        meaning, rank = _MEANINGS.get(key, ("", 0))
        if not meaning:
            other[key] = value
        elif value is not None and value != "":
            best = chosen.get(meaning)
            if best is not None and _MEANINGS[best][1] < rank:
                other[key] = value
                continue
            if best is not None:
                other[best] = named[meaning]
            chosen[meaning], named[meaning] = key, value
    return named, other


def _word(value: JsonValue) -> str:
    """A name or id as text; "" for what is neither."""
    return str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _speaker(role: JsonValue, actor: JsonValue, kind: str) -> tuple[Role, str, str]:
    """Role, actor and kind. Errors: InvalidInput when a message does not say who speaks."""
    if isinstance(actor, dict):  # {"author": {"role": "user", "name": "Ana"}}
        role, actor = role or actor.get("role"), actor.get("name")
    said, who = _word(role), _word(actor)
    if not said and who.casefold() in ROLE_WORDS:
        said, who = who, ""
    if said.casefold() == "marker":
        return Role.SYSTEM, who, "marker"
    if known := ROLE_WORDS.get(said.casefold()):
        return known, who, kind
    if said or who or kind != "message":  # a person or thing we have no role for is a user with a name
        return Role.USER, who or said, kind
    raise InvalidInput(f"no role and no speaker; {EXPECTED}")


def _text(content: JsonValue) -> tuple[str, list[JsonValue]]:
    """The text of a message, and its parts of unknown type with their place among the parts."""
    if isinstance(content, dict):
        content = cast(list[JsonValue], content["parts"]) if isinstance(content.get("parts"), list) else [content]
    if not isinstance(content, list):
        return str(content) if isinstance(content, str | int | float) else "", []
    texts: list[str] = []
    unknown: list[JsonValue] = []
    for index, part in enumerate(content):
        sort = part.get("type") or part.get("content_type") if isinstance(part, dict) else None
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and sort in (*_TEXTS, None) and isinstance(part.get("text"), str):
            texts.append(cast(str, part["text"]))
        elif sort in _IMAGES:
            texts.append("[image]")
        else:
            unknown.append({"index": index, "part": part})
            if len(content) == 1:
                texts.append(f"[{sort if isinstance(sort, str) and _LABEL.fullmatch(sort) else 'part'}]")
    return "\n".join(text for text in texts if text), unknown


def _call_name(call: JsonValue) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else call.get("name") if isinstance(call, dict) else None
    return clean(name) if isinstance(name, str) and _LABEL.fullmatch(name) else "unnamed"
