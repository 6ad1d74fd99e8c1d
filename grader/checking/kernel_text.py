"""Finds the parts of attention in a kernel's source: the names of maxima and weights, the sums, loops and results.

It searches text and does not parse C++. A line with the exponential of a score and a maximum is a weight, a name that
is set to −INFINITY or by fmaxf is a maximum, and a sum of products with weights is O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from grader.checking.source_lines import (
    WORD,
    Line,
    added,
    assigned_value,
    assignment,
    body,
    for_loops,
    is_around,
    parenthesised,
    read_lines,
)

EXP = re.compile(r"\b(?:__)?exp2?f?\s*\(")
MAX = re.compile(r"\b(?:f?max|fmaxf)\s*\(")
_MAXIMUM = re.compile(r"\b(\w+)(?:\s*\[[^\]]*\])*\s*=\s*(?:-\s*(?:INFINITY|FLT_MAX|HUGE_VALF)|(?:f?max|fmaxf)\s*\()")
_LARGER = re.compile(r"\bif\s*\([^;]*[<>][^;]*\)\s*(\w+)(?:\s*\[[^\]]*\])*\s*=\s*\w+(?:\s*\[[^\]]*\])*\s*;")
"""if (s > m) m = s;"""
_OPERAND = r"\*?[A-Za-z_][\w.]*(?:\s*\[[^\]]*\])*"
LARGER_OF = re.compile(
    rf"\b(\w+)\s*=\s*({_OPERAND})\s*[<>]=?\s*({_OPERAND})\s*\?\s*(?:\2\s*:\s*\3|\3\s*:\s*\2)(?![\w\[])"
)
"""top = s > m ? s : m;"""
_COPIED = re.compile(r"\b(\w+)(?:\s*\[[^\]]*\])*\s*=\s*(\w+)(?:\s*\[[^\]]*\])*\s*[,;]")


@dataclass(frozen=True)
class KernelText:
    """The source of a submission, by name and content."""

    files: tuple[tuple[str, bytes], ...]

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        return read_lines(self.files)

    def matching(self, pattern: re.Pattern[str]) -> Iterator[Line]:
        return (line for line in self.lines if pattern.search(line.code))

    @cached_property
    def statements(self) -> tuple[Line, ...]:
        """Lines that assign something and use no host function, and so probably belong to a kernel."""
        host = re.compile(r"\b(?:cuda[A-Z]\w*|malloc|sizeof|fread|fwrite|argv|std::vector)\b")
        return tuple(line for line in self.lines if assignment(line) and not host.search(line.code))

    @cached_property
    def exponentials(self) -> tuple[Line, ...]:
        return tuple(self.matching(EXP))

    @cached_property
    def maxima(self) -> frozenset[str]:
        """Names that hold a maximum, and names that they are copied to or from."""
        names = {found[1] for line in self.lines for found in _MAXIMUM.finditer(line.code)}
        names |= {found[1] for line in self.lines if (found := _LARGER.search(line.code))}
        names |= {found[1] for line in self.lines if (found := LARGER_OF.search(line.code))}
        copies = [
            found.groups()
            for line in self.lines
            if not _LARGER.search(line.code)
            for found in _COPIED.finditer(line.code)
            if found[2] not in self._multiplied
        ]
        exponentials = {said[1] for line in self.exponentials if (said := assignment(line))} - names
        for _ in range(3):
            names |= {name for pair in copies for name in pair if names & set(pair) and not name.isdigit()}
            names -= exponentials
        return frozenset(names)

    @cached_property
    def _multiplied(self) -> frozenset[str]:
        """Names of sums and products, which hold scores rather than maxima."""
        found = (assignment(line) for line in self.statements)
        return frozenset(said[1] for said in found if said and "*" in said[4] and not MAX.search(said[4]))

    def is_rescale(self, line: Line) -> bool:
        """Whether the line has the exponential of a difference of two maxima, exp(m_old - m_new)."""
        found = EXP.search(line.code)
        inside = parenthesised(line.code[found.end() - 1 :]) if found else ""
        words = re.findall(r"[A-Za-z_]\w*(?=\s*(?:\[|[-+)]|$))", re.sub(r"\[[^\]]*\]", "[", inside))
        return len(words) >= 2 and set(words) <= self.maxima

    @cached_property
    def weights(self) -> frozenset[str]:
        """Names of exponentials of scores, and names that they are copied to."""
        names = {
            found[1]
            for line in self.exponentials
            if not self.is_rescale(line) and (found := assignment(line)) is not None and found[3] == "="
        }
        for line in self.statements:
            if (said := _COPIED.search(line.code)) and said[2] in names and said[1] not in self.maxima:
                names.add(said[1])
        return frozenset(names)

    @cached_property
    def sums(self) -> tuple[Line, ...]:
        """Lines that add to something."""
        return tuple(line for line in self.statements if added(line))

    @property
    def products_of_elements(self) -> list[Line]:
        """Lines that add products of array elements; if there are none, lines that add any products."""
        products = [line for line in self.sums if re.search(r"\*|fma", added(line))]
        return [line for line in products if re.search(r"\[|\b[A-Z_]+\(", added(line))] or products

    def weighs(self, line: Line) -> bool:
        value = assigned_value(line)
        return bool(self.weights & set(WORD.findall(value))) or self._has_weight(line)

    def _has_weight(self, line: Line) -> bool:
        """Whether a weight is computed in the assigned value itself."""
        return EXP.search(assigned_value(line)) is not None and not self.is_rescale(line)

    def is_score(self, line: Line) -> bool:
        """Whether a sum of products contains neither a weight nor a rescaling factor."""
        return not self.weighs(line) and not self._shrinking & set(WORD.findall(assigned_value(line)))

    @cached_property
    def _shrinking(self) -> frozenset[str]:
        """Names of the factors by which sums are rescaled."""
        found = (assignment(line) for line in self.exponentials if self.is_rescale(line))
        return frozenset(said[1] for said in found if said is not None)

    @cached_property
    def products(self) -> tuple[Line, ...]:
        """Lines that add the product of a weight and another value; if there are none, lines that assign such a
        product."""
        names = "|".join(map(re.escape, sorted(self.weights))) or "(?!)"
        weight = rf"(?:\b(?:{names})\b(?:\s*\[[^\]]*\])*)"
        fused = rf"\bfmaf?\s*\([^,]*(?:,[^,]*)?{weight}"
        near = re.compile(rf"{weight}\s*\)?\s*\*|\*\s*\(?\s*{weight}|{fused}")
        added_up = tuple(
            line
            for line in self.sums
            if near.search(assigned_value(line))
            or (self._has_weight(line) and "*" in EXP.split(assigned_value(line))[-1].partition(")")[2])
        )
        assigned = (line for line in self.statements if "[" in assigned_value(line) and line not in self.exponentials)
        return added_up or tuple(line for line in assigned if near.search(assigned_value(line)))

    def _merges(self, sums: Sequence[Line], candidates: Iterable[Line]) -> list[Line]:
        """The `candidates` that use the results of `sums`."""
        parts = {said[1] for line in sums if (said := assignment(line))}
        return [
            line
            for line in candidates
            if line not in sums
            and (said := assignment(line))
            and said[1] not in parts
            and parts & set(WORD.findall(said[4]))
        ]

    @property
    def output_sums(self) -> list[Line]:
        """Lines that accumulate O: first those that merge a tile's sum into it, then the sums themselves. If a program
        keeps the weights in global memory, O is its second sum of products."""
        if not self.products:
            return [line for line in self.products_of_elements if not self.weighs(line)][1:]
        merged = self._merges(self.products, self.sums) or self._merges(self.products, self._plain_statements)
        return [*merged, *self.products]

    @property
    def _plain_statements(self) -> list[Line]:
        """Lines with one assignment that neither stores a result nor divides nor only copies, the last line first."""
        others = re.compile(r",\s*\w+\s*=|/|=\s*\w+\s*;")  # a second assignment, a division, a copy
        return [line for line in reversed(self.statements) if line not in self.stores and not others.search(line.code)]

    @property
    def totals(self) -> list[Line]:
        """Lines that accumulate l, the weights' sum: first those that merge a tile's sum, then the sums themselves."""
        plain = [line for line in self.sums if self.weighs(line) and line not in self.products]
        merged = self._merges(plain, self.sums) or self._merges(plain, self._plain_statements)
        return list(dict.fromkeys((*merged, *self._set_to_divide_by, *plain)))

    @property
    def _set_to_divide_by(self) -> list[Line]:
        """Lines that set a number by which another is divided, in a loop that has an exponential, too."""
        divisors = {name for line in self.statements for name in re.findall(r"/\s*\(?\s*([A-Za-z_]\w*)", body(line))}
        loops = [loop for loop in self.loops if any(is_around(*loop, line) for line in self.exponentials)]
        return [
            line
            for line in self.statements
            if (said := assignment(line)) and said[1] in divisors and any(is_around(*loop, line) for loop in loops)
        ]

    @property
    def first_maxima(self) -> list[Line]:
        """Lines that give a running maximum its first value."""
        first = re.compile(rf"\b(?:{'|'.join(map(re.escape, self.maxima)) or '(?!)'})\b(?:\s*\[[^\]]*\])*\s*=\s*-")
        return list(self.matching(first))

    @property
    def kept_maxima(self) -> list[Line]:
        """Lines that set a running maximum to another number, `m = m_new;`, the last first."""
        found = []
        for line in self.statements:
            said = re.match(r"\s*(\w+)(?:\s*\[[^\]]*\])*\s*=\s*\w+(?:\s*\[[^\]]*\])*\s*;", line.code)
            if said and said[1] in self.maxima:
                found.append(line)
        return found[::-1]

    @property
    def overwritten_maxima(self) -> list[Line]:
        """Lines that set a running maximum to the new one before exp(m_old - m_new) uses the old one."""
        found = []
        for line in reversed(self.kept_maxima):
            said = _COPIED.search(line.code)
            later = (each for each in self.exponentials if self.is_rescale(each) and each.file == line.file)
            after = next((each for each in later if each.number > line.number), None)
            loops = [last for loop, last in self.loops if is_around(loop, last, line)]
            if (
                said
                and after
                and after.number <= min(loops, default=0)
                and set(said.groups()) <= set(WORD.findall(after.code))
            ):
                found.append(line)
        return found

    @cached_property
    def stores(self) -> list[Line]:
        """Lines that write to an array parameter of a kernel. The last line comes first, since results are written
        last."""
        heads = re.findall(r"__global__[^;{]*\(([^;{]*)\)\s*\{", "\n".join(line.code for line in self.lines))
        given = {
            word[-1]
            for head in heads
            for parameter in head.split(",")
            if "*" in parameter and "const" not in parameter.partition("*")[0] and (word := WORD.findall(parameter))
        }
        for pointer, array in re.findall(
            r"\*\s*(?:const\s+)?(\w+)\s*=\s*(\w+)\s*\+", "\n".join(s.code for s in self.lines)
        ):
            given |= {pointer} if array in given else set()
        found = [(line, assignment(line)) for line in self.statements]
        return [line for line, said in reversed(found) if said and said[1] in given and said[2]]

    @cached_property
    def loops(self) -> list[tuple[Line, int]]:
        return for_loops(self.lines)

    def extent(self, line: Line) -> tuple[int, int]:
        """The numbers of the lines that close the function before the one around `line`, and this one."""
        ends = [each.number for each in self.lines if each.file == line.file and each.code.startswith("}")]
        return (
            max((end for end in ends if end < line.number), default=0),
            min((end for end in ends if end >= line.number), default=1 << 30),
        )
