"""The ten perceptions of a working agent as typed drafts: what each sense records, and never more than that.

Eye reads and searches, body acts, tongue writes, nose smells trouble, outcome says what was wanted and what came of
it. The text is one line that a person can read and search; the particulars are in `data`. File contents are not
recorded on a read; outputs and differences keep their head and tail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mnemic.domain.drafts import Draft
from mnemic.domain.types import JsonValue, Kind
from mnemic.errors import InvalidInput

Told = Mapping[str, JsonValue]

OUTPUT_CHARS = 2_000  # of a command's output or a difference
LINE_CHARS = 500


def eye_read(paths: str | Sequence[str], *, lines: tuple[int, int] | None = None) -> Draft:
    """Which files were read, and which lines of them; never their content."""
    files = [paths] if isinstance(paths, str) else list(paths)
    span = f" lines {lines[0]}-{lines[1]}" if lines else ""
    return _draft(Kind.EYE_READ, f"read {', '.join(files)}{span}", {"paths": [*files], "lines": list(lines or ())})


def eye_search(pattern: str, *, path: str = "", hits: int | None = None) -> Draft:
    """What was searched for in the code, where, and how many hits it had."""
    where = f" in {path}" if path else ""
    found = f": {hits} hits" if hits is not None else ""
    return _draft(
        Kind.EYE_SEARCH, f"searched {pattern!r}{where}{found}", {"pattern": pattern, "path": path, "hits": hits}
    )


def body_tool(tool: str, arguments: Mapping[str, JsonValue], *, success: bool) -> Draft:
    """A tool that was used: its name, its input, and whether it worked."""
    shown = ", ".join(f"{key}={value}" for key, value in arguments.items())
    outcome = "ok" if success else "failed"
    text = f"tool {tool}({cut(shown, LINE_CHARS)}) {outcome}"
    return _draft(Kind.BODY_TOOL, text, {"tool": tool, "arguments": dict(arguments), "success": success})


def body_bash(command: str, *, output: str = "", exit_code: int = 0, duration_ms: int | None = None) -> Draft:
    """A command that was run, the head and tail of its output, its exit code and how long it took."""
    text = f"$ {cut(command, LINE_CHARS)}\nexit {exit_code}"
    if output.strip():
        text += f"\n{cut(output, OUTPUT_CHARS)}"
    return _draft(Kind.BODY_BASH, text, {"command": command, "exit_code": exit_code, "duration_ms": duration_ms})


def tongue_write(path: str, *, what: str = "", lines: int | None = None) -> Draft:
    """A file that was written: its path and, in words, what it holds."""
    size = f" ({lines} lines)" if lines is not None else ""
    about = f": {cut(what, LINE_CHARS)}" if what else ""
    return _draft(Kind.TONGUE_WRITE, f"wrote {path}{size}{about}", {"path": path, "lines": lines})


def tongue_edit(path: str, diff: str) -> Draft:
    """A file that was changed, and the difference."""
    return _draft(Kind.TONGUE_EDIT, f"edited {path}\n{cut(diff, OUTPUT_CHARS)}", {"path": path})


def nose_error(error: str, *, context: str = "") -> Draft:
    """An error: its type or first line, and where it came up."""
    return _draft(
        Kind.NOSE_ERROR, _smell("error", error, context), {"error": cut(error, LINE_CHARS), "context": context}
    )


def nose_warning(warning: str, *, context: str = "") -> Draft:
    """A warning, and where it came up."""
    return _draft(
        Kind.NOSE_WARNING,
        _smell("warning", warning, context),
        {"warning": cut(warning, LINE_CHARS), "context": context},
    )


def outcome_task(description: str, *, scope: str = "") -> Draft:
    """A goal that was set, and its scope."""
    within = f" (scope: {scope})" if scope else ""
    return _draft(Kind.OUTCOME_TASK, f"task: {description}{within}", {"description": description, "scope": scope})


def outcome_done(description: str, *, score: float) -> Draft:
    """A goal that was reached, as far as `score`, 0.0 to 1.0, says."""
    if not 0.0 <= score <= 1.0:
        raise InvalidInput(f"score {score} is not between 0 and 1")
    return _draft(
        Kind.OUTCOME_DONE, f"done: {description} (score {score:g})", {"description": description, "score": score}
    )


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, the middle left out."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head - 5
    return f"{text[:head]} ... {text[-tail:]}"


def _smell(word: str, text: str, context: str) -> str:
    where = f" [{cut(context, LINE_CHARS)}]" if context else ""
    return f"{word}: {cut(text, OUTPUT_CHARS)}{where}"


def _draft(kind: Kind, text: str, data: Mapping[str, JsonValue]) -> Draft:
    told = {key: value for key, value in data.items() if value not in (None, "", [])}
    return Draft(text=text, role="tool", kind=kind.value, channel="agent", data=told)
