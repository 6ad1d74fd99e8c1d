"""Float arithmetic beyond + and *: rounding and saturation modes, half precision, special functions."""

from __future__ import annotations

from cudaemu.ptx import Instr
from cudaemu.translate.types import HALVES
from cudaemu.translate.writer import Writer, handles


def finish_float(instr: Instr, text: str, suffix: str, t: str) -> str:
    """Apply .ftz and .sat to a result."""
    if "ftz" in instr.mods and t == "f32":
        text = f"ftz_{suffix}({text})"
    if "sat" in instr.mods:
        text = f"sat_{t}_{suffix}({text})"
    return text


def ftz_in(instr: Instr, texts: tuple[str, ...], suffix: str, t: str) -> list[str]:
    return [f"ftz_{suffix}({x})" for x in texts] if "ftz" in instr.mods and t == "f32" else list(texts)


@handles("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def special_function(w: Writer, instr: Instr) -> None:
    t = instr.type
    a = instr.operands[1]
    if t in HALVES:
        half(w, instr, t)
        return
    mode = instr.mods.rounding or "rn"
    exact = "approx" not in instr.mods
    if exact and mode != "rn":
        name = f"{instr.op}_{mode}_{t}"
    else:
        name = f"{instr.op}_{t}" if exact or (t == "f64" and "ftz" not in instr.mods) else f"{instr.op}_approx_{t}"
    w.op(
        instr,
        t,
        [(a, t)],
        lambda s, x: finish_float(instr, f"{name}_{s}({ftz_in(instr, (x,), s, t)[0]})", s, t),
    )


@handles("copysign")
def copysign(w: Writer, instr: Instr) -> None:
    t = instr.type
    u = "u64" if t == "f64" else "u32"
    high = "(1ull << 63)" if t == "f64" else "0x80000000u"
    broadcast = "BQ" if t == "f64" else "BU"
    w.op(
        instr, u, [(instr.operands[1], u), (instr.operands[2], u)],
        lambda s, a, b: (f"({a} & {high}) | ({b} & ~{high})" if s == "s" else f"({a} & {broadcast}({high})) | ({b} & {broadcast}(~{high}))"),
    )  # fmt: skip


@handles("testp")
def testp(w: Writer, instr: Instr) -> None:
    how, t = instr.mods.action, instr.type
    a = instr.operands[1]
    if w.uniform(a):
        w.put_pred(instr.operands[0], f"-(u32)testp_{how}_{t}_s({w.s(a, t)})")
        return
    width = w.lanes // 2 if t == "f64" else w.lanes
    lanes = " | ".join(f"lanes_{t}(testp_{how}_{t}_s, {w.v(a, t, i)}) << {i * width}" for i in w.pieces(t))
    w.put_pred(instr.operands[0], lanes)


def half(w: Writer, instr: Instr, t: str) -> None:
    """fp16 and bf16 arithmetic: operands are widened to f32, and the f32 result is rounded. For add, sub and mul this
    rounds correctly, because f32 has 24 bits, at least 2p + 2 for the p bits of fp16 (11) and bf16 (8). It would not
    for fma, which the runtime therefore rounds in another way (math.h.inc)."""
    base = t[:-2] if t.endswith("x2") else t
    op = instr.op
    operands = list(instr.operands[1:])
    names = {"add": "+", "sub": "-", "mul": "*"}
    sat = "sat" in instr.mods
    relu = "relu" in instr.mods
    nan = "_nan" if "NaN" in instr.mods else ""

    def compute(s: str, xs: list[str]) -> str:
        wide_xs = [f"{base}_to_f32_{s}({x})" for x in xs]
        if op in names:
            text = f"({wide_xs[0]} {names[op]} {wide_xs[1]})"
        elif op == "fma":
            return f"fma_{base}_{s}({', '.join(wide_xs)}, {int(sat) | int(relu) << 1})"
        elif op in ("min", "max"):
            text = f"{op}{nan}_f32_{s}({', '.join(wide_xs)})"
        elif op in ("ex2", "tanh", "rcp", "sqrt", "rsqrt", "lg2"):
            text = f"{op}_approx_f32_{s}({wide_xs[0]})"
        else:
            raise w.refuse()
        if sat:
            text = f"sat_f32_{s}({text})"
        if relu:
            text = f"max_f32_{s}({text}, {'0.0f' if s == 's' else 'BF(0.0f)'})"
        return f"f32_to_{base}_{s}({text})"

    if base == t:
        w.op(instr, t, [(o, t) for o in operands], lambda s, *x: compute(s, list(x)))
        return

    def make(s: str, *xs: str) -> str:
        low = compute(s, [f"({x} & 0xffffu)" for x in xs])
        high = compute(s, [f"({x} >> 16)" for x in xs])
        return f"{low} | {high} << 16"

    w.op(instr, t, [(o, t) for o in operands], make)
