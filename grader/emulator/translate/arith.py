"""Integer, float and logic arithmetic, comparisons and selection."""

from __future__ import annotations

from grader.emulator.analysis.effects import CARRY
from grader.emulator.analysis.shapes import UNIFORM
from grader.emulator.ptx import Imm, Instr, Operand, Reg, Sym
from grader.emulator.translate.function import Writer, handles
from grader.emulator.translate.types import BITS, FORMS, is_float, is_signed, storage

ROUNDINGS = ("rn", "rz", "rm", "rp")


def rounding(instr: Instr) -> str:
    """The rounding mode named, "rn" when none is."""
    return next((m for m in instr.mods if m in ROUNDINGS), "rn")


def finish_float(instr: Instr, text: str, suffix: str, t: str) -> str:
    """Applies .ftz and .sat to a result."""
    if "ftz" in instr.mods and t == "f32":
        text = f"ftz_{suffix}({text})"
    if "sat" in instr.mods:
        text = f"sat_{t}_{suffix}({text})"
    return text


def ftz_in(instr: Instr, texts: tuple[str, ...], suffix: str, t: str) -> list[str]:
    return [f"ftz_{suffix}({x})" for x in texts] if "ftz" in instr.mods and t == "f32" else list(texts)


def affine_result(w: Writer, instr: Instr) -> bool:
    """Whether the result is kept as base and stride."""
    return w.result_shape(instr.operands[0]).kind == 1


@handles("add", "sub")
def add_sub(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    d, a, b = instr.operands
    sign = "+" if instr.op == "add" else "-"
    if is_float(t):
        if t in ("f16", "bf16", "f16x2", "bf16x2"):
            half(w, instr, t)
            return
        mode = rounding(instr)
        if mode != "rn":
            f = f"{instr.op}_{mode}_{t}"
            w.op(
                instr,
                t,
                [(a, t), (b, t)],
                lambda s, x, y: finish_float(instr, f"{f}_{s}({', '.join(ftz_in(instr, (x, y), s, t))})", s, t),
            )
        else:
            w.op(
                instr,
                t,
                [(a, t), (b, t)],
                lambda s, x, y: finish_float(instr, f" {sign} ".join(ftz_in(instr, (x, y), s, t)), s, t),
            )
        return
    if "cc" in instr.mods:
        carry(w, instr)
        return
    if "sat" in instr.mods:
        w.op(instr, t, [(a, t), (b, t)], lambda s, x, y: f"{instr.op}sat_{s}({x}, {y})")
        return
    if t in ("u16x2", "s16x2"):
        w.op(instr, t, [(a, t), (b, t)], lambda s, x, y: f"{instr.op}_16x2_{s}({x}, {y})")
        return
    u = "u" + t[1:] if BITS[t] > 16 else t  # unsigned, so that wrapping is defined in C
    if affine_result(w, instr):
        w.put_scalar(d, u, f"{w.base(a, u)} {sign} {w.base(b, u)}", f"{w.stride(a)} {sign} {w.stride(b)}")
        return
    w.op(instr, u, [(a, u), (b, u)], lambda s, x, y: f"{x} {sign} {y}")


@handles("addc", "subc", "madc")
def carry(w: Writer, instr: Instr) -> None:
    """Extended precision: computed with 64 bits to spare, the carry flag being a predicate register of its own."""
    t = instr.mods[-1]
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
    flag = w.cell(w.web(Reg(CARRY))) if takes else "0u"
    d = instr.operands[0]
    out = Reg(CARRY)
    if (
        w.result_shape(d).kind == 0
        and (not gives or w.result_shape(out).kind == 0)
        and all(w.uniform(o) for o in operands)
    ):
        values = ", ".join(w.s(o, u) for o in operands)
        r, c = w.fresh("r"), w.fresh("c")
        w.line(f"u32 {c}; const {FORMS[u].scalar} {r} = {f}({values}, {flag} & 1u, &{c});")
        w.put_scalar(d, u, r)
        if gives:
            w.put_pred(out, f"-(u32){c}")
        return
    rows = [w.fresh("row") for _ in operands]
    for row, o in zip(rows, operands, strict=True):
        w.line(f"{FORMS[u].scalar} {row}[32] __attribute__((aligned(64)));")
        step = w.lanes // 2 if bits == 64 else w.lanes
        for i in w.pieces(u):
            w.line(f"*({FORMS[u].vector} *)&{row}[{i * step}] = {w.v(o, u, i)};")
    r, c = w.fresh("r"), w.fresh("c")
    texts = ", ".join(f"{row}[l]" for row in rows)
    w.line(f"{FORMS[u].scalar} {r}[32] __attribute__((aligned(64))); u32 {c} = 0;")
    w.line(f"for (u32 l = 0; l < 32; l++) {{ u32 c_; {r}[l] = {f}({texts}, {flag} >> l & 1, &c_); {c} |= c_ << l; }}")
    step = w.lanes // 2 if bits == 64 else w.lanes
    w.put(d, u, lambda i: f"*(const {FORMS[u].vector} *)&{r}[{i * step}]")
    if gives:
        w.put_pred(out, c)


@handles("neg", "abs")
def neg_abs(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    d, a = instr.operands
    if t in ("f16", "bf16", "f16x2", "bf16x2"):
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
        if affine_result(w, instr):
            w.put_scalar(d, u, f"0 - {w.base(a, u)}", f"-{w.stride(a)}")
        else:
            w.op(instr, u, [(a, u)], lambda s, x: f"0 - {x}")
        return
    u = "u" + t[1:]
    w.op(instr, t, [(a, t)], lambda s, x: f"abs_i_{s}({x})")
    _ = u


@handles("mul")
def mul(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    d, a, b = instr.operands
    if is_float(t):
        if t in ("f16", "bf16", "f16x2", "bf16x2"):
            half(w, instr, t)
            return
        mode = rounding(instr)
        if mode != "rn":
            f = f"mul_{mode}_{t}"
            w.op(
                instr,
                t,
                [(a, t), (b, t)],
                lambda s, x, y: finish_float(instr, f"{f}_{s}({', '.join(ftz_in(instr, (x, y), s, t))})", s, t),
            )
        else:
            w.op(
                instr,
                t,
                [(a, t), (b, t)],
                lambda s, x, y: finish_float(instr, " * ".join(ftz_in(instr, (x, y), s, t)), s, t),
            )
        return
    if "wide" in instr.mods:
        wide(w, instr, t, a, b, None)
        return
    if "hi" in instr.mods:
        w.op(instr, t, [(a, t), (b, t)], lambda s, x, y: f"mulhi_{t}_{s}({x}, {y})")
        return
    u = "u" + t[1:]
    if affine_result(w, instr):
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
    """mul.wide and mad.wide: twice as wide a product."""
    d = instr.operands[0]
    if BITS[t] == 16:
        r = "s32" if is_signed(t) else "u32"
        if c is None:
            w.op(instr, r, [(a, t), (b, t)], lambda s, x, y: f"{x} * {y}")
        else:
            w.op(instr, r, [(a, t), (b, t), (c, r)], lambda s, x, y, z: f"{x} * {y} + {z}")
        return
    q = "s64" if is_signed(t) else "u64"
    if w.result_shape(d).kind == 1:
        if w.uniform(a):
            a, b = b, a
        # A guard at the start of this block has checked that no lane wraps around.
        base = (
            f"(u64)(({'i64' if q == 's64' else 'u64'}){w.base(a, t)} * ({'i64' if q == 's64' else 'u64'}){w.s(b, t)})"
        )
        stride = f"{w.stride(a)} * (i64){w.s(b, t)}"
        if w.uniform(a):
            stride = "0"
        if c is not None:
            base, stride = f"{base} + {w.base(c, 'u64')}", f"{stride} + {w.stride(c)}"
        w.put_scalar(d, "u64", base, stride)
        return
    tail = ""
    operands = [a, b] + ([c] if c is not None else [])
    if all(w.uniform(o) for o in operands):
        kind = FORMS[q].scalar
        if c is not None:
            tail = f" + {w.s(c, q)}"
        w.put_scalar(d, q, f"({kind}){w.s(a, t)} * ({kind}){w.s(b, t)}{tail}")
        return
    f = f"mulwide_{'i' if is_signed(t) else 'u'}"

    def piece(i: int) -> str:
        half_name = "hi" if i % 2 else "lo"
        text = f"{f}_{half_name}({w.v(a, t, i // 2)}, {w.v(b, t, i // 2)})"
        return text + (f" + {w.v(c, q, i)}" if c is not None else "")

    w.put(d, q, piece)


@handles("mad", "fma")
def mad(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    d, a, b, c = instr.operands
    if is_float(t):
        if t in ("f16", "bf16", "f16x2", "bf16x2"):
            half(w, instr, t)
            return
        f = f"fma_{rounding(instr)}_{t}"
        w.op(
            instr,
            t,
            [(a, t), (b, t), (c, t)],
            lambda s, *x: finish_float(instr, f"{f}_{s}({', '.join(ftz_in(instr, x, s, t))})", s, t),
        )
        return
    if "cc" in instr.mods:
        carry(w, instr)
        return
    if "wide" in instr.mods:
        wide(w, instr, t, a, b, c)
        return
    u = "u" + t[1:]
    if "hi" in instr.mods:
        w.op(instr, t, [(a, t), (b, t), (c, t)], lambda s, x, y, z: f"mulhi_{t}_{s}({x}, {y}) + {z}")
        return
    if affine_result(w, instr):
        if w.uniform(a) and w.uniform(b):
            base, stride = f"{w.s(a, u)} * {w.s(b, u)}", "0"
        else:
            base, stride = affine_product(w, a, b, u)
        w.put_scalar(d, u, f"{base} + {w.base(c, u)}", f"{stride} + {w.stride(c)}")
        return
    w.op(instr, u, [(a, u), (b, u), (c, u)], lambda s, x, y, z: f"{x} * {y} + {z}")


@handles("mul24", "mad24")
def mul24(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    if "hi" in instr.mods or "sat" in instr.mods:
        raise w.refuse()
    operands = [(o, t) for o in instr.operands[1:]]

    def cut(x: str) -> str:
        return f"(({x}) << 8 >> 8)" if is_signed(t) else f"(({x}) & 0xffffffu)"

    if instr.op == "mul24":
        w.op(instr, t, operands, lambda s, x, y: f"{cut(x)} * {cut(y)}")
    else:
        w.op(instr, t, operands, lambda s, x, y, z: f"{cut(x)} * {cut(y)} + {z}")


@handles("sad")
def sad(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    w.op(
        instr,
        t,
        [(o, t) for o in instr.operands[1:]],
        lambda s, x, y, z: f"(max_{t}_{s}({x}, {y}) - min_{t}_{s}({x}, {y})) + {z}",
    )


@handles("div")
def div(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    _, a, b = instr.operands
    if is_float(t):
        mode = rounding(instr)
        if mode != "rn":
            f = f"div_{mode}_{t}"
            w.op(
                instr,
                t,
                [(a, t), (b, t)],
                lambda s, x, y: finish_float(instr, f"{f}_{s}({', '.join(ftz_in(instr, (x, y), s, t))})", s, t),
            )
        else:
            w.op(
                instr,
                t,
                [(a, t), (b, t)],
                lambda s, x, y: finish_float(instr, " / ".join(ftz_in(instr, (x, y), s, t)), s, t),
            )
        return
    w.op(instr, t, [(a, t), (b, t)], lambda s, x, y: f"div_{t}_{s}({x}, {y})")


@handles("rem")
def rem(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    _, a, b = instr.operands
    w.op(instr, t, [(a, t), (b, t)], lambda s, x, y: f"rem_{t}_{s}({x}, {y})")


@handles("min", "max")
def min_max(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    operands = [(o, t) for o in instr.operands[1:]]
    if t in ("f16", "bf16", "f16x2", "bf16x2"):
        half(w, instr, t)
        return
    if t in ("u16x2", "s16x2") or "relu" in instr.mods or "xorsign" in instr.mods or len(operands) != 2:
        raise w.refuse()
    nan = "_nan" if "NaN" in instr.mods else ""
    w.op(instr, t, operands, lambda s, x, y: finish_float(instr, f"{instr.op}{nan}_{t}_{s}({x}, {y})", s, t))


@handles("and", "or", "xor")
def logic(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    d, a, b = instr.operands
    sign = {"and": "&", "or": "|", "xor": "^"}[instr.op]
    if t == "pred":
        w.put_pred(d, f"{w.pred(a)} {sign} {w.pred(b)}")
        return
    w.op(instr, t, [(a, t), (b, t)], lambda s, x, y: f"{x} {sign} {y}")


@handles("not", "cnot")
def invert(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    d, a = instr.operands
    if t == "pred":
        w.put_pred(d, f"~{w.pred(a)}")
    elif instr.op == "cnot":
        w.op(
            instr,
            t,
            [(a, t)],
            lambda s, x: f"({x} == 0)" if s == "s" else f"(({FORMS[t].vector})({x} == 0) & 1)",
        )
    else:
        w.op(instr, t, [(a, t)], lambda s, x: f"~{x}")


@handles("lop3")
def lop3(w: Writer, instr: Instr) -> None:
    if len(instr.operands) != 5 or not isinstance(instr.operands[4], Imm):
        raise w.refuse()
    table = instr.operands[4].value

    def make(s: str, a: str, b: str, c: str) -> str:
        if s == "v":
            return f"lop3_v({a}, {b}, {c}, {table})"
        terms = []
        for i in range(8):
            if table >> i & 1:
                terms.append("(" + " & ".join(x if i & bit else f"~{x}" for x, bit in ((a, 4), (b, 2), (c, 1))) + ")")
        return "(" + (" | ".join(terms) or "0u") + ")"

    w.op(instr, "b32", [(o, "b32") for o in instr.operands[1:4]], make)


@handles("shl", "shr")
def shift(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    d, a, b = instr.operands
    bits = BITS[t]
    sign = "<<" if instr.op == "shl" else ">>"
    u = t if instr.op == "shr" else "u" + t[1:]
    if affine_result(w, instr):
        amount = w.s(b, "u32")
        if isinstance(b, Imm):
            w.put_scalar(d, u, f"{w.base(a, u)} << {b.value}", f"(i64)((u64){w.stride(a)} << {b.value})")
        else:
            w.put_scalar(
                d,
                u,
                f"shl_{u}_s({w.base(a, u)}, {amount})",
                f"{amount} > 63 ? 0 : (i64)((u64){w.stride(a)} << {amount})",
            )
        return
    if isinstance(b, Imm):
        amount_value = b.value & 0xFFFFFFFF
        if amount_value >= bits:
            if instr.op == "shr" and is_signed(t):
                amount_value = bits - 1
            else:
                w.op(instr, u, [(a, u)], lambda s, x: f"{x} & 0")
                return
        w.op(instr, u, [(a, u)], lambda s, x: f"{x} {sign} {amount_value}")
        return
    if w.uniform(a) and w.uniform(b):
        w.put_scalar(d, u, f"{instr.op}_{u}_s({w.s(a, u)}, {w.s(b, 'u32')})")
        return
    if w.uniform(b):  # a vector shifted by one amount
        w.put(d, u, lambda i: f"{instr.op}_{u}_u({w.v(a, u, i)}, {w.s(b, 'u32')})")
        return
    if bits == 64:
        w.put(
            d,
            u,
            lambda i: f"{instr.op}_{u}_v({w.v(a, u, i)}, widen_u_{'hi' if i % 2 else 'lo'}({w.v(b, 'u32', i // 2)}))",
        )
    else:
        w.put(d, u, lambda i: f"{instr.op}_{u}_v({w.v(a, u, i)}, {w.v(b, 'u32', i)})")


@handles("shf")
def funnel(w: Writer, instr: Instr) -> None:
    direction, mode = instr.mods[0], instr.mods[1]
    w.op(
        instr,
        "b32",
        [(o, "b32") for o in instr.operands[1:]],
        lambda s, a, b, c: f"shf_{direction}_{mode}_{s}({a}, {b}, {c})",
    )


@handles("popc", "clz", "bfind", "brev", "fns", "bfe", "bfi", "prmt", "dp4a", "dp2a", "szext", "bmsk")
def bits(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    op = instr.op
    if op in ("fns", "szext", "bmsk", "dp2a"):
        raise w.refuse()
    d = instr.operands[0]
    if op == "prmt":
        mode = next((m for m in instr.mods if m in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")), "")
        if mode:
            raise w.refuse()
        w.op(
            instr,
            "b32",
            [(o, "b32") for o in instr.operands[1:]],
            lambda s, a, b, c: f"prmt_{s}({a}, {b}, {c})",
        )
        return
    if op == "dp4a":
        ta, tb = instr.mods[0], instr.mods[1]
        w.op(
            instr,
            "u32",
            [(o, "u32") for o in instr.operands[1:]],
            lambda s, a, b, c: f"dp4a_{ta[0]}{tb[0]}_{s}({a}, {b}, {c})",
        )
        return
    name = f"bfind_shift_{t}" if op == "bfind" and "shiftamt" in instr.mods else f"{op}_{t}"
    if op == "brev":
        w.op(instr, t, [(instr.operands[1], t)], lambda s, x: f"{name}_{s}({x})")
        return
    if BITS[t] == 64 and op in ("popc", "clz", "bfind"):  # a 32-bit result from a 64-bit operand
        a = instr.operands[1]
        if w.uniform(a):
            w.put_scalar(d, "u32", f"{name}_s({w.s(a, t)})")
        else:
            w.put(
                d,
                "u32",
                lambda i: f"narrow_q((VQ){name}_v({w.v(a, t, 2 * i)}), (VQ){name}_v({w.v(a, t, 2 * i + 1)}))",
            )
        return
    if op in ("popc", "clz", "bfind"):
        w.op(instr, "u32", [(instr.operands[1], t)], lambda s, x: f"{name}_{s}({x})")
        return
    operands = list(instr.operands[1:])
    if BITS[t] == 64 and not all(w.uniform(o) for o in operands):
        counts = operands[1:] if op == "bfe" else operands[2:]
        values = operands[:1] if op == "bfe" else operands[:2]

        def piece(i: int) -> str:
            texts = [w.v(o, t, i) for o in values]
            texts += [f"widen_u_{'hi' if i % 2 else 'lo'}({w.v(o, 'u32', i // 2)})" for o in counts]
            return f"{name}_v({', '.join(texts)})"

        w.put(d, t, piece)
        return
    n = 1 if op == "bfe" else 2
    w.op(
        instr,
        t,
        [(o, t if k < n else "u32") for k, o in enumerate(operands)],
        lambda s, *x: f"{name}_{s}({', '.join(x)})",
    )


@handles("mov")
def mov(w: Writer, instr: Instr) -> None:
    from grader.emulator.ptx import Vec

    t = instr.mods[-1]
    d, a = instr.operands
    if isinstance(d, Vec) or isinstance(a, Vec):
        from grader.emulator.translate.convert import pack, unpack

        if isinstance(d, Vec):
            unpack(w, instr, t, d, a)
        elif isinstance(a, Vec):
            pack(w, instr, t, d, a)
        return
    if t == "pred":
        w.put_pred(d, w.pred(a))
        return
    if isinstance(a, Sym):
        w.put_scalar(d, t, w.s(a, t))
        return
    if affine_result(w, instr):
        w.put_scalar(d, t, w.base(a, t), w.stride(a))
        return
    if isinstance(a, Reg) and isinstance(d, Reg) and a.name in w.function.registers:
        # A move between registers kept alike stays in their kind, so that no bits are reinterpreted twice.
        kept = storage(w.function.registers[a.name])
        if kept == w.declared(d.name) and kept != "pred":
            t = kept
    w.op(instr, t, [(a, t)], lambda s, x: x)


@handles("selp")
def selp(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    d, a, b, p = instr.operands
    if w.uniform(p):
        if affine_result(w, instr):
            raise AssertionError("selp has no affine form")
        if w.uniform(a) and w.uniform(b):
            w.put_scalar(d, t, f"{w.pred(p)} ? {w.s(a, t)} : {w.s(b, t)}")
            return
        w.put(d, t, lambda i: f"({w.pred(p)} ? {w.v(a, t, i)} : {w.v(b, t, i)})")
        return
    form = FORMS[t]
    select = {"VU": "SELU", "VI": "SELU", "VF": "SELF", "VQ": "SELQ", "VL": "SELQ", "VD": "SELD"}[form.vector]
    cast = {"SELU": "(VU)", "SELQ": "(VQ)"}.get(select, "")
    mask = "MKQ" if form.wide else "MK"
    w.put(
        d,
        t,
        lambda i: f"({form.vector}){select}({mask}({w.pred(p)}, {i}), {cast}{w.v(a, t, i)}, {cast}{w.v(b, t, i)})",
    )


_FLOAT_COMPARE = {
    "eq": 0, "ne": 12, "lt": 17, "le": 18, "gt": 30, "ge": 29, "equ": 8, "neu": 4, "ltu": 9, "leu": 10, "gtu": 6,
    "geu": 5, "num": 7, "nan": 3,
}  # fmt: skip
_INTEGER_COMPARE = {"eq": 0, "ne": 4, "lt": 1, "le": 2, "gt": 6, "ge": 5, "lo": 1, "ls": 2, "hi": 6, "hs": 5}
_C_COMPARE = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}


def compare(w: Writer, instr: Instr, how: str, t: str, a: Operand, b: Operand) -> str:
    """A lane mask of `a how b`."""
    if t in ("f16", "bf16", "f16x2", "bf16x2"):
        if t.endswith("x2"):
            raise w.refuse()
        if w.uniform(a) and w.uniform(b):
            return f"-(u32)compare_f32_s({_FLOAT_COMPARE[how]}, {t}_to_f32_s({w.s(a, t)}), {t}_to_f32_s({w.s(b, t)}))"
        parts = [
            f"CMPF({_FLOAT_COMPARE[how]}, {t}_to_f32_v({w.v(a, t, i)}), {t}_to_f32_v({w.v(b, t, i)})) << {i * w.lanes}"
            for i in w.pieces("f32")
        ]
        return " | ".join(parts)
    ftz = "ftz" in instr.mods and t == "f32"
    if w.uniform(a) and w.uniform(b):
        x, y = w.s(a, t), w.s(b, t)
        if is_float(t):
            if ftz:
                x, y = f"ftz_s({x})", f"ftz_s({y})"
            return f"-(u32)compare_{t}_s({_FLOAT_COMPARE[how]}, {x}, {y})"
        return f"-(u32)({x} {_C_COMPARE[how]} {y})"
    form = FORMS[t]
    if is_float(t):
        macro, code = ("CMPD" if form.wide else "CMPF"), _FLOAT_COMPARE[how]
    else:
        signed = is_signed(t) and how not in ("lo", "ls", "hi", "hs")
        macro = {(0, 0): "CMPU", (0, 1): "CMPI", (1, 0): "CMPQ", (1, 1): "CMPL"}[(int(form.wide), int(signed))]
        code = _INTEGER_COMPARE[how]
    width = w.lanes // 2 if form.wide else w.lanes
    parts = []
    for i in w.pieces(t):
        x, y = w.v(a, t, i), w.v(b, t, i)
        if ftz:
            x, y = f"ftz_v({x})", f"ftz_v({y})"
        parts.append(f"{macro}({code}, {x}, {y}) << {i * width}")
    return " | ".join(parts)


@handles("setp")
def setp(w: Writer, instr: Instr) -> None:
    mods = [m for m in instr.mods if m not in ("ftz", "with_pred")]
    how, t = mods[0], mods[-1]
    both = "with_pred" in instr.mods
    operands = instr.operands[2:] if both else instr.operands[1:]
    if t.endswith("x2"):
        setp_half2(w, instr, how, t)
        return
    text = compare(w, instr, how, t, operands[0], operands[1])
    name = w.fresh("c")
    w.line(f"const u32 {name} = {text};")
    combine = {"and": "&", "or": "|", "xor": "^"}.get(mods[1]) if len(mods) == 3 else None
    first, second = name, f"~{name}"
    if combine:
        q = w.pred(operands[2])
        first, second = f"({name}) {combine} {q}", f"(~{name}) {combine} {q}"
    if both:
        keep = w.fresh("c")
        w.line(f"const u32 {keep} = {second};")
        w.put_pred(instr.operands[0], first)
        w.put_pred(instr.operands[1], keep)
        return
    w.put_pred(instr.operands[0], first)


def setp_half2(w: Writer, instr: Instr, how: str, t: str) -> None:
    base = t[:-2]
    a, b = instr.operands[2:4] if "with_pred" in instr.mods else instr.operands[1:3]
    names = []
    for high in (0, 1):
        parts = [
            f"CMPF({_FLOAT_COMPARE[how]}, {base}_to_f32_v({w.v(a, t, i)} >> {16 * high} & 0xffffu), "
            f"{base}_to_f32_v({w.v(b, t, i)} >> {16 * high} & 0xffffu)) << {i * w.lanes}"
            for i in w.pieces("f32")
        ]
        names.append(w.fresh("c"))
        w.line(f"const u32 {names[-1]} = {' | '.join(parts)};")
    w.put_pred(instr.operands[0], names[0])
    if "with_pred" in instr.mods:
        w.put_pred(instr.operands[1], names[1])


@handles("set")
def set_(w: Writer, instr: Instr) -> None:
    mods = [m for m in instr.mods if m != "ftz"]
    how, dt, st = mods[0], mods[-2], mods[-1]
    if st.endswith("x2"):
        set_half2(w, instr, how, dt, st)
        return
    if len(mods) != 3:
        raise w.refuse()
    text = compare(w, instr, how, st, instr.operands[1], instr.operands[2])
    name = w.fresh("c")
    w.line(f"const u32 {name} = {text};")
    one = {
        "f32": "1.0f",
        "u32": "~0u",
        "s32": "~0u",
        "f16": "0x3c00u",
        "bf16": "0x3f80u",
        "b32": "~0u",
        "u16": "0xffffu",
    }.get(dt)
    if one is None:
        raise w.refuse()
    t = "f32" if dt == "f32" else "u32"
    if w.result_shape(instr.operands[0]) == UNIFORM:
        w.put_scalar(instr.operands[0], t, f"{name} ? {one} : 0")
    else:
        select, broadcast = ("SELF", "BF") if t == "f32" else ("SELU", "BU")
        w.put(instr.operands[0], t, lambda i: f"{select}(MK({name}, {i}), {broadcast}({one}), {broadcast}(0))")


def set_half2(w: Writer, instr: Instr, how: str, dt: str, st: str) -> None:
    base = st[:-2]
    _, a, b = instr.operands[:3]
    one = {"f16x2": "0x3c00u", "bf16x2": "0x3f80u", "u32": "0xffffu", "b32": "0xffffu"}.get(dt)
    if one is None:
        raise w.refuse()

    def piece(i: int) -> str:
        parts = []
        for high in (0, 1):
            mask = (
                f"CMPF({_FLOAT_COMPARE[how]}, {base}_to_f32_v({w.v(a, st, i)} >> {16 * high} & 0xffffu), "
                f"{base}_to_f32_v({w.v(b, st, i)} >> {16 * high} & 0xffffu))"
            )
            parts.append(f"SELU({mask}, BU({one} << {16 * high}), BU(0))")
        return " | ".join(parts)

    if w.result_shape(instr.operands[0]) == UNIFORM:
        w.put_scalar(instr.operands[0], "u32", f"({piece(0)})[0]")
    else:
        w.put(instr.operands[0], "u32", piece)


@handles("slct")
def slct(w: Writer, instr: Instr) -> None:
    dt, ct = instr.mods[-2], instr.mods[-1]
    d, a, b, c = instr.operands
    if BITS[dt] != 32:
        raise w.refuse()
    zero = Imm(0, 32) if ct == "f32" else Imm(0)
    text = compare(w, instr, "ge", ct, c, zero)
    name = w.fresh("c")
    w.line(f"const u32 {name} = {text};")
    if w.result_shape(d) == UNIFORM:
        w.put_scalar(d, "u32", f"{name} ? {w.s(a, 'u32')} : {w.s(b, 'u32')}")
    else:
        w.put(d, "u32", lambda i: f"SELU(MK({name}, {i}), {w.v(a, 'u32', i)}, {w.v(b, 'u32', i)})")


@handles("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def special_function(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    a = instr.operands[1]
    if t in ("f16", "bf16", "f16x2", "bf16x2"):
        half(w, instr, t)
        return
    mode = rounding(instr)
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
    t = instr.mods[-1]
    u = "u64" if t == "f64" else "u32"
    high = "(1ull << 63)" if t == "f64" else "0x80000000u"
    broadcast = "BQ" if t == "f64" else "BU"
    w.op(
        instr, u, [(instr.operands[1], u), (instr.operands[2], u)],
        lambda s, a, b: (f"({a} & {high}) | ({b} & ~{high})" if s == "s" else f"({a} & {broadcast}({high})) | ({b} & {broadcast}(~{high}))"),
    )  # fmt: skip


@handles("testp")
def testp(w: Writer, instr: Instr) -> None:
    how, t = instr.mods[0], instr.mods[1]
    a = instr.operands[1]
    if w.uniform(a):
        w.put_pred(instr.operands[0], f"-(u32)testp_{how}_{t}_s({w.s(a, t)})")
        return
    width = w.lanes // 2 if t == "f64" else w.lanes
    lanes = " | ".join(f"lanes_{t}(testp_{how}_{t}_s, {w.v(a, t, i)}) << {i * width}" for i in w.pieces(t))
    w.put_pred(instr.operands[0], lanes)


def half(w: Writer, instr: Instr, t: str) -> None:
    """fp16 and bf16 arithmetic: each lane's value widened to f32, computed and rounded once. For add, sub and mul that
    is exact rounding (f32 has more than 2p+2 bits for p = 11 or 8); fma goes through f64 for the same reason."""
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
