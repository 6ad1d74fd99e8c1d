"""Textures and surfaces. Coordinates and values are passed as rows to runtime/textures.c, which accesses the texels."""

from __future__ import annotations

from cudaemu.ptx import Instr, Operand, Reg, Vec, items_of
from cudaemu.translate.refusal import Refused
from cudaemu.translate.rows import declare, fill, rows, rows_from, value_lanes
from cudaemu.translate.types import BITS
from cudaemu.translate.writer import Writer, handles

# The number of dimensions, with LAYERED of runtime/warp.h if the first coordinate is a layer.
_GEOMETRIES = {"1d": "1", "2d": "2", "3d": "3", "a1d": "1 | LAYERED", "a2d": "2 | LAYERED"}
_COMPONENTS = {"r": 0, "g": 1, "b": 2, "a": 3}
_BOUNDS = {"trap": "BOUNDS_TRAP", "clamp": "BOUNDS_CLAMP", "zero": "BOUNDS_ZERO"}
_QUERIES = {"width": 0, "height": 1, "depth": 2, "array_size": 3}


def _geometry(w: Writer, instr: Instr) -> str:
    found = next((_GEOMETRIES[m] for m in instr.mods if m in _GEOMETRIES), None)
    if found is None:
        raise w.refuse()
    return found


def _refused(w: Writer, instr: Instr) -> Refused:
    return w.refuse(f"this kind of texture or surface access ({instr.text})", "use tex1D, tex2D, tex3D or surf2Dread")


def _place(w: Writer, instr: Instr, place: Operand) -> None:
    """Write the handles and coordinates of [object, {x, y, …}] to rows: u64 object[32], u32 at[4 * 32]."""
    if not isinstance(place, Vec) or len(place.items) != 2 or not isinstance(place.items[0], Reg):
        raise _refused(w, instr)  # legacy texture references, and sparse textures
    handle, coordinates = place.items
    rows(w, "object", handle, "u64")
    declare(w, "at", count=4)
    for k, item in enumerate(items_of(coordinates)):
        fill(w, "at", item, at=32 * k)


@handles("tex", "tld4")
def texture(w: Writer, instr: Instr) -> None:
    """Translate tex, tex.level and tex.grad, which read the same texels without mipmaps, and tld4."""
    mods = instr.mods
    geometry = _geometry(w, instr)
    if mods.two_results or mods.types[0] not in ("f32", "s32", "u32"):
        raise _refused(w, instr)
    _place(w, instr, instr.operands[1])
    gather = next((_COMPONENTS[m] for m in mods if m in _COMPONENTS), -1) if instr.op == "tld4" else -1
    declare(w, "texel", count=4)
    w.line(
        f"rt_texture(w, {w.site('LOAD', 4)}, {w.mask}, {geometry}, {int(instr.type == 'f32')}, {gather}, object, at, texel);"
    )
    rows_from(w, instr.operands[0], "texel")


@handles("suld", "sust")
def surface(w: Writer, instr: Instr) -> None:
    mods = instr.mods
    geometry = _geometry(w, instr)
    if mods.action == "p":
        raise w.refuse()
    bounds = next((_BOUNDS[m] for m in mods if m in _BOUNDS), None)
    if bounds is None or instr.type not in ("b8", "b16", "b32", "b64"):
        raise _refused(w, instr)
    bits = BITS[instr.type]
    stores = instr.op == "sust"
    place, value = instr.operands if stores else (instr.operands[1], instr.operands[0])
    items = items_of(value)
    _place(w, instr, place)
    declare(w, "vv", "u64", len(items))
    if stores:
        for k, item in enumerate(items):
            value_lanes(w, item, "u64" if bits == 64 else f"u{bits}", "vv", 32 * k)
    w.line(
        f"rt_surface(w, {w.site('STORE' if stores else 'LOAD', bits // 8)}, {w.mask}, {geometry}, {bounds}, {int(stores)}, "
        f"{bits // 8}, {len(items)}, object, at, vv);"
    )
    if stores:
        return
    if bits == 64:
        rows_from(w, value, "vv", "u64")
        return
    for k, item in enumerate(items):
        declare(w, f"part{k}")
        w.line(f"narrow_row(part{k}, vv + {32 * k});")
        rows_from(w, item, f"part{k}", f"u{bits}")


@handles("txq", "suq")
def query(w: Writer, instr: Instr) -> None:
    what = next((_QUERIES[m] for m in instr.mods if m in _QUERIES), None)
    place = instr.operands[1]
    handle = getattr(place, "base", None)
    if what is None or not isinstance(handle, Reg):
        raise w.refuse()
    rows(w, "object", handle, "u64")
    declare(w, "answer")
    w.line(f"rt_texture_query(w, {w.site('OTHER')}, {w.mask}, {what}, object, answer);")
    rows_from(w, instr.operands[0], "answer")
