"""Finds source lines that explain a finding in a kernel: the early return of threads that should have written a value,
the launch with too little shared memory, the lines that set the pointer or the offset of an access past the end of an
allocation.

It searches the text near the finding, without parsing C++."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from grader.checking.source_lines import WORD, Line, for_loops, read_lines
from grader.profiling.kernel_profile import short_name
from grader.programs.build import handed_in_name
from grader.programs.trace import Diagnostic

_NEARBY_LINES = 200
_RETURNED = "threads had returned before"
_TOO_SMALL = "past the end of the dynamic shared memory"
_OUTSIDE = "past the end of"
_MOST_NAMES = 3
NO_SIZEOF = "but cudaMalloc takes bytes: sizeof is missing"
_ALLOCATED = re.compile(r"allocated at ([^\s:)]+):(\d+)")
_MALLOC = re.compile(r"\bcudaMalloc\w*\s*\([^,]*,(.*)\)")
_ELEMENT = re.compile(r"\b([A-Za-z_]\w*)\s*\[([^\[\]]*)\]")
_STORES = re.compile(r"line (\d+) stores the words? before\b")
_HEAD = re.compile(r"\b__(global|device)__\b[^()]*?\b(\w+)\s*\(")
_RETURN = re.compile(r"\breturn\s*;")
_LOOSE = re.compile(
    r"\bif\s*\((?=[^;{]*?(?P<name>\w+)\s*>\s*(?P<end>\w[\w.* ]*?)\s*(?:\)|\|\|))[^;{]*\)\s*\{?\s*"
    r"(?:return|continue|break)\b"
    r"|\b(?:if|for|while)\s*\([^{]*?(?P<index>\w+)\s*<=\s*(?P<last>\w[\w.* ]*?)\s*(?:;|\)|&&)"
)
_SIZE = re.compile(r"<<<[^,]*(?:\([^()]*\)[^,]*)?,[^,]*(?:\([^()]*\)[^,]*)?,\s*(\w+)\s*[,>]")


def with_origin(found: Diagnostic, message: str, source_line: Callable[[str, int], str]) -> str:
    """The `message` of the finding `found`, with the line that explains it if there is one."""
    if found.line and (store := _STORES.search(message)):
        loops = _in_loops(found.file or "", int(store[1]), source_line)
        return message.replace(store[0], store[0].replace(" stores", f"{loops} stores"))
    if not found.line or not any(words in message for words in (_RETURNED, _TOO_SMALL, _OUTSIDE)):
        return message
    file, begin, lines = _lines_near(found.file or "", found.line, source_line)
    place = found.line - begin
    kernel = max((n for n, line in enumerate(lines[:place]) if "__global__" in line.code), default=0)
    if _TOO_SMALL not in message and _OUTSIDE in message:
        if count := _without_sizeof(message, source_line):
            return f"{message}; {count} asks for a number of values, {NO_SIZEOF}"
        return f"{message}{origin_of_index(found, source_line)}"
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


def _lines_near(file: str, number: int, source_line: Callable[[str, int], str]) -> tuple[str, int, tuple[Line, ...]]:
    """(the file's submitted name, the number of the first line, the lines) near line `number`."""
    name, begin = handed_in_name(file), max(1, number - _NEARBY_LINES)
    text = "\n".join(source_line(name, each) for each in range(begin, number + _NEARBY_LINES))
    return name, begin, read_lines([(name, text.encode())])


def calls_of_helper(file: str, number: int, source_line: Callable[[str, int], str]) -> str:
    """ " (called at lines 30 and 31)" if line `number` is in a __device__ function; else ''."""
    _, begin, lines = _lines_near(file, number, source_line)
    heads = [line for line in lines[: number - begin + 1] if _HEAD.search(line.code)]
    head = _HEAD.search(heads[-1].code) if heads else None
    if head is None or head[1] == "global":
        return ""
    call = re.compile(rf"\b{head[2]}\s*(?:<[^<>()]*>)?\s*\(")
    called = [str(line.number + begin - 1) for line in lines if call.search(line.code) and line is not heads[-1]]
    listed = " and ".join(called[:_MOST_NAMES])
    return f" (called at line{'s' if len(called) > 1 else ''} {listed})" if called else ""


def _in_loops(file: str, number: int, source_line: Callable[[str, int], str]) -> str:
    """ " (in the loops of lines 29 and 30)": the two innermost loops around line `number`; '' if there is none."""
    _, begin, lines = _lines_near(file, number, source_line)
    around = [loop.number + begin - 1 for loop, end in for_loops(lines) if loop.number <= number - begin + 1 <= end]
    many = "s" if len(around) > 1 else ""
    return f" (in the loop{many} of line{many} {' and '.join(map(str, around[-2:]))})" if around else ""


def origin_of_index(found: Diagnostic, source_line: Callable[[str, int], str]) -> str:
    """A clause on the guard or loop before the access of `found` that lets an index be one too large or, if there is
    none, on the lines that set the pointer and the index."""
    file, begin, lines = _lines_near(found.file or "", found.line or 0, source_line)
    lines = lines[: (found.line or 0) - begin + 1]
    kernel = max((n for n, line in enumerate(lines) if "__global__" in line.code), default=0)
    loose = _loose_bound(lines[kernel:], begin + kernel, file)
    return f"; {loose}" if loose else _set_at(lines[kernel:], begin + kernel)


def _loose_bound(lines: Sequence[Line], begin: int, file: str) -> str:
    """A clause on the last guard or loop in `lines` that lets an index reach its limit, such as `if (row > n) return;`
    or `for (key = 0; key <= n; …)`; '' if there is none."""
    for number, line in reversed(list(enumerate(lines, begin))):
        if found := _LOOSE.search(line.code):
            name, end = (found["name"], found["end"]) if found["name"] else (found["index"], found["last"])
            of_thread = re.compile(rf"\b{name}\s*=[^=].*\b(?:blockIdx|threadIdx)\b")
            if line.code.strip().startswith(("for", "while")) or any(of_thread.search(each.code) for each in lines):
                right = ">=" if found["name"] else "<"
                return f"{file}:{number} lets `{name}` be {end}, one past the last: it needs {right}"
    return ""


def _without_sizeof(message: str, source_line: Callable[[str, int], str]) -> str:
    """ "line 121" if the size of the allocation that `message` names is a product in which neither sizeof nor another
    word for bytes occurs; else ''."""
    made = _ALLOCATED.search(message)
    call = _MALLOC.search(source_line(made[1], int(made[2]))) if made else None
    counts = call is not None and "*" in call[1] and not re.search(r"sizeof|byte|size|\b[48]\b", call[1], re.IGNORECASE)
    return f"line {made[2]}" if made and counts else ""


def _set_at(lines: tuple[Line, ...], begin: int) -> str:
    """The lines that set the variables of the last line's array access, as in "; line 32 sets `row0`, line 36 sets
    `O`"."""
    if not lines:
        return ""
    found: dict[int, str] = {}
    for array, index in _ELEMENT.findall(lines[-1].code):
        for name in dict.fromkeys((array, *WORD.findall(index))):
            sets = (
                rf"\*\s*(?:(?:const|__restrict__)\s+)*{name}\s*=|(?:^|;)\s*{name}\s*\+=|\b{name}\s*=[^=].*\bblockIdx\b"
            )
            places = [n for n, line in enumerate(lines[:-1], begin) if re.search(sets, line.code)]
            found |= {places[-1]: name} if places else {}
    listed = [f"line {number} sets `{name}`" for number, name in sorted(found.items())[:_MOST_NAMES]]
    return f"; {', '.join(listed)}" if listed else ""


def _size_of(lines: tuple[Line, ...]) -> int | None:
    """The line that computes the size of dynamic shared memory for the launch in the last of `lines`."""
    given = _SIZE.search(lines[-1].code)
    sets = re.compile(rf"\b{given[1]}\s*=[^=]") if given else None
    return max((n for n, line in enumerate(lines[:-1]) if sets and sets.search(line.code)), default=None)
