"""Bulk copies: cp.async.bulk. runtime/bulk.c makes them arrive."""

from __future__ import annotations

from grader.emulator.ptx import Instr, Mem
from grader.emulator.translate.function import Writer
from grader.emulator.translate.memory import SPACE_CODES, lane_addresses


def bulk_copy(w: Writer, instr: Instr) -> None:
    mods = instr.mods
    if "commit_group" in mods:
        w.line(f"rt_bulk_commit(w, {w.mask});")
    elif "wait_group" in mods:
        w.line(f"rt_bulk_wait(w, {w.s(instr.operands[0], 'u32')}, {int('read' in mods)}, {w.mask});")
    elif "prefetch" in mods:
        return
    elif "tensor" in mods or instr.op != "cp" or "reduce" in mods:
        raise w.refuse()
    else:
        _copy(w, instr)


def _copy(w: Writer, instr: Instr) -> None:
    """The address spaces of target and source are the first two that the instruction names."""
    spaces = [word.split("__")[0] for word in instr.mods if word.split("__")[0] in ("shared", "global")]
    to, source, size, *rest = instr.operands
    if not (isinstance(to, Mem) and isinstance(source, Mem)) or any(
        "multicast" in m or "cp_mask" in m for m in instr.mods
    ):
        raise w.refuse()
    lane_addresses(w, to, "ta", spaces[0])
    lane_addresses(w, source, "fa", spaces[1])
    w.line("u32 nn[32] __attribute__((aligned(64)));")
    for i in w.pieces("u32"):
        w.line(f"*(VU *)&nn[{i * w.lanes}] = {w.v(size, 'u32', i)};")
    objects = "NULL"
    if "bulk_group" not in instr.mods:
        (mem, *_) = rest
        assert isinstance(mem, Mem)
        lane_addresses(w, mem, "oa", "shared")
        objects = "oa"
    sites = f"{w.site('LOAD', 16)}, {w.site('COPY' if spaces[0] == 'shared' else 'STORE', 16)}"
    w.line(
        f"rt_bulk_copy(w, {sites}, {SPACE_CODES[spaces[0]]}, {SPACE_CODES[spaces[1]]}, ta, fa, nn, {objects}, {w.mask});"
    )
