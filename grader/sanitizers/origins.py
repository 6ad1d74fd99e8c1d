"""Finds the lines that a finding in a kernel goes back to: the early return of threads that are missed later, the
launch that asked for too little shared memory, what sets the pointer and the block's offset of an access past an end.

It searches text near the finding and does not parse C++."""

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
_MOST_NAMES = 3
_ELEMENT = re.compile(r"\b([A-Za-z_]\w*)\s*\[([^\[\]]*)\]")
_RETURN = re.compile(r"\breturn\s*;")
_SIZE = re.compile(r"<<<[^,]*(?:\([^()]*\)[^,]*)?,[^,]*(?:\([^()]*\)[^,]*)?,\s*(\w+)\s*[,>]")


def with_origin(found: Diagnostic, message: str, source_line: Callable[[str, int], str]) -> str:
    """`message`, which `found` has, with the line it goes back to, as far as that is found."""
    if not found.line or not any(words in message for words in (_RETURNED, _TOO_SMALL, _OUTSIDE)):
        return message
    file, begin = handed_in_name(found.file or ""), max(1, found.line - _NEARBY_LINES)
    text = "\n".join(source_line(file, number) for number in range(begin, found.line + _NEARBY_LINES))
    lines = read_lines([(file, text.encode())])
    place = found.line - begin
    kernel = max((n for n, line in enumerate(lines[:place]) if "__global__" in line.code), default=0)
    if _TOO_SMALL not in message and _OUTSIDE in message:
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


def _set_at(lines: tuple[Line, ...], begin: int) -> str:
    """ "; line 32 sets `row0`, line 36 `O`", of what the last of `lines` computes an element's place from."""
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
