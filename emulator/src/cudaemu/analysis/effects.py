"""The registers that an instruction reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from cudaemu.ptx import Imm, Instr, Mem, Operand, Reg, Sym, Vec, items_of

# Instructions whose first operand is not a destination.
_NO_RESULT = {
    "st", "red", "bra", "bar", "barrier", "membar", "fence", "ret", "exit", "trap", "brkpt", "prefetch",
    "prefetchu", "nanosleep", "call", "brx", "pmevent", "stmatrix", "discard", "applypriority", "griddepcontrol",
    "setmaxnreg", "sust", "stackrestore", "watch",
}  # fmt: skip
SPECIAL = frozenset({
    "%tid", "%ntid", "%laneid", "%warpid", "%nwarpid", "%ctaid", "%nctaid", "%smid", "%nsmid", "%gridid",
    "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt", "%clock", "%clock_hi",
    "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi", "%dynamic_smem_size", "%total_smem_size",
    "%cluster_ctaid", "%cluster_nctaid", "%clusterid", "%nclusterid", "%cluster_ctarank", "%cluster_nctarank",
    "%is_explicit_cluster", "%pm0", "%pm1", "%pm2", "%pm3", "%envreg0", "%envreg1", "%envreg2",
    "%current_graph_exec", "%aggr_smem_size", "%reserved_smem_offset_begin", "%reserved_smem_offset_end",
    "%reserved_smem_offset_cap", "%reserved_smem_offset_0", "%reserved_smem_offset_1",
})  # fmt: skip


@lru_cache(maxsize=1 << 16)
def is_special(name: str) -> bool:
    """Whether this is the name of a special register (%tid.x, %laneid, …)."""
    return name.split(".", 1)[0] in SPECIAL


def has_result(instr: Instr) -> bool:
    op = instr.op
    if op == "wgmma":
        return keeps_old_values(instr)
    if op in _NO_RESULT:
        # bar.red and barrier.red have a result
        return op in ("bar", "barrier") and "red" in instr.mods
    if op == "cp" or (op == "wmma" and instr.mods.action == "store"):
        return False
    if op == "mbarrier":
        return instr.mods.action in ("arrive", "test_wait", "try_wait", "pending_count", "arrive_drop")
    return True


def keeps_old_values(instr: Instr) -> bool:
    """Whether registers that the instruction writes can keep their old values: in lanes that its guard excludes, or
    after a wgmma.wait_group if their product is incomplete (in_flight.py)."""
    return instr.guard is not None or (is_wgmma(instr, "wait_group") and len(instr.operands) > 1)


def is_wgmma(instr: Instr, action: str) -> bool:
    """Whether the instruction is wgmma.`action`."""
    return instr.op == "wgmma" and action in instr.mods


CARRY = "%cc"  # the carry flag of extended-precision arithmetic, kept as a predicate register


def written(instr: Instr) -> tuple[str, ...]:
    """Names of the registers that the instruction writes, without `_`, which stands for an unused result."""
    if not has_result(instr):
        return ()
    results = instr.operands[: 2 if instr.mods.two_results else 1]
    names = [item.name for o in results for item in items_of(o) if isinstance(item, Reg) and item.name != "_"]
    return (*names, CARRY) if "cc" in instr.mods else tuple(names)


def read(instr: Instr) -> tuple[str, ...]:
    """Names of the ordinary registers that the instruction reads, including its guard. A write that can keep the old
    value also reads it."""
    names: list[str] = []
    for operand in instr.sources if has_result(instr) else instr.operands:
        names.extend(_registers(operand))
    if instr.op in ("addc", "subc", "madc"):
        names.append(CARRY)
    if isinstance(instr.callee, Reg):
        names.append(instr.callee.name)
    if instr.guard is not None:
        names.append(instr.guard.name)
    if keeps_old_values(instr):
        names.extend(written(instr))
    return tuple(names)


def _registers(operand: Operand) -> Iterator[str]:
    if isinstance(operand, Reg):
        if operand.name != "_" and not is_special(operand.name):
            yield operand.name
    elif isinstance(operand, Mem):
        yield from _registers(operand.base)
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from _registers(item)
    else:
        assert isinstance(operand, Imm | Sym)
