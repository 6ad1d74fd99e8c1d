"""Finds the places where lanes of a warp may wait for other lanes of the same warp.

Since compute capability 7.0 every lane of a divided warp eventually makes progress, so a lane may spin until another
lane of its warp releases a lock or sets a flag (CUDA C++ Programming Guide, "Independent Thread Scheduling"). Whether
such a loop ends depends on memory that other threads change; runtime/apart.c explains how the emulator runs it. All
other loops end regardless of the other lanes.

Lanes meet at barriers, at warp functions and at matrix instructions. The lanes that arrive first stay there until the
other participants have arrived, or until nothing else can run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cudaemu.analysis.cfg import Block, Goto, Graph, is_barrier
from cudaemu.analysis.effects import read, written
from cudaemu.ptx import Function, Imm, Instr, Operand, Reg, Sym

_STRONG = {"volatile", "relaxed", "acquire"}
_PAUSES = {"nanosleep", "membar", "fence"}
# Atomics by which a lane may wait for another lane's write. add, inc, dec and xor are absent: programs count with them.
_POLLING_ATOMICS = {"cas", "exch", "and", "or", "min", "max"}
_EVERY_LANE = Imm(-1)


@dataclass(frozen=True, slots=True)
class Callees:
    """Names of the functions that, directly or through a call, poll memory that other threads change (`polling`) or
    contain an instruction at which lanes meet (`meeting`)."""

    polling: frozenset[str] = frozenset()
    meeting: frozenset[str] = frozenset()

    @staticmethod
    def of(functions: Iterable[Function]) -> Callees:
        bodies = {f.name: [item for item in f.body if isinstance(item, Instr)] for f in functions if f.defined}
        found = Callees()
        while True:
            more = Callees(
                frozenset(name for name, body in bodies.items() if any(_polls_memory(i, found) for i in body)),
                frozenset(name for name, body in bodies.items() if any(meeting_lanes(i, found) for i in body)),
            )
            if more == found:
                return found
            found = more


def waiting_loops(graph: Graph, callees: Callees) -> frozenset[int]:
    """Headers of the loops in which lanes may wait for other lanes."""
    if not graph.reducible:  # the loops are unknown
        if not any(_polls_memory(i, callees) for b in graph.blocks for i in b.instrs):
            return frozenset()
        return frozenset(s for b in graph.blocks for s in b.successors if s <= b.number)
    return frozenset(h for h, body in graph.loops.items() if _may_wait([graph.blocks[n] for n in body], callees))


def meeting_lanes(instr: Instr, callees: Callees) -> Operand | None:
    """The mask of the lanes that meet at an instruction; None if lanes do not meet there."""
    if instr.op == "call":
        return _EVERY_LANE if isinstance(instr.callee, Sym) and instr.callee.name in callees.meeting else None
    if is_barrier(instr) or instr.op in ("mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix"):
        return _EVERY_LANE
    if instr.op == "barrier" and instr.mods.action == "cluster":
        return _EVERY_LANE
    if instr.op in ("bar", "barrier"):
        return instr.operands[0] if instr.mods.action == "warp" else None
    if "sync" not in instr.mods:
        return None
    at = {"shfl": 3, "vote": 1, "match": 1, "redux": 1, "elect": 0}.get(instr.op)
    return instr.sources[at] if at is not None and at < len(instr.sources) else None


def meetings(graph: Graph, callees: Callees) -> frozenset[int]:
    """Indices of the instructions that must begin a block so that lanes can wait before them: in each block, the first
    meeting for each mask. After it the lanes stay together until the end of the block."""
    found = set()
    for block in graph.blocks:
        together: set[Operand] = set()
        for instr in block.instrs:
            mask = meeting_lanes(instr, callees)
            if mask is not None and mask not in together:
                together.add(mask)
                found.add(instr.index)
            together -= {Reg(name) for name in written(instr)}
    return frozenset(found)


def idle_until_meeting(graph: Graph, number: int, callees: Callees) -> bool:
    """Whether lanes at the start of a block do nothing visible to other lanes before the whole warp meets."""
    seen: set[int] = set()
    while number not in seen:
        seen.add(number)
        block = graph.blocks[number]
        for instr in block.instrs:
            mask = meeting_lanes(instr, callees)
            if instr.op != "call" and isinstance(mask, Imm) and mask.value & 0xFFFFFFFF == 0xFFFFFFFF:
                return True
            if mask is not None or instr.op in ("st", "atom", "red", "call", "cp", "mbarrier", "trap"):
                return False
        if not isinstance(block.end, Goto):
            return False
        number = block.end.target
    return False


# ---- loops that poll --------------------------------------------------------------------------------------------


def _polls_memory(instr: Instr, callees: Callees) -> bool:
    """Whether an instruction reads memory that other threads may change."""
    if instr.op == "ld":
        return not _STRONG.isdisjoint(instr.mods)
    if instr.op == "atom":
        amount = instr.operands[2]
        return not _POLLING_ATOMICS.isdisjoint(instr.mods) or (isinstance(amount, Imm) and amount.value == 0)
    if instr.op == "call":
        return not isinstance(instr.callee, Sym) or instr.callee.name in callees.polling
    return instr.op == "mbarrier" and instr.mods.action in ("test_wait", "try_wait")


def _may_wait(body: list[Block], callees: Callees) -> bool:
    instrs = [i for b in body for i in b.instrs]
    pauses = any(i.op in _PAUSES for i in instrs)
    polls = [i for i in instrs if _polls_memory(i, callees) or (pauses and i.op == "ld" and i.mods.space != "param")]
    if not polls:
        return False
    definitions: dict[str, list[Instr]] = {}
    for instr in instrs:
        for name in written(instr):
            definitions.setdefault(name, []).append(instr)
    ends = {b.condition for b in body if b.condition is not None}
    deciding = _sources(ends, definitions)
    decide = {i.index for i in deciding}
    if any(i.op == "ld" and _is_private(i) for i in deciding):
        return True  # the private memory may hold a polled value
    return any(i.index in decide and not _expects_current_value(i, definitions) for i in polls)


def _is_private(instr: Instr) -> bool:
    return instr.mods.space not in ("global", "shared", "const")


def _sources(names: set[str], definitions: dict[str, list[Instr]]) -> list[Instr]:
    """The instructions of `definitions` that the values of `names` are computed from."""
    seen = set(names)
    work = list(names)
    found: dict[int, Instr] = {}
    while work:
        for instr in definitions.get(work.pop(), ()):
            found[instr.index] = instr
            new = set(read(instr)) - seen
            seen |= new
            work += new
    return list(found.values())


def _expects_current_value(instr: Instr, definitions: dict[str, list[Instr]]) -> bool:
    """Whether a compare-and-swap expects a value that the loop has just read from memory. Such a compare-and-swap fails
    only if another thread's succeeded meanwhile, so no lane waits for a lane that cannot run."""
    if instr.op != "atom" or "cas" not in instr.mods:
        return False
    expected = instr.operands[2]
    sources = _sources({expected.name}, definitions) if isinstance(expected, Reg) else []
    return any(i.op in ("atom", "ld") for i in sources)
