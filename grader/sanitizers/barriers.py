"""Finds the place where a missing barrier belongs: between two lines, or at the end of the loop around them. It
searches the source as text, without parsing C++."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grader.checking.source_lines import Line, assignment, for_loops, read_lines

_NEARBY_LINES = 200
"""A loop around two lines is searched for in this many lines before and after them."""
_READ_LINES = 20
"""The number of lines, beginning with the second of the two, that are searched for uses of an array stored to between
the two lines."""
_BARRIER = re.compile(r"\b__sync(?:threads|warp)\w*\s*\(|\bsync\s*\(|\bbar(?:rier)?[._]\w+")
_FUNCTION = re.compile(r"\b__(?:global|device)__\b")


@dataclass(frozen=True)
class Gap:
    """The place for a missing barrier between two lines: after line `after`. If a loop around them already has a
    barrier between them, at line `present`, the missing one belongs before the loop's last line `closes`. If the
    barrier `present` is in the block of an `if` that ends before the second line, `branch` is the line of this `if`.
    All of these are None if the place is unknown. `looped`: a loop is around both lines."""

    after: int | None = None
    closes: int | None = None
    present: int | None = None
    branch: int | None = None
    looped: bool = True


def find_gap(source_line: Callable[[str, int], str], file: str, one: int, other: int) -> Gap:
    """Find the place for a barrier between lines `one` and `other` of `file`, in any order."""
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
    if (branch := _branch_around(lines, present - begin, last - begin)) is not None:
        return Gap(present=present, branch=branch + begin)
    loop = max(((start, end) for start, end in around if start <= first and last < end), default=None)
    if loop is None or any(loop[0] <= number <= first or last <= number <= loop[1] for number in barriers):
        return Gap()
    return Gap(closes=loop[1], present=present)


def _branch_around(lines: Sequence[Line], barrier: int, last: int) -> int | None:
    """The place of the `if` whose block is around line `barrier` and ends before line `last`, both as places in
    `lines`; None if there is none."""
    depth = 0
    for place in range(barrier, -1, -1):
        depth += lines[place].code.count("}") - lines[place].code.count("{")
        if depth < 0:
            closes = _last_of_block(lines[place:])
            is_branch = re.search(r"\bif\s*\(", lines[place].code)
            return place if is_branch and closes is not None and place + closes < last else None
    return None


def _last_of_block(lines: Sequence[Line]) -> int | None:
    """The place of the line that closes the block which the first of `lines` opens."""
    depth = 0
    for place, line in enumerate(lines):
        depth += line.code.count("{") - line.code.count("}")
        if depth <= 0:
            return place
    return None


def _last_end(lines: Sequence[Line], later: str) -> int:
    """The line that closes the last block in `lines` that stores to an array which `later` uses. The block that
    contains the first line is assumed to contain such a store."""
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
    """The line that closes the outermost block that ends in `lines`; the first line if no block ends there."""
    depth = lowest = 0
    place = lines[0].number
    for line in lines:
        depth += line.code.count("{") - line.code.count("}")
        if depth < lowest:
            lowest, place = depth, line.number
    return place
