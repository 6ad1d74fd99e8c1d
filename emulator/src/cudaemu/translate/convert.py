"""cvt, cvta, packing and unpacking moves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cudaemu.analysis.shapes import Kind
from cudaemu.ptx import SPACES, Instr, Operand, Reg, Sym, Vec
from cudaemu.translate.rows import rows
from cudaemu.translate.types import BITS, FORMS, half_of, is_float, is_signed, narrowed
from cudaemu.translate.writer import Writer, handles

_WINDOWS = {"shared": "SHARED_WINDOW", "local": "LOCAL_WINDOW", "param": "PARAM_WINDOW"}
_C_TYPES = {"s8": "int8_t", "u8": "uint8_t", "s16": "int16_t", "u16": "uint16_t"}
_INTEGERS = (*_C_TYPES, "s32", "u32", "s64", "u64")


@handles("cvta")
def cvta(w: Writer, instr: Instr) -> None:
    d, a = instr.operands
    space = instr.mods.space
    if space == "generic":
        raise w.refuse()
    window = _WINDOWS.get(space)
    to = "to" in instr.mods
    if instr.type == "u32":
        raise w.refuse(advice="build for 64-bit addresses")
    if isinstance(a, Sym):
        text = w.s(a, "u64")
        w.put_scalar(d, "u64", f"{text} + {window}" if window and not to and space != "param" else text)
        return
    offset = "" if window is None or space == "param" else f" {'-' if to else '+'} {window}"
    if w.result_shape(d).kind is Kind.AFFINE:
        w.put_scalar(d, "u64", f"{w.base(a, 'u64')}{offset}", w.stride(a))
        return
    w.op(
        instr,
        "u64",
        [(a, "u64")],
        lambda s, x: f"{x}{offset if s == 's' or not offset else offset.replace(window or '', f'BQ({window})')}",
    )


@handles("isspacep")
def isspacep(w: Writer, instr: Instr) -> None:
    space = instr.mods.action.split("__")[0]
    d, a = instr.operands
    if space not in SPACES:
        raise w.refuse()
    if w.uniform(a):
        w.put_pred(d, f"-(u32)is_{space}({w.s(a, 'u64')})")
        return
    rows(w, "aa", a, "u64")
    w.put_pred(d, f"lanes_in_{space}(aa)")


@handles("cvt")
def cvt(w: Writer, instr: Instr) -> None:
    if instr.mods.action == "pack":
        pack_integers(w, instr)
        return
    types = instr.mods.types
    if any(t in _BYTE_FLOATS for t in types):
        _byte_floats(w, instr)
        return
    if len(instr.operands) == 3:
        cvt_pack(w, instr)
        return
    if len(types) != 2 or "relu" in instr.mods or "satfinite" in instr.mods:
        raise w.refuse()
    dt, st = types
    if is_float(dt) or is_float(st) or dt == "tf32":
        _float(w, instr, dt, st)
    elif "sat" in instr.mods:
        _saturated(w, instr, dt, st)
    else:
        _integer(w, instr, dt, st)


def pack_integers(w: Writer, instr: Instr) -> None:
    """cvt.pack: two numbers, clamped and packed side by side; bits of c fill the upper part."""
    kind = instr.mods.types[0]
    bits = BITS[kind]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
    field = (1 << bits) - 1

    def clamped(s: str, x: str) -> str:
        return f"clamp_field_{s}({x}, {low}, {high}, 0x{field:x}u)"

    def make(s: str, a: str, b: str, *c: str) -> str:
        text = f"({clamped(s, a)} << {bits} | {clamped(s, b)})"
        return f"({text} | {c[0]} << {2 * bits})" if c and bits < 16 else text

    w.op(instr, "u32", [(o, "u32" if n == 2 else "s32") for n, o in enumerate(instr.operands[1:])], make)


def _integer(w: Writer, instr: Instr, dt: str, st: str) -> None:
    d, a = instr.operands
    if w.result_shape(d).kind is Kind.AFFINE:
        base = w.base(a, st)
        w.put_scalar(d, dt, f"({FORMS[dt].scalar}){base}", w.stride(a))
        return
    filled = _filled(w, d, dt)
    if w.uniform(a):
        w.put_scalar(d, filled, f"({_C_TYPES.get(dt, FORMS[dt].scalar)}){w.s(a, st)}")
    else:
        w.put(d, filled, lambda i: _cut(_resized(lambda k: w.v(a, st, k), st, dt, i), dt))


def _resized(text: Callable[[int], str], st: str, dt: str, i: int) -> str:
    """Piece `i` of an integer resized from type `st` to the width of `dt`. `text` returns the pieces of type `st`."""
    if FORMS[dt].wide == FORMS[st].wide:
        return text(i)
    if FORMS[dt].wide:
        return f"{'widen_i' if is_signed(st) else 'widen_u'}_{half_of(i)}({text(i // 2)})"
    cast = "(VQ)" if is_signed(st) else ""
    return f"narrow_q({cast}{text(2 * i)}, {cast}{text(2 * i + 1)})"


def _filled(w: Writer, d: Operand, t: str) -> str:
    """The type in which a result of type `t` is stored. A result narrower than its register is sign- or zero-extended
    to fill it."""
    assert isinstance(d, Reg)
    narrow = t in _C_TYPES and d.name != "_" and BITS[w.function.registers[d.name]] == 32
    return f"{t[0]}32" if narrow else t


def _saturated(w: Writer, instr: Instr, dt: str, st: str) -> None:
    """Clamp an integer, in its own type, to the range of `dt`, then convert it."""
    d, a = instr.operands
    (low, high), (lowest, highest) = _range(dt), _range(st)
    t = f"{st[0]}{max(BITS[st], 16)}"
    form = FORMS[st]
    filled = _filled(w, d, dt)

    def clamped(s: str, text: str) -> str:
        suffix = ("ll" if is_signed(st) else "ull") if form.wide else ("" if is_signed(st) else "u")
        for op, bound, needed in (("max", low, low > lowest), ("min", high, high < highest)):
            if needed:
                number = f"({bound + 1}{suffix} - 1)" if bound < 0 else f"{bound}{suffix}"
                text = f"{op}_{t}_{s}({text}, {number if s == 's' else f'{form.broadcast}({number})'})"
        return text

    if w.uniform(a):
        w.put_scalar(d, filled, f"({FORMS[dt].scalar}){clamped('s', w.s(a, st))}")
        return
    pieces = partial(_resized, lambda k: clamped("v", w.v(a, st, k)), st, dt)
    w.put(d, filled, lambda i: f"({FORMS[dt].vector}){pieces(i)}")


def _range(t: str) -> tuple[int, int]:
    """The lowest and the highest integer of a type."""
    return (-(1 << (BITS[t] - 1)), (1 << (BITS[t] - 1)) - 1) if is_signed(t) else (0, (1 << BITS[t]) - 1)


def _cut(text: str, t: str) -> str:
    if BITS[t] < 32:
        return narrowed(text, t)
    return f"({FORMS[t].vector}){text}" if FORMS[t].wide else f"({FORMS[t].vector})({text})"


# Conversions to or from floats, by kind: C functions to apply in turn, each with the type of its result. {s} and {d}
# are the two types, {i} is the rounding to an integer, {r} any other rounding. f32 holds every half and every 16-bit
# integer exactly, and f64 every 32-bit integer, so only the last step rounds. (A 64-bit integer may round twice on its
# way to bf16.)
_STEPS = {
    ("half", "half"): "{s}_to_f32:f32 round_{i}_f32:f32 f32_to_{d}:{d}",
    ("half", "f32"): "{s}_to_f32:f32",
    ("half", "f64"): "{s}_to_f32:f32 cvt_f64_f32:f64",
    ("half", "integer"): "{s}_to_f32:f32 cvt_{i}_{d}_f32:{d}",
    ("f32", "half"): "f32_to_{d}{r}:{d}",
    ("f64", "half"): "f64_to_{d}:{d}",
    ("short", "half"): "cvt_rn_f32_{s}:f32 f32_to_{d}:{d}",
    ("integer", "half"): "cvt_rn_f64_{s}:f64 f64_to_{d}:{d}",
    ("f32", "f32"): "round_{i}_f32:f32",
    ("f64", "f64"): "round_{i}_f64:f64",
    ("f32", "f64"): "cvt_f64_f32:f64",
    ("f64", "f32"): "cvt_{r}_f32_f64:f32",
    ("f32", "tf32"): "f32_to_tf32:b32",
    ("integer", "f32"): "cvt_{r}_f32_{s}:f32",
    ("integer", "f64"): "cvt_{r}_f64_{s}:f64",
    ("f32", "integer"): "cvt_{i}_{d}_f32:{d}",  # saturates; NaN becomes 0, or 0x80… in 64 bits
    ("f64", "integer"): "cvt_{i}_{d}_f64:{d}",  # saturates; NaN becomes 0x80…
}


def _steps(w: Writer, instr: Instr, dt: str, st: str) -> list[tuple[str, str]]:
    """The C functions for a conversion, each with the type of its result."""
    rounding, sat, ftz = instr.mods.rounding, "sat" in instr.mods, "ftz" in instr.mods
    integral = rounding if rounding.endswith("i") else ""
    mode = "rn" if integral else rounding or "rn"
    kinds = _kind_of(st), _kind_of(dt)
    if kinds[1] == "half" and kinds[0] == "integer" and BITS[st] <= 16:
        kinds = "short", "half"
    steps = _STEPS.get(kinds)
    exact_only = kinds in (("f64", "half"), ("short", "half"), ("integer", "half"))
    if steps is None or (exact_only and mode != "rn") or (kinds == ("half", "half") and not integral):
        raise w.refuse()
    if dt == st and not integral:
        steps = ""
    if kinds == ("f32", "half"):
        mode = "" if mode == "rn" else f"_{mode}"
    source = f"{'s' if is_signed(st) else 'u'}{max(BITS[st], 32)}" if kinds[0] in ("integer", "short") else st
    text = steps.format(s=source, d=dt, i=integral or "rzi", r=mode)
    found = [(name, t) for name, _, t in (step.partition(":") for step in text.split())]
    before = [("ftz", "f32")] if ftz and st == "f32" and dt in ("f32", "f64", *_INTEGERS) else []
    if sat and kinds == ("f32", "half"):
        before = [("sat_f32", "f32")]
    after = [("ftz", "f32")] if ftz and dt == "f32" else []
    after += [(f"sat_{dt}", dt)] if sat and dt in ("f32", "f64") else []
    return before + found + after


def _kind_of(t: str) -> str:
    return "half" if t in ("f16", "bf16") else t if t in ("f32", "f64", "tf32") else "integer" if t in _INTEGERS else ""


def _float(w: Writer, instr: Instr, dt: str, st: str) -> None:
    d, a = instr.operands
    steps = _steps(w, instr, dt, st)
    stored = "b32" if dt == "tf32" else dt if is_float(dt) else _filled(w, d, dt)
    if w.uniform(a):
        text = w.s(a, st)
        for name, _ in steps:
            text = f"{name}_s({text})"
        w.put_scalar(d, stored, text)
        return
    types = [st, *(t for _, t in steps)]

    def piece(count: int, i: int) -> str:
        """Piece `i` after `count` steps. A step that changes the width takes or returns two pieces."""
        if count == 0:
            return w.v(a, st, i)
        name = steps[count - 1][0]
        was_wide, is_wide = FORMS[types[count - 1]].wide, FORMS[types[count]].wide
        if was_wide == is_wide:
            return f"{name}_v({piece(count - 1, i)})"
        if is_wide:
            return f"{name}_{half_of(i)}({piece(count - 1, i // 2)})"
        return f"{name}_v({piece(count - 1, 2 * i)}, {piece(count - 1, 2 * i + 1)})"

    w.put(d, stored, lambda i: piece(len(steps), i))


def cvt_pack(w: Writer, instr: Instr) -> None:
    """cvt.rn.f16x2.f32 d, high, low."""
    if instr.mods.types not in (("f16x2", "f32"), ("bf16x2", "f32")) or "satfinite" in instr.mods:
        raise w.refuse()
    base = instr.mods.types[0].removesuffix("x2")
    mode = instr.mods.rounding or "rn"
    f = f"f32_to_{base}" + ("" if mode == "rn" else f"_{mode}")
    relu = "relu" in instr.mods
    zero = {"s": "0.0f", "v": "BF(0.0f)"}

    def make(s: str, high: str, low: str) -> str:
        if relu:
            high, low = f"max_nan_f32_{s}({high}, {zero[s]})", f"max_nan_f32_{s}({low}, {zero[s]})"
        return f"{f}_{s}({low}) | {f}_{s}({high}) << 16"

    w.op(instr, "b32", [(instr.operands[1], "f32"), (instr.operands[2], "f32")], make)


_BYTE_FLOATS = ("e4m3x2", "e5m2x2")


def _byte_floats(w: Writer, instr: Instr) -> None:
    """Convert two f32 or two halves to a pair of 8-bit floats, or such a pair to two halves (runtime/fp8.h.inc)."""
    dt, st = instr.mods.types
    if not (dt == "f16x2" or (dt in _BYTE_FLOATS and st in ("f32", "f16x2"))):
        raise w.refuse()
    how = "FP8_RELU" if "relu" in instr.mods else "0"
    operands = [(source, st) for source in instr.operands[1:]]
    w.op(instr, dt, operands, lambda s, *x: f"{st}_to_{dt}_{s}({', '.join(x)}, {how})")


def pack(w: Writer, instr: Instr, t: str, a: Vec) -> None:
    """mov.b64 d, {a, b} and similar moves; the first item is the low part."""
    bits = BITS[t] // len(a.items)

    def make(s: str, *parts: str) -> str:
        cast = f"({FORMS[t].scalar})" if s == "s" else ""
        return " | ".join(f"{cast}{part} << {k * bits}" if k else f"{cast}{part}" for k, part in enumerate(parts))

    w.op(instr, t, [(item, f"u{bits}") for item in a.items], make)


def unpack(w: Writer, t: str, d: Vec, a: Operand) -> None:
    """mov.b64 {a, b}, s."""
    bits = BITS[t] // len(d.items)
    mask = (1 << bits) - 1
    if w.uniform(a):
        name = w.fresh()
        w.line(f"const {FORMS[t].scalar} {name} = {w.s(a, t)};")
        for k, item in enumerate(d.items):
            w.put_scalar(item, f"u{bits}", f"({'u64' if bits == 64 else 'u32'})({name} >> {k * bits} & 0x{mask:x}ull)")
        return
    names = [w.fresh() for _ in w.pieces(t)]
    for i, name in enumerate(names):
        w.line(f"const {FORMS[t].vector} {name} = {w.v(a, t, i)};")

    def part(i: int, k: int) -> str:
        if BITS[t] == 64:
            text = f"narrow_q({names[2 * i]} >> {k * bits}, {names[2 * i + 1]} >> {k * bits})"
        else:
            text = f"({names[i]} >> {k * bits})"
        return f"{text} & BU(0x{mask:x}u)"

    for k, item in enumerate(d.items):
        w.put(item, f"u{bits}", partial(part, k=k))
