"""Write the code for counters, in programs built with `count`; runtime/counters.h describes the method.

There are three hooks: where a block is entered, before an instruction, and where lanes diverge. All forms of a function
share the numbers of its slots, accesses and branches, so the counts do not depend on which form a warp runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Literal

from cudaemu.analysis.cfg import Block, Branch, Leave, Switch
from cudaemu.analysis.effects import read
from cudaemu.ptx import Function, Instr, Mem, Sym, items_of
from cudaemu.ptx.model import Loc
from cudaemu.translate.addresses import SPACE_CODES, address_arguments, lane_addresses
from cudaemu.translate.fusion import Fused, fuse, trailing_zeros, used_bytes
from cudaemu.translate.types import BITS

if TYPE_CHECKING:
    from cudaemu.translate.writer import Writer

# The order of enum instruction_class in runtime/counters.h.
CLASSES = (
    "integer", "fp32", "fp64", "fp16", "tensor", "conversion", "memory", "control", "barrier", "inter_thread", "misc",
)  # fmt: skip
_PRECISIONS = ("fp16", "fp32", "fp64")
_OPERATIONS = ("add", "mul", "fma", "special")

_BY_OP = {
    "memory": ("ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "prefetch", "prefetchu", "discard",
               "tex", "tld4", "suld", "sust"),
    "control": ("bra", "brx", "call", "ret", "exit", "trap", "brkpt", "nanosleep"),
    "inter_thread": ("shfl", "vote", "match", "redux", "activemask", "elect", "movmatrix"),
    "tensor": ("mma", "wgmma"),
    "conversion": ("cvt",),
    "misc": ("mov", "cvta", "selp", "slct", "isspacep", "membar", "fence", "mbarrier", "pmevent", "griddepcontrol", "setmaxnreg"),
}  # fmt: skip
_CLASS_OF_OP = {op: name for name, ops in _BY_OP.items() for op in ops}
_OPERATION_OF_OP = {
    "add": "add", "sub": "add", "mul": "mul", "fma": "fma", "mad": "fma", "div": "special", "rcp": "special",
    "sqrt": "special", "rsqrt": "special", "sin": "special", "cos": "special", "lg2": "special", "ex2": "special",
    "tanh": "special",
}  # fmt: skip
_FLOATS = {
    "f16": ("fp16", 1), "f16x2": ("fp16", 2), "bf16": ("fp16", 1), "bf16x2": ("fp16", 2), "f32": ("fp32", 1),
    "f32x2": ("fp32", 2), "f64": ("fp64", 1),
}  # fmt: skip
AccessKind = Literal["LOAD", "STORE", "ATOMIC", "REDUCTION", "COPY_FROM", "COPY_TO"]


def instruction_class(instr: Instr) -> str | None:
    """One of CLASSES. None for loads and stores of parameters, for which a GPU executes no instruction: kernel
    parameters are operands there, and arguments of calls are in registers."""
    op, mods = instr.op, instr.mods
    if op in ("ld", "st") and mods.space == "param":
        return None
    if op in ("bar", "barrier"):
        return "control" if mods.action == "warp" else "barrier"
    if op == "wmma":
        return "tensor" if mods.action == "mma" else "memory"
    if op in _CLASS_OF_OP:
        return _CLASS_OF_OP[op]
    found = _FLOATS.get(instr.type)
    return found[0] if found else "integer"


def lane_operations(instr: Instr) -> tuple[str, str, int] | None:
    """(precision, operation, count per lane) of floating-point arithmetic; None for any other instruction."""
    operation = _OPERATION_OF_OP.get(instr.op)
    found = _FLOATS.get(instr.type)
    return (found[0], operation, found[1]) if operation and found else None


def may_compute_floats(instr: Instr) -> bool:
    """Whether an instruction computes with floating-point numbers, or calls a function that might."""
    adds = instr.op in ("atom", "red", "cp", "max", "min") and instr.type in _FLOATS
    return adds or instr.op == "call" or instruction_class(instr) == "tensor" or lane_operations(instr) is not None


def tensor_operations(instr: Instr) -> int:
    """The number of additions and multiplications in a warp's matrix instruction."""
    if instruction_class(instr) != "tensor" or instr.mods.shape is None:
        return 0
    return 2 * prod(instr.mods.shape) // (4 if instr.op == "wgmma" else 1)  # four warps share a wgmma


# ---- tables ---------------------------------------------------------------------------------------------------------


@dataclass
class _Slot:
    """A row of struct slot_info."""

    issued: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))
    done: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))
    operations: dict[tuple[str, str], int] = field(
        default_factory=lambda: {(p, o): 0 for p in _PRECISIONS for o in _OPERATIONS}
    )
    branches: int = 0
    tensor: int = 0
    symbol: str = ""  # of the function
    first: int = 0  # the PTX lines of its instructions
    last: int = 0

    def issue(self, instr: Instr) -> None:
        self.first, self.last = self.first or instr.ptx_line, instr.ptx_line
        name = instruction_class(instr)
        if name is not None:
            self.issued[name] += 1

    def perform(self, instr: Instr) -> None:
        name = instruction_class(instr)
        if name is None:
            return
        self.done[name] += 1
        self.tensor += tensor_operations(instr)
        found = lane_operations(instr)
        if found:
            precision, operation, count = found
            self.operations[precision, operation] += count

    def jump(self, conditional: bool) -> None:
        self.issued["control"] += 1
        self.done["control"] += 1
        self.branches += conditional

    @property
    def row(self) -> str:
        operations = ", ".join(_braces(self.operations[p, o] for o in _OPERATIONS) for p in _PRECISIONS)
        issued, done = _braces(self.issued.values()), _braces(self.done.values())
        place = f'"{self.symbol}", {self.first}, {self.last}'
        return f"{{{issued}, {done}, {{{operations}}}, {self.branches}, {self.tensor}, {place}}}"


def _braces(numbers: Iterable[int]) -> str:
    return "{" + ", ".join(map(str, numbers)) + "}"


class Counting:
    """The slots (see counters.h), accesses and branches of one module that get counters, numbered while its functions are written."""

    def __init__(self) -> None:
        self.slots: list[_Slot] = []
        self.accesses: list[tuple[Loc, AccessKind, int, int]] = []
        self.branches: list[Loc] = []

    def slot(self) -> tuple[int, _Slot]:
        self.slots.append(_Slot())
        return len(self.slots) - 1, self.slots[-1]

    def tables(self, file_index: Callable[[Loc], int]) -> str:
        """C definitions that end in `counting_tables`, a struct counting."""

        def place(loc: Loc) -> str:
            return f"{{{file_index(loc)}, {loc.line}}}"

        slots = [slot.row for slot in self.slots]
        accesses = [f"{{{place(loc)}, ACCESS_{kind}, {size}, {line}}}" for loc, kind, size, line in self.accesses]
        branches = [place(loc) for loc in self.branches]
        counts = f"slot_rows, {len(slots)}, access_rows, {len(accesses)}, branch_rows, {len(branches)}"
        return "\n".join(
            (
                '#include "counters.h"',
                _table("struct slot_info", "slot_rows", slots),
                _table("struct access_info", "access_rows", accesses),
                _table("struct place", "branch_rows", branches),
                f"static const struct counting counting_tables = {{{counts}}};",
            )
        )


def _table(kind: str, name: str, rows: list[str]) -> str:
    return f"static const {kind} {name}[] = {{" + ",\n    ".join([*rows, "{0}"]) + "};"


# ---- one function -----------------------------------------------------------------------------------------------------


class FunctionCounting:
    """The hooks for one function."""

    def __init__(self, module: Counting, function: Function, shared: Mapping[str, int]) -> None:
        self._module = module
        self._shared = shared
        self._symbol = function.name
        self._zeros = trailing_zeros(function, shared)
        self._used = {name for item in function.body if isinstance(item, Instr) for name in read(item)}
        self._fused: dict[int, Fused] = {}  # by index of the instruction
        self._blocks: dict[int, dict[int, int]] = {}  # block → place of an instruction in it → slot that begins there
        self._guarded: dict[int, int] = {}  # by index of the instruction
        self._accesses: dict[tuple[int, AccessKind], int] = {}
        self._branches: dict[int, int] = {}  # by block

    def enter(self, w: Writer, block: Block, mask: str = "m") -> None:
        """Write the hook at the start of a block's code."""
        self._count(w, self._starts(block)[0], mask)

    def instruction(self, w: Writer, block: Block, index: int) -> None:
        """Write the hook before instruction `index` of a block if a call precedes it, because lanes may have left in
        the call."""
        slot = self._starts(block).get(index) if index else None
        if slot is not None:
            self._count(w, slot, "m")

    def operation(self, w: Writer, instr: Instr) -> None:
        """Write the hook before an instruction's code, where `w.mask` holds the lanes that execute it."""
        if instr.guard is not None:
            self._count(w, self._guard_slot(instr), w.mask)
        if self._follows(instr):
            return
        if instr.op == "cp":
            self._copy(w, instr)
            return
        fused = self._fused.get(instr.index)
        for kind, mem, space, size in _accesses(instr, self._used):
            if fused is not None:
                mem, size = fused.mem, fused.size
            self._access(w, self._number(instr, kind, size), kind, mem, space)
        if instr.op in ("ldmatrix", "stmatrix"):
            self._matrices(w, instr)

    def _follows(self, instr: Instr) -> bool:
        """Whether the instruction is part of a fused access that another instruction counts."""
        fused = self._fused.get(instr.index)
        return fused is not None and fused.leader is not instr

    def parting(self, w: Writer, block: Block, condition: str) -> None:
        """Write the hook for a branch that the lanes of `condition` & m take."""
        w.line(f"COUNT_BRANCH(w, {w.number(self._branch(block))}, {condition} & m, m);")

    def switch(self, w: Writer, block: Block) -> None:
        """Write the hook for a switch; `index[32]` holds each lane's target at that point."""
        w.line(f"rt_count_switch(w, {self._branch(block)}, t->index, m);")

    def _count(self, w: Writer, slot: int, mask: str) -> None:
        w.line(f"COUNT_SLOT(w, {w.number(slot)}, {mask});")

    def _starts(self, block: Block) -> dict[int, int]:
        known = self._blocks.get(block.number)
        if known is not None:
            return known
        number, slot = self._module.slot()
        slot.symbol = self._symbol
        starts = {0: number}
        self._fused.update(fuse(block.instrs, self._zeros, self._shared))
        for i, instr in enumerate(block.instrs):
            if self._follows(instr):
                continue
            slot.issue(instr)
            if instr.guard is None:
                slot.perform(instr)
            if instr.op == "call":
                starts[i + 1], slot = self._module.slot()
                slot.symbol = self._symbol
        if isinstance(block.end, Branch | Switch | Leave):
            slot.jump(conditional=not isinstance(block.end, Leave))
        self._blocks[block.number] = starts
        return starts

    def _guard_slot(self, instr: Instr) -> int:
        if instr.index not in self._guarded:
            self._guarded[instr.index], slot = self._module.slot()
            slot.perform(instr)
        return self._guarded[instr.index]

    def _number(self, instr: Instr, kind: AccessKind, size: int) -> int:
        key = instr.index, kind
        if key not in self._accesses:
            self._module.accesses.append((instr.loc, kind, size, instr.ptx_line))
            self._accesses[key] = len(self._module.accesses) - 1
        return self._accesses[key]

    def _branch(self, block: Block) -> int:
        end = block.end
        assert isinstance(end, Branch | Switch)
        if block.number not in self._branches:
            self._module.branches.append(end.loc)
            self._branches[block.number] = len(self._module.branches) - 1
        return self._branches[block.number]

    def _access(self, w: Writer, access: int, kind: AccessKind, mem: Mem, space: str) -> None:
        w.line("{")
        form, arguments = address_arguments(w, mem, space)
        w.line(f"count_{form}(w, {w.number(access)}, {SPACE_CODES[space]}, {arguments}, {w.mask});")
        w.line("}")

    def _copy(self, w: Writer, instr: Instr) -> None:
        """Write the hook for an asynchronous copy: the number of sectors that it reads depends on both its addresses."""
        requests = list(_accesses(instr, self._used))
        if not requests:
            return
        w.line("{")
        numbers = []
        for name, (kind, mem, space, size) in zip(("source", "target"), requests, strict=True):
            lane_addresses(w, mem, name, space)
            numbers.append(w.number(self._number(instr, kind, size)))
        w.line(f"rt_count_copy(w, {', '.join(numbers)}, source, target, {w.mask});")
        w.line("}")

    def _matrices(self, w: Writer, instr: Instr) -> None:
        load = instr.op == "ldmatrix"
        mem, registers = (instr.operands[1], instr.operands[0]) if load else (instr.operands[0], instr.operands[1])
        assert isinstance(mem, Mem)
        space = instr.mods.space
        access = self._number(instr, "LOAD" if load else "STORE", 16)
        w.line("{")
        lane_addresses(w, mem, "ca", space)
        w.line(f"rt_count_matrix(w, {w.number(access)}, ca, {len(items_of(registers))});")
        w.line("}")


def _accesses(instr: Instr, used: Collection[str]) -> Iterator[tuple[AccessKind, Mem, str, int]]:
    """(kind, address, space, bytes per lane) of an instruction's requests to global, shared and local memory."""
    op, operands = instr.op, instr.operands
    if op == "cp" and instr.mods.action == "async" and "bulk" not in instr.mods and len(operands) >= 3:
        to, source, size = operands[:3]
        if isinstance(to, Mem) and isinstance(source, Mem):
            yield "COPY_FROM", source, "global", getattr(size, "value", 0)
            yield "COPY_TO", to, "shared", getattr(size, "value", 0)
        return
    kinds: dict[str, tuple[AccessKind, int]] = {
        "ld": ("LOAD", 1), "ldu": ("LOAD", 1), "st": ("STORE", 0), "atom": ("ATOMIC", 1), "red": ("REDUCTION", 0),
    }  # fmt: skip
    if op not in kinds or instr.type not in BITS:
        return
    kind, place = kinds[op]
    mem = operands[place]
    space = instr.mods.space
    if not isinstance(mem, Mem) or space in ("param", "const"):
        return
    if isinstance(mem.base, Sym) and space == "generic":
        return
    yield kind, mem, space, used_bytes(instr, used) if kind in ("LOAD", "STORE") else BITS[instr.type] // 8
