"""Finds the place where a missing barrier belongs: between two lines, or at the end of the loop around them."""

from __future__ import annotations

from collections.abc import Iterable

from grader.cpp.source import Item, Source

_READ_LINES = 20
"""The number of lines, beginning with the second of the two, that are searched for uses of an array stored to between
the two lines."""


def missing_barrier(source: Source, file: str, one: int, other: int) -> dict[str, object]:
    """Where a barrier between lines `one` and `other` of `file` belongs, as facts: after line `after`. If a loop around
    them already has a barrier between them, at line `present`, or both are in one `if` that some threads do not enter,
    it belongs before the loop's last line `closes`. If the barrier `present` is in the block of an `if` that ends
    before the second line, `branch` is the line of this `if`. Empty if the place is unknown."""
    first, last = sorted((one, other))
    functions = [source.function_at(file, line) for line in (first, last)]
    if first == last or functions[0] is None or functions[0] != functions[1]:
        return {}
    barriers = [call.line for call in source.calls if call.is_barrier and call.file == file]
    present = next((line for line in barriers if first < line < last), None)
    around = [loop for loop in source.loops_around(file, first) if loop.holds(file, last)]
    branches = [b for b in source.branches if b.file == file]
    if present is None:
        inside = [b for b in branches if b.line <= first <= last <= b.end and "threadIdx" in b.condition]
        outside = [loop for loop in around if any(loop.line < branch.line for branch in inside)]
        if outside:
            return {"closes": outside[-1].end, "how": "loop_end"}
        return {"after": _last_end(source, file, first, last)}
    if ifs := [b.line for b in branches if b.line <= present <= b.end < last]:
        return {"present": present, "branch": max(ifs), "how": "branch"}
    loop = next((each for each in reversed(around) if each.end > last), None)
    if loop is None or any(loop.line <= line <= first or last <= line <= loop.end for line in barriers):
        return {}
    return {"present": present, "closes": loop.end, "how": "loop_end"}


def _last_end(source: Source, file: str, first: int, last: int) -> int:
    """The line that closes the last block before `last` that stores to an array which the lines from `last` on use. The
    block around the first line is assumed to contain such a store."""
    later = {use.name for use in source.uses if use.file == file and last <= use.line < last + _READ_LINES}
    blocks = [block for block in (*source.loops, *source.branches) if block.file == file]
    stored = [a for a in source.assignments if a.file == file and "[" in a.target and a.name in later]
    return max(_closed(blocks, line, last) for line in (first, *(a.line for a in stored if first < a.line < last)))


def _closed(blocks: Iterable[Item], line: int, last: int) -> int:
    """The end of the outermost block around `line` that ends before `last`; the line itself if there is none."""
    return max((block.end for block in blocks if block.line <= line <= block.end < last), default=line)
