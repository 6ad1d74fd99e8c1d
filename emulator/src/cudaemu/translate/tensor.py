"""Matrix instructions and asynchronous copies. runtime/tensor*.c and copies.c execute them; registers are passed as
rows."""

from __future__ import annotations

from collections.abc import Sequence

from cudaemu.ptx import Imm, Instr, Mem, Operand, Reg, items_of
from cudaemu.translate.addresses import SPACE_CODES, lane_addresses
from cudaemu.translate.bulk import bulk_copy
from cudaemu.translate.rows import array, declare, register_rows, row_piece, rows_from
from cudaemu.translate.types import BITS
from cudaemu.translate.writer import Writer, handles

_ELEMENTS = {"f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8", "s4", "u4", "b1", "f32", "s32", "f64"}
"""The element types of matrices: enum element of runtime/warp.h, in lower case."""
_FLAGS = {
    "satfinite": "MMA_SATURATE", "and": "MMA_AND", "sp": "MMA_SPARSE", "sp__ordered_metadata": "MMA_SPARSE",
}  # fmt: skip


def element(t: str) -> str:
    """The constant of enum element for a PTX type."""
    return f"ELEMENT_{t.upper()}"


def _multiply(w: Writer, instr: Instr, types: Sequence[str]) -> None:
    """D = A B + C. `types` are those of D, A, B, C. With a sparse A, two more operands follow: its metadata, and the
    number that selects the lanes that hold the metadata."""
    shape, wide = instr.mods.shape, types[0] == "f64"
    if len(types) != 4 or shape is None or any(m.startswith(("kind", "block_scale")) for m in instr.mods):
        raise w.refuse()
    d, a, b, c, *sparsity = instr.operands
    elements = ", ".join(element(types[i]) for i in (1, 2, 3, 0))
    flags = " | ".join(dict.fromkeys(_FLAGS[m] for m in instr.mods if m in _FLAGS)) or "0"
    how = f"(struct mma){{{w.layout.architecture}, {', '.join(map(str, shape))}, {elements}, {flags}}}"
    t = "u64" if wide else "u32"
    matrices = ", ".join(register_rows(w, operand, stem, t) for operand, stem in ((a, "ra"), (b, "rb"), (c, "rc")))
    result = array(w, "rd", len(items_of(d)), t)
    if wide:
        w.line(f"rt_mma_f64({how}, {matrices}, {result});")
    elif shape == (8, 8, 4):
        layouts = [m for m in instr.mods if m in ("row", "col")]
        w.line(f"rt_mma_quads({how}, {int(layouts[0] == 'col')}, {int(layouts[1] == 'row')}, {matrices}, {result});")
    else:
        metadata = f"{register_rows(w, sparsity[0], 're')}, {w.s(sparsity[1], 'u32')}" if sparsity else "NULL, 0"
        w.line(f"rt_mma({how}, {matrices}, {result}, {metadata});")
    rows_from(w, d, result, t)


@handles("mma")
def mma(w: Writer, instr: Instr) -> None:
    _multiply(w, instr, instr.mods.types)


@handles("movmatrix")
def movmatrix(w: Writer, instr: Instr) -> None:
    d, a = instr.operands
    source, result = register_rows(w, a, "ra"), array(w, "rd", 1, "u32")
    w.line(f"rt_movmatrix({source}, {result});")
    rows_from(w, d, result)


@handles("ldmatrix")
def ldmatrix(w: Writer, instr: Instr) -> None:
    d, mem = instr.operands
    if not isinstance(mem, Mem) or "m8n8" not in instr.mods:
        raise w.refuse()
    w.lanes_meet()
    count = len(items_of(d))
    lane_addresses(w, mem, "aa", "shared" if instr.mods.space == "shared" else "generic")
    out = array(w, "out", count, "u32")
    space = SPACE_CODES[instr.mods.space]
    w.line(f"rt_ldmatrix(w, {w.site('LOAD', 16)}, {space}, aa, {count}, {int('trans' in instr.mods)}, {out});")
    rows_from(w, d, out)


@handles("stmatrix")
def stmatrix(w: Writer, instr: Instr) -> None:
    mem, value = instr.operands
    if not isinstance(mem, Mem) or "m8n8" not in instr.mods:
        raise w.refuse()
    w.lanes_meet()
    rows = register_rows(w, value, "rv")
    lane_addresses(w, mem, "aa", "shared" if instr.mods.space == "shared" else "generic")
    space = SPACE_CODES[instr.mods.space]
    w.line(
        f"rt_stmatrix(w, {w.site('STORE', 16)}, {space}, aa, {len(items_of(value))}, {int('trans' in instr.mods)}, {rows});"
    )


@handles("wmma")
def wmma(w: Writer, instr: Instr) -> None:
    if instr.mods.shape is None:
        raise w.refuse()
    m, n, k = instr.mods.shape
    what = instr.mods.action
    if what == "mma":
        types = instr.mods.types
        if len(types) == 2:  # for half precision, the instruction names only the types of D and C
            types = (types[0], "f16", "f16", types[1])
        _multiply(w, instr, types)
        return
    sizes = {"a": (m, k), "b": (n, k), "c": (m, n), "d": (m, n)}
    part = next(word for word in instr.mods if word in sizes)
    rows, columns = sizes[part]
    by_rows = "row" in instr.mods
    kind = instr.type
    if kind not in _ELEMENTS:
        raise w.refuse()
    register, mem, *rest = (
        instr.operands if what == "load" else (instr.operands[i] for i in (1, 0, *range(2, len(instr.operands))))
    )
    if not isinstance(mem, Mem):
        raise w.refuse()
    w.lanes_meet()
    lane_addresses(w, mem, "aa", instr.mods.space)
    adjacent = by_rows == (part == "b")
    if not rest:
        stride = str(rows if adjacent else columns)
    elif w.uniform(rest[0]):
        stride = w.s(rest[0], "u32")
    else:
        stride = f"{register_rows(w, rest[0], 'ld')}[0]"
    t = "u64" if kind == "f64" else "u32"
    count = len(items_of(register))
    how = f"(struct wmma){{{rows}, {columns}, {element(kind)}, {int(part in 'cd')}, {int(adjacent)}}}"
    site = w.site("LOAD" if what == "load" else "STORE", max(1, BITS[kind] // 8))
    name = array(w, "out", count, t) if what == "load" else register_rows(w, register, "rv", t)
    w.line(f"rt_wmma_{what}(w, {site}, {SPACE_CODES[instr.mods.space]}, aa[0], {stride}, {how}, {count}, {name});")
    if what == "load":
        rows_from(w, register, name, t)


@handles("cp")
def copy_async(w: Writer, instr: Instr) -> None:
    """cp.async: a copy issued here arrives when its thread waits for it (runtime/copies.c)."""
    mods = instr.mods
    if mods.action == "async" and "mbarrier" in mods:
        arrive_with_copies(w, instr)
        return
    if "bulk" in mods:
        bulk_copy(w, instr)
        return
    if mods.action != "async":
        raise w.refuse()
    if "commit_group" in mods or "wait_all" in mods:
        w.line(f"rt_copy_commit(w, {w.mask});")
    if "wait_group" in mods or "wait_all" in mods:
        pending = w.s(instr.operands[0], "u32") if "wait_group" in mods else "0"
        w.line(f"rt_copy_wait(w, {pending}, {w.mask});")
    if any(m in ("commit_group", "wait_group", "wait_all") for m in mods):
        return
    to, source, size, *rest = instr.operands
    if not (isinstance(to, Mem) and isinstance(source, Mem) and isinstance(size, Imm)):
        raise w.refuse()
    lane_addresses(w, to, "ta", "shared")
    lane_addresses(w, source, "fa", "global")
    declare(w, "nn")
    for i in w.pieces("u32"):
        w.line(f"{row_piece(w, 'nn', 'u32', i)} = {_source_bytes(w, size.value, rest, i)};")
    w.line(
        f"rt_copy_async(w, {w.site('LOAD', size.value)}, {w.site('COPY', size.value)}, ta, fa, nn, {size.value}, {w.mask});"
    )


def arrive_with_copies(w: Writer, instr: Instr) -> None:
    """cp.async.mbarrier.arrive: an arrival at a barrier object when the thread's copies have arrived. Without `noinc`,
    the object also expects one more arrival; the two cancel, so no code is written for them."""
    (mem,) = instr.operands
    if not isinstance(mem, Mem):
        raise w.refuse()
    w.line(f"rt_copy_arrive_all(w, {w.mask});")
    if "noinc" not in instr.mods:
        return
    space = instr.mods.space
    lane_addresses(w, mem, "aa", space)
    declare(w, "vv", "u64")
    w.line("fill_row(vv, 1);")
    w.line(f"rt_mbarrier_arrive(w, {w.site('ATOMIC', 8)}, {SPACE_CODES[space]}, aa, {w.mask}, vv, 0);")


def _source_bytes(w: Writer, size: int, rest: Sequence[Operand], piece: int) -> str:
    """C text of the number of bytes that a cp.async reads from its source: all, `src-size`, or none with `ignore-src`.
    The other bytes become zero."""
    if not rest:
        return f"BU({size}u)"
    operand = rest[0]
    if isinstance(operand, Reg) and w.function.registers.get(operand.name) == "pred":
        return f"SELU(MK({w.pred(operand)}, {piece}), BU(0), BU({size}u))"
    return w.v(operand, "u32", piece)
