"""Finds slips in how kernels compute: integer sums, maxima that start or move the wrong way, exponents, reductions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from grader.checking.kernel_text import LARGER_OF, MAX
from grader.checking.source_lines import WORD, Line, added, assigned_value, assignment, body, is_around
from grader.checking.suspects import Slip, Suspects
from grader.operators.base import Step

_QUALIFIERS = r"(?:(?:const|static|volatile|register|unsigned|signed|__shared__|constexpr)\s+)*"
_DECLARATION = re.compile(rf"\s*{_QUALIFIERS}([A-Za-z_]\w*)\b(?!\s*[-+*/.(\[=<]+[^*&\w\s])\s*([\s*&].*)", re.DOTALL)
_WHOLE = re.compile(r"\b(?:int|long|short|char|unsigned|size_t|u?int\d+_t)\b")
_LARGEST = (
    r"\+?\s*(?:std::)?(?:INFINITY|FLT_MAX|HUGE_VALF?|CUDART_INF_F|\d+(?:\.\d*)?e\d\d+f?"
    r"|numeric_limits<\s*float\s*>::(?:max|infinity)\(\))"
)
_LARGE_MACRO = re.compile(rf"^\s*#\s*define\s+(\w+)\s+\(?\s*{_LARGEST}\s*\)?\s*$")
_TREE = re.compile(
    r"\bfor\s*\([^;]*?\b(\w+)\s*=[^;]*;\s*\1\s*(?:>\s*1|>=\s*2)\s*;\s*\1\s*(?:>>=\s*1|/=\s*2|=\s*\1\s*(?:/\s*2|>>\s*1))"
)
_EXPONENT = re.compile(
    r"\b(?:__)?exp2?f?\s*\(\s*(?:\*|\w+\.|\w+->)?(\w+)(?:\s*\[[^\]]*\])*\s*-\s*"
    r"(?:\*|\w+\.|\w+->)?(\w+)(?:\s*\[[^\]]*\])*\s*\)"
)
_SMALLER = (
    re.compile(
        r"\bif\s*\(\s*(\w+)(?:\[[^\]]*\])*\s*<=?\s*(?P<name>\w+)(?:\[[^\]]*\])*\s*\)\s*\{?\s*(?P=name)\b[^=]*=\s*\1\b"
    ),
    re.compile(
        r"\bif\s*\(\s*(?P<name>\w+)(?:\[[^\]]*\])*\s*>=?\s*(\w+)(?:\[[^\]]*\])*\s*\)\s*\{?\s*(?P=name)\b[^=]*=\s*\2\b"
    ),
    re.compile(r"(?P<name>\w+)(?:\[[^\]]*\])*\s*=\s*f?minf?\s*\("),
)
"""if (s < m) m = s; if (m > s) m = s; m = fminf(m, s);"""
_QUOTIENT = re.compile(r"(?:[(=,+?:-]|\breturn)\s*(\d+)\s*/\s*(\d+)(?![\w.])")
_HALVED = re.compile(
    r"\bfor\s*\([^;]*?\b(\w+)\s*=\s*([^;=]+);[^;]*;\s*\1\s*(?:>>=\s*1|/=\s*2|=\s*\1\s*(?:/\s*2|>>\s*1))"
)
_IN_FLOAT: tuple[Step, ...] = ("scores", "total", "output_sum", "weight")


class KernelSlips(Suspects):
    """Finds slips in sums, maxima, exponents and loops."""

    def _whole_numbers(self) -> Iterator[Slip]:
        """Integers that hold exponentials or sums of products."""
        for step in _IN_FLOAT:
            line = self.line(step)
            said = assignment(line) if line is not None and (step == "weight" or added(line)) else None
            made = self._declaration(said[1], line) if line is not None and said is not None else None
            if made is not None and said is not None and not self._is_index(said[1]):
                yield Slip(f"`{said[1]}` is an integer, so it loses every fraction: declare it as float.", made)

    def _is_index(self, name: str) -> bool:
        return any(re.search(rf"\[[^\]]*\b{name}\b", line.code) for line in self.lines)

    def _declaration(self, name: str, use: Line) -> Line | None:
        """The line of the declaration of `name` that is in scope at `use`, if it is an integer's."""
        closed = 0
        for line in reversed(self.lines):
            if line.file != use.file or line.number > use.number:
                continue
            text = body(line)
            if not closed and name in _declared(line):
                is_whole = _WHOLE.search(text) and not re.search(rf"[*&]\s*(?:\w+\s+)?{name}\b|float|double", text)
                return line if is_whole else None
            for brace in re.findall(r"[{}]", line.code)[::-1]:
                closed = closed + 1 if brace == "}" else max(0, closed - 1)
        return None

    def _high_maxima(self) -> Iterator[Slip]:
        names = "|".join(map(re.escape, sorted(self.maxima))) or "(?!)"
        macros = {found[1]: line for line in self.lines if (found := _LARGE_MACRO.search(line.code))}
        large = "|".join((_LARGEST, *(rf"{name}\b" for name in macros)))
        starts = re.compile(rf"\b({names})\b\s*(?:\[[^\]]*\]\s*)*=\s*({large})\s*[,;]")
        for line in self.matching(starts):
            found = starts.search(line.code)
            assert found is not None
            yield Slip(
                f"The maximum `{found[1]}` starts at {found[2]}, above every value, so every exponential is 0 and the "
                "result 0/0: start it at −INFINITY.",
                macros.get(found[2], line),
            )

    def _low_maxima(self) -> Iterator[Slip]:
        """Running maxima that keep the smaller of two numbers. They are subtracted in exponents."""
        names = {found[2] for line in self.exponentials if (found := _EXPONENT.search(line.code))}
        for line in self.lines:
            kept = next((found["name"] for each in _SMALLER if (found := each.search(line.code))), "")
            if kept in names:
                yield Slip(
                    f"`{kept}` keeps the smaller number, but it must be the maximum: reverse the comparison.", line
                )

    def _exponents(self) -> Iterator[Slip]:
        """Exponentials of reversed differences or relative to the maximum before; maxima that are never set."""
        for line in self.exponentials:
            found = _EXPONENT.search(line.code)
            if found is None:
                continue
            one, other = found.groups()
            if self._is_new(other, line) and one in self.maxima and (sum_line := self._never_kept(one, line)):
                yield Slip(
                    f"`{one}`, the running maximum, is never set to the new maximum `{other}`: set it after the sums.",
                    sum_line,
                )
            if self._is_new(one, line) and other in self.maxima and not self._is_new(other, line):
                yield Slip(
                    f"exp({one} − {other}) grows with the maximum: the correction is exp({other} − {one}), the "
                    "maximum before minus the new one.",
                    line,
                )
            elif one in self.maxima and other not in self.maxima:
                yield Slip(f"exp({one} − {other}) has the maximum first: the weight is exp({other} − {one}).", line)
            elif one not in self.maxima and other in self.maxima and self._is_new(other, line) is False:
                yield Slip(
                    f"exp({one} − {other}) is relative to the maximum before this step, which is −inf at first: "
                    "subtract the new maximum.",
                    line,
                )

    def _never_kept(self, name: str, use: Line) -> Line | None:
        """The last sum in the function around `use` if nothing there sets `name`, except to its first value."""
        begin, end = self.extent(use)
        here = [line for line in self.lines if line.file == use.file and begin < line.number < end]
        sets = re.compile(rf"\b{name}\b\s*(?:\[[^\]]*\]\s*)*=\s*[^=\s-]")
        sums = [line for line in (*self.totals, *self.output_sums) if line in here and line.number > use.number]
        return None if any(sets.search(line.code) for line in here) else max(sums, key=lambda s: s.number, default=None)

    def _is_new(self, name: str, use: Line) -> bool | None:
        """Whether the last assignment to the maximum `name` before `use` updates it; None if that is not clear."""
        for line in reversed(self.lines):
            if line.file != use.file or line.number >= use.number:
                continue
            if re.search(rf"\b{name}\b\s*(?:\[[^\]]*\]\s*)*=[^=]", line.code):
                value = re.split(rf"\b{name}\b\s*(?:\[[^\]]*\]\s*)*=", line.code)[-1]
                if (
                    MAX.search(value)
                    or LARGER_OF.search(line.code)
                    or re.search(r"\bif\s*\(", line.code)
                    or ("?" in value and name in WORD.findall(value))
                    or "shfl" in value
                ):
                    return True
                return False if re.match(r"\s*-", value) else None
        return None

    def _whole_quotients(self) -> Iterator[Slip]:
        for line in self.matching(_QUOTIENT):
            for one, other in _QUOTIENT.findall(line.code):
                if int(other) and int(one) % int(other):
                    yield Slip(
                        f"{one} / {other} divides integers and is {int(one) // int(other)}: write {one}.0f / {other}.",
                        line,
                    )

    def _short_trees(self) -> Iterator[Slip]:
        for line in self.matching(_TREE):
            found = _TREE.search(line.code)
            assert found is not None
            yield Slip(
                f"The reduction stops before `{found[1]}` is 1, so the last two parts are never combined: go on while "
                f"{found[1]} > 0.",
                line,
            )

    def _late_trees(self) -> Iterator[Slip]:
        """Reductions that begin at another step than the other reductions of the program, the smallest step first."""
        found = [(line, each[2]) for line in self.matching(_HALVED) if (each := _HALVED.search(line.code))]
        starts = [(line, start, self._number(start)) for line, start in found]
        largest = max((value for _, _, value in starts if value), default=0)
        for line, start, value in starts:
            if value and value < largest:
                yield Slip(
                    f"This reduction begins with steps of {start} ({value:g}) and another one with {largest:g}: some "
                    "of the parts are left out.",
                    line,
                )

    def _number(self, text: str) -> float:
        """The value of an expression of constants, numbers, `/` and `>>`, as if other names had the value 1024; 0 for
        other expressions."""
        for _ in range(3):
            text = re.sub(r"[A-Za-z_][\w.]*", lambda name: self._constants.get(name[0], "1024"), text)
        parts = re.fullmatch(r"[\s(]*(\d+)[\s)]*(?:(/|>>)\s*(\d+)[\s)]*)?", text)
        if parts is None:
            return 0
        number, sign, by = int(parts[1]), parts[2], int(parts[3] or 1)
        return number / (by or 1) if sign == "/" else number / 2 ** min(by, 32) if sign else number

    @cached_property
    def _constants(self) -> dict[str, str]:
        """The values of constants, by name."""
        pattern = r"(?:#define\s+(\w+)\s+|\bconst(?:expr)?\s+(?:\w+\s+)*?(\w+)\s*=\s*)(\d+)\b(?!\s*[-+*/.])"
        found = re.findall(pattern, "\n".join(line.code for line in self.lines))
        return {define or name: value for define, name, value in found}

    def _short_loops(self) -> Iterator[Slip]:
        """Loops over columns that end at a number where others end at a variable."""
        ends = [
            (loop, found[2])
            for loop in self.column_loops
            if (found := re.search(r"\b(\w+)\s*<\s*(\w+)\s*;", loop.code))
            and any(
                is_around(loop, last, line) and re.search(rf"[+\[]\s*{found[1]}\s*\]", assigned_value(line))
                for each, last in self.loops
                if each == loop
                for line in self.lines
            )
        ]
        names = {end for _, end in ends if not end.isdigit()}
        for loop, end in ends:
            if end.isdigit() and int(end) >= 16 and len(names) == 1:
                yield Slip(f"This loop over columns ends at {end}, while others end at `{next(iter(names))}`.", loop)


def _declared(line: Line) -> set[str]:
    """The names that a line declares."""
    found = _DECLARATION.match(body(line))
    if found is None or found[1] in ("return", "else", "delete", "goto", "typedef", "using"):
        return set()
    depth, text = 0, ""
    for character in found[2]:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(character, 0)
        text += ";" if character == "," and depth == 0 else character
    declared = (re.match(r"[\s*&]*([A-Za-z_]\w*)\s*(?:[\[=({]|$)", each) for each in text.split(";"))
    return {name[1] for name in declared if name}
