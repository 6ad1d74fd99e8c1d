"""Machine code as ptxas schedules it, read from nvdisasm's text.

From Volta on, an instruction has 128 bits, and ptxas writes into them how it may issue: how many cycles to wait before
the next one, which of six scoreboards it sets when it has read its operands or written its result, and which ones it
waits for (Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section 2.1). So
dependences need not be worked out: they are stated. `-gp` adds the line of PTX that each instruction comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

NO_SCOREBOARD = 7

_FUNCTION = re.compile(r"^\.text\.(\S+):$")
_LINE = re.compile(r'^\s*//## File "\.nv_debug_ptx_txt", line (\d+)')
_LABEL = re.compile(r"^(\.L_x_\d+):$")
_INSTRUCTION = re.compile(
    r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*?)\s*;\s+/\* 0x([0-9a-f]{16}) \*/"
)
_UPPER = re.compile(r"^\s+/\* 0x([0-9a-f]{16}) \*/")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")
_ENDS = ("EXIT", "RET", "BRA", "BRX", "JMP", "KILL")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction. `stall` is in cycles. `sets_read` and `sets_write` are scoreboards 0..5 or
    NO_SCOREBOARD; `waits` has a bit for each scoreboard that must be free before it issues."""

    opcode: str
    operands: str
    predicate: str
    ptx_line: int
    stall: int
    sets_write: int
    sets_read: int
    waits: int

    @property
    def name(self) -> str:
        """The opcode without its modifiers."""
        return self.opcode.split(".", 1)[0]


@dataclass
class Block:
    """A basic block. `successors` are numbers of blocks, the fall-through first."""

    number: int
    instructions: list[Instruction] = field(default_factory=list)
    successors: tuple[int, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """The machine code of one function, blocks in the order of the code; the first is the entry."""

    name: str
    blocks: tuple[Block, ...]


def read_sass(text: str) -> dict[str, Kernel]:
    """The functions in nvdisasm's output (options -c -hex -gp), by their mangled names."""
    kernels: dict[str, Kernel] = {}
    name, lines = "", list[str]()
    for line in text.splitlines():
        found = _FUNCTION.match(line)
        if found:
            if name:
                kernels[name] = _kernel(name, lines)
            name, lines = found[1], []
        elif name:
            lines.append(line)
    if name:
        kernels[name] = _kernel(name, lines)
    return kernels


def _kernel(name: str, lines: Sequence[str]) -> Kernel:
    blocks: list[Block] = [Block(0)]
    labels: dict[str, int] = {}
    jumps: list[tuple[int, str, bool]] = []  # block, label, whether the next block may follow
    for item in _items(lines):
        if isinstance(item, str):
            if blocks[-1].instructions:
                blocks.append(Block(len(blocks)))
            labels[item] = blocks[-1].number
            continue
        instruction, target = item
        blocks[-1].instructions.append(instruction)
        if instruction.name in _ENDS:
            always = not instruction.predicate and "UP" not in instruction.operands.split(",")[0].replace("!", "")
            jumps.append((blocks[-1].number, target, not always))
            blocks.append(Block(len(blocks)))
    if not blocks[-1].instructions:
        blocks.pop()
    for block in blocks[:-1]:
        block.successors = (block.number + 1,)
    for number, label, falls in jumps:
        after = (number + 1,) if falls and number + 1 < len(blocks) else ()
        to = (labels[label],) if labels.get(label, len(blocks)) < len(blocks) else ()
        blocks[number].successors = after + to
    return Kernel(name, tuple(blocks))


def _items(lines: Sequence[str]) -> Iterator[str | tuple[Instruction, str]]:
    """Labels, and instructions with the label that they jump to ('' if none)."""
    ptx_line = 0
    pending: re.Match[str] | None = None
    for line in lines:
        if pending is not None:
            upper = _UPPER.match(line)
            control = int(upper[1], 16) >> 41 if upper else 0
            target = _TARGET.search(pending[4])
            yield (
                Instruction(
                    pending[3],
                    pending[4],
                    pending[2] or "",
                    ptx_line,
                    control & 15,
                    control >> 5 & 7,
                    control >> 8 & 7,
                    control >> 11 & 63,
                ),
                target[1] if target else "",
            )
            pending = None
            continue
        if found := _LINE.match(line):
            ptx_line = int(found[1])
        elif found := _LABEL.match(line):
            yield found[1]
        else:
            pending = _INSTRUCTION.match(line)
