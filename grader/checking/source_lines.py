"""Splits a submission into lines and finds their statements, with text patterns rather than a C++ parser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field

from grader.base.sizes import Name, Whole
from grader.programs.submission import CODE

MAX_LINES = 4000
"""The most lines in all files together; a longer submission is not searched."""
MAX_LINE = 2000
"""The longest line that is searched: the patterns take quadratic time or more in a line's length."""
_NOISE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)([-+*/]?=)(?!=)(.*)", re.DOTALL)
_FUSED = re.compile(r"\bfmaf?\s*\(")
_Text = Annotated[str, Field(max_length=MAX_LINE)]
WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Line:
    """A line of a submission. `code` is its text without comments and strings."""

    file: Name
    number: Whole
    text: _Text
    code: _Text

    @property
    def quoted(self) -> str:
        """ "kernel.cu:61: `acc[x] += p * v[key * d + x];`" """
        text = self.text if self.file.endswith(".py") else re.sub(r"//.*", "", self.text)
        text = " ".join(text.split())
        return f"{self.file}:{self.number}: `{text if len(text) <= 80 else text[:79] + '…'}`"


def read_lines(files: Sequence[tuple[str, bytes]]) -> tuple[Line, ...]:
    """The lines of the source files among `files`; none if there are more than MAX_LINES, or one is longer than
    MAX_LINE."""
    lines: list[Line] = []
    for name, content in files:
        if PurePosixPath(name).suffix in CODE:
            text = content.decode(errors="replace")
            code = _NOISE.sub(lambda noise: re.sub(r"[^\n]", " ", noise[0]), text)
            pairs = zip(text.split("\n"), code.split("\n"), strict=True)
            lines += [Line(name, number, *pair) for number, pair in enumerate(pairs, 1)]
    searchable = len(lines) <= MAX_LINES and all(len(line.text) <= MAX_LINE for line in lines)
    return tuple(lines) if searchable else ()


def body(line: Line) -> str:
    """The statement of a line, without any `for (…)`, `if (…)` or `while (…)` in front of it."""
    code = line.code
    while found := re.match(r"\s*(?:for|if|while)\s*(?=\()", code):
        code = code[found.end() :]
        code = code[len(parenthesised(code)) + 2 :]
    return code


def parenthesised(code: str) -> str:
    """The text inside the parentheses with which `code` begins, or the whole rest if they are not closed."""
    depth = 0
    for place, character in enumerate(code):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return code[1:place]
    return code[1:]


def assignment(line: Line) -> re.Match[str] | None:
    """The first assignment of a line, as (name, subscripts, operator, value)."""
    return _ASSIGNED.search(body(line))


def assigned_value(line: Line) -> str:
    found = assignment(line)
    return found[4] if found else ""


def added(line: Line) -> str:
    """The value of an assignment that adds to its target, as in `a += …`, `a = a + …`, `a = fmaf(…, a)`; else ''."""
    found = assignment(line)
    if found is None:
        return ""
    name, _, sign, rest = found.groups()
    value = _expression(rest)
    again = re.search(rf"(?<!\.)(?<!->)\b{re.escape(name)}\b", value) is not None
    plus = "+" in re.sub(r"\[[^\]]*\]", "", value)
    return value if sign == "+=" or (sign == "=" and again and (plus or _FUSED.search(value))) else ""


def _expression(code: str) -> str:
    """The expression with which `code` begins: all before a comma or semicolon outside parentheses and braces."""
    depth = 0
    for place, character in enumerate(code):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(character, 0)
        if depth < 0 or (depth == 0 and character in ",;"):
            return code[:place]
    return code


def is_around(loop: Line, last: int, line: Line) -> bool:
    return loop.file == line.file and loop.number <= line.number <= last


def last_line(lines: Sequence[Line]) -> int:
    """The number of the last line of the loop that begins in the first of `lines`."""
    depth = braces = 0
    begun = False
    for line in lines:
        code = line.code[line.code.index("for") :] if line is lines[0] else line.code
        for character in code:
            depth += {"(": 1, ")": -1}.get(character, 0)
            braces += {"{": 1, "}": -1}.get(character, 0)
            begun = begun or character == "{"
            if depth == 0 and ((begun and braces == 0) or (not begun and character == ";")):
                return line.number
    return lines[-1].number


def for_loops(lines: Sequence[Line]) -> list[tuple[Line, int]]:
    """Every for loop, with the number of its last line."""
    return [
        (line, last_line(lines[place : place + 400]))
        for place, line in enumerate(lines)
        if re.search(r"\bfor\s*\(", line.code)
    ]
