"""Atomics: atom and red, which the runtime executes lane by lane, in lane order (runtime/atomics.c)."""

from __future__ import annotations

from cudaemu.ptx import Instr, Mem
from cudaemu.translate.access import OVERWRITES, TOLERANT, order_of
from cudaemu.translate.addresses import SPACE_CODES, lane_addresses
from cudaemu.translate.rows import declare, rows_from, value_lanes
from cudaemu.translate.types import BITS
from cudaemu.translate.writer import Writer, handles

_OPERATIONS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_TYPES = {"u32", "s32", "b32", "f32", "u64", "s64", "b64", "f64", "f16", "bf16", "f16x2", "bf16x2", "b16"}


@handles("atom")
def atomic(w: Writer, instr: Instr) -> None:
    mods = instr.mods
    how, t = mods.operation, instr.type
    has_result = instr.op == "atom"
    operands = instr.operands[1:] if has_result else instr.operands
    mem = operands[0]
    wide = any(m in ("v2", "v4", "v8") for m in mods)
    if how not in _OPERATIONS or t not in _TYPES or not isinstance(mem, Mem) or wide:
        raise w.refuse()
    space = mods.space
    bits = BITS[t]
    read = "u64" if bits == 64 else "u16" if bits == 16 else "u32"
    order = order_of(instr)
    if how in ("cas", "min", "max", "and", "or"):
        order |= TOLERANT
    if how == "exch":
        order |= OVERWRITES
    site = w.site("ATOMIC", bits // 8, order)
    lane_addresses(w, mem, "aa", space)
    declare(w, "vv", "u64", 2)
    value_lanes(w, operands[1], read, "vv")
    if len(operands) > 2:
        value_lanes(w, operands[2], read, "vv", 32)
    w.line(f"rt_atomic_{how}_{t}(w, {site}, {SPACE_CODES[space]}, aa, {w.mask}, vv);")
    if not has_result:
        return
    d = instr.operands[0]
    if bits == 64:
        rows_from(w, d, "vv", "u64")
    else:
        w.put(
            d,
            read,
            lambda i: f"narrow_q(*(const VQ *)&vv[{i * w.lanes}], *(const VQ *)&vv[{i * w.lanes + w.lanes // 2}])",
        )
