"""Arithmetic on integers and floats, from addition to division."""

from __future__ import annotations

from cudaemu.analysis.effects import CARRY
from cudaemu.analysis.shapes import Kind
from cudaemu.ptx import Instr, Operand, Reg
from cudaemu.translate.floats import finish_float, ftz_in, half
from cudaemu.translate.rows import array, register_rows, rows_from
from cudaemu.translate.types import BITS, FORMS, HALVES, half_of, is_float, is_signed
from cudaemu.translate.writer import Row, Writer, handles, write_row

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def float_arithmetic(w: Writer, instr: Instr) -> None:
    t, mode = instr.type, instr.mods.rounding or "rn"
    if t in HALVES:
        half(w, instr, t)
        return

    def make(s: str, *operands: str) -> str:
        texts = ftz_in(instr, operands, s, t)
        if mode == "rn" and instr.op in _SIGNS:
            text = f" {_SIGNS[instr.op]} ".join(texts)
        else:
            text = f"{'fma' if instr.op == 'mad' else instr.op}_{mode}_{t}_{s}({', '.join(texts)})"
        return finish_float(instr, text, s, t)

    w.op(instr, t, [(o, t) for o in instr.sources], make)


@handles("add", "sub")
def add_sub(w: Writer, instr: Instr) -> None:
    t = instr.type
    d, a, b = instr.operands
    sign = _SIGNS[instr.op]
    if is_float(t):
        float_arithmetic(w, instr)
    elif "cc" in instr.mods:
        carry(w, instr)
    elif "sat" in instr.mods:
        w.op(instr, t, [(a, t), (b, t)], lambda s, x, y: f"{instr.op}sat_{s}({x}, {y})")
    elif t in ("u16x2", "s16x2"):
        w.op(instr, t, [(a, t), (b, t)], lambda s, x, y: f"{instr.op}_16x2_{s}({x}, {y})")
    else:
        u = "u" + t[1:] if BITS[t] > 16 else t  # unsigned, so that wrapping is defined in C
        if w.affine_result(instr):
            w.put_scalar(d, u, f"{w.base(a, u)} {sign} {w.base(b, u)}", f"{w.stride(a)} {sign} {w.stride(b)}")
        else:
            w.op(instr, u, [(a, u), (b, u)], lambda s, x, y: f"{x} {sign} {y}")


@handles("addc", "subc", "madc")
def carry(w: Writer, instr: Instr) -> None:
    """Arithmetic with a carry flag, which is stored as a predicate register."""
    t = instr.type
    operands = instr.operands[1:]
    takes = instr.op in ("addc", "subc", "madc")
    gives = "cc" in instr.mods
    bits = BITS[t]
    name = {"add": "add", "sub": "sub", "mad": "mad"}[instr.op[:3]]
    if name == "mad":
        name += "_hi" if "hi" in instr.mods else "_lo"
        if is_signed(t) and "hi" in instr.mods:
            raise w.refuse()
    f = f"carry_{name}_u{bits}"
    u = f"u{bits}"
    first = "~0u" if name == "sub" else "0u"
    flag = w.cell(w.web(Reg(CARRY))) if takes else first
    d = instr.operands[0]
    out = Reg(CARRY)
    if (
        w.result_shape(d).kind is Kind.UNIFORM
        and (not gives or w.result_shape(out).kind is Kind.UNIFORM)
        and all(w.uniform(o) for o in operands)
    ):
        values = ", ".join(w.s(o, u) for o in operands)
        r, c = w.fresh("r"), w.fresh("c")
        w.line(f"u32 {c}; const {FORMS[u].scalar} {r} = {f}({values}, {flag} & 1u, &{c});")
        w.put_scalar(d, u, r)
        if gives:
            w.put_pred(out, f"-(u32){c}")
        return
    taken = [register_rows(w, o, "row", u) for o in operands]
    r, c = array(w, "r", 1, u), w.fresh("c")
    w.line(f"const u32 {c} = {f}_row({', '.join(taken)}, {flag}, {r});")
    rows_from(w, d, r, u)
    if gives:
        w.put_pred(out, c)


@handles("neg", "abs")
def neg_abs(w: Writer, instr: Instr) -> None:
    t = instr.type
    d, a = instr.operands
    if t in HALVES:
        high = "0x80008000u" if t.endswith("x2") else "0x8000u"
        c = {"s": high, "v": f"BU({high})"}
        w.op(instr, t, [(a, t)], lambda s, x: f"{x} ^ {c[s]}" if instr.op == "neg" else f"{x} & ~{c[s]}")
        return
    if is_float(t):
        f = f"{instr.op}_{t}"
        w.op(instr, t, [(a, t)], lambda s, x: finish_float(instr, f"{f}_{s}({x})", s, t))
        return
    if instr.op == "neg":
        u = "u" + t[1:]
        if w.affine_result(instr):
            w.put_scalar(d, u, f"0 - {w.base(a, u)}", f"-{w.stride(a)}")
        else:
            w.op(instr, u, [(a, u)], lambda s, x: f"0 - {x}")
        return
    w.op(instr, t, [(a, t)], lambda s, x: f"abs_i_{s}({x})")


@handles("mul")
def mul(w: Writer, instr: Instr) -> None:
    t = instr.type
    d, a, b = instr.operands
    if is_float(t):
        float_arithmetic(w, instr)
        return
    if "wide" in instr.mods:
        wide(w, instr, t, a, b, None)
        return
    if "hi" in instr.mods:
        w.op(instr, t, [(a, t), (b, t)], lambda s, x, y: f"mulhi_{t}_{s}({x}, {y})")
        return
    u = "u" + t[1:]
    if w.affine_result(instr):
        base, stride = affine_product(w, a, b, u)
        w.put_scalar(d, u, base, stride)
        return
    w.op(instr, u, [(a, u), (b, u)], lambda s, x, y: f"{x} * {y}")


def affine_product(w: Writer, a: Operand, b: Operand, t: str) -> tuple[str, str]:
    if w.uniform(a):
        a, b = b, a
    signed = "s" + t[1:]
    return f"{w.base(a, t)} * {w.base(b, t)}", f"{w.stride(a)} * (i64){w.s(b, signed)}"


def wide(w: Writer, instr: Instr, t: str, a: Operand, b: Operand, c: Operand | None) -> None:
    """mul.wide and mad.wide, whose product is twice as wide as the operands."""
    d = instr.operands[0]
    if BITS[t] == 16:
        r = "s32" if is_signed(t) else "u32"
        if c is None:
            w.op(instr, r, [(a, t), (b, t)], lambda s, x, y: f"{x} * {y}")
        else:
            w.op(instr, r, [(a, t), (b, t), (c, r)], lambda s, x, y, z: f"{x} * {y} + {z}")
        return
    q = "s64" if is_signed(t) else "u64"
    if w.result_shape(d).kind is Kind.AFFINE:
        if w.uniform(a):
            a, b = b, a
        # The check at the start of this block (_check_wrap in control.py) ensures that no lane wraps around.
        kind = FORMS[q].scalar
        base = f"(u64)(({kind}){w.base(a, t)} * ({kind}){w.s(b, t)})"
        stride = "0" if w.uniform(a) else f"{w.stride(a)} * (i64){w.s(b, t)}"
        if c is not None:
            base, stride = f"{base} + {w.base(c, 'u64')}", f"{stride} + {w.stride(c)}"
        w.put_scalar(d, "u64", base, stride)
        return
    if all(w.uniform(o) for o in (a, b, c) if o is not None):
        kind = FORMS[q].scalar
        tail = f" + {w.s(c, q)}" if c is not None else ""
        w.put_scalar(d, q, f"({kind}){w.s(a, t)} * ({kind}){w.s(b, t)}{tail}")
        return
    f = f"mulwide_{'i' if is_signed(t) else 'u'}"

    def piece(i: int) -> str:
        text = f"{f}_{half_of(i)}({w.v(a, t, i // 2)}, {w.v(b, t, i // 2)})"
        return text + (f" + {w.v(c, q, i)}" if c is not None else "")

    w.put(d, q, piece)


@handles("mad", "fma")
def mad(w: Writer, instr: Instr) -> None:
    t = instr.type
    d, a, b, c = instr.operands
    if is_float(t):
        float_arithmetic(w, instr)
        return
    if "cc" in instr.mods:
        carry(w, instr)
        return
    if "wide" in instr.mods:
        wide(w, instr, t, a, b, c)
        return
    u = "u" + t[1:]
    if "sat" in instr.mods:  # mad.hi.sat.s32 only
        w.op(instr, t, [(a, t), (b, t), (c, t)], lambda s, x, y, z: f"addsat_{s}(mulhi_{t}_{s}({x}, {y}), {z})")
        return
    if "hi" in instr.mods:
        w.op(instr, t, [(a, t), (b, t), (c, t)], lambda s, x, y, z: f"mulhi_{t}_{s}({x}, {y}) + {z}")
        return
    if w.affine_result(instr):
        if w.uniform(a) and w.uniform(b):
            base, stride = f"{w.s(a, u)} * {w.s(b, u)}", "0"
        else:
            base, stride = affine_product(w, a, b, u)
        w.put_scalar(d, u, f"{base} + {w.base(c, u)}", f"{stride} + {w.stride(c)}")
        return
    w.op(instr, u, [(a, u), (b, u), (c, u)], lambda s, x, y, z: f"{x} * {y} + {z}")


@handles("mul24", "mad24")
def mul24(w: Writer, instr: Instr) -> None:
    t = instr.type
    if "sat" in instr.mods:
        raise w.refuse()
    operands = [(o, t) for o in instr.operands[1:]]

    def cut(x: str) -> str:
        return f"(({x}) << 8 >> 8)" if is_signed(t) else f"(({x}) & 0xffffffu)"

    def product(s: str, x: str, y: str) -> str:
        """The low or the high 32 bits of the 48-bit product."""
        if "hi" not in instr.mods:
            return f"{cut(x)} * {cut(y)}"
        return f"mul24hi_{t}_{s}({cut(x)}, {cut(y)})"

    if instr.op == "mul24":
        w.op(instr, t, operands, product)
    else:
        w.op(instr, t, operands, lambda s, x, y, z: f"{product(s, x, y)} + {z}")


@handles("sad")
def sad(w: Writer, instr: Instr) -> None:
    t = instr.type
    w.op(
        instr,
        t,
        [(o, t) for o in instr.operands[1:]],
        lambda s, x, y, z: f"(max_{t}_{s}({x}, {y}) - min_{t}_{s}({x}, {y})) + {z}",
    )


@handles("div")
def div(w: Writer, instr: Instr) -> None:
    t = instr.type
    if is_float(t):
        float_arithmetic(w, instr)
    else:
        w.op(instr, t, [(o, t) for o in instr.sources], lambda s, x, y: f"div_{t}_{s}({x}, {y})")


@handles("rem")
def rem(w: Writer, instr: Instr) -> None:
    write_row(w, instr, Row("rem_{t}", "{t}", "{t} {t}"))


@handles("min", "max")
def min_max(w: Writer, instr: Instr) -> None:
    t = instr.type
    operands = [(o, t) for o in instr.operands[1:]]
    if t in HALVES:
        half(w, instr, t)
        return
    if t in ("u16x2", "s16x2") or "relu" in instr.mods or "xorsign" in instr.mods or len(operands) != 2:
        raise w.refuse()
    nan = "_nan" if "NaN" in instr.mods else ""
    w.op(instr, t, operands, lambda s, x, y: finish_float(instr, f"{instr.op}{nan}_{t}_{s}({x}, {y})", s, t))
