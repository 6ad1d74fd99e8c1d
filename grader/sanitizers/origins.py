"""Finds source lines that explain a finding in a kernel: the early return of threads that should have written a value,
the launch with too little shared memory, the lines that set the pointer or the offset of an access past the end of an
allocation.

It searches the text near the finding, without parsing C++."""

from __future__ import annotations

import re
from collections.abc import Callable

from grader.checking.source_lines import WORD, Line, read_lines
from grader.profiling.kernel_profile import short_name
from grader.programs.build import handed_in_name
from grader.programs.trace import Diagnostic

_NEARBY_LINES = 200
_RETURNED = "threads had returned before"
_TOO_SMALL = "past the end of the dynamic shared memory"
_OUTSIDE = "past the end of"
_JUST_PAST = "just past the end"
_MOST_NAMES = 3
NO_SIZEOF = "but cudaMalloc takes bytes: sizeof is missing"
_ALLOCATED = re.compile(r"allocated at ([^\s:)]+):(\d+)")
_MALLOC = re.compile(r"\bcudaMalloc\w*\s*\([^,]*,(.*)\)")
_GRID = re.compile(r"<<<\s*([A-Za-z_]\w*)")
_ELEMENT = re.compile(r"\b([A-Za-z_]\w*)\s*\[([^\[\]]*)\]")
_RETURN = re.compile(r"\breturn\s*;")
_SIZE = re.compile(r"<<<[^,]*(?:\([^()]*\)[^,]*)?,[^,]*(?:\([^()]*\)[^,]*)?,\s*(\w+)\s*[,>]")


def with_origin(found: Diagnostic, message: str, source_line: Callable[[str, int], str]) -> str:
    """The `message` of the finding `found`, with the line that explains it if there is one."""
    if not found.line or not any(words in message for words in (_RETURNED, _TOO_SMALL, _OUTSIDE)):
        return message
    file, begin = handed_in_name(found.file or ""), max(1, found.line - _NEARBY_LINES)
    text = "\n".join(source_line(file, number) for number in range(begin, found.line + _NEARBY_LINES))
    lines = read_lines([(file, text.encode())])
    place = found.line - begin
    kernel = max((n for n, line in enumerate(lines[:place]) if "__global__" in line.code), default=0)
    if _TOO_SMALL not in message and _OUTSIDE in message:
        if count := _without_sizeof(message, source_line):
            return f"{message}; {count} asks for a number of values, {NO_SIZEOF}"
        if _JUST_PAST in message and found.thread == (0, 0, 0) and any(found.block or ()):
            return (
                f"{message}; this is the first thread of its block, so the grid may be too large{_grid(lines, begin)}"
            )
        return f"{message}{_set_at(lines[kernel : place + 1], begin + kernel)}"
    if _RETURNED in message:
        early = next((n for n, line in enumerate(lines[kernel:place], kernel) if _RETURN.search(line.code)), None)
        return message if early is None else message.replace(_RETURNED, f"{_RETURNED}, at line {begin + early}")
    name = re.escape(short_name(found.kernel or "").partition("<")[0])
    launch = next((n for n, line in enumerate(lines) if re.search(rf"\b{name}\b.*<<<", line.code)), None)
    if launch is None:
        return message
    size = _size_of(lines[: launch + 1])
    computed = f", of the size computed at {file}:{begin + size}" if size is not None else ""
    return f"{message}, launched at {file}:{begin + launch}{computed}"


def _without_sizeof(message: str, source_line: Callable[[str, int], str]) -> str:
    """ "line 121" if the allocation that `message` names has a product without any word for bytes as its size, else
    ''."""
    made = _ALLOCATED.search(message)
    call = _MALLOC.search(source_line(made[1], int(made[2]))) if made else None
    counts = call is not None and "*" in call[1] and not re.search(r"sizeof|byte|size|\b[48]\b", call[1], re.IGNORECASE)
    return f"line {made[2]}" if made and counts else ""


def _grid(lines: tuple[Line, ...], begin: int) -> str:
    """ " (line 164)": the line that sets the grid of the first launch; '' if it is not found."""
    launch = next((each for line in lines if (each := _GRID.search(line.code))), None)
    sets = re.compile(rf"\b{launch[1]}\s*[=({{]") if launch else None
    set_at = next((n for n, line in enumerate(lines, begin) if sets and sets.search(line.code)), None)
    return f" (line {set_at})" if set_at is not None else ""


def _set_at(lines: tuple[Line, ...], begin: int) -> str:
    """The lines that set the variables of the last line's array access, as in "; line 32 sets `row0`, line 36 sets
    `O`"."""
    if not lines:
        return ""
    found: dict[int, str] = {}
    for array, index in _ELEMENT.findall(lines[-1].code):
        for name in dict.fromkeys((array, *WORD.findall(index))):
            sets = rf"\*\s*(?:(?:const|__restrict__)\s+)*{name}\s*=|^\s*{name}\s*\+=|\b{name}\s*=[^=].*\bblockIdx\b"
            places = [n for n, line in enumerate(lines[:-1], begin) if re.search(sets, line.code)]
            found |= {places[-1]: name} if places else {}
    listed = [f"line {number} sets `{name}`" for number, name in sorted(found.items())[:_MOST_NAMES]]
    return f"; {', '.join(listed)}" if listed else ""


def _size_of(lines: tuple[Line, ...]) -> int | None:
    """The line that computes the size of dynamic shared memory for the launch in the last of `lines`."""
    given = _SIZE.search(lines[-1].code)
    sets = re.compile(rf"\b{given[1]}\s*=[^=]") if given else None
    return max((n for n, line in enumerate(lines[:-1]) if sets and sets.search(line.code)), default=None)
