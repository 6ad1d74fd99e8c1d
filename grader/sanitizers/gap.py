"""Finds the place where a missing barrier belongs: between two lines, or at the end of the loop around them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grader.cpp.source import Item, Source

_READ_LINES = 20
"""The number of lines, beginning with the second of the two, that are searched for uses of an array stored to between
the two lines."""


@dataclass(frozen=True)
class Gap:
    """The place for a missing barrier between two lines: after line `after`. If a loop around them already has a
    barrier between them, at line `present`, the missing one belongs before the loop's last line `closes`. If the
    barrier `present` is in the block of an `if` that ends before the second line, `branch` is the line of this `if`.
    Without a barrier, it belongs before `closes`, too, if both lines are in one `if` that some threads do not enter.
    All of these are None if the place is unknown. `looped`: a loop is around both lines."""

    after: int | None = None
    closes: int | None = None
    present: int | None = None
    branch: int | None = None
    looped: bool = True


def find_gap(source: Source, file: str, one: int, other: int) -> Gap:
    """Find the place for a barrier between lines `one` and `other` of `file`, in any order."""
    first, last = sorted((one, other))
    functions = [source.function_at(file, line) for line in (first, last)]
    if first == last or functions[0] is None or functions[0] != functions[1]:
        return Gap()
    barriers = [call.line for call in source.calls if call.is_barrier and call.file == file]
    present = next((line for line in barriers if first < line < last), None)
    around = [loop for loop in source.loops_around(file, first) if loop.holds(file, last)]
    if present is None:
        inside = [
            b for b in source.branches if b.holds(file, first) and b.holds(file, last) and "threadIdx" in b.condition
        ]
        inner = max(
            (loop for loop in around if any(loop.line < b.line for b in inside)),
            key=lambda loop: loop.line,
            default=None,
        )
        if inner is not None:
            return Gap(closes=inner.end)
        return Gap(after=_last_end(source, file, first, last), looped=bool(around))
    ifs = [b for b in source.branches if b.holds(file, present) and b.end < last]
    if ifs:
        return Gap(present=present, branch=max(branch.line for branch in ifs))
    loop = max((each for each in around if each.end > last), key=lambda each: each.line, default=None)
    if loop is None or any(loop.line <= line <= first or last <= line <= loop.end for line in barriers):
        return Gap()
    return Gap(closes=loop.end, present=present)


def _last_end(source: Source, file: str, first: int, last: int) -> int:
    """The line that closes the last block before `last` that stores to an array which the lines from `last` on use. The
    block around the first line is assumed to contain such a store."""
    later = {use.name for use in source.uses if use.file == file and last <= use.line < last + _READ_LINES}
    blocks = [block for block in (*source.loops, *source.branches) if block.file == file]
    stores = [a.line for a in source.assignments if a.file == file and "[" in a.target and a.name in later]
    end = _closed(blocks, first, last)
    for line in sorted(line for line in stores if first < line < last):
        end = max(end, _closed(blocks, line, last))
    return end


def _closed(blocks: Iterable[Item], line: int, last: int) -> int:
    """The end of the outermost block around `line` that ends before `last`; the line itself if there is none."""
    return max((block.end for block in blocks if block.line <= line <= block.end < last), default=line)
