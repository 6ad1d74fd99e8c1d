"""Finds the place in the source where a missing barrier belongs: between two lines, or at the end of the loop around
them. It searches text and does not parse C++."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grader.checking.source_lines import Line, assignment, for_loops, read_lines

_NEARBY_LINES = 200
"""The number of lines before and after the two in which the loop around them is sought."""
_READ_LINES = 20
"""The number of lines after the second in which uses of arrays stored to before it are sought."""
_BARRIER = re.compile(r"\b__sync(?:threads|warp)\w*\s*\(|\bsync\s*\(|\bbar(?:rier)?[._]\w+")
_FUNCTION = re.compile(r"\b__(?:global|device)__\b")


@dataclass(frozen=True)
class Gap:
    """The place for a barrier: after line `after`, or, if each pass of a loop already has a barrier between the two
    lines, at `present`, before the loop's last line `closes`. All None if unknown. `looped`: a
    loop is around both lines."""

    after: int | None = None
    closes: int | None = None
    present: int | None = None
    looped: bool = True


def find_gap(source_line: Callable[[str, int], str], file: str, one: int, other: int) -> Gap:
    """Find where lines `one` and `other` of `file`, in any order, need a barrier."""
    first, last = sorted((one, other))
    begin = max(1, first - _NEARBY_LINES)
    text = "\n".join(source_line(file, number) for number in range(begin, last + _NEARBY_LINES))
    lines = read_lines([(file, text.encode())])
    between = [line for line in lines if first <= line.number + begin - 1 < last]
    if not between or not between[0].code.strip() or any(_FUNCTION.search(line.code) for line in between):
        return Gap()
    barriers = [line.number + begin - 1 for line in lines if _BARRIER.search(line.code)]
    present = next((number for number in barriers if first < number < last), None)
    around = [(loop.number + begin - 1, end + begin - 1) for loop, end in for_loops(lines)]
    if present is None:
        later = "\n".join(line.code for line in lines[last - begin : last - begin + _READ_LINES])
        looped = any(start <= first and last <= end for start, end in around)
        return Gap(after=begin - 1 + _last_end(between, later), looped=looped)
    loop = max(((start, end) for start, end in around if start <= first and last < end), default=None)
    if loop is None or any(loop[0] <= number <= first or last <= number <= loop[1] for number in barriers):
        return Gap()
    return Gap(closes=loop[1], present=present)


def _last_end(lines: Sequence[Line], later: str) -> int:
    """The line that closes the last of the blocks among `lines` that store to arrays which `later` uses; the first line
    is in one."""
    end = _end_of_block(lines)
    depth = 0
    for place, line in enumerate(lines):
        stored = assignment(line)
        shared = stored and stored[2] and re.search(rf"\b{stored[1]}\s*\[", later)
        if line.number > end and depth <= 0 and shared:
            end = _end_of_block(lines[place:])
        if line.number > end:
            depth += line.code.count("{") - line.code.count("}")
    return end


def _end_of_block(lines: Sequence[Line]) -> int:
    """The line that closes the outermost block that ends in `lines`; the first of them if none does."""
    depth = lowest = 0
    place = lines[0].number
    for line in lines:
        depth += line.code.count("{") - line.code.count("}")
        if depth < lowest:
            lowest, place = depth, line.number
    return place
