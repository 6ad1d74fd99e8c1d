"""Bulk copies: cp.async.bulk and cp.reduce.async.bulk, with tensor maps and without. runtime/bulk.c makes them arrive."""

from __future__ import annotations

from collections.abc import Sequence

from grader.emulator.ptx import Instr, Mem, Operand, Reg, Vec
from grader.emulator.translate.function import Writer
from grader.emulator.translate.memory import ASYNC, SPACE_CODES, lane_addresses

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
    """The sites of the load and of the store. A reduction of single elements is atomic (PTX ISA, cp.reduce.async.bulk)."""
    store = "ATOMIC" if "reduce" in instr.mods else "COPY" if into_shared else "STORE"
    return f"{w.site('LOAD', 16, ASYNC)}, {w.site(store, 16, ASYNC)}"


def _addresses(w: Writer, operand: Operand, name: str, space: str) -> None:
    if isinstance(operand, Reg):
        operand = Mem(operand)
    if not isinstance(operand, Mem):
        raise w.refuse()
    lane_addresses(w, operand, name, space)


def _completion(w: Writer, instr: Instr, rest: Sequence[Operand]) -> str:
    """The barrier object at which a copy completes, or NULL for one of a bulk group; and the blocks of a multicast, or NULL."""
    if "bulk_group" in instr.mods or not rest:
        return "NULL, NULL"
    _addresses(w, rest[0], "oa", "shared")
    if "multicast__cluster" not in instr.mods:
        return "oa, NULL"
    w.line("u32 blocks[32] __attribute__((aligned(64)));")
    for i in w.pieces("u32"):
        w.line(f"*(VU *)&blocks[{i * w.lanes}] = {w.v(rest[1], 'u16', i)};")
    return "oa, blocks"


def _bytes(w: Writer, instr: Instr) -> None:
    """The address spaces of target and source are the first two that the instruction names."""
    spaces = [word.split("__")[0] for word in instr.mods if word.split("__")[0] in ("shared", "global")]
    to, source, size, *rest = instr.operands
    _addresses(w, to, "ta", spaces[0])
    _addresses(w, source, "fa", spaces[1])
    w.line("u32 nn[32] __attribute__((aligned(64)));")
    for i in w.pieces("u32"):
        w.line(f"*(VU *)&nn[{i * w.lanes}] = {w.v(size, 'u32', i)};")
    completion = _completion(w, instr, rest)
    number = TYPE_NUMBERS[instr.type] if "reduce" in instr.mods else 0
    sites = _sites(w, instr, into_shared=spaces[0] == "shared")
    w.line(
        f"rt_bulk_copy(w, {sites}, (struct bulk_copy){{{SPACE_CODES[spaces[0]]}, {SPACE_CODES[spaces[1]]}, "
        f"{_reduction(instr)}, {number}}}, ta, fa, nn, {completion}, {w.mask});"
    )


def _tensor(w: Writer, instr: Instr) -> None:
    """[shared], [map, {coordinates}], [object], or [map, {coordinates}], [shared] in the other direction. With im2col, the
    offsets of a load follow its object."""
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
        found = rest.pop(1)
        offsets = found.items if isinstance(found, Vec) else (found,)
    _addresses(w, shared, "sa", "shared")
    _addresses(w, tensor_map, "ma", "generic")
    count = len(coordinates.items)
    w.line(f"u32 at[{32 * (count + len(offsets))}] __attribute__((aligned(64)));")
    for k, coordinate in enumerate((*coordinates.items, *offsets)):
        for i in w.pieces("u32"):
            text = w.v(coordinate, "u32" if k < count else "u16", i)
            w.line(f"*(VU *)&at[{32 * k + i * w.lanes}] = {text};")
    completion = _completion(w, instr, rest)
    sites = _sites(w, instr, into_shared=loads)
    how = f"(struct box_copy){{{count}, {int(by_pixels)}, {len(offsets)}, {_reduction(instr)}}}"
    w.line(f"rt_bulk_tensor(w, {sites}, {how}, sa, ma, at, {completion}, {w.mask});")
