"""Topics as a namespace names them. What a person renames or merges is an event; the names follow from the events, so
that an undo is an event too and nothing can disagree with the log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from mnemic.domain.drafts import Draft
from mnemic.domain.topics import key
from mnemic.domain.types import Event, Kind
from mnemic.errors import InvalidInput, NotFound
from mnemic.store import Store

VERB = "topic"


@dataclass(frozen=True, slots=True)
class NamedTopic:
    """`keys`: the identities that this topic gathers. `chunks`: how many are about any of them."""

    label: str
    keys: tuple[str, ...]
    chunks: int


@dataclass(frozen=True, slots=True)
class Names:
    """`into`: key -> key it was merged into. `labels`: key -> label."""

    labels: Mapping[str, str]
    into: Mapping[str, str]

    def end(self, name: str) -> str:
        """Where a key leads, through all merges."""
        seen = set()
        while name in self.into and name not in seen:
            seen.add(name)
            name = self.into[name]
        return name

    def label(self, name: str) -> str:
        end = self.end(name)
        return self.labels.get(end, end)

    def keys(self, label: str) -> list[str]:
        """All identities gathered under a label, whatever its spelling. Empty when there is no such topic."""
        wanted = key(label)
        shown = [k for k, text in self.labels.items() if key(text) == wanted]
        ends = {self.end(k) for k in (wanted, *shown)}
        return sorted(k for k in {wanted, *self.labels, *self.into} if self.end(k) in ends)


def names(store: Store, namespace: str, keys: Collection[str] | None = None) -> Names:
    """Labels as first written, then every rename and merge in order; with `keys`, only what naming those needs."""
    renamed: dict[str, str] = {}
    into: dict[str, str] = {}
    for event in store.events.edits(namespace, VERB):
        operation = event.data.get("operation")
        name, target = str(event.data.get("key", "")), str(event.data.get("to", ""))
        if operation == "rename":
            renamed[name] = target
        elif operation == "merge":
            into[name] = target
        elif operation == "split":
            into.pop(name, None)
    ends = None if keys is None else {Names({}, into).end(key) for key in keys}
    return Names(store.chunks.labels(namespace, ends) | renamed, into)


def listed(store: Store, namespace: str) -> list[NamedTopic]:
    """Topics that chunks are about, most frequent first. Blocking."""
    named, gathered = names(store, namespace), dict[str, list[tuple[str, int]]]()
    for name, count in store.chunks.topic_counts(namespace).items():
        gathered.setdefault(named.end(name), []).append((name, count))
    topics = [
        NamedTopic(named.label(end), tuple(sorted(k for k, _ in parts)), sum(n for _, n in parts))
        for end, parts in gathered.items()
    ]
    return sorted(topics, key=lambda topic: (-topic.chunks, topic.label))


def rename(store: Store, namespace: str, old: str, new: str) -> Draft:
    """The edit that shows topic `old` as `new`; where `new` is a topic already, it merges `old` into it.

    Errors: NotFound, InvalidInput.
    """
    named = names(store, namespace)
    name = _known(named, old)
    if not new.strip():
        raise InvalidInput("a topic needs a name")
    others = [named.end(k) for k in named.keys(new)]
    target = next((k for k in others if k != name and k in named.labels), None)
    if target is not None:
        return _edit(f"merge topic {old!r} into {new!r}", {"operation": "merge", "key": name, "to": target})
    before = named.labels.get(name, name)
    return _edit(
        f"rename topic {old!r} to {new!r}", {"operation": "rename", "key": name, "to": new.strip(), "from": before}
    )


def undo(store: Store, namespace: str) -> Draft:
    """The edit that takes back the latest rename or merge that stands. Errors: NotFound."""
    undone: set[str] = set()
    for event in reversed(store.events.edits(namespace, VERB)):
        if "undoes" in event.data:
            undone.add(str(event.data["undoes"]))
        elif event.id.hex not in undone:
            return _inverse(event)
    raise NotFound("there is no rename or merge of a topic to undo")


def _inverse(event: Event) -> Draft:
    data = {"key": event.data["key"], "undoes": event.id.hex}
    if event.data["operation"] == "rename":
        return _edit(f"undo: {event.text}", {**data, "operation": "rename", "to": event.data["from"]})
    return _edit(f"undo: {event.text}", {**data, "operation": "split", "to": ""})


def _known(named: Names, label: str) -> str:
    for name in named.keys(label):
        if name in named.labels:
            return named.end(name)
    raise NotFound(f"there is no topic {label!r}; `mnemic topics list` shows them")


def _edit(text: str, data: Mapping[str, object]) -> Draft:
    return Draft(text, kind=Kind.EDIT.value, channel="edit", data={"verb": VERB, **data})  # type: ignore[dict-item]


def chunks_about(store: Store, namespace: str, labels: Iterable[str]) -> list[int]:
    """Ids of the chunks that are about any of these topics, renamed and merged as they may be. Blocking."""
    named = names(store, namespace)
    return store.chunks.about(namespace, {k for label in labels for k in named.keys(label)})
