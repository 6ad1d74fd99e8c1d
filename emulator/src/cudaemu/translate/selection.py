"""Moves, comparisons and selection."""

from __future__ import annotations

from cudaemu.analysis.shapes import UNIFORM
from cudaemu.ptx import Imm, Instr, Operand, Reg, Sym, Vec
from cudaemu.translate.convert import pack, unpack
from cudaemu.translate.types import BITS, FORMS, HALVES, is_float, is_signed, storage
from cudaemu.translate.writer import Writer, handles


@handles("mov")
def mov(w: Writer, instr: Instr) -> None:
    t = instr.type
    d, a = instr.operands
    if isinstance(d, Vec):
        unpack(w, t, d, a)
        return
    if isinstance(a, Vec):
        pack(w, instr, t, a)
        return
    if t == "pred":
        w.put_pred(d, w.pred(a))
        return
    if isinstance(a, Sym):
        w.put_scalar(d, t, w.s(a, t))
        return
    if w.affine_result(instr):
        w.put_scalar(d, t, w.base(a, t), w.stride(a))
        return
    if isinstance(a, Reg) and isinstance(d, Reg) and a.name in w.function.registers:
        # A move between registers stored in the same type uses that type, so that no bits are reinterpreted twice.
        stored = storage(w.function.registers[a.name])
        if stored == w.stored_type(d.name) and stored != "pred":
            t = stored
    w.op(instr, t, [(a, t)], lambda s, x: x)


@handles("selp")
def selp(w: Writer, instr: Instr) -> None:
    t = instr.type
    d, a, b, p = instr.operands
    if w.uniform(p):
        if w.uniform(a) and w.uniform(b):  # the register may be affine, for other values that share it
            w.put_scalar(d, t, f"{w.pred(p)} ? {w.s(a, t)} : {w.s(b, t)}")
            return
        if w.affine_result(instr):
            raise AssertionError("selp has no affine form")
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
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}  # fmt: skip


def compare(w: Writer, instr: Instr, how: str, t: str, a: Operand, b: Operand) -> str:
    """C text of the lane mask for the comparison `a how b`."""
    if t in HALVES:
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
    how, t, operands = instr.mods.action, instr.type, instr.sources
    if t.endswith("x2"):
        setp_half2(w, instr, t)
        return
    text = compare(w, instr, how, t, operands[0], operands[1])
    name = w.fresh("c")
    w.line(f"const u32 {name} = {text};")
    combine = {"and": "&", "or": "|", "xor": "^"}.get(instr.mods.operation)
    first, second = name, f"~{name}"
    if combine:
        q = w.pred(operands[2])
        first, second = f"({name}) {combine} {q}", f"(~{name}) {combine} {q}"
    if instr.mods.two_results:
        keep = w.fresh("c")
        w.line(f"const u32 {keep} = {second};")
        w.put_pred(instr.operands[0], first)
        w.put_pred(instr.operands[1], keep)
        return
    w.put_pred(instr.operands[0], first)


def compare_half(w: Writer, instr: Instr, t: str, i: int, high: int) -> str:
    """C text of the lane mask of piece `i` for the comparison of the low halves, or with `high` the high halves,
    of the two sources."""
    a, b = (f"{t[:-2]}_to_f32_v({w.v(o, t, i)} >> {16 * high} & 0xffffu)" for o in instr.sources[:2])
    return f"CMPF({_FLOAT_COMPARE[instr.mods.action]}, {a}, {b})"


def setp_half2(w: Writer, instr: Instr, t: str) -> None:
    names = []
    for high in (0, 1):
        parts = [f"{compare_half(w, instr, t, i, high)} << {i * w.lanes}" for i in w.pieces("f32")]
        names.append(w.fresh("c"))
        w.line(f"const u32 {names[-1]} = {' | '.join(parts)};")
    w.put_pred(instr.operands[0], names[0])
    if instr.mods.two_results:
        w.put_pred(instr.operands[1], names[1])


@handles("set")
def set_(w: Writer, instr: Instr) -> None:
    how, (dt, st) = instr.mods.action, instr.mods.types
    if st.endswith("x2"):
        set_half2(w, instr, dt, st)
        return
    if instr.mods.operation:
        raise w.refuse()
    text = compare(w, instr, how, st, instr.operands[1], instr.operands[2])
    name = w.fresh("c")
    w.line(f"const u32 {name} = {text};")
    one = {
        "f32": "1.0f", "u32": "~0u", "s32": "~0u", "f16": "0x3c00u", "bf16": "0x3f80u", "b32": "~0u", "u16": "0xffffu",
    }.get(dt)  # fmt: skip
    if one is None:
        raise w.refuse()
    t = "f32" if dt == "f32" else "u32"
    if w.result_shape(instr.operands[0]) == UNIFORM:
        w.put_scalar(instr.operands[0], t, f"{name} ? {one} : 0")
    else:
        select, broadcast = ("SELF", "BF") if t == "f32" else ("SELU", "BU")
        w.put(instr.operands[0], t, lambda i: f"{select}(MK({name}, {i}), {broadcast}({one}), {broadcast}(0))")


def set_half2(w: Writer, instr: Instr, dt: str, st: str) -> None:
    one = {"f16x2": "0x3c00u", "bf16x2": "0x3f80u", "u32": "0xffffu", "b32": "0xffffu"}.get(dt)
    if one is None:
        raise w.refuse()

    def piece(i: int) -> str:
        masks = (compare_half(w, instr, st, i, high) for high in (0, 1))
        return " | ".join(f"SELU({mask}, BU({one} << {16 * high}), BU(0))" for high, mask in enumerate(masks))

    if w.result_shape(instr.operands[0]) == UNIFORM:
        w.put_scalar(instr.operands[0], "u32", f"({piece(0)})[0]")
    else:
        w.put(instr.operands[0], "u32", piece)


@handles("slct")
def slct(w: Writer, instr: Instr) -> None:
    dt, ct = instr.mods.types
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
