"""Cutting a text into pieces an embedder can hold, by size (`split`) or by meaning (`split_semantic`).

Both work on *atoms*: sentences, fences and lines, contiguous and covering the text; what is longer than a piece is
shattered into words, then graphemes, then characters. Pieces are packed from atoms and cut at the best place of their
second half: a section, else a paragraph, else a sentence, else a word. Every token is counted about three times, so
time is linear in the text.

Rules that the settings leave open:

* `overlap_tokens` is a maximum. An overlap starts at a sentence if that gives at least half of it, else at a word; it
  never enters a fence, and it gives way where it would leave no room for new text.
* `min_tokens` and `breakpoint_threshold` belong to the semantic strategy, `overlap_tokens` to the token strategy.
* A heading is never the end of a piece unless the size forces it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mnemic.config import ChunkerConfig
from mnemic.domain.markup import Block, Break, blocks
from mnemic.domain.sentences import Sentence, lines, of_block, sentences
from mnemic.domain.tokens import TOKENS_PER_CHARACTER, TokenCounter, bytes_of, surely_fits
from mnemic.errors import ConfigError

__all__ = ["Piece", "check", "sentences", "split", "split_semantic"]

_LIKELY = 8  # characters a token; a longer text hardly fits, so it is not worth counting whole
_GROUP = 64  # characters; a run without sentence ends is cut at words, but no finer than this where words allow


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `start` to `stop` of the source.

    `tokens`: as the counter counts them; for a text that fits by its bytes alone, those bytes, an upper bound.
    `heading`: the path of Markdown headings over the first new character, outermost first, kept beside the text.
    """

    start: int
    stop: int
    tokens: int
    heading: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Atom:
    start: int
    stop: int
    tokens: int  # without one trailing space, which would join the next word
    before: Break
    whole: bool = False


@dataclass(frozen=True, slots=True)
class _Source:
    """A text with what is needed to measure parts of it."""

    text: str
    count: TokenCounter
    limit: int  # tokens

    def tokens(self, start: int, stop: int) -> int:
        return self.count(self.text[start:stop])

    def joined(self, start: int, stop: int) -> int:
        """The tokens a part adds when another follows: a space at its end will belong to the next word."""
        return self.tokens(start, stop - 1 if stop - start > 1 and self.text[stop - 1] == " " else stop)


def check(config: ChunkerConfig) -> None:
    """Errors: ConfigError when the sizes contradict each other for the chosen strategy."""
    size, least = config.max_tokens, TOKENS_PER_CHARACTER
    if size < least:
        raise ConfigError(f"chunker.max_tokens = {size} is less than {least}, which one character can take")
    match config.strategy:
        case "token":
            if not 0 <= config.overlap_tokens < size:
                raise ConfigError(
                    f"chunker.overlap_tokens = {config.overlap_tokens} must be at least 0 and less than "
                    f"chunker.max_tokens = {size}"
                )
        case "semantic":
            if not 0 <= config.min_tokens <= size:
                raise ConfigError(
                    f"chunker.min_tokens = {config.min_tokens} must be at least 0 and at most "
                    f"chunker.max_tokens = {size}"
                )
            if not -1 <= config.breakpoint_threshold <= 1:
                raise ConfigError(
                    f"chunker.breakpoint_threshold = {config.breakpoint_threshold} is a cosine and must lie in -1 to 1"
                )
        case unknown:
            raise ConfigError(f"chunker.strategy = {unknown!r} is neither 'token' nor 'semantic'")


def split(text: str, config: ChunkerConfig, count: TokenCounter) -> list[Piece]:
    """The pieces of `text` by size, in order, each at most `max_tokens`; without overlaps they rebuild the text.

    `count` is not called for a text of at most `max_tokens` bytes. A semantic configuration is split without overlap:
    what to do when there are no vectors. Errors: ConfigError, see `check`.
    """
    check(config)
    if surely_fits(text, config.max_tokens):
        return [Piece(0, len(text), bytes_of(text))] if text else []
    if len(text) <= config.max_tokens * _LIKELY and (tokens := count(text)) <= config.max_tokens:
        return [Piece(0, len(text), tokens)]
    structure = blocks(text)
    source = _Source(text, count, config.max_tokens)
    overlap = config.overlap_tokens if config.strategy == "token" else 0
    atoms = _atoms(source, [sentence for block in structure for sentence in of_block(text, block)])
    return [_piece(structure, *packed) for packed in _pack(source, atoms, overlap)]


def split_semantic(
    text: str, spans: Sequence[Sentence], similarities: Sequence[float], config: ChunkerConfig, count: TokenCounter
) -> list[Piece]:
    """The pieces of `text` by meaning, in order and without overlap.

    `spans`: `sentences(text)`. `similarities`: cosine of the vectors of each sentence and the next, len(spans) - 1.
    A piece ends where the cosine falls below `breakpoint_threshold`; a piece below `min_tokens` joins the neighbour it
    resembles more, if both fit together; a piece above `max_tokens` is cut as `split` does. Errors: ConfigError.
    """
    check(config)
    if not text:
        return []
    if len(similarities) != len(spans) - 1:
        raise ValueError(f"{len(spans)} sentences need {len(spans) - 1} similarities, not {len(similarities)}")
    structure = blocks(text)
    source = _Source(text, count, config.max_tokens)
    runs = _merged(_runs(source, spans, similarities, config.breakpoint_threshold), config)
    packed = (part for run in runs for part in _pack(source, _atoms(source, run.sentences), 0))
    return [_piece(structure, *part) for part in packed]


def _piece(structure: Sequence[Block], start: int, fresh: int, stop: int, tokens: int) -> Piece:
    block = structure[bisect_right(structure, fresh, key=lambda block: block.start) - 1]
    return Piece(start, stop, tokens, block.heading)


# --- atoms ------------------------------------------------------------------------------------------------------


def _atoms(source: _Source, spans: Sequence[Sentence]) -> list[_Atom]:
    return [atom for span in spans for atom in _atoms_of(source, span)]


def _atoms_of(source: _Source, span: Sentence) -> Iterator[_Atom]:
    if span.stop - span.start <= source.limit * _GROUP:  # a longer one cannot fit, and is not worth counting
        tokens = source.joined(span.start, span.stop)
        if tokens < source.limit:  # not equal: the space left out may be one more
            yield _Atom(span.start, span.stop, tokens, span.before, span.whole)
            return
    if span.whole:  # a fence alone exceeds a piece: its lines
        start, before = span.start, span.before
        for stop in [*lines(source.text, span.start, span.stop), span.stop]:
            yield from _atoms_of(source, Sentence(start, stop, before))
            start, before = stop, Break.SENTENCE
        return
    yield from _shatter(source, span.start, span.stop, span.before)


def _shatter(source: _Source, start: int, stop: int, before: Break, level: int = 0) -> Iterator[_Atom]:
    """Atoms of a part too long for one piece: groups of words, else of graphemes, else of characters."""
    size = min(max(source.limit // TOKENS_PER_CHARACTER, 1), _GROUP)
    for low, high in _groups(source.text, (start, stop), level, size):
        tokens = source.joined(low, high) if high - low <= source.limit * _GROUP else source.limit
        if tokens < source.limit or level == len(_CUTS) - 1:
            yield _Atom(low, high, tokens, before)
        else:
            yield from _shatter(source, low, high, before, level + 1)
        before = _CUTS[level][1]


# Words between white space, words as Unicode (UAX 29) sees them, graphemes, characters. `regex` knows the latter two.
_CUTS: tuple[tuple[str, Break], ...] = (
    (r"\S+\s*|\s+", Break.WORD),
    (r"(?sw).+?(?:\b|$)", Break.WORD),
    (r"\X{1,16}+", Break.INSIDE),
    (r"\X", Break.INSIDE),
    (r"(?s).", Break.INSIDE),
)


def _groups(text: str, part: tuple[int, int], level: int, size: int) -> Iterator[tuple[int, int]]:
    """The units of a level, neighbours joined while they have at most `size` characters together."""
    import regex  # type: ignore[import-untyped]  # late: only long texts come here

    low = high = part[0]
    for unit in regex.finditer(_CUTS[level][0], text, pos=part[0], endpos=part[1]):
        if high > low and unit.end() - low > size:
            yield low, high
            low = high
        high = unit.end()
    if part[1] > low:
        yield low, part[1]


# --- packing ----------------------------------------------------------------------------------------------------


def _pack(source: _Source, atoms: Sequence[_Atom], overlap: int) -> Iterator[tuple[int, int, int, int]]:
    """(start, first new character, stop, tokens) of pieces that hold all atoms, each at most the limit."""
    first, start, lead = 0, 0, 0
    while first < len(atoms):
        fresh = atoms[first].start
        if first == 0 or lead + atoms[first].tokens > source.limit:  # no room for an overlap
            start, lead = fresh, 0
        last = _cut(atoms, first, _fill(atoms, first, source.limit - lead), source.limit - lead)
        while (excess := (tokens := source.tokens(start, atoms[last - 1].stop)) - source.limit) > 0:
            if last > first + 1:
                last = _shrink(atoms, first, last, excess)
            elif start < fresh:
                start = fresh
            else:  # one character that exceeds the limit: only with a counter of more than a token a byte
                break
        yield start, fresh, atoms[last - 1].stop, tokens
        if overlap and last < len(atoms):
            start, lead = _overlap(source, atoms, (start, last), overlap)
        else:
            start, lead = atoms[last - 1].stop, 0
        first = last


def _fill(atoms: Sequence[_Atom], first: int, room: int) -> int:
    last = first
    while last < len(atoms) and (atoms[last].tokens <= room or last == first):
        room -= atoms[last].tokens
        last += 1
    return last


def _cut(atoms: Sequence[_Atom], first: int, last: int, room: int) -> int:
    """The best place to end a piece that could hold atoms `first` to `last`: the latest of the highest break, in the
    second half of the piece."""
    if last == len(atoms):
        return last
    best, left = last, room - sum(atom.tokens for atom in atoms[first:last])
    for place in range(last - 1, first, -1):
        left += atoms[place].tokens
        if left > room // 2:
            break
        if atoms[place].before > atoms[best].before:
            best = place
    return best


def _shrink(atoms: Sequence[_Atom], first: int, last: int, excess: int) -> int:
    """Fewer atoms, by at least `excess` tokens and at least one atom, but one remains."""
    while last > first + 1:
        last -= 1
        excess -= atoms[last].tokens
        if excess <= 0:
            break
    return last


def _overlap(source: _Source, atoms: Sequence[_Atom], piece: tuple[int, int], overlap: int) -> tuple[int, int]:
    """Where the piece after piece = (start, last atom + 1) starts, and the tokens it repeats."""
    floor, last = piece
    stop = atoms[last - 1].stop
    starts: list[int] = []
    total, place = 0, last - 1
    while place >= 0 and _may_repeat(atoms[place], floor) and total + atoms[place].tokens <= overlap:
        total += atoms[place].tokens
        starts.append(atoms[place].start)
        place -= 1
    if total * 2 < overlap and place >= 0 and not atoms[place].whole and atoms[place].stop > floor:
        words = _Source(source.text, source.count, min(overlap, 16))  # small groups: close to what was asked for
        parts = _shatter(words, max(atoms[place].start, floor), atoms[place].stop, Break.INSIDE)
        for part in reversed([part for part in parts if part.before is Break.WORD and part.start > floor]):
            total += part.tokens
            starts.append(part.start)
            if total >= overlap:
                break
    for start in reversed(starts):
        if (tokens := source.tokens(start, stop)) <= overlap:
            return start, tokens
    return stop, 0


def _may_repeat(atom: _Atom, floor: int) -> bool:
    return not atom.whole and atom.start > floor


# --- runs of meaning --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Run:
    """Sentences about one thing; `behind`: the cosine over the boundary at its end."""

    sentences: tuple[Sentence, ...]
    tokens: int
    behind: float

    def __add__(self, other: _Run) -> _Run:
        return _Run(self.sentences + other.sentences, self.tokens + other.tokens, other.behind)


def _runs(source: _Source, spans: Sequence[Sentence], similarities: Sequence[float], threshold: float) -> list[_Run]:
    runs: list[_Run] = []
    first = tokens = 0
    for place, span in enumerate(spans):
        tokens += source.joined(span.start, span.stop)
        behind = similarities[place] if place < len(similarities) else -1.0
        ends = place + 1 == len(spans) or (behind < threshold and spans[place + 1].before is not Break.STUCK)
        if ends:
            runs.append(_Run(tuple(spans[first : place + 1]), tokens, behind))
            first, tokens = place + 1, 0
    return runs


def _merged(runs: Sequence[_Run], config: ChunkerConfig) -> list[_Run]:
    """Runs below `min_tokens` joined to the neighbour they resemble more, of those that leave them within the limit."""
    done: list[_Run] = []
    ahead = deque(runs)
    while ahead:
        run = ahead.popleft()
        room = config.max_tokens - run.tokens
        joins_before = bool(done) and done[-1].tokens <= room
        joins_behind = bool(ahead) and ahead[0].tokens <= room
        if run.tokens >= config.min_tokens or not (joins_before or joins_behind):
            done.append(run)
        elif joins_behind and not (joins_before and done[-1].behind >= run.behind):
            ahead[0] = run + ahead[0]
        else:
            done[-1] += run
    return done
