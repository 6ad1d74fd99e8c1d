"""Textures and surfaces. Coordinates and values are passed as rows to runtime/textures.c, which does the rest."""

from __future__ import annotations

from grader.emulator.ptx import Instr, Operand, Reg, Vec
from grader.emulator.translate.function import Writer, handles
from grader.emulator.translate.memory import value_lanes
from grader.emulator.translate.refusal import Refused
from grader.emulator.translate.types import BITS

# The number of dimensions, with LAYERED of runtime/warp.h if the first coordinate is a layer.
_GEOMETRIES = {"1d": "1", "2d": "2", "3d": "3", "a1d": "1 | LAYERED", "a2d": "2 | LAYERED"}
_COMPONENTS = {"r": 0, "g": 1, "b": 2, "a": 3}
_BOUNDS = {"trap": "BOUNDS_TRAP", "clamp": "BOUNDS_CLAMP", "zero": "BOUNDS_ZERO"}
_QUERIES = {"width": 0, "height": 1, "depth": 2, "array_size": 3}
_ROW = "__attribute__((aligned(64)))"


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
    w.line(f"u64 object[32] {_ROW}; u32 at[4 * 32] {_ROW};")
    value_lanes(w, handle, "u64", "object")
    for k, item in enumerate(coordinates.items if isinstance(coordinates, Vec) else (coordinates,)):
        for i in w.pieces("u32"):
            w.line(f"*(VU *)&at[{32 * k + i * w.lanes}] = (VU){w.v(item, 'u32', i)};")


@handles("tex", "tld4")
def texture(w: Writer, instr: Instr) -> None:
    """Translate tex, tex.level and tex.grad, which all read the same, because there are no mipmaps."""
    mods = instr.mods
    geometry = _geometry(w, instr)
    if mods.two_results or mods.types[0] not in ("f32", "s32", "u32"):
        raise _refused(w, instr)
    _place(w, instr, instr.operands[1])
    gather = next((_COMPONENTS[m] for m in mods if m in _COMPONENTS), -1) if instr.op == "tld4" else -1
    w.line(f"u32 texel[4 * 32] {_ROW};")
    w.line(
        f"rt_texture(w, {w.site('LOAD', 4)}, {w.mask}, {geometry}, {int(instr.type == 'f32')}, {gather}, object, at, texel);"
    )
    result = instr.operands[0]
    for k, item in enumerate(result.items if isinstance(result, Vec) else (result,)):
        w.put(item, "u32", lambda i, k=k: f"*(const VU *)&texel[{32 * k + i * w.lanes}]")  # type: ignore[misc]


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
    items = value.items if isinstance(value, Vec) else (value,)
    _place(w, instr, place)
    w.line(f"u64 vv[{32 * len(items)}] {_ROW};")
    if stores:
        for k, item in enumerate(items):
            value_lanes(w, item, "u64" if bits == 64 else f"u{bits}", "vv", 32 * k)
    w.line(
        f"rt_surface(w, {w.site('STORE' if stores else 'LOAD', bits // 8)}, {w.mask}, {geometry}, {bounds}, {int(stores)}, "
        f"{bits // 8}, {len(items)}, object, at, vv);"
    )
    if stores:
        return
    for k, item in enumerate(items):
        if bits == 64:
            w.put(item, "u64", lambda i, k=k: f"*(const VQ *)&vv[{32 * k + i * w.lanes // 2}]")  # type: ignore[misc]
        else:
            w.line(f"u32 part{k}[32] {_ROW}; narrow_row(part{k}, vv + {32 * k});")
            w.put(item, f"u{bits}", lambda i, k=k: f"*(const VU *)&part{k}[{i * w.lanes}]")  # type: ignore[misc]


@handles("txq", "suq")
def query(w: Writer, instr: Instr) -> None:
    what = next((_QUERIES[m] for m in instr.mods if m in _QUERIES), None)
    place = instr.operands[1]
    handle = getattr(place, "base", None)
    if what is None or not isinstance(handle, Reg):
        raise w.refuse()
    w.line(f"u64 object[32] {_ROW}; u32 answer[32] {_ROW};")
    value_lanes(w, handle, "u64", "object")
    w.line(f"rt_texture_query(w, {w.site('OTHER')}, {w.mask}, {what}, object, answer);")
    w.put(instr.operands[0], "u32", lambda i: f"*(const VU *)&answer[{i * w.lanes}]")
