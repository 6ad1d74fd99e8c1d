"""Bulk copies: cp.async.bulk and cp.reduce.async.bulk, with tensor maps and without. runtime/bulk.c executes them."""

from __future__ import annotations

from collections.abc import Sequence

from cudaemu.ptx import Instr, Mem, Operand, Reg, Vec, items_of
from cudaemu.translate.access import ASYNC
from cudaemu.translate.addresses import SPACE_CODES, lane_addresses
from cudaemu.translate.rows import declare, fill, rows
from cudaemu.translate.writer import Writer

TYPE_NUMBERS = {
    "u32": 2, "b32": 2, "s32": 3, "u64": 4, "b64": 4, "s64": 5, "f16": 6, "f32": 7, "f64": 8, "bf16": 9,
}  # fmt: skip
"""CUtensorMapDataType of cuda.h."""


def bulk_copy(w: Writer, instr: Instr) -> None:
    mods = instr.mods
    if "commit_group" in mods:
        w.line(f"rt_bulk_commit(w, {w.mask});")
    elif "wait_group" in mods:
        w.line(f"rt_bulk_wait(w, {w.s(instr.operands[0], 'u32')}, {int('read' in mods)}, {w.mask});")
    elif "prefetch" in mods:
        return
    elif any(m.startswith(("cp_mask", "im2col__", "tile__", "cta_group")) for m in mods):
        raise w.refuse()
    elif "tensor" in mods:
        _tensor(w, instr)
    else:
        _bytes(w, instr)


def _reduction(instr: Instr) -> str:
    return f"REDUCE_{instr.mods.operation.upper()}" if "reduce" in instr.mods else "REDUCE_NONE"


def _sites(w: Writer, instr: Instr, *, into_shared: bool) -> str:
    """The sites of the load and of the store. A reduction updates each element atomically (PTX ISA,
    cp.reduce.async.bulk)."""
    store = "ATOMIC" if "reduce" in instr.mods else "COPY" if into_shared else "STORE"
    return f"{w.site('LOAD', 16, ASYNC)}, {w.site(store, 16, ASYNC)}"


def _addresses(w: Writer, operand: Operand, name: str, space: str) -> None:
    if isinstance(operand, Reg):
        operand = Mem(operand)
    if not isinstance(operand, Mem):
        raise w.refuse()
    lane_addresses(w, operand, name, space)


def _completion(w: Writer, instr: Instr, rest: Sequence[Operand]) -> str:
    """C arguments: the barrier object at which a copy completes (NULL for a copy of a bulk group) and the blocks that a
    multicast writes to (NULL for other copies)."""
    if "bulk_group" in instr.mods or not rest:
        return "NULL, NULL"
    _addresses(w, rest[0], "oa", "shared")
    if "multicast__cluster" not in instr.mods:
        return "oa, NULL"
    rows(w, "blocks", rest[1], read="u16")
    return "oa, blocks"


def _bytes(w: Writer, instr: Instr) -> None:
    """Write a copy without a tensor map. The first two address spaces that the instruction names are those of the
    target and the source."""
    spaces = [word.split("__")[0] for word in instr.mods if word.split("__")[0] in ("shared", "global")]
    to, source, size, *rest = instr.operands
    _addresses(w, to, "ta", spaces[0])
    _addresses(w, source, "fa", spaces[1])
    rows(w, "nn", size)
    completion = _completion(w, instr, rest)
    number = TYPE_NUMBERS[instr.type] if "reduce" in instr.mods else 0
    sites = _sites(w, instr, into_shared=spaces[0] == "shared")
    w.line(
        f"rt_bulk_copy(w, {sites}, (struct bulk_copy){{{SPACE_CODES[spaces[0]]}, {SPACE_CODES[spaces[1]]}, "
        f"{_reduction(instr)}, {number}}}, ta, fa, nn, {completion}, {w.mask});"
    )


def _tensor(w: Writer, instr: Instr) -> None:
    """Write a copy with a tensor map. A load has the operands [shared], [map, {coordinates}], [barrier object], and with
    im2col its offsets; a store has [map, {coordinates}], [shared]."""
    first, second, *rest = instr.operands
    box, shared = (first, second) if isinstance(first, Vec) else (second, first)
    if not (isinstance(box, Vec) and len(box.items) == 2 and isinstance(box.items[1], Vec)):
        raise w.refuse()
    tensor_map, coordinates = box.items
    assert isinstance(coordinates, Vec)
    loads = shared is first
    by_pixels = any(m in ("im2col", "im2col_no_offs") for m in instr.mods)
    offsets: tuple[Operand, ...] = ()
    if by_pixels and loads:
        offsets = items_of(rest.pop(1))
    _addresses(w, shared, "sa", "shared")
    _addresses(w, tensor_map, "ma", "generic")
    count = len(coordinates.items)
    declare(w, "at", count=count + len(offsets))
    for k, coordinate in enumerate((*coordinates.items, *offsets)):
        fill(w, "at", coordinate, read="u32" if k < count else "u16", at=32 * k)
    completion = _completion(w, instr, rest)
    sites = _sites(w, instr, into_shared=loads)
    how = f"(struct box_copy){{{count}, {int(by_pixels)}, {len(offsets)}, {_reduction(instr)}}}"
    w.line(f"rt_bulk_tensor(w, {sites}, {how}, sa, ma, at, {completion}, {w.mask});")
