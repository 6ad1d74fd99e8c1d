"""Bitwise operations, shifts and bit fields."""

from __future__ import annotations

from cudaemu.analysis.shapes import Kind
from cudaemu.ptx import Imm, Instr, Reg
from cudaemu.translate.rows import declare, rows, rows_from
from cudaemu.translate.types import BITS, FORMS, is_signed
from cudaemu.translate.writer import Row, Writer, handles, write_row


@handles("and", "or", "xor")
def logic(w: Writer, instr: Instr) -> None:
    t = instr.type
    d, a, b = instr.operands
    sign = {"and": "&", "or": "|", "xor": "^"}[instr.op]
    if t == "pred":
        w.put_pred(d, f"{w.pred(a)} {sign} {w.pred(b)}")
        return
    w.op(instr, t, [(a, t), (b, t)], lambda s, x, y: f"{x} {sign} {y}")


@handles("not", "cnot")
def invert(w: Writer, instr: Instr) -> None:
    t = instr.type
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
    if instr.mods.two_results:
        lop3_and_predicate(w, instr)
        return
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


def lop3_and_predicate(w: Writer, instr: Instr) -> None:
    """lop3.BoolOp.b32 d|p, a, b, c, table, q: p is (d != 0) BoolOp q, where BoolOp is `and` or `or`."""
    d, p, *operands, table, q = instr.operands
    if not isinstance(table, Imm) or len(operands) != 3:
        raise w.refuse()
    names = [w.fresh("lop") for _ in w.pieces("u32")]
    for i, name in enumerate(names):
        w.line(f"const VU {name} = lop3_v({', '.join(w.v(o, 'b32', i) for o in operands)}, {table.value});")
    some = " | ".join(f"CMPU(4, {name}, BU(0)) << {i * w.lanes}" for i, name in enumerate(names))
    sign = "&" if instr.mods.operation == "and" else "|"
    w.line(f"const u32 some = ({some}) {sign} {w.pred(q)};")
    if not (isinstance(d, Reg) and d.name == "_"):
        if w.result_shape(d).kind is Kind.VECTOR:
            w.put(d, "b32", lambda i: names[i])
        else:
            w.put_scalar(d, "b32", f"{names[0]}[0]")
    w.put_pred(p, "some" if w.result_shape(p).kind is Kind.VECTOR else f"-(u32)((some & {w.mask}) != 0)")


@handles("shl", "shr")
def shift(w: Writer, instr: Instr) -> None:
    t = instr.type
    d, a, b = instr.operands
    bits = BITS[t]
    sign = "<<" if instr.op == "shl" else ">>"
    u = t if instr.op == "shr" else "u" + t[1:]
    if w.affine_result(instr):
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
    if w.uniform(b) and not w.uniform(a):  # a vector shifted by one amount
        w.put(d, u, lambda i: f"{instr.op}_{u}_u({w.v(a, u, i)}, {w.s(b, 'u32')})")
        return
    w.op(instr, u, [(a, u), (b, "u32")], lambda s, x, y: f"{instr.op}_{u}_{s}({x}, {y})")


_ROWS = {
    "popc": Row("popc_{t}", "u32", "{t}"),
    "clz": Row("clz_{t}", "u32", "{t}"),
    "brev": Row("brev_{t}", "{t}", "{t}"),
    "bfe": Row("bfe_{t}", "{t}", "{t} u32 u32"),
    "bfi": Row("bfi_{t}", "{t}", "{t} {t} u32 u32"),
    "shf": Row("shf_{0}_{1}", "b32", "b32 b32 b32"),
    "dp4a": Row("dp4a_{a}{b}", "u32", "u32 u32 u32"),
    "dp2a": Row("dp2a_{0}_{a}{b}", "u32", "u32 u32 u32"),
    "szext": Row("szext_{0}_{t}", "u32", "u32 u32"),
    "bmsk": Row("bmsk_{0}", "u32", "u32 u32"),
}


@handles(*_ROWS)
def bits(w: Writer, instr: Instr) -> None:
    write_row(w, instr, _ROWS[instr.op])


@handles("bfind")
def bfind(w: Writer, instr: Instr) -> None:
    name = f"bfind_{'shift_' if 'shiftamt' in instr.mods else ''}{instr.type}"
    w.op(instr, "u32", [(instr.operands[1], instr.type)], lambda s, x: f"{name}_{s}({x})")


@handles("prmt")
def prmt(w: Writer, instr: Instr) -> None:
    mode = next((_PRMT_MODES[m] for m in instr.mods if m in _PRMT_MODES), None)
    if mode:
        prmt_mode(w, instr, mode)
    else:
        w.op(instr, "b32", [(o, "b32") for o in instr.sources], lambda s, a, b, c: f"prmt_{s}({a}, {b}, {c})")


# The selectors of each mode of prmt, for the four values of the lowest two bits of c (PTX ISA, prmt).
_PRMT_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543), "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333), "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210), "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}  # fmt: skip


def prmt_mode(w: Writer, instr: Instr, mode: tuple[int, int, int, int]) -> None:
    first, second, third, fourth = mode

    def make(s: str, a: str, b: str, c: str) -> str:
        low, high = (
            n if s == "s" else f"BU({n})" for n in (f"0x{second:04x}{first:04x}u", f"0x{fourth:04x}{third:04x}u")
        )
        zero = "0u" if s == "s" else "BU(0)"
        upper = f"({zero} - ({c} >> 1 & 1))"
        return f"prmt_{s}({a}, {b}, ((({high} & {upper}) | ({low} & ~{upper})) >> (({c} & 1) << 4)) & 0xffff)"

    w.op(instr, "u32", [(o, "u32") for o in instr.operands[1:]], make)


@handles("fns")
def find_nth_set(w: Writer, instr: Instr) -> None:
    d, *operands = instr.operands
    if all(w.uniform(o) for o in operands):
        w.put_scalar(d, "u32", f"rt_fns({', '.join(w.s(o, 'u32') for o in operands)})")
        return
    for name, operand in zip(("mask", "base", "offset"), operands, strict=True):
        rows(w, name, operand)
    declare(w, "result")
    w.line("fns_row(result, mask, base, offset);")
    rows_from(w, d, "result")


@handles("createpolicy")
def cache_policy(w: Writer, instr: Instr) -> None:
    """Every cache policy is 0, because it changes no result."""
    w.op(instr, "b64", [], lambda s: "0")
