"""Barriers, fences and the end of a thread."""

from __future__ import annotations

from grader.emulator.analysis.effects import has_result
from grader.emulator.ptx import Imm, Instr, Mem, Operand, Reg
from grader.emulator.translate.function import Writer, handles
from grader.emulator.translate.memory import OBJECT, SPACE_CODES, lane_addresses, lanes_meet, value_lanes


def barrier_operands(w: Writer, instr: Instr) -> tuple[str, str]:
    """C expressions for a barrier's number and thread count (0: the whole block)."""
    operands = list(instr.operands)
    if "red" in instr.mods:
        operands = operands[1:-1]
    number = _uniform(w, operands[0]) if operands else "0"
    threads = _uniform(w, operands[1]) if len(operands) > 1 else "0"
    return number, threads


def _uniform(w: Writer, operand: Operand) -> str:
    if w.uniform(operand):
        return w.s(operand, "u32")
    # All lanes of a warp must pass the same barrier number, so one computed from threadIdx is read from the first lane.
    assert w.instr is not None
    name = w.fresh("b")
    w.line(f"u32 {name}_row[32] __attribute__((aligned(64)));")
    for i in w.pieces("u32"):
        w.line(f"*(VU *)&{name}_row[{i * w.lanes}] = {w.v(operand, 'u32', i)};")
    return f"{name}_row[lowest_lane({w.mask})]"


@handles("bar", "barrier")
def barrier(w: Writer, instr: Instr) -> None:
    mods = instr.mods
    if mods.action == "warp":  # bar.warp.sync: lanes already run in step
        sync_warp(w, instr.operands[0], always_whole=not w.slow and instr.guard is None)
        return
    if mods.action == "cluster":
        lanes_meet(w)
        w.line(f"rt_cluster_wait(w, {w.site('BARRIER')});" if "wait" in mods else f"rt_cluster_arrive(w, {w.mask});")
        return
    site = w.site("BARRIER")
    number, threads = barrier_operands(w, instr)
    if "arrive" in mods:
        w.line(f"rt_barrier_arrive(w, {site}, {number}, {threads}, {w.mask});")
        return
    if "red" in mods:
        how = {"popc": 0, "and": 1, "or": 2}[mods.operation]
        p = w.pred(instr.operands[-1])
        name = w.fresh("r")
        w.line(f"const u32 {name} = rt_barrier_reduce(w, {site}, {number}, {threads}, {w.mask}, {p}, {how});")
        d = instr.operands[0]
        if how == 0:
            w.put(d, "u32", lambda i: f"BU({name})")
        else:
            w.put_pred(d, name)
        return
    w.line(f"rt_barrier(w, {site}, {number}, {threads}, {w.mask}, 1);")


def sync_warp(w: Writer, members: Operand, *, always_whole: bool) -> None:
    """bar.warp.sync. The lanes that are here go on at once; the runtime records which others they wait for."""
    lanes_meet(w)
    if always_whole and isinstance(members, Imm) and members.value & 0xFFFFFFFF == 0xFFFFFFFF:
        return
    site = w.site("BARRIER")
    if w.uniform(members):
        w.line(f"sync_warp(w, {site}, {w.mask}, {w.s(members, 'u32')});")
        return
    w.line("u32 members[32] __attribute__((aligned(64)));")
    for i in w.pieces("u32"):
        w.line(f"*(VU *)&members[{i * w.lanes}] = {w.v(members, 'u32', i)};")
    w.line(f"rt_syncwarp_groups(w, {site}, {w.mask}, members);")


@handles("mbarrier")
def barrier_object(w: Writer, instr: Instr) -> None:
    """Barrier objects in shared memory (runtime/mbarrier.c)."""
    mods, what = instr.mods, instr.mods.action
    operands = instr.operands[int(has_result(instr)) :]
    if what == "pending_count":
        w.line("u64 vv[32] __attribute__((aligned(64)));")
        value_lanes(w, operands[0], "u64", "vv")
        w.line("u32 left[32] __attribute__((aligned(64))); pending_counts(left, vv);")
        w.put(instr.operands[0], "u32", lambda i: f"*(const VU *)&left[{i * w.lanes}]")
        return
    mem = operands[0]
    if not isinstance(mem, Mem):
        raise w.refuse()
    site = w.site("STORE" if what == "init" else "ATOMIC", 8, OBJECT)
    lane_addresses(w, mem, "aa", instr.mods.space)
    place = f"w, {site}, {SPACE_CODES[instr.mods.space]}, aa, {w.mask}"
    if what == "inval":
        w.line(f"rt_mbarrier_invalidate({place});")
        return
    w.line("u64 vv[32] __attribute__((aligned(64)));")
    wide = what in ("test_wait", "try_wait") and "parity" not in mods
    value_lanes(w, operands[1] if len(operands) > 1 else Imm(1), "u64" if wide else "u32", "vv")
    if what == "init":
        w.line(f"rt_mbarrier_init({place}, vv);")
    elif what in ("expect_tx", "complete_tx"):
        w.line(f"rt_mbarrier_expect({place}, vv, {int(what == 'complete_tx')});")
    elif what in ("arrive", "arrive_drop"):
        if "expect_tx" in mods:  # the operand is the number of bytes, and there is one arrival
            w.line(f"rt_mbarrier_expect({place}, vv, 0); fill_row(vv, 1);")
        w.line(f"rt_mbarrier_arrive({place}, vv, {int(what == 'arrive_drop')});")
        token = instr.operands[0]
        if isinstance(token, Reg):  # not `_`
            w.put(token, "u64", lambda i: f"*(const VQ *)&vv[{i * w.lanes // 2}]")
    else:
        w.line(f"const u32 done = rt_mbarrier_test({place}, vv, {int('parity' in mods)});")
        w.put_pred(instr.operands[0], "done")


@handles("membar", "fence")
def fence(w: Writer, instr: Instr) -> None:
    w.line("__atomic_thread_fence(__ATOMIC_SEQ_CST);")
    if not w.layout.watched:
        return
    w.line("rt_fence(w);")
    if "mbarrier_init" in instr.mods or (
        "proxy" in instr.mods and "async" in instr.mods and "global" not in instr.mods
    ):
        w.line(f"rt_proxy_fence(w, {w.mask}, {int('mbarrier_init' in instr.mods)});")


@handles("trap", "brkpt")
def trap(w: Writer, instr: Instr) -> None:
    w.line(f"rt_trap(w, {w.site('OTHER')}, {w.mask});")


@handles("nanosleep")
def nanosleep(w: Writer, instr: Instr) -> None:
    a = instr.operands[0]
    w.line(f"rt_nanosleep(w, {w.s(a, 'u32') if w.uniform(a) else '100u'});")


@handles("pmevent", "griddepcontrol", "setmaxnreg")
def ignored(w: Writer, instr: Instr) -> None:
    """Translate hints for the hardware to nothing."""
