"""ld and st. What an access costs is decided here, from the shape of its address:

    uniform             one scalar access, broadcast
    evenly spaced by    one plain vector access
    the element size
    evenly spaced       a gather with constant offsets, one bounds check for all lanes
    vector              a gather with a vector bounds check
    float4; vector      runtime/words.c, for words of 32 bits
    of global addresses

Whatever fails its quick check goes to rt_load/rt_store lane by lane, which also report faults.
"""

from __future__ import annotations

from collections.abc import Callable

from grader.emulator.analysis.shapes import Kind
from grader.emulator.ptx import Imm, Instr, Mem, Operand, Reg, Sym, Vec
from grader.emulator.translate.function import Writer, handles
from grader.emulator.translate.types import BITS, FORMS, is_signed

_SPACE_CODES = {"generic": "SPACE_GENERIC", "global": "SPACE_GLOBAL", "const": "SPACE_GLOBAL", "shared": "SPACE_SHARED",
                "local": "SPACE_LOCAL", "param": "SPACE_PARAM"}  # fmt: skip


def address(w: Writer, mem: Mem, t: str) -> tuple[Operand, str]:
    """The base operand, and its C offset suffix."""
    base = mem.base
    return base, (f" + ({t}){w.number(mem.offset)}" if mem.offset else "")


def uniform_address(w: Writer, mem: Mem, t: str) -> str:
    if isinstance(mem.base, Sym):
        return w.s(Sym(mem.base.name, mem.base.offset + mem.offset), t)
    if isinstance(mem.base, Imm):
        return w.s(Imm(mem.base.value + mem.offset), t)
    return f"({w.s(mem.base, t)}{address(w, mem, t)[1]})"


def address_shape(w: Writer, mem: Mem) -> Kind:
    return Kind.UNIFORM if isinstance(mem.base, Sym | Imm) else w.shape(mem.base).kind


def address_stride(w: Writer, mem: Mem) -> int | str:
    if isinstance(mem.base, Sym | Imm):
        return 0
    shape = w.shape(mem.base)
    if shape.is_dynamic:
        return w.stride(mem.base)
    return shape.stride if shape.stride is not None else 0


def base_address(w: Writer, mem: Mem, t: str) -> str:
    if address_shape(w, mem) == 0:
        return uniform_address(w, mem, t)
    return f"({w.base(mem.base, t)}{address(w, mem, t)[1]})"


def lane_addresses(w: Writer, mem: Mem, name: str, space: str) -> None:
    """Writes all lanes' addresses into u64 name[32]."""
    t = "u32" if space in ("shared", "local") else "u64"
    w.line(f"u64 {name}[32] __attribute__((aligned(64)));")
    kind = address_shape(w, mem)
    if kind is not Kind.VECTOR:
        stride = address_stride(w, mem)
        w.line(
            f"{{ const {FORMS[t].scalar} b_ = {base_address(w, mem, t)}; for (u32 l = 0; l < 32; l++) {name}[l] = ({FORMS[t].scalar})(b_ + ({FORMS[t].scalar})l * ({FORMS[t].scalar})({stride})); }}"
        )
        return
    for i in w.pieces("u64"):
        if t == "u64":
            w.line(f"*(VQ *)&{name}[{i * w.lanes // 2}] = {vector_address(w, mem, t, i)};")
        else:
            f = "widen_u_hi" if i % 2 else "widen_u_lo"
            w.line(f"*(VQ *)&{name}[{i * w.lanes // 2}] = {f}({vector_address(w, mem, t, i // 2)});")


def vector_address(w: Writer, mem: Mem, t: str, i: int) -> str:
    text = w.v(mem.base, t, i)
    if mem.offset:
        text = f"({text} + {FORMS[t].broadcast}(({t}){w.number(mem.offset)}))"
    return text


def elements(instr: Instr, operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vec) else (operand,)


class Raw:
    """Loaded bits: for each element either a C scalar or pieces (VU, or VQ for 64-bit elements)."""

    def __init__(self, uniform: bool, names: list[list[str]]) -> None:
        self.uniform, self.names = uniform, names


def deliver(w: Writer, item: Operand, t: str, raw: Raw, element: int) -> None:
    """Moves loaded bits of PTX type `t` into a register."""
    if isinstance(item, Reg) and item.name == "_":
        return
    assert isinstance(item, Reg)
    names = raw.names[element]
    bits = BITS[t]
    if raw.uniform:
        text = names[0]
        if bits < 32 and is_signed(t):
            text = f"(i32)(i{bits}){text}"
            kept = BITS[w.function.registers[item.name]]
            w.put_scalar(
                item,
                "s64" if kept == 64 else "s32" if kept == 32 else "s16",
                f"({'i64' if kept == 64 else 'i32'}){text}",
            )
        elif bits == 64:
            w.put_scalar(item, "u64", text)
        elif is_signed(t) and BITS[w.function.registers[item.name]] == 64:
            w.put_scalar(item, "s64", f"(i64)(i32){text}")
        else:
            kept = BITS[w.function.registers[item.name]]
            w.put_scalar(item, "u64" if kept == 64 else "u32", text)
        return
    if bits == 64:
        w.put(item, "u64", lambda i: names[i])
        return
    if bits < 32 and is_signed(t):
        shift = 32 - bits
        kept = BITS[w.function.registers[item.name]]
        w.put(item, "s16" if kept == 16 else "s32", lambda i: f"((VI){names[i]} << {shift} >> {shift})")
        return
    if is_signed(t):
        w.put(item, "s32", lambda i: f"(VI){names[i]}")
        return
    w.put(item, "u32", lambda i: names[i])


def declare_raw(w: Writer, count: int, bits: int, uniform: bool) -> Raw:
    names = []
    for _ in range(count):
        if uniform:
            name = w.fresh("x")
            w.line(f"{'u64' if bits == 64 else 'u32'} {name};")
            names.append([name])
        else:
            row = [w.fresh("x") for _ in w.pieces("u64" if bits == 64 else "u32")]
            w.line(f"{'VQ' if bits == 64 else 'VU'} {', '.join(row)};")
            names.append(row)
    return Raw(uniform, names)


def check_type(w: Writer, t: str) -> None:
    if t not in BITS or BITS[t] > 64 or t == "pred":
        raise w.refuse()


# enum site_order of runtime/warp.h
STRONG, RELEASES, TOLERANT, OVERWRITES, ORDERED = 1, 2, 4, 8, 16


def order_of(instr: Instr) -> int:
    """What an access promises other threads, as SITE_… flags."""
    order = STRONG if "volatile" in instr.mods else 0
    if any(m in ("relaxed", "acquire", "release", "acq_rel", "mmio") for m in instr.mods):
        order |= STRONG | ORDERED
    if any(m in ("release", "acq_rel") for m in instr.mods):
        order |= RELEASES
    return order


def is_whole(w: Writer, instr: Instr, space: str, total: int, count: int) -> bool:
    """Whether other threads may see a vector access only as a whole (runtime/whole.c)."""
    shared_by_workers = space in ("generic", "global") and not w.layout.watched
    return shared_by_workers and count > 1 and total in (8, 16) and bool(order_of(instr) & STRONG)


def lanes_meet(w: Writer) -> None:
    """Tells a watched program that the warp's lanes wait for each other here."""
    if w.layout.watched:
        w.line("w->step++;")


@handles("ld", "ldu")
def load(w: Writer, instr: Instr) -> None:
    t = instr.type
    check_type(w, t)
    mem = instr.operands[1]
    if not isinstance(mem, Mem) or "shared__cluster" in instr.mods:
        raise w.refuse()
    space = instr.mods.space
    items = elements(instr, instr.operands[0])
    bits = BITS[t]
    size = bits // 8
    if space == "param":
        load_param(w, instr, mem, t, items)
        return
    results = [i for i in items if not (isinstance(i, Reg) and i.name == "_")]
    if not results:
        return
    kind = address_shape(w, mem)
    count = len(items)
    total = size * count
    site = w.site("LOAD", size * count, order_of(instr))
    if space == "local":
        if kind is Kind.UNIFORM:
            raw = declare_raw(w, count, bits, False)
            offset = uniform_address(w, mem, "u32")
            w.line(f"const u32 lo_ = {offset}; const u8 *p = local_row(w, lo_, {total});")
            w.line("if (LIKELY(p != NULL)) {")
            for c in range(count):
                row_load(w, raw, c, "p", f"lo_ + {c * size}u", f"(lo_ & 3u) + {c * size}u", bits)
            w.line("} else {")
            cold_load(w, mem, space, site, raw, count, size)
            w.line("}")
        else:
            raw = declare_raw(w, count, bits, False)
            cold_load(w, mem, space, site, raw, count, size)
        for c, item in enumerate(items):
            deliver(w, item, t, raw, c)
        return
    # At one generic address each lane may find local memory of its own.
    uniform_result = kind is Kind.UNIFORM and space != "generic"
    raw = declare_raw(w, count, bits, uniform_result)
    # Divided warps are rare: keep their code small.
    whole = is_whole(w, instr, space, total, count)
    quick = not (w.slow or w.layout.watched or whole)
    words = (
        quick and bits == 32 and (kind is not Kind.UNIFORM if count == 4 else kind is Kind.VECTOR and space != "shared")
    )
    if words or not quick:
        cold_load(w, mem, space, site, raw, count, size, whole=whole, words=words)
        for c, item in enumerate(items):
            deliver(w, item, t, raw, c)
        return
    pointer(w, mem, space, site, total, kind)
    w.line("if (LIKELY(p != NULL)) {")
    for c in range(count):
        names = raw.names[c]
        if kind is Kind.UNIFORM:
            value = scalar_read("p", c * size, bits)
            broadcast = "" if uniform_result else "BQ" if bits == 64 else "BU"
            for name in names:
                w.line(f"{name} = {broadcast}({value});")
        else:
            fetch(w, names, kind, mem, space, c, size, total, bits)
    w.line("} else {")
    cold_load(w, mem, space, site, raw, count, size)
    w.line("}")
    for c, item in enumerate(items):
        deliver(w, item, t, raw, c)


def scalar_read(p: str, offset: int | str, bits: int) -> str:
    kind = {8: "u8", 16: "u16a", 32: "u32a", 64: "u64a"}[bits]
    return f"*(const {kind} *)({p} + {offset})"


def pointer(w: Writer, mem: Mem, space: str, site: str, total: int, kind: Kind) -> None:
    """Declares `u8 *p`: where lane 0's access goes (U and A shapes), or the origin that vector offsets count from; NULL
    when the quick check fails. Vector shapes also declare their offsets, o0… (VU in shared memory, VQ elsewhere)."""
    shift = total.bit_length() - 1
    if kind is not Kind.VECTOR:
        stride = address_stride(w, mem)
        if space == "shared":
            w.line(f"u8 *const p = sh_span(sh, shn, {base_address(w, mem, 'u32')}, {stride}, {total});")
        else:
            w.line(f"u8 *const p = g_span(w, {site}, {base_address(w, mem, 'u64')}, {stride}, {total});")
        return
    if space == "shared":
        for i in w.pieces("u32"):
            w.line(f"const VU o{i} = {vector_address(w, mem, 'u32', i)};")
        w.line(f"const VU lim = BU((shn - {total}u) >> {shift});")
        tests = " | ".join(f"CMPU(6, RORU(o{i}, {shift}), lim) << {i * w.lanes}" for i in w.pieces("u32"))
        w.line(f"u8 *const p = LIKELY(shn >= {total}u && !(({tests}) & {w.mask})) ? sh : NULL;")
        return
    w.line(f"VQ {', '.join(f'o{i}' for i in w.pieces('u64'))};")
    for i in w.pieces("u64"):
        w.line(f"o{i} = {vector_address(w, mem, 'u64', i)};")
    tests = " | ".join(f"CMPQ(6, RORQ(o{i} - BQ(lo_), {shift}), BQ(n_)) << {i * w.lanes // 2}" for i in w.pieces("u64"))
    w.line(
        f"u8 *p = NULL; for (int again = 0; again < 2; again++) {{ const struct site *c_ = &w->sites[{site}]; const u64 lo_ = c_->lo, n_ = (c_->hi - lo_ - {total}) >> {shift};"
    )
    w.line(
        f"if (LIKELY(c_->hi - lo_ >= {total} && !(({tests}) & {w.mask}))) {{ p = (u8 *)(lo_ + (u64)c_->delta); break; }}"
    )
    picks = " : ".join(
        [f"lane_ < {(i + 1) * w.lanes // 2} ? o{i}[lane_ & {w.lanes // 2 - 1}]" for i in list(w.pieces("u64"))[:-1]]
        + [f"o{w.pieces('u64')[-1]}[lane_ & {w.lanes // 2 - 1}]"]
    )
    w.line(f"const u32 lane_ = lowest_lane({w.mask}); if (again || !rt_refill(w, {site}, {picks}, {total})) break; }}")
    w.line(f"const u64 origin = p ? w->sites[{site}].lo : 0; (void)origin;")


def fetch(
    w: Writer, names: list[str], kind: Kind, mem: Mem, space: str, c: int, size: int, total: int, bits: int
) -> None:
    """Loads element `c` of every lane from `p`."""
    if kind is Kind.AFFINE:
        stride = address_stride(w, mem)
        if stride == size and total == size and bits >= 32:
            vector = "VQu" if bits == 64 else "VUu"
            for i, name in enumerate(names):
                w.line(f"{name} = *(const {vector} *)(p + {i * 4 * w.lanes});")
            return
        for i, name in enumerate(names):
            if bits == 32:
                w.line(f"{name} = gather32(p + {c * size}, IOTA({i}) * BU((u32)({stride})), (1u << W) - 1);")
            elif bits == 64:
                w.line(f"{name} = gather64q(p + {c * size}, IOTAQ({i}) * BQ((u64)(i64)({stride})), (1u << W / 2) - 1);")
            else:
                w.line(
                    f"{name} = gather{bits}q(p + {c * size}, IOTAQ({2 * i}) * BQ((u64)(i64)({stride})), IOTAQ({2 * i + 1}) * BQ((u64)(i64)({stride})), ~0u, ~0u);"
                )
        return
    if space == "shared":
        for i, name in enumerate(names):
            if bits == 32:
                w.line(f"{name} = gather32(p + {c * size}, o{i}, MK({w.mask}, {i}));")
            elif bits == 64:
                f = "widen_u_hi" if i % 2 else "widen_u_lo"
                w.line(f"{name} = gather64q(p + {c * size}, {f}(o{i // 2}), MKQ({w.mask}, {i}));")
            else:
                w.line(
                    f"{name} = gather{bits}q(p + {c * size}, widen_u_lo(o{i}), widen_u_hi(o{i}), MKQ({w.mask}, {2 * i}), MKQ({w.mask}, {2 * i + 1}));"
                )
        return
    if c == 0:
        for i in w.pieces("u64"):
            w.line(f"o{i} -= BQ(origin);")
    for i, name in enumerate(names):
        if bits == 64:
            w.line(f"{name} = gather64q(p + {c * size}, o{i}, MKQ({w.mask}, {i}));")
        else:
            w.line(
                f"{name} = gather{bits}q(p + {c * size}, o{2 * i}, o{2 * i + 1}, MKQ({w.mask}, {2 * i}), MKQ({w.mask}, {2 * i + 1}));"
            )


def address_arguments(w: Writer, mem: Mem, space: str, *, whole: bool = False, row: bool = False) -> tuple[str, str]:
    """Which rt_load/rt_store takes this address, and its arguments; writes a row of addresses where one is needed."""
    if whole:
        lane_addresses(w, mem, "aa", space)
        return "whole", "aa"
    t = "u32" if space in ("shared", "local") else "u64"
    if address_shape(w, mem) < 2 and not row:
        return "a", f"{base_address(w, mem, t)}, {address_stride(w, mem)}"
    w.line(f"{t} aa[32] __attribute__((aligned(64)));")
    step = w.lanes if t == "u32" else w.lanes // 2
    for i in w.pieces(t):
        w.line(f"*({FORMS[t].vector} *)&aa[{i * step}] = {vector_address(w, mem, t, i)};")
    return ("w" if t == "u32" else "q"), "aa"


def cold_load(
    w: Writer,
    mem: Mem,
    space: str,
    site: str,
    raw: Raw,
    count: int,
    size: int,
    *,
    whole: bool = False,
    words: bool = False,
) -> None:
    """Has the runtime load; `whole`: as whole.c does, `words`: words.c, from a row of addresses."""
    form, arguments = address_arguments(w, mem, space, whole=whole, row=words)
    kind = "u64" if size == 8 else "u32"
    w.line(f"{kind} oo[{32 * count}] __attribute__((aligned(64)));")
    place = f"w, {site}, {_SPACE_CODES[space]}, {arguments}, {w.mask}"
    call = "rt_load_quads" if form == "w" else f"rt_load_words{count}"
    w.line(f"{call}({place}, oo);" if words else f"rt_load_{form}({place}, {size}, {count}, oo);")
    for c, names in enumerate(raw.names):
        if raw.uniform:
            w.line(f"{names[0]} = oo[{32 * c} + lowest_lane({w.mask})];")
            continue
        for i, name in enumerate(names):
            step = w.lanes // 2 if size == 8 else w.lanes
            w.line(f"{name} = *(const {FORMS[kind].vector} *)&oo[{32 * c + i * step}];")


def row_load(w: Writer, raw: Raw, c: int, p: str, offset: str, relative: str, bits: int) -> None:
    """An element of a row (local memory or .param variables). `p` is the row of the access's first word; `relative` is
    the byte offset from it."""
    for i, name in enumerate(raw.names[c]):
        if bits == 64:
            half = "hi" if i % 2 else "lo"
            at = i // 2 * 4 * w.lanes
            row = f"{p} + (({relative}) >> 2) * 128u + {at}"
            w.line(
                f"{name} = widen_u_{half}(*(const VUu *)({row})) | widen_u_{half}(*(const VUu *)({row} + 128)) << 32;"
            )
            continue
        row = f"*(const VUu *)({p} + (({relative}) >> 2) * 128u + {i * 4 * w.lanes})"
        if bits == 32:
            w.line(f"{name} = {row};")
        else:
            w.line(f"{name} = {row} >> (8u * (({relative}) & 3u)) & {(1 << bits) - 1}u;")
    _ = offset


def reader(w: Writer, item: Operand, t: str) -> Callable[[int], str]:
    return lambda i: w.v(item, t, i)


def row_store(w: Writer, p: str, relative: str, bits: int, value: Callable[[int], str]) -> None:
    for i in w.pieces("u32"):
        row = f"({p} + (({relative}) >> 2) * 128u + {i * 4 * w.lanes})"
        if bits == 64:
            low = f"narrow_q({value(2 * i)}, {value(2 * i + 1)})"
            high = f"narrow_q({value(2 * i)} >> 32, {value(2 * i + 1)} >> 32)"
            w.line(f"store32({row}, {low}, MK({w.mask}, {i})); store32({row} + 128, {high}, MK({w.mask}, {i}));")
        elif bits == 32:
            w.line(f"store32({row}, {value(i)}, MK({w.mask}, {i}));")
        else:
            mask = (1 << bits) - 1
            w.line(
                f"{{ const u32 sh_ = 8u * (({relative}) & 3u); store32({row}, (*(const VUu *){row} & ~({mask}u << sh_)) | ({value(i)} & {mask}u) << sh_, MK({w.mask}, {i})); }}"
            )


def load_param(w: Writer, instr: Instr, mem: Mem, t: str, items: tuple[Operand, ...]) -> None:
    bits, size = BITS[t], BITS[t] // 8
    base = mem.base
    layout = w.layout
    if isinstance(base, Sym):
        offset = base.offset + mem.offset
        if w.function.entry and base.name in layout.params:
            offset += layout.params[base.name]
            for c, item in enumerate(items):
                raw = declare_raw(w, 1, bits, True)
                w.line(f"{raw.names[0][0]} = {scalar_read('w->params', w.number(offset + c * size), bits)};")
                deliver(w, item, t, raw, 0)
            return
        rows = param_rows(w, base.name)
        for c, item in enumerate(items):
            raw = declare_raw(w, 1, bits, False)
            row_load(w, raw, 0, f"((const u8 *){rows})", "", f"{offset + c * size}u", bits)
            deliver(w, item, t, raw, 0)
        return
    if not w.function.entry:
        raise w.refuse(
            "a by-value parameter indexed at run time in a function that was not inlined",
            "copy it to a local array first",
        )
    kind = address_shape(w, mem)
    site = w.site("LOAD", size * len(items))
    raw = declare_raw(w, len(items), bits, kind is Kind.UNIFORM)
    cold_load(w, mem, "param", site, raw, len(items), size)
    for c, item in enumerate(items):
        deliver(w, item, t, raw, c)


def param_rows(w: Writer, name: str) -> str:
    """C expression of the rows of a .param variable of a function: one of its own formals, or of a call."""
    if not w.function.entry and name in w.layout.params:
        w.pin()
        return f"prm[{w.layout.params[name]}]"
    w.pin()
    return "P_" + "".join(c if c.isalnum() else "_" for c in name)


@handles("st")
def store(w: Writer, instr: Instr) -> None:
    t = instr.type
    check_type(w, t)
    if len(instr.operands) != 2 or "shared__cluster" in instr.mods:  # st.async has three
        raise w.refuse()
    mem, value = instr.operands
    if not isinstance(mem, Mem):
        raise w.refuse()
    space = instr.mods.space
    items = elements(instr, value)
    bits = BITS[t]
    size = bits // 8
    count = len(items)
    total = size * count
    kind = address_shape(w, mem)
    u = "u64" if bits == 64 else "u32"
    as_read = "u64" if bits == 64 else f"u{bits}" if bits < 32 else "u32"
    if space == "param":
        assert isinstance(mem.base, Sym)
        rows = param_rows(w, mem.base.name)
        for c, item in enumerate(items):
            row_store(
                w,
                f"((u8 *){rows})",
                f"{mem.base.offset + mem.offset + c * size}u",
                bits,
                reader(w, item, as_read),
            )
        return
    site = w.site("STORE", total, order_of(instr))
    if space == "local":
        if kind is Kind.UNIFORM:
            w.line(f"const u32 lo_ = {uniform_address(w, mem, 'u32')}; u8 *p = local_row(w, lo_, {total});")
            w.line("if (LIKELY(p != NULL)) {")
            for c, item in enumerate(items):
                row_store(w, "p", f"(lo_ & 3u) + {c * size}u", bits, reader(w, item, as_read))
            w.line("} else {")
            cold_store(w, mem, space, site, items, as_read, size)
            w.line("}")
        else:
            cold_store(w, mem, space, site, items, as_read, size)
        return
    whole = is_whole(w, instr, space, total, count)
    if w.slow or w.layout.watched or whole:
        cold_store(w, mem, space, site, items, as_read, size, whole=whole)
        return
    pointer(w, mem, space, site, total, kind)
    w.line("if (LIKELY(p != NULL)) {")
    if kind is Kind.VECTOR and space != "shared":
        for i in w.pieces("u64"):
            w.line(f"o{i} -= BQ(origin);")
    for c, item in enumerate(items):
        place(w, item, as_read, u, kind, mem, space, c, size, total, bits)
    w.line("} else {")
    cold_store(w, mem, space, site, items, as_read, size)
    w.line("}")


def place(
    w: Writer,
    item: Operand,
    read: str,
    u: str,
    kind: Kind,
    mem: Mem,
    space: str,
    c: int,
    size: int,
    total: int,
    bits: int,
) -> None:
    """Stores element `c` of every lane at `p`."""
    if kind is Kind.UNIFORM:
        target = {8: "u8", 16: "u16a", 32: "u32a", 64: "u64a"}[bits]
        if w.uniform(item):
            w.line(f"*({target} *)(p + {c * size}) = ({target}){w.s(item, read)};")
            return
        # All lanes write one place: the highest lane's value stays.
        w.line(f"{{ {u} all[32] __attribute__((aligned(64)));")
        for i in w.pieces(u):
            w.line(
                f"*({FORMS[u].vector} *)&all[{i * (w.lanes // 2 if bits == 64 else w.lanes)}] = {w.v(item, read, i)};"
            )
        w.line(f"*({target} *)(p + {c * size}) = ({target})all[highest_lane({w.mask})]; }}")
        return
    if kind is Kind.AFFINE:
        stride = address_stride(w, mem)
        if stride == size and total == size and bits >= 32:
            step = 4 * w.lanes
            vector = "VQu" if bits == 64 else "VUu"
            w.line(f"if (LIKELY({w.mask} == ~0u)) {{")
            for i in w.pieces(u):
                w.line(f"*({vector} *)(p + {i * step}) = {w.v(item, read, i)};")
            w.line("} else {")
            for i in w.pieces(u):
                mask = "MKQ" if bits == 64 else "MK"
                w.line(f"store{bits}(p + {i * step}, {w.v(item, read, i)}, {mask}({w.mask}, {i}));")
            w.line("}")
            return
        for i in w.pieces(u):
            if bits == 32:
                w.line(
                    f"scatter32(p + {c * size}, IOTA({i}) * BU((u32)({stride})), {w.v(item, read, i)}, MK({w.mask}, {i}));"
                )
            elif bits == 64:
                w.line(
                    f"scatter64q(p + {c * size}, IOTAQ({i}) * BQ((u64)(i64)({stride})), {w.v(item, read, i)}, MKQ({w.mask}, {i}));"
                )
            else:
                w.line(
                    f"scatter{bits}q(p + {c * size}, IOTAQ({2 * i}) * BQ((u64)(i64)({stride})), IOTAQ({2 * i + 1}) * BQ((u64)(i64)({stride})), {w.v(item, read, i)}, MKQ({w.mask}, {2 * i}), MKQ({w.mask}, {2 * i + 1}));"
                )
        return
    for i in w.pieces(u):
        v = w.v(item, read, i)
        if space == "shared":
            if bits == 32:
                w.line(f"scatter32(p + {c * size}, o{i}, {v}, MK({w.mask}, {i}));")
            elif bits == 64:
                f = "widen_u_hi" if i % 2 else "widen_u_lo"
                w.line(f"scatter64q(p + {c * size}, {f}(o{i // 2}), {v}, MKQ({w.mask}, {i}));")
            else:
                w.line(
                    f"scatter{bits}q(p + {c * size}, widen_u_lo(o{i}), widen_u_hi(o{i}), {v}, MKQ({w.mask}, {2 * i}), MKQ({w.mask}, {2 * i + 1}));"
                )
        elif bits == 64:
            w.line(f"scatter64q(p + {c * size}, o{i}, {v}, MKQ({w.mask}, {i}));")
        else:
            w.line(
                f"scatter{bits}q(p + {c * size}, o{2 * i}, o{2 * i + 1}, {v}, MKQ({w.mask}, {2 * i}), MKQ({w.mask}, {2 * i + 1}));"
            )


def value_lanes(w: Writer, item: Operand, read: str, name: str, at: int = 0) -> None:
    """Writes all lanes of a value into u64 name[at..at+31]."""
    for i in w.pieces("u64"):
        place_at = at + i * w.lanes // 2
        if FORMS[read].wide:
            w.line(f"*(VQ *)&{name}[{place_at}] = (VQ){w.v(item, read, i)};")
        else:
            f = "widen_u_hi" if i % 2 else "widen_u_lo"
            w.line(f"*(VQ *)&{name}[{place_at}] = {f}((VU){w.v(item, read, i // 2)});")


def cold_store(
    w: Writer, mem: Mem, space: str, site: str, items: tuple[Operand, ...], read: str, size: int, *, whole: bool = False
) -> None:
    form, arguments = address_arguments(w, mem, space, whole=whole)
    kind = "u64" if size == 8 else "u32"
    w.line(f"{kind} vv[{32 * len(items)}] __attribute__((aligned(64)));")
    for c, item in enumerate(items):
        step = w.lanes // 2 if size == 8 else w.lanes
        for i in w.pieces(kind):
            w.line(f"*({FORMS[kind].vector} *)&vv[{32 * c + i * step}] = ({FORMS[kind].vector}){w.v(item, read, i)};")
    w.line(f"rt_store_{form}(w, {site}, {_SPACE_CODES[space]}, {arguments}, {w.mask}, {size}, {len(items)}, vv);")


@handles("prefetch", "prefetchu", "discard", "applypriority")
def prefetch(w: Writer, instr: Instr) -> None:
    """A hint; nothing to do."""


@handles("alloca")
def allocate_on_stack(w: Writer, instr: Instr) -> None:
    d, size, *align = instr.operands
    bits = instr.type
    w.line("u64 sizes[32] __attribute__((aligned(64)));")
    value_lanes(w, size, bits, "sizes")
    power = align[0].value if align and isinstance(align[0], Imm) else 8
    w.line(f"const u64 place = rt_alloca(w, {w.site('OTHER')}, {w.mask}, sizes, {max(power, 16)}u);")
    broadcast = f"{FORMS[bits].broadcast}(({FORMS[bits].scalar})place)"
    w.put(d, bits, lambda i: broadcast)


@handles("stacksave")
def save_stack(w: Writer, instr: Instr) -> None:
    form = FORMS[instr.type]
    w.put(instr.operands[0], instr.type, lambda i: f"{form.broadcast}(({form.scalar})w->local_top)")


@handles("stackrestore")
def restore_stack(w: Writer, instr: Instr) -> None:
    w.line("u64 tops[32] __attribute__((aligned(64)));")
    value_lanes(w, instr.operands[0], instr.type, "tops")
    w.line(f"rt_stack_restore(w, {w.mask}, tops[lowest_lane({w.mask})]);")
