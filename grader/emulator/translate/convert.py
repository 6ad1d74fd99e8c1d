"""cvt, cvta, packing and unpacking moves."""

from __future__ import annotations

from functools import partial

from grader.emulator.analysis.shapes import Kind
from grader.emulator.ptx import SPACES, Instr, Operand, Reg, Sym, Vec
from grader.emulator.translate.function import Writer, handles
from grader.emulator.translate.types import BITS, FORMS, is_float, is_signed

_WINDOWS = {"shared": "SHARED_WINDOW", "local": "LOCAL_WINDOW", "param": "PARAM_WINDOW"}
_C_TYPES = {"s8": "int8_t", "u8": "uint8_t", "s16": "int16_t", "u16": "uint16_t"}


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
    f = f"is_{space}"
    if space not in SPACES:
        raise w.refuse()
    if w.uniform(a):
        w.put_pred(d, f"-(u32){f}({w.s(a, 'u64')})")
        return
    w.line("u64 aa[32] __attribute__((aligned(64)));")
    for i in w.pieces("u64"):
        w.line(f"*(VQ *)&aa[{i * w.lanes // 2}] = {w.v(a, 'u64', i)};")
    w.line(f"u32 inside = 0; for (int l = 0; l < 32; l++) inside |= (u32){f}(aa[l]) << l;")
    w.put_pred(d, "inside")


@handles("cvt")
def cvt(w: Writer, instr: Instr) -> None:
    if instr.mods.action == "pack":
        pack_integers(w, instr)
        return
    types = instr.mods.types
    if len(instr.operands) == 3:
        cvt_pack(w, instr)
        return
    if len(types) != 2 or "relu" in instr.mods or any("e4m3" in t or "e5m2" in t for t in types):
        raise w.refuse()
    dt, st = types
    d, a = instr.operands
    integral = instr.mods.rounding.endswith("i")
    integer_round = instr.mods.rounding if integral else None
    float_round = "rn" if integral else instr.mods.rounding or "rn"
    sat, ftz = "sat" in instr.mods, "ftz" in instr.mods
    if is_float(dt) or is_float(st) or dt == "tf32":
        _float(w, instr, d, a, dt, st, integer_round, float_round, sat=sat, ftz=ftz)
        return
    _integer(w, instr, d, a, dt, st, sat=sat)


def pack_integers(w: Writer, instr: Instr) -> None:
    """cvt.pack: two numbers clamped and put side by side, below what c holds."""
    kind = instr.mods.types[0]
    bits = BITS[kind]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
    field = (1 << bits) - 1

    def clamped(s: str, x: str) -> str:
        if s == "s":
            return f"((u32)({x} < {low} ? {low} : {x} > {high} ? {high} : {x}) & 0x{field:x}u)"
        below, above = f"(VU)({x} < {low})", f"(VU)({x} > {high})"
        middle = f"((VU){x} & ~({below} | {above}))"
        return f"(({middle} | ({below} & BU((u32){low})) | ({above} & BU((u32){high}))) & 0x{field:x}u)"

    def make(s: str, a: str, b: str, *c: str) -> str:
        text = f"({clamped(s, a)} << {bits} | {clamped(s, b)})"
        return f"({text} | {c[0]} << {2 * bits})" if c and bits < 16 else text

    w.op(instr, "u32", [(o, "u32" if n == 2 else "s32") for n, o in enumerate(instr.operands[1:])], make)


def _integer(w: Writer, instr: Instr, d: Operand, a: Operand, dt: str, st: str, *, sat: bool) -> None:
    if sat:
        _saturated(w, d, a, dt, st)
        return
    if w.result_shape(d).kind is Kind.AFFINE:
        base = w.base(a, st)
        w.put_scalar(d, dt, f"({FORMS[dt].scalar}){base}", w.stride(a))
        return
    filled = _filled(w, d, dt)
    if w.uniform(a):
        w.put_scalar(d, filled, f"({_C_TYPES.get(dt, FORMS[dt].scalar)}){w.s(a, st)}")
        return
    if FORMS[dt].wide and not FORMS[st].wide:
        f = "widen_i" if is_signed(st) else "widen_u"
        w.put(d, dt, lambda i: f"({FORMS[dt].vector}){f}_{'hi' if i % 2 else 'lo'}({w.v(a, st, i // 2)})")
        return
    if FORMS[st].wide and not FORMS[dt].wide:
        w.put(d, filled, lambda i: _cut(f"narrow_q({w.v(a, st, 2 * i)}, {w.v(a, st, 2 * i + 1)})", dt))
        return
    w.put(d, filled, lambda i: _cut(w.v(a, st, i), dt))


def _filled(w: Writer, d: Operand, t: str) -> str:
    """As what a result of type `t` is stored: one narrower than its register is extended by its sign, or zeros, to fill
    it."""
    assert isinstance(d, Reg)
    narrow = t in _C_TYPES and d.name != "_" and BITS[w.function.registers[d.name]] == 32
    return f"{t[0]}32" if narrow else t


def _saturated(w: Writer, d: Operand, a: Operand, dt: str, st: str) -> None:
    """An integer clamped, in its own type, to what `dt` can hold, and then converted."""
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
    elif form.wide and not FORMS[dt].wide:

        def part(k: int) -> str:
            return f"(VQ){clamped('v', w.v(a, st, k))}"

        w.put(d, filled, lambda i: f"({FORMS[dt].vector})narrow_q({part(2 * i)}, {part(2 * i + 1)})")
    elif FORMS[dt].wide and not form.wide:
        f = "widen_i" if is_signed(st) else "widen_u"
        w.put(d, dt, lambda i: f"({FORMS[dt].vector}){f}_{'hi' if i % 2 else 'lo'}({clamped('v', w.v(a, st, i // 2))})")
    else:
        w.put(d, filled, lambda i: f"({FORMS[dt].vector}){clamped('v', w.v(a, st, i))}")


def _range(t: str) -> tuple[int, int]:
    """The lowest and the highest integer of a type."""
    return (-(1 << (BITS[t] - 1)), (1 << (BITS[t] - 1)) - 1) if is_signed(t) else (0, (1 << BITS[t]) - 1)


def _cut(text: str, t: str) -> str:
    if t == "s16":
        return f"((VI)({text}) << 16 >> 16)"
    if t == "s8":
        return f"((VI)({text}) << 24 >> 24)"
    if BITS[t] == 16:
        return f"((VU)({text}) & 0xffffu)"
    if BITS[t] == 8:
        return f"((VU)({text}) & 0xffu)"
    return f"({FORMS[t].vector})({text})"


def _float(
    w: Writer, instr: Instr, d: Operand, a: Operand, dt: str, st: str, integer_round: str | None, float_round: str,
    *, sat: bool, ftz: bool,
) -> None:  # fmt: skip
    """Conversions to or from floats go by named functions cvt_<to>_<from>[_<rounding>]_{s,v}; those that change the
    width take or give two pieces."""

    def result(s: str, text: str) -> str:
        if ftz and dt == "f32":
            text = f"ftz_{s}({text})"
        return f"sat_{dt}_{s}({text})" if sat and is_float(dt) else text

    def source(s: str, text: str) -> str:
        return f"ftz_{s}({text})" if ftz and st == "f32" else text

    halves = ("f16", "bf16")
    if st in halves and dt not in ("f32",):  # via f32, which holds every half exactly
        if dt in ("f16", "bf16") and integer_round:
            w.op(
                instr,
                dt,
                [(a, st)],
                lambda s, x: f"f32_to_{dt}_{s}(round_{integer_round}_f32_{s}({st}_to_f32_{s}({x})))",
            )
            return
        if FORMS[dt].wide:
            f = f"cvt_{dt}_f32" if dt == "f64" else f"cvt_{integer_round or 'rzi'}_{dt}_f32"
            if w.uniform(a):
                w.put_scalar(d, dt, f"{f}_s({st}_to_f32_s({w.s(a, st)}))")
            else:
                w.put(d, dt, lambda i: f"{f}_{'hi' if i % 2 else 'lo'}({st}_to_f32_v({w.v(a, st, i // 2)}))")
            return
        if is_float(dt):
            raise w.refuse()
        f = f"cvt_{integer_round or 'rzi'}_{dt}_f32"
        w.op(instr, _filled(w, d, dt), [(a, st)], lambda s, x: f"{f}_{s}({st}_to_f32_{s}({x}))")
        return
    if st in halves:
        w.op(instr, "f32", [(a, st)], lambda s, x: result(s, f"{st}_to_f32_{s}({x})"))
        return
    if dt in halves:
        f = f"f32_to_{dt}" + ("" if float_round == "rn" else f"_{float_round}")
        if st == "f32":
            w.op(instr, dt, [(a, st)], lambda s, x: f"{f}_{s}({f'sat_f32_{s}({x})' if sat else x})")
        elif not FORMS[st].wide and BITS[st] <= 16 and float_round == "rn":  # exact in f32
            w.op(
                instr,
                dt,
                [(a, st)],
                lambda s, x: f"{f}_{s}(cvt_rn_f32_{'s32' if is_signed(st) else 'u32'}_{s}({x}))",
            )
        elif float_round == "rn":  # one rounding, from f64, which holds 32-bit integers (and f64) exactly
            conv = st if st == "f64" else f"{'s' if is_signed(st) else 'u'}{BITS[st]}"
            if w.uniform(a):
                w.put_scalar(d, dt, f"f64_to_{dt}_s({'' if st == 'f64' else '(double)'}{w.s(a, st)})")
            elif FORMS[st].wide:
                w.put(
                    d,
                    dt,
                    lambda i: (
                        f"f64_to_{dt}_v(cvt_rn_f64_{conv}_v({w.v(a, st, 2 * i)}), cvt_rn_f64_{conv}_v({w.v(a, st, 2 * i + 1)}))"
                    ),
                )
            else:
                w.put(
                    d,
                    dt,
                    lambda i: (
                        f"f64_to_{dt}_v(cvt_rn_f64_{conv}_lo({w.v(a, st, i)}), cvt_rn_f64_{conv}_hi({w.v(a, st, i)}))"
                    ),
                )
        else:
            raise w.refuse()
        return
    if dt == "tf32":
        w.op(instr, "b32", [(a, "f32")], lambda s, x: f"f32_to_tf32_{s}({x})")
        return
    if is_float(dt) and is_float(st):
        if dt == st:  # rounding to an integer, or a plain move with .sat or .ftz
            if integer_round:
                w.op(
                    instr,
                    dt,
                    [(a, st)],
                    lambda s, x: result(s, f"round_{integer_round}_{dt}_{s}({source(s, x)})"),
                )
            else:
                w.op(instr, dt, [(a, st)], lambda s, x: result(s, source(s, x)))
            return
        if dt == "f64":
            if w.uniform(a):
                w.put_scalar(d, dt, result("s", f"(double){source('s', w.s(a, st))}"))
            else:
                w.put(
                    d,
                    dt,
                    lambda i: result("v", f"cvt_f64_f32_{'hi' if i % 2 else 'lo'}({source('v', w.v(a, st, i // 2))})"),
                )
            return
        f = f"cvt_{float_round}_f32_f64"
        if w.uniform(a):
            w.put_scalar(d, dt, result("s", f"{f}_s({w.s(a, st)})"))
        else:
            w.put(d, dt, lambda i: result("v", f"{f}_v({w.v(a, st, 2 * i)}, {w.v(a, st, 2 * i + 1)})"))
        return
    if is_float(dt):  # from an integer
        su = f"{'s' if is_signed(st) else 'u'}{max(BITS[st], 32)}"
        f = f"cvt_{float_round}_{dt}_{su}"
        if w.uniform(a):
            w.put_scalar(d, dt, result("s", f"{f}_s({w.s(a, st)})"))
        elif FORMS[dt].wide == FORMS[st].wide:
            w.put(d, dt, lambda i: result("v", f"{f}_v({w.v(a, st, i)})"))
        elif FORMS[dt].wide:
            w.put(d, dt, lambda i: result("v", f"{f}_{'hi' if i % 2 else 'lo'}({w.v(a, st, i // 2)})"))
        else:
            w.put(d, dt, lambda i: result("v", f"{f}_v({w.v(a, st, 2 * i)}, {w.v(a, st, 2 * i + 1)})"))
        return
    # a float to an integer: PTX saturates, NaN becomes 0, or 0x80… from f64 or to 64 bits
    du = dt if BITS[dt] >= 32 else f"{'s' if is_signed(dt) else 'u'}{BITS[dt]}"
    f = f"cvt_{integer_round or 'rzi'}_{du}_{st}"
    filled = _filled(w, d, dt)
    if w.uniform(a):
        w.put_scalar(d, filled, f"{f}_s({source('s', w.s(a, st))})")
    elif FORMS[dt].wide == FORMS[st].wide:
        w.put(d, filled, lambda i: f"{f}_v({source('v', w.v(a, st, i))})")
    elif FORMS[dt].wide:
        w.put(d, filled, lambda i: f"{f}_{'hi' if i % 2 else 'lo'}({source('v', w.v(a, st, i // 2))})")
    else:
        w.put(d, filled, lambda i: f"{f}_v({w.v(a, st, 2 * i)}, {w.v(a, st, 2 * i + 1)})")


def cvt_pack(w: Writer, instr: Instr) -> None:
    """cvt.rn.f16x2.f32 d, high, low."""
    if instr.mods.types not in (("f16x2", "f32"), ("bf16x2", "f32")):
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


def pack(w: Writer, instr: Instr, t: str, d: Operand, a: Vec) -> None:
    """mov.b64 d, {a, b} and its like: the first item is the low part."""
    bits = BITS[t] // len(a.items)
    part = f"b{bits}"
    if all(w.uniform(item) for item in a.items):
        cast = FORMS[t].scalar
        text = " | ".join(f"({cast}){w.s(item, 'u' + str(bits))} << {k * bits}" for k, item in enumerate(a.items))
        w.put_scalar(d, t, text)
        return
    if bits == 32:
        lo, hi = a.items
        w.put(d, t, lambda i: (
            f"widen_u_{'hi' if i % 2 else 'lo'}({w.v(lo, 'u32', i // 2)}) | widen_u_{'hi' if i % 2 else 'lo'}({w.v(hi, 'u32', i // 2)}) << 32"
        ))  # fmt: skip
        return
    if BITS[t] == 64:
        w.put(d, t, lambda i: " | ".join(
            f"widen_u_{'hi' if i % 2 else 'lo'}({w.v(item, 'u' + str(bits), i // 2)}) << {k * bits}" for k, item in enumerate(a.items)
        ))  # fmt: skip
        return
    w.put(
        d,
        t,
        lambda i: " | ".join(f"{w.v(item, 'u' + str(bits), i)} << {k * bits}" for k, item in enumerate(a.items)),
    )
    _ = part


def unpack(w: Writer, instr: Instr, t: str, d: Vec, a: Operand) -> None:
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
