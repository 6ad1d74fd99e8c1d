"""Finds the lines that a finding in a kernel goes back to: the early return of threads that are missed later, and the
launch that asked for too little shared memory. It searches text near the finding and does not parse C++."""

from __future__ import annotations

import re
from collections.abc import Callable

from grader.checking.source_lines import Line, read_lines
from grader.profiling.kernel_profile import short_name
from grader.programs.build import handed_in_name
from grader.programs.trace import Diagnostic

_NEARBY_LINES = 200
_RETURNED = "threads had returned before"
_TOO_SMALL = "past the end of the dynamic shared memory"
_RETURN = re.compile(r"\breturn\s*;")
_SIZE = re.compile(r"<<<[^,]*(?:\([^()]*\)[^,]*)?,[^,]*(?:\([^()]*\)[^,]*)?,\s*(\w+)\s*[,>]")


def with_origin(found: Diagnostic, message: str, source_line: Callable[[str, int], str]) -> str:
    """`message`, which `found` has, with the line it goes back to, as far as that is found."""
    if not found.line or not (_RETURNED in message or _TOO_SMALL in message):
        return message
    file, begin = handed_in_name(found.file or ""), max(1, found.line - _NEARBY_LINES)
    text = "\n".join(source_line(file, number) for number in range(begin, found.line + _NEARBY_LINES))
    lines = read_lines([(file, text.encode())])
    place = found.line - begin
    if _RETURNED in message:
        kernel = max((n for n, line in enumerate(lines[:place]) if "__global__" in line.code), default=0)
        early = next((n for n, line in enumerate(lines[kernel:place], kernel) if _RETURN.search(line.code)), None)
        return message if early is None else message.replace(_RETURNED, f"{_RETURNED}, at line {begin + early}")
    name = re.escape(short_name(found.kernel or "").partition("<")[0])
    launch = next((n for n, line in enumerate(lines) if re.search(rf"\b{name}\b.*<<<", line.code)), None)
    if launch is None:
        return message
    size = _size_of(lines[: launch + 1])
    computed = f", of the size computed at {file}:{begin + size}" if size is not None else ""
    return f"{message}, launched at {file}:{begin + launch}{computed}"


def _size_of(lines: tuple[Line, ...]) -> int | None:
    """The line that computes the size of dynamic shared memory for the launch in the last of `lines`."""
    given = _SIZE.search(lines[-1].code)
    sets = re.compile(rf"\b{given[1]}\s*=[^=]") if given else None
    return max((n for n, line in enumerate(lines[:-1]) if sets and sets.search(line.code)), default=None)
