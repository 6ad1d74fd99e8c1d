"""The differences between the sources of two submissions, drawn in the room: difflib takes hours for some texts."""

from __future__ import annotations

import difflib
from typing import Annotated

from pydantic import Field

from grader.base.names import spelled_out
from grader.sandbox.room import confined
from grader.store import Compressed, Files, decompressed

_COMPARED_BYTES = 400_000
_SHOWN_LINES = 4000
_KINDS = {"+++": "file", "---": "file", "@@ ": "where"}


def changes(before: Files, after: Files, sides: tuple[str, str] = ("before", "after")) -> list[tuple[str, str]]:
    """The lines of a unified diff, each with its kind: file, where, add, remove or same. Call it in the room."""
    left, right = sides
    if sum(len(content) for _, content in (*before, *after)) > _COMPARED_BYTES:
        return [("where", "The files are too large to compare here.")]
    old, new = dict(before), dict(after)
    lines: list[tuple[str, str]] = []
    for name in sorted(old.keys() | new.keys()):
        was, now = (spelled_out(side.get(name, b"").decode(errors="replace")).splitlines() for side in (old, new))
        for line in difflib.unified_diff(was, now, f"{name}, {left}", f"{name}, {right}", lineterm=""):
            kind = _KINDS.get(line[:3]) or {"+": "add", "-": "remove"}.get(line[:1], "same")
            lines.append((kind, line))
    return lines[:_SHOWN_LINES]


@confined()
def source_difference(
    before: Compressed, after: Compressed, sides: tuple[str, str]
) -> Annotated[str, Field(max_length=2 * _COMPARED_BYTES)]:
    """The changes as text; '' if the sources are the same. `sides` name the two."""
    lines = changes(decompressed(before), decompressed(after), sides)
    return "\n".join(line for _, line in lines)[: 2 * _COMPARED_BYTES]
