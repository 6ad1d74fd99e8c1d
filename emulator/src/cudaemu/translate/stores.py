"""Stores and reductions in memory, including asynchronous ones in the shared memory of a cluster."""

from __future__ import annotations

from cudaemu.ptx import Instr, Mem, items_of
from cudaemu.translate.access import ASYNC
from cudaemu.translate.addresses import SPACE_CODES, lane_addresses
from cudaemu.translate.atomics import atomic
from cudaemu.translate.bulk import TYPE_NUMBERS
from cudaemu.translate.memory import store
from cudaemu.translate.rows import declare, value_lanes
from cudaemu.translate.types import BITS
from cudaemu.translate.writer import Writer, handles


@handles("st")
def any_store(w: Writer, instr: Instr) -> None:
    if "async" in instr.mods:
        _send(w, instr)
    else:
        store(w, instr)


@handles("red")
def any_reduction(w: Writer, instr: Instr) -> None:
    if "async" in instr.mods:
        _send(w, instr)
    else:
        atomic(w, instr)


def _send(w: Writer, instr: Instr) -> None:
    """st.async and red.async [target], value, [barrier object] (runtime/bulk.c)."""
    if "mbarrier__complete_tx__bytes" not in instr.mods:
        raise w.refuse()
    target, value, completion = instr.operands
    assert isinstance(target, Mem)
    assert isinstance(completion, Mem)
    space, t, items = instr.mods.space, instr.type, items_of(value)
    read = f"u{BITS[t]}"
    lane_addresses(w, target, "ta", space)
    lane_addresses(w, completion, "oa", space)
    declare(w, "vv", "u64", len(items))
    for k, item in enumerate(items):
        value_lanes(w, item, read, "vv", 32 * k)
    how, number = (
        (f"REDUCE_{instr.mods.operation.upper()}", TYPE_NUMBERS[t]) if instr.op == "red" else ("REDUCE_NONE", 0)
    )
    size = BITS[t] // 8
    site = w.site("ATOMIC" if instr.op == "red" else "COPY", size * len(items), ASYNC)
    w.line(
        f"rt_send(w, {site}, (struct bulk_copy){{{SPACE_CODES[space]}, SPACE_LOCAL, {how}, "
        f"{number}}}, {size}, {len(items)}, ta, oa, vv, {w.mask});"
    )
