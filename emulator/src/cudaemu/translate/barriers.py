"""Barriers, fences and the end of a thread."""

from __future__ import annotations

from cudaemu.analysis.effects import has_result
from cudaemu.ptx import Imm, Instr, Mem, Operand, Reg
from cudaemu.translate.access import OBJECT
from cudaemu.translate.addresses import SPACE_CODES, lane_addresses
from cudaemu.translate.rows import declare, first_lane, rows, rows_from, value_lanes
from cudaemu.translate.writer import Writer, handles


def barrier_operands(w: Writer, instr: Instr) -> tuple[str, str]:
    """C expressions for a barrier's number and thread count (0: the whole block)."""
    operands = list(instr.operands)
    if "red" in instr.mods:
        operands = operands[1:-1]
    number = first_lane(w, operands[0]) if operands else "0"
    threads = first_lane(w, operands[1]) if len(operands) > 1 else "0"
    return number, threads


@handles("bar", "barrier")
def barrier(w: Writer, instr: Instr) -> None:
    mods = instr.mods
    if mods.action == "warp":  # bar.warp.sync
        sync_warp(w, instr.operands[0], always_whole=not w.slow and instr.guard is None)
        return
    if mods.action == "cluster":
        w.lanes_meet()
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
    """bar.warp.sync. The active lanes do not stop here; the runtime only records which lanes of the mask have yet to
    arrive."""
    w.lanes_meet()
    if always_whole and isinstance(members, Imm) and members.value & 0xFFFFFFFF == 0xFFFFFFFF:
        return
    site = w.site("BARRIER")
    if w.uniform(members):
        w.line(f"sync_warp(w, {site}, {w.mask}, {w.s(members, 'u32')});")
        return
    rows(w, "members", members)
    w.line(f"rt_syncwarp_groups(w, {site}, {w.mask}, members);")


@handles("mbarrier")
def barrier_object(w: Writer, instr: Instr) -> None:
    """Barrier objects in shared memory (runtime/mbarrier.c)."""
    mods, what = instr.mods, instr.mods.action
    operands = instr.operands[int(has_result(instr)) :]
    if what == "pending_count":
        rows(w, "vv", operands[0], "u64")
        declare(w, "left")
        w.line("pending_counts(left, vv);")
        rows_from(w, instr.operands[0], "left")
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
    declare(w, "vv", "u64")
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
            rows_from(w, token, "vv", "u64")
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


@handles("griddepcontrol")
def overlap(w: Writer, instr: Instr) -> None:
    what = "trigger_dependents" if "launch_dependents" in instr.mods else "wait_for_prerequisite"
    w.line(f"rt_{what}(w);")


@handles("setmaxnreg")
def move_registers(w: Writer, instr: Instr) -> None:
    w.line(f"rt_move_registers(w, {w.site('BARRIER')}, {w.s(instr.operands[0], 'u32')}, {int('inc' in instr.mods)});")


@handles("pmevent")
def ignored(w: Writer, instr: Instr) -> None:
    """Write nothing: a performance monitor event changes no result."""
