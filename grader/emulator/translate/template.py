"""Threaded code: what an instruction does, written once, and rows of numbers that say to which registers.

Compiled straight through gcc, a large kernel takes minutes: unrolled loops hold the same few instructions thousands of
times. So all but small functions run as threaded code (Bell, "Threaded Code", 1973). The C text of an instruction, with
its registers, sites and literals taken out, is a template; instructions that differ in nothing else share it. A block
is then a table of rows: which template, how many times in a row, and the numbers for each.

A template is a property of the instruction alone, not of the program, so its object code is kept between builds.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

_HOLE = re.compile(r"@([on])(-?\d+)@")
_SHARED = re.compile(r"\bshn?\b")
_LOCAL = re.compile(r"\blocal_base\b")


def offset_hole(offset: int) -> str:
    """A place in a text for the frame offset of a register."""
    return f"@o{offset}@"


def number_hole(value: int) -> str:
    """A place in a text for a number of 32 bits."""
    return f"@n{value}@"


def fill(text: str) -> str:
    """The text for one instruction, with its numbers in it."""
    return _HOLE.sub(lambda hole: hole[2], text)


@dataclass(frozen=True, slots=True)
class Template:
    """C of a function that runs rows of `operands` numbers each."""

    name: str
    text: str
    operands: int


@dataclass(slots=True)
class Templates:
    """The templates of a module, numbered in order of first use."""

    number: dict[str, int] = field(default_factory=dict)  # body → number
    every: list[Template] = field(default_factory=list)

    def row(self, text: str) -> tuple[int, tuple[int, ...]]:
        """The template of an instruction's text, and the numbers for its holes."""
        values: dict[tuple[str, str], int] = {}

        def name(hole: re.Match[str]) -> str:
            return f"k[{values.setdefault((hole[1], hole[2]), len(values))}]"

        body = _HOLE.sub(name, text)
        number = self.number.get(body)
        if number is None:
            number = self.number[body] = len(self.every)
            self.every.append(_template(body, max(1, len(values))))
        return number, tuple(int(value) & 0xFFFFFFFF for _, value in values) or (0,)


def _template(body: str, operands: int) -> Template:
    name = f"template_{hashlib.sha256(body.encode()).hexdigest()[:24]}"
    before = ""
    if _SHARED.search(body):
        before += "u8 *const sh = w->shared; const u32 shn = w->shared_size;\n"
    if _LOCAL.search(body):
        before += "const u32 local_base = *(const u32 *)F;\n"
    text = (
        f"__attribute__((weak)) void {name}(struct warp *w, u8 *F, u32 m, const u32 *k, const u32 *end) {{\n{before}"
        f"do {{\n{body}\nk += {operands};\n}} while (k < end);\n}}\n"
    )
    return Template(name, text, operands)


@dataclass(slots=True)
class Code:
    """The rows of one form of a function, as they go into a C table: for each run of one template its number, the
    position after it, counted from its start, and its rows' numbers."""

    templates: Templates
    templates_name: str  # C names of the table of templates, and of this one
    name: str
    words: list[int] = field(default_factory=list)
    start: int = 0  # of the rows not yet run
    last: int = -1  # where the latest run begins, or -1

    def add(self, text: str) -> None:
        number, operands = self.templates.row(text)
        if self.last < 0 or self.words[self.last] != number:
            self.last = len(self.words)
            self.words += (number, 2)
        self.words += operands
        self.words[self.last + 1] += len(operands)

    def flush(self) -> str | None:
        """The call that runs the rows added since the last call; None when there are none."""
        if self.start == len(self.words):
            return None
        rows = f"{self.name} + {self.start}, {self.name} + {len(self.words)}"
        call = f"run_rows(w, F, m, {self.templates_name}, {rows});"
        self.start, self.last = len(self.words), -1
        return call

    def table(self) -> str:
        return f"static const u32 {self.name}[] = {{{','.join(map(str, self.words)) or '0'}}};\n"
