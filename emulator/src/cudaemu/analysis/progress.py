"""Finds what decides whether a loop ends: the values at its start that its exits depend on.

A loop whose deciding values are the same at the start of two passes never ends, if they come from registers alone. If
they also come from memory, it never ends as long as nobody writes that memory; such a loop counts only if it writes
nothing itself, so that threads which all wait in such loops wait for each other forever (runtime/progress.c).

The deciding values are a backward slice (Weiser, 1984) from the conditions of the branches out of the loop, over data
and over the branches that an instruction's execution depends on.
"""

from __future__ import annotations

from dataclasses import dataclass

from cudaemu.analysis.cfg import Block, Graph
from cudaemu.analysis.effects import read, written
from cudaemu.analysis.ssa import Webs
from cudaemu.ptx import Instr, Reg, Sym

MAX_BLOCKS, MAX_VALUES = 400, 60
"""Of a loop that is analysed, and of its deciding values: larger loops end at the time limit."""
_COMPUTING = {
    "add", "sub", "mul", "mul24", "mad", "mad24", "sad", "div", "rem", "abs", "neg", "min", "max", "popc",
    "clz", "brev", "bfe", "bfi", "bfind", "prmt", "and", "or", "xor", "not", "cnot", "lop3", "shl", "shr",
    "shf", "setp", "set", "selp", "slct", "mov", "cvt", "cvta", "isspacep", "fma", "rcp", "sqrt", "rsqrt",
    "ex2", "lg2", "sin", "cos", "tanh", "testp", "copysign", "dp4a",
}  # fmt: skip
_WRITING = {"st", "red", "cp", "call", "mbarrier", "sust", "stmatrix", "wmma", "wgmma", "trap"}
_CHANGING = ("%clock", "%globaltimer")


@dataclass(frozen=True, slots=True)
class Deciding:
    """The values (webs) at the start of a loop that decide whether it ends, `with_memory` if memory does too."""

    webs: tuple[int, ...]
    with_memory: bool


def deciding_values(graph: Graph, webs: Webs) -> dict[int, Deciding]:
    """What decides whether each loop ends, by its header. Loops about which nothing can be said are left out."""
    if not graph.reducible:
        return {}
    regions: dict[int, set[int]] = {}
    found = {}
    for header, body in graph.loops.items():
        deciding = _of_loop(graph, webs, header, body, regions) if len(body) <= MAX_BLOCKS else None
        if deciding is not None and len(deciding.webs) <= MAX_VALUES:
            found[header] = deciding
    return found


def _of_loop(graph: Graph, webs: Webs, header: int, body: set[int], regions: dict[int, set[int]]) -> Deciding | None:
    blocks = [graph.blocks[number] for number in sorted(body)]
    if any(i.op == "trap" or (i.op == "call" and not _is_print(i)) for b in blocks for i in b.instrs):
        return None  # the end of a thread may be in the function
    definitions: dict[int, list[tuple[Block, Instr]]] = {}
    for block in blocks:
        for instr in block.instrs:
            for name in written(instr):
                definitions.setdefault(webs.of_write(instr, name), []).append((block, instr))
    branches = [b for b in blocks if len(b.successors) > 1]
    needed: set[int] = set()
    work = [b for b in branches if not body.issuperset(b.successors)]
    reached = {b.number for b in work}
    memory = False
    while work:
        block = work.pop()
        values = list(webs.web_at_end[block.number].values()) if len(block.successors) > 1 else []
        for branch in branches:
            if branch.number not in regions:
                regions[branch.number] = graph.region(branch.number)
            if block.number in regions[branch.number]:
                values += webs.web_at_end[branch.number].values()
        while values:
            web = values.pop()
            if web in needed:
                continue
            needed.add(web)
            for at, instr in definitions.get(web, ()):
                if _reads_memory(instr):
                    memory = True
                elif not _only_computes(instr):
                    return None
                values += [webs.of_read(instr, name) for name in read(instr)]
                if at.number not in reached:
                    reached.add(at.number)
                    work.append(at)
    if memory and any(_may_write(i) for b in blocks for i in b.instrs):
        return None
    return Deciding(tuple(sorted(needed & webs.live_in[header])), memory)


def _is_print(instr: Instr) -> bool:
    return isinstance(instr.callee, Sym) and instr.callee.name == "vprintf"


def _only_computes(instr: Instr) -> bool:
    if instr.op == "ld":
        return instr.mods.space in ("param", "const")
    changes = any(isinstance(o, Reg) and o.name.startswith(_CHANGING) for o in instr.operands)
    return instr.op in _COMPUTING and not changes


def _reads_memory(instr: Instr) -> bool:
    if instr.op == "ld":
        return instr.mods.space in ("global", "shared", "generic")
    return _polls(instr)


def _polls(instr: Instr) -> bool:
    """Whether an atomic leaves memory as it is, or as any other such atomic of a waiting thread leaves it."""
    return instr.op == "atom" and not {"cas", "exch"}.isdisjoint(instr.mods)


def _may_write(instr: Instr) -> bool:
    return instr.op in _WRITING or (instr.op == "atom" and not _polls(instr))
