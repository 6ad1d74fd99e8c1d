"""Threaded code: one C function for each distinct instruction, and for each of its uses a row of numbers.

gcc would take minutes to compile all of a large kernel, although unrolled loops contain the same few instructions
thousands of times. So everything except inner loops runs as threaded code (Bell, "Threaded Code", 1973). The C text of
an instruction with holes for its registers, sites and literals is a template; instructions that differ in nothing else
share it. A block is then a table of rows: each names a template and has the numbers for its holes.

A template depends only on the instruction, not on the program, so its object code is cached between builds.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cudaemu.translated import Template

Signature = tuple[object, ...]
"""Everything that the text of an instruction depends on, except the places of its registers. Instructions with equal
signatures share a recipe."""
Hole = tuple[str, int]
"""The content of a hole: "o" and an offset in the frame, or "n" and a number."""
_HOLE = re.compile(r"@([on])(-?\d+)@")
_SHARED = re.compile(r"\bshn?\b")
_LOCAL = re.compile(r"\blocal_base\b")


def offset_hole(offset: int) -> str:
    """The mark for a register's offset in the frame."""
    return f"@o{offset}@"


def number_hole(value: int) -> str:
    """The mark for a number of 32 bits."""
    return f"@n{value}@"


def fill(text: str) -> str:
    """Replace the marks in an instruction's text with their numbers."""
    return _HOLE.sub(lambda hole: hole[2], text)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A way to make a row without writing its text again: a template and the contents of its holes. A hole ("o", n) gets
    the place of the instruction's nth register, a hole ("n", value) the number."""

    template: int
    holes: tuple[Hole, ...]

    @staticmethod
    def of(template: int, holes: Sequence[Hole], places: Sequence[int]) -> Recipe:
        """Make a recipe from the row of an instruction whose registers are at `places`."""
        return Recipe(template, tuple((kind, places.index(v) if kind == "o" else v) for kind, v in holes))

    def operands(self, places: Sequence[int]) -> list[int]:
        return [places[value] if kind == "o" else value for kind, value in self.holes]


@dataclass(slots=True)
class Templates:
    """The templates of a module, numbered in order of first use."""

    number: dict[str, int] = field(default_factory=dict)  # body → number
    every: list[Template] = field(default_factory=list)
    recipes: dict[Signature, Recipe] = field(default_factory=dict)
    facts: dict[object, int] = field(default_factory=dict)

    def numbered(self, fact: object) -> int:
        """A number that stands for a fact about a register, because signatures made of numbers compare quickly."""
        return self.facts.setdefault(fact, len(self.facts))

    def row(self, text: str) -> tuple[int, list[Hole]]:
        """The number of the template for an instruction's text, and the contents of its holes."""
        values: dict[tuple[str, str], int] = {}

        def name(hole: re.Match[str]) -> str:
            return f"k{values.setdefault((hole[1], hole[2]), len(values))}"

        body = _HOLE.sub(name, text)
        number = self.number.get(body)
        if number is None:
            number = self.number[body] = len(self.every)
            self.every.append(_template(body, max(1, len(values))))
        return number, [(kind, int(value)) for kind, value in values]


def _template(body: str, operands: int) -> Template:
    name = f"template_{hashlib.sha256(body.encode()).hexdigest()[:24]}"
    before = ""
    # Each number is read once per row, into a constant. Otherwise gcc would read it again after each write to a
    # register, which could have changed it for all that gcc knows: the constants took flash2.cu from 14 to 16 GFLOP/s.
    numbers = ", ".join(f"k{i} = k[{i}]" for i in range(operands))
    if _SHARED.search(body):
        before += "u8 *const sh = w->shared; const u32 shn = w->shared_size;\n"
    if _LOCAL.search(body):
        before += "const u32 local_base = *(const u32 *)F;\n"
    text = (
        f"__attribute__((weak)) void {name}(struct warp *w, u8 *F, u32 m, const u32 *k, const u32 *end) {{\n{before}"
        f"do {{\nconst u32 {numbers}; (void)k0;\n{body}\nk += {operands};\n}} while (k < end);\n}}\n"
    )
    return Template(name, text, operands)


@dataclass(slots=True)
class Code:
    """The rows of one form of a function, as words of a C table. Consecutive rows with the same template form a group:
    the template's number, the length of the group in words, and the numbers of its rows."""

    templates: Templates
    templates_name: str  # C name of the table of templates
    name: str  # C name of this table
    words: list[int] = field(default_factory=list)
    start: int = 0  # of the rows added since the last `take`
    last: int = -1  # the start of the latest group, or -1

    def add(self, number: int, operands: Sequence[int]) -> None:
        """Add a row of template `number`."""
        if self.last < 0 or self.words[self.last] != number:
            self.last = len(self.words)
            self.words += (number, 2)
        self.words += [operand & 0xFFFFFFFF for operand in operands] or [0]
        self.words[self.last + 1] += len(operands) or 1

    def take(self) -> tuple[int, int]:
        """The start and end of the rows added since the last call."""
        taken = self.start, len(self.words)
        self.start, self.last = len(self.words), -1
        return taken

    def flush(self) -> str | None:
        """C text that runs the rows added since the last call; None if there are none."""
        begin, end = self.take()
        if begin == end:
            return None
        return f"run_rows(w, F, m, {self.templates_name}, {self.name} + {begin}, {self.name} + {end});"

    def table(self) -> str:
        return f"static const u32 {self.name}[] = {{{','.join(map(str, self.words)) or '0'}}};\n"
