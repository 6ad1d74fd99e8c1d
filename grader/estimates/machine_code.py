"""A GPU's machine code of the PTX that a program carries: made by ptxas, and read in the room from nvdisasm's text.

From Volta on, an instruction has 128 bits, and ptxas writes into them how it may issue: how many cycles to wait before
the next one, which of six scoreboards it sets when it has read its operands or written its result, and which ones it
waits for (Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section 2.1). So
dependences need not be worked out: they are stated. `-gp` adds the line of PTX that each instruction comes from.
"""

from __future__ import annotations

import hashlib
import mmap
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from grader import sandbox
from grader.base.errors import MachineFault
from grader.estimates.gpus import Gpu
from grader.programs.toolkit import Toolkit
from grader.sandbox.cache import kept

PTX_MARK = b"GRADER PTX:"  # precedes a unit's PTX and its size in a program that counts (cudaemu/build.py)
MAX_UNITS, MAX_PTX_BYTES = 64, 64 << 20
_LIMIT_S = 120
_TARGET = re.compile(rb"^\.target sm_\d+a?", re.MULTILINE)


class NotPredictable(Exception):
    """There is no predicted time of the program; the message says why."""


def disassembler(toolkit: Toolkit) -> Path:
    """nvdisasm. Raises MachineFault with what to install."""
    if (found := toolkit.tool("nvdisasm")) is not None:
        return found
    advice = "Install it with `make setup`, or with `pip install nvidia-cuda-nvdisasm==13.2.78`."
    raise MachineFault(f"Predicted times need nvdisasm, which reads machine code. {advice}")


def machine_code(program: Path, gpu: Gpu, toolkit: Toolkit) -> Path:
    """The cache's folder with, for each unit, its PTX (0.ptx), ptxas's messages (0.log) and nvdisasm's text (0.sass).
    Raises NotPredictable, MachineFault."""
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        units = list(_carried(content))
    if not units:
        raise NotPredictable("it carries no PTX")
    nvdisasm, ptxas = disassembler(toolkit), toolkit.tool("ptxas")
    digest = hashlib.sha256(f"2 {toolkit.identity} {nvdisasm} {gpu.target}".encode())
    for unit in units:
        digest.update(unit)

    def make(folder: Path) -> Path:
        made = folder / "made"
        made.mkdir()
        run = sandbox.runner(_LIMIT_S, readable=(toolkit.root, nvdisasm.parent), writable=(made,))
        for number, unit in enumerate(units):
            (made / f"{number}.ptx").write_bytes(_TARGET.sub(f".target {gpu.target}".encode(), unit))
            assemble = f"{ptxas} -lineinfo -v -arch={gpu.target} {number}.ptx -o {number}.cubin 2> {number}.log"
            done = run(["sh", "-c", f"{assemble} && {nvdisasm} -c -hex -gp {number}.cubin > {number}.sass"], made)
            if done.exit_code != 0:
                raise NotPredictable(f"ptxas does not compile it for {gpu.target}: {done.output.strip()[:300]}")
            (made / f"{number}.cubin").unlink()
        return made

    return kept("machine-code", digest.hexdigest()[:32], make)


def _carried(program: mmap.mmap) -> Iterator[bytes]:
    """The PTX of each unit. The program's own data may look like one; none begins inside another."""
    begin, left = 0, MAX_PTX_BYTES
    for _ in range(MAX_UNITS):
        if (at := program.find(PTX_MARK, begin)) < 0:
            return
        begin = at + len(PTX_MARK) + 8
        size = int.from_bytes(program[begin - 8 : begin], "little")
        if 0 < size <= len(program) - begin:
            if (left := left - size) < 0:
                raise NotPredictable(f"it carries more than {MAX_PTX_BYTES >> 20} MiB of PTX")
            yield program[begin : begin + size]
            begin += size


# ---- reading --------------------------------------------------------------------------------------------------------

_ITEM = re.compile(
    r"^\.text\.(?P<function>\S+):$|^(?P<label>\.L_x_\d+):$"
    r'|^\s*//## File "\.nv_debug_ptx_txt", line (?P<line>\d+)'
    r"|^\s+/\*[0-9a-f]{4,}\*/\s+(?:(?P<predicate>@!?U?P\w+)\s+)?(?P<opcode>[A-Z][\w.]*)\s*(?P<operands>[^;\n]*?)\s*;"
    r"\s+/\* 0x[0-9a-f]{16} \*/\n\s+/\* 0x(?P<control>[0-9a-f]{16}) \*/",
    re.MULTILINE,
)
_REGISTERS = re.compile(r"Compiling entry function '([^']+)'(?:(?!Compiling).)*?Used (\d{1,9}) registers", re.DOTALL)
_OPERATION = re.compile(r"\s*(?:@!?%?\w+\s+)?([a-z][\w.:]*)")
_JUMPS_TO = re.compile(r"`\((\.L_x_\d+)\)")
_GROUP, NO_SCOREBOARD = 6, 7
_ENDS = ("EXIT", "RET", "BRA", "BRX", "JMP", "KILL")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction. `stall` is in cycles. `sets_read` and `sets_write` are scoreboards 0..5, or 7 for none;
    `waits` has those that must be free before it issues. What a warpgroup's products (wgmma) complete is the 6th."""

    opcode: str
    operands: str
    predicate: str
    ptx_line: int
    stall: int
    sets_write: int
    sets_read: int
    waits: tuple[int, ...]

    @property
    def name(self) -> str:
        """The opcode without its modifiers."""
        return self.opcode.split(".", 1)[0]


@dataclass
class Block:
    """A basic block. `successors` are numbers of blocks, the fall-through first."""

    instructions: list[Instruction] = field(default_factory=list)
    successors: tuple[int, ...] = ()


@dataclass(frozen=True)
class Code:
    """A kernel's machine code, blocks in the order of the code, the first of which is the entry; the operation in each
    line of its PTX; registers per thread."""

    blocks: Sequence[Block]
    ptx: Mapping[int, str]
    registers: int

    @property
    def names(self) -> set[str]:
        return {instruction.name for block in self.blocks for instruction in block.instructions}


def read_code(units: Sequence[tuple[IO[bytes], IO[bytes], IO[bytes]]]) -> dict[str, list[Code]]:
    """The kernels of units (PTX, ptxas's messages, nvdisasm's text) by the names that the linker knows. To be called in
    the room."""
    found: dict[str, list[Code]] = {}
    for files in units:
        ptx, log, sass = (file.read().decode(errors="replace") for file in files)
        registers = dict(_REGISTERS.findall(log))
        matches = ((number, _OPERATION.match(line)) for number, line in enumerate(ptx.split("\n"), 1))
        operations = {number: made[1].replace(".volatile", "").replace(".nc", "") for number, made in matches if made}
        for name, blocks in read_sass(sass).items():
            if name in registers:
                found.setdefault(name, []).append(Code(blocks, operations, int(registers[name])))
    return found


def read_sass(text: str) -> dict[str, list[Block]]:
    """The functions in nvdisasm's output (options -c -hex -gp), by their mangled names."""
    functions, labels, line = {"": [Block()]}, dict[str, int](), 0
    for item in _ITEM.finditer(text):
        blocks = functions[next(reversed(functions))]
        if name := item["function"]:
            _connect(blocks, labels)
            functions[name], labels, line = [Block()], {}, 0
        elif label := item["label"]:
            if blocks[-1].instructions:
                blocks.append(Block())
            labels[label] = len(blocks) - 1
        elif item["line"]:
            line = int(item["line"])
        else:
            bits = int(item["control"], 16) >> 41
            sets, waits = bits >> 5 & 7, tuple(bit for bit in range(6) if bits >> 11 + bit & 1)
            if "gsb0" in item["operands"]:
                sets, waits = (sets, (*waits, _GROUP)) if "DEPBAR" in item["opcode"] else (_GROUP, waits)
            words = item["opcode"], item["operands"], item["predicate"] or ""
            made = Instruction(*words, line, bits & 15, sets, bits >> 8 & 7, waits)
            blocks[-1].instructions.append(made)
            if made.name in _ENDS:
                blocks.append(Block())
    _connect(functions[next(reversed(functions))], labels)
    return {name: blocks for name, blocks in functions.items() if name}


def _connect(blocks: list[Block], labels: Mapping[str, int]) -> None:
    """Say which blocks follow each."""
    if len(blocks) > 1 and not blocks[-1].instructions:
        blocks.pop()
    for number, block in enumerate(blocks):
        after, last = [number + 1], block.instructions[-1] if block.instructions else None
        if last and last.name in _ENDS:
            if not last.predicate and "UP" not in last.operands.split(",")[0]:
                after.clear()
            after += [labels[name] for name in _JUMPS_TO.findall(last.operands) if name in labels]
        block.successors = tuple(to for to in after if to < len(blocks))
