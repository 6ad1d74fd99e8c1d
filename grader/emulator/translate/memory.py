"""ld and st. The shape of an address decides how its access is translated, and so what it costs:

    uniform             one scalar access, broadcast
    evenly spaced by    one plain vector access
    the element size
    evenly spaced       a gather with constant offsets, one bounds check for all lanes
    vector              a gather with a vector bounds check
    float4; vector      runtime/words.c, for words of 32 bits
    of global addresses

An access that fails its quick check goes to rt_load or rt_store, which run lane by lane and report faults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from grader.emulator.analysis.shapes import Kind
from grader.emulator.ptx import Imm, Instr, Mem, Operand, Reg, Sym, Vec
from grader.emulator.translate.frame import FORMALS
from grader.emulator.translate.function import Writer, handles
from grader.emulator.translate.types import BITS, FORMS, half_of, is_signed

SPACE_CODES = {"generic": "SPACE_GENERIC", "global": "SPACE_GLOBAL", "const": "SPACE_GLOBAL", "shared": "SPACE_SHARED",
                "local": "SPACE_LOCAL", "param": "SPACE_PARAM"}  # fmt: skip
_UNALIGNED = {8: "u8", 16: "u16a", 32: "u32a", 64: "u64a"}


@dataclass(frozen=True)
class Access:
    """Where the lanes of an instruction read or write: `count` neighbouring elements of `bits` each. The properties say
    what is known about the addresses."""

    w: Writer
    mem: Mem
    space: str
    bits: int
    count: int
    site: str

    @property
    def size(self) -> int:
        return self.bits // 8

    @property
    def total(self) -> int:
        return self.size * self.count

    @property
    def kind(self) -> Kind:
        return address_kind(self.w, self.mem)

    @property
    def stride(self) -> int | str:
        return address_stride(self.w, self.mem)

    @property
    def word(self) -> str:
        """The type that C code uses for an element."""
        return "u64" if self.bits == 64 else "u32"

    @property
    def is_row(self) -> bool:
        """Whether the lanes' elements lie side by side, as in a C vector."""
        return self.kind is Kind.AFFINE and self.stride == self.size == self.total and self.bits >= 32


def address_type(space: str) -> str:
    return "u32" if space in ("shared", "local") else "u64"


def offset_text(w: Writer, mem: Mem, t: str) -> str:
    return f" + ({t}){w.number(mem.offset)}" if mem.offset else ""


def address_kind(w: Writer, mem: Mem) -> Kind:
    return Kind.UNIFORM if isinstance(mem.base, Sym | Imm) else w.shape(mem.base).kind


def address_stride(w: Writer, mem: Mem) -> int | str:
    if isinstance(mem.base, Sym | Imm):
        return 0
    stride = w.shape(mem.base).stride
    return w.stride(mem.base) if stride is None else stride


def base_address(w: Writer, mem: Mem, t: str) -> str:
    """Lane 0's address, if the lanes' addresses are evenly spaced or all equal."""
    if isinstance(mem.base, Sym):
        return w.s(Sym(mem.base.name, mem.base.offset + mem.offset), t)
    if isinstance(mem.base, Imm):
        return w.s(Imm(mem.base.value + mem.offset), t)
    return f"({w.base(mem.base, t)}{offset_text(w, mem, t)})"


def vector_address(w: Writer, mem: Mem, t: str, i: int) -> str:
    text = w.v(mem.base, t, i)
    return f"({text} + {FORMS[t].broadcast}(({t}){w.number(mem.offset)}))" if mem.offset else text


def lane_addresses(w: Writer, mem: Mem, name: str, space: str) -> None:
    """Write code that stores all lanes' addresses in u64 name[32]."""
    t = address_type(space)
    w.line(f"u64 {name}[32] __attribute__((aligned(64)));")
    if address_kind(w, mem) is not Kind.VECTOR:
        stride = address_stride(w, mem)
        w.line(f"spread_{t}({name}, {base_address(w, mem, t)}, ({t})({stride}));")
        return
    for i in w.pieces("u64"):
        if t == "u64":
            text = vector_address(w, mem, t, i)
        else:
            text = f"widen_u_{half_of(i)}({vector_address(w, mem, t, i // 2)})"
        w.line(f"*(VQ *)&{name}[{i * w.lanes // 2}] = {text};")


def elements(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vec) else (operand,)


@dataclass(frozen=True)
class Raw:
    """C variables for loaded bits: a scalar per element, or vector pieces (VU, or VQ for 64-bit elements)."""

    uniform: bool
    names: list[list[str]]

    @staticmethod
    def declare(w: Writer, count: int, bits: int, *, uniform: bool) -> Raw:
        t = "u64" if bits == 64 else "u32"
        names = []
        for _ in range(count):
            names.append([w.fresh("x") for _ in (range(1) if uniform else w.pieces(t))])
            w.line(f"{t if uniform else FORMS[t].vector} {', '.join(names[-1])};")
        return Raw(uniform, names)

    def deliver(self, w: Writer, items: Sequence[Operand], t: str) -> None:
        """Write code that moves the bits, of PTX type `t`, to registers."""
        for names, item in zip(self.names, items, strict=True):
            assert isinstance(item, Reg)
            if item.name != "_":
                self._deliver(w, item, t, names)

    def _deliver(self, w: Writer, item: Reg, t: str, names: list[str]) -> None:
        bits, kept = BITS[t], BITS[w.function.registers[item.name]]
        sign = "s" if is_signed(t) and bits < 64 else "u"
        if self.uniform:
            if sign == "s" and bits < 32:
                wide = 64 if kept == 64 else 32
                w.put_scalar(
                    item, f"s{64 if kept == 64 else 32 if kept == 32 else 16}", f"(i{wide})(i32)(i{bits}){names[0]}"
                )
            elif sign == "s" and kept == 64:
                w.put_scalar(item, "s64", f"(i64)(i32){names[0]}")
            else:
                w.put_scalar(item, "u64" if 64 in (bits, kept) else "u32", names[0])
        elif bits == 64:
            w.put(item, "u64", lambda i: names[i])
        elif sign == "u":
            w.put(item, "u32", lambda i: names[i])
        elif bits == 32:
            w.put(item, "s32", lambda i: f"(VI){names[i]}")
        else:
            shift = 32 - bits
            w.put(item, "s16" if kept == 16 else "s32", lambda i: f"((VI){names[i]} << {shift} >> {shift})")


def check_type(w: Writer, t: str) -> None:
    if t not in FORMS or BITS[t] > 64:
        raise w.refuse()


# enum site_order of runtime/warp.h
STRONG, RELEASES, TOLERANT, OVERWRITES, ORDERED, ASYNC, OBJECT = 1, 2, 4, 8, 16, 32, 64


def order_of(instr: Instr) -> int:
    """The memory order of an access, as SITE_… flags."""
    order = STRONG if "volatile" in instr.mods else 0
    if any(m in ("relaxed", "acquire", "release", "acq_rel", "mmio") for m in instr.mods):
        order |= STRONG | ORDERED
    if any(m in ("release", "acq_rel") for m in instr.mods):
        order |= RELEASES
    return order


def is_whole(instr: Instr, access: Access) -> bool:
    """Whether other threads must see a vector access as one (runtime/whole.c)."""
    shared_by_workers = access.space in ("generic", "global") and not access.w.layout.watched
    return shared_by_workers and access.count > 1 and access.total in (8, 16) and bool(order_of(instr) & STRONG)


def lanes_meet(w: Writer) -> None:
    """In a watched program, count a step: the warp's lanes wait for each other here."""
    if w.layout.watched:
        w.line("w->step++;")


@handles("ld", "ldu")
def load(w: Writer, instr: Instr) -> None:
    t, mem = instr.type, instr.operands[1]
    check_type(w, t)
    if not isinstance(mem, Mem):
        raise w.refuse()
    space, items, bits = instr.mods.space, elements(instr.operands[0]), BITS[t]
    if space == "param":
        load_param(w, mem, t, items)
        return
    if all(isinstance(i, Reg) and i.name == "_" for i in items):
        return
    count = len(items)
    access = Access(w, mem, space, bits, count, w.site("LOAD", bits // 8 * count, order_of(instr)))
    kind = access.kind
    # One address stands for different memory in each lane in the local space, and possibly in the generic one.
    raw = Raw.declare(w, count, bits, uniform=kind is Kind.UNIFORM and space not in ("local", "generic"))
    whole = is_whole(instr, access)
    quick = not (w.slow or w.layout.watched or whole)  # divided warps are rare: keep their code small
    many = kind is not Kind.UNIFORM if count == 4 else kind is Kind.VECTOR and space != "shared"
    words = quick and bits == 32 and many and space != "local"
    if words or not (quick or space == "local") or (space == "local" and kind is not Kind.UNIFORM):
        cold_load(access, raw, whole=whole, words=words)
    else:
        local_row(access) if space == "local" else pointer(access)
        w.line("if (LIKELY(p != NULL)) {")
        for c, names in enumerate(raw.names):
            if space == "local":
                row_load(access, names, "p", f"(lo_ & 3u) + {c * access.size}u")
            elif kind is Kind.UNIFORM:
                broadcast = "" if raw.uniform else FORMS[access.word].broadcast
                for name in names:
                    w.line(f"{name} = {broadcast}({scalar_read('p', c * access.size, bits)});")
            elif access.is_row:
                for i, name in enumerate(names):
                    w.line(f"{name} = *(const {FORMS[access.word].vector}u *)(p + {i * 4 * w.lanes});")
            else:
                if c == 0:
                    from_origin(access)
                for i, name in enumerate(names):
                    function, offsets, masks = lanes_of_piece(access, i, everywhere=kind is Kind.AFFINE)
                    w.line(f"{name} = gather{function}(p + {c * access.size}, {offsets}, {masks});")
        w.line("} else {")
        cold_load(access, raw)
        w.line("}")
    raw.deliver(w, items, t)


def scalar_read(p: str, offset: int | str, bits: int) -> str:
    return f"*(const {_UNALIGNED[bits]} *)({p} + {offset})"


def local_row(access: Access) -> None:
    """Declare `u8 *p`, the row of local memory where an access begins whose offset is the same in all lanes."""
    offset = base_address(access.w, access.mem, "u32")
    access.w.line(f"const u32 lo_ = {offset}; u8 *const p = local_row(w, lo_, {access.total});")


def pointer(access: Access) -> None:
    """Declare `u8 *p`: the host address of lane 0's access, or for VECTOR addresses the origin of their offsets. It is
    NULL if the quick check fails. VECTOR addresses also declare their offsets, o0… (VU in shared memory, VQ elsewhere).
    """
    w, mem, space, site, total = access.w, access.mem, access.space, access.site, access.total
    if access.kind is not Kind.VECTOR:
        if space == "shared":
            w.line(f"u8 *const p = sh_span(sh, shn, {base_address(w, mem, 'u32')}, {access.stride}, {total});")
        else:
            w.line(f"u8 *const p = g_span(w, {site}, {base_address(w, mem, 'u64')}, {access.stride}, {total});")
        return
    t = address_type(space)
    offsets = [f"o{i}" for i in w.pieces(t)]
    for i, name in enumerate(offsets):
        w.line(f"{FORMS[t].vector} {name} = {vector_address(w, mem, t, i)};")
    lanes = f"{w.mask}, {total.bit_length() - 1}, {', '.join(offsets)}"
    if space == "shared":
        w.line(f"u8 *const p = sh_lanes(sh, shn, {lanes});")
        return
    w.line(f"u8 *const p = g_lanes(w, {site}, {lanes});")
    w.line(f"const u64 origin = p ? w->sites[{site}].lo : 0; (void)origin;")


def from_origin(access: Access) -> None:
    """Make the offsets o0… of VECTOR addresses relative to `p`."""
    if access.kind is Kind.VECTOR and access.space != "shared":
        for i in access.w.pieces("u64"):
            access.w.line(f"o{i} -= BQ(origin);")


def lanes_of_piece(access: Access, i: int, *, everywhere: bool = False) -> tuple[str, str, str]:
    """For piece `i` of an element's row: the suffix of its gather or scatter, its offsets from `p`, and its lane masks.
    Words can use offsets of 32 bits; otherwise offsets have 64 bits, in two pieces for elements below 64 bits."""
    w, bits = access.w, access.bits
    narrow = bits == 32 and (access.kind is Kind.AFFINE or access.space == "shared")
    pieces = [i] if narrow or bits == 64 else [2 * i, 2 * i + 1]
    if access.kind is Kind.AFFINE:
        step = f"BU((u32)({access.stride}))" if narrow else f"BQ((u64)(i64)({access.stride}))"
        offsets = [f"IOTA{'' if narrow else 'Q'}({k}) * {step}" for k in pieces]
    elif access.space == "shared" and not narrow:
        offsets = [f"widen_u_{half_of(k)}(o{k // 2})" for k in pieces]
    else:
        offsets = [f"o{k}" for k in pieces]
    if everywhere:
        masks = ["(1u << W) - 1" if narrow else "(1u << W / 2) - 1"] if len(pieces) == 1 else ["~0u", "~0u"]
    else:
        masks = [f"MK{'' if narrow else 'Q'}({w.mask}, {k})" for k in pieces]
    return f"{bits}{'' if narrow else 'q'}", ", ".join(offsets), ", ".join(masks)


def address_arguments(w: Writer, mem: Mem, space: str, *, whole: bool = False, row: bool = False) -> tuple[str, str]:
    """The suffix of the rt_load or rt_store for this address, and its arguments. Writes a row of addresses if it needs
    one."""
    if whole:
        lane_addresses(w, mem, "aa", space)
        return "whole", "aa"
    t = address_type(space)
    if address_kind(w, mem) is not Kind.VECTOR and not row:
        return "a", f"{base_address(w, mem, t)}, {address_stride(w, mem)}"
    w.line(f"{t} aa[32] __attribute__((aligned(64)));")
    step = w.lanes if t == "u32" else w.lanes // 2
    for i in w.pieces(t):
        w.line(f"*({FORMS[t].vector} *)&aa[{i * step}] = {vector_address(w, mem, t, i)};")
    return ("w" if t == "u32" else "q"), "aa"


def cold_load(access: Access, raw: Raw, *, whole: bool = False, words: bool = False) -> None:
    """Write a load by the runtime; with `whole` by whole.c, with `words` by words.c, from a row of addresses."""
    w, t, size, count = access.w, access.word, access.size, access.count
    form, arguments = address_arguments(w, access.mem, access.space, whole=whole, row=words)
    w.line(f"{t} oo[{32 * count}] __attribute__((aligned(64)));")
    place = f"w, {access.site}, {SPACE_CODES[access.space]}, {arguments}, {w.mask}"
    call = "rt_load_quads" if form == "w" else f"rt_load_words{count}"
    w.line(f"{call}({place}, oo);" if words else f"rt_load_{form}({place}, {size}, {count}, oo);")
    for c, names in enumerate(raw.names):
        if raw.uniform:
            w.line(f"{names[0]} = oo[{32 * c} + lowest_lane({w.mask})];")
            continue
        for i, name in enumerate(names):
            step = w.lanes // 2 if size == 8 else w.lanes
            w.line(f"{name} = *(const {FORMS[t].vector} *)&oo[{32 * c + i * step}];")


def row_load(access: Access, names: Sequence[str], p: str, relative: str) -> None:
    """Write the load of an element from rows (local memory or .param variables). `p` is the row of the access's first
    word; `relative` is the byte offset from it."""
    w, bits = access.w, access.bits
    for i, name in enumerate(names):
        at = f"({relative}) >> 2) * 128u + "
        if bits == 64:
            row = f"{p} + ({at}{i // 2 * 4 * w.lanes}"
            low, high = (f"widen_u_{half_of(i)}(*(const VUu *)({text}))" for text in (row, f"{row} + 128"))
            w.line(f"{name} = {low} | {high} << 32;")
        else:
            part = "" if bits == 32 else f" >> (8u * (({relative}) & 3u)) & {(1 << bits) - 1}u"
            w.line(f"{name} = *(const VUu *)({p} + ({at}{i * 4 * w.lanes}){part};")


def row_store(access: Access, p: str, relative: str, value: Callable[[int], str]) -> None:
    w, bits = access.w, access.bits
    for i in w.pieces("u32"):
        row = f"({p} + (({relative}) >> 2) * 128u + {i * 4 * w.lanes})"
        if bits == 64:
            low = f"narrow_q({value(2 * i)}, {value(2 * i + 1)})"
            high = f"narrow_q({value(2 * i)} >> 32, {value(2 * i + 1)} >> 32)"
            w.line(f"store32({row}, {low}, MK({w.mask}, {i})); store32({row} + 128, {high}, MK({w.mask}, {i}));")
        elif bits == 32:
            w.line(f"store32({row}, {value(i)}, MK({w.mask}, {i}));")
        else:
            w.line(f"store_part({row}, {value(i)}, {relative}, {bits}, MK({w.mask}, {i}));")


def load_param(w: Writer, mem: Mem, t: str, items: tuple[Operand, ...]) -> None:
    bits, size = BITS[t], BITS[t] // 8
    base, params = mem.base, w.layout.params
    if not isinstance(base, Sym):
        if not w.function.entry:
            raise w.refuse(
                "a by-value parameter indexed at run time in a function that was not inlined",
                "copy it to a local array first",
            )
        access = Access(w, mem, "param", bits, len(items), w.site("LOAD", size * len(items)))
        raw = Raw.declare(w, len(items), bits, uniform=access.kind is Kind.UNIFORM)
        cold_load(access, raw)
        raw.deliver(w, items, t)
        return
    is_kernels = w.function.entry and base.name in params
    rows = "" if is_kernels else param_rows(w, base.name)
    for c, item in enumerate(items):
        raw = Raw.declare(w, 1, bits, uniform=is_kernels)
        offset = base.offset + mem.offset + c * size
        if is_kernels:
            w.line(f"{raw.names[0][0]} = {scalar_read('w->params', w.number(params[base.name] + offset), bits)};")
        else:
            row_load(Access(w, mem, "param", bits, 1, ""), raw.names[0], f"((const u8 *){rows})", f"{offset}u")
        raw.deliver(w, [item], t)


def param_rows(w: Writer, name: str) -> str:
    """C expression for the rows of a function's .param variable: one of its formal parameters, or one for a call."""
    if not w.function.entry and name in w.layout.params:
        return f"(*(u32 ***)(F + {FORMALS}))[{w.number(w.layout.params[name])}]"
    return f"(F + {w.number(w.frame.arguments[name])})"


def store(w: Writer, instr: Instr) -> None:
    t = instr.type
    check_type(w, t)
    mem, value = instr.operands
    if not isinstance(mem, Mem):
        raise w.refuse()
    space, items, bits = instr.mods.space, elements(value), BITS[t]
    read = f"u{bits}"
    site = "" if space == "param" else w.site("STORE", bits // 8 * len(items), order_of(instr))
    access = Access(w, mem, space, bits, len(items), site)
    if space == "param":
        assert isinstance(mem.base, Sym)
        rows = param_rows(w, mem.base.name)
        for c, item in enumerate(items):
            offset = mem.base.offset + mem.offset + c * access.size
            row_store(access, f"((u8 *){rows})", f"{offset}u", partial(w.v, item, read))
        return
    whole = is_whole(instr, access)
    watched = w.slow or w.layout.watched or whole
    quick = access.kind is Kind.UNIFORM if space == "local" else not watched
    if not quick:
        cold_store(access, items, whole=whole)
        return
    local_row(access) if space == "local" else pointer(access)
    w.line("if (LIKELY(p != NULL)) {")
    from_origin(access)
    for c, item in enumerate(items):
        if space == "local":
            row_store(access, "p", f"(lo_ & 3u) + {c * access.size}u", partial(w.v, item, read))
        else:
            place(access, item, c * access.size)
    w.line("} else {")
    cold_store(access, items)
    w.line("}")


def place(access: Access, item: Operand, at: int) -> None:
    """Write the store of an element of every lane at `p` + `at`."""
    w, bits, t, read = access.w, access.bits, access.word, f"u{access.bits}"
    target = _UNALIGNED[bits]
    if access.kind is Kind.UNIFORM:
        if w.uniform(item):
            w.line(f"*({target} *)(p + {at}) = ({target}){w.s(item, read)};")
            return
        # All lanes write to one address: the highest lane's value stays.
        step = w.lanes // 2 if bits == 64 else w.lanes
        w.line(f"{{ {t} all[32] __attribute__((aligned(64)));")
        for i in w.pieces(t):
            w.line(f"*({FORMS[t].vector} *)&all[{i * step}] = {w.v(item, read, i)};")
        w.line(f"*({target} *)(p + {at}) = ({target})all[highest_lane({w.mask})]; }}")
    elif access.is_row:
        step = 4 * w.lanes
        w.line(f"if (LIKELY({w.mask} == ~0u)) {{")
        for i in w.pieces(t):
            w.line(f"*({FORMS[t].vector}u *)(p + {i * step}) = {w.v(item, read, i)};")
        w.line("} else {")
        for i in w.pieces(t):
            mask = "MKQ" if bits == 64 else "MK"
            w.line(f"store{bits}(p + {i * step}, {w.v(item, read, i)}, {mask}({w.mask}, {i}));")
        w.line("}")
    else:
        for i in w.pieces(t):
            function, offsets, masks = lanes_of_piece(access, i)
            w.line(f"scatter{function}(p + {at}, {offsets}, {w.v(item, read, i)}, {masks});")


def value_lanes(w: Writer, item: Operand, read: str, name: str, at: int = 0) -> None:
    """Write code that stores all lanes of a value in u64 name[at..at+31]."""
    for i in w.pieces("u64"):
        text = (
            f"(VQ){w.v(item, read, i)}" if FORMS[read].wide else f"widen_u_{half_of(i)}((VU){w.v(item, read, i // 2)})"
        )
        w.line(f"*(VQ *)&{name}[{at + i * w.lanes // 2}] = {text};")


def cold_store(access: Access, items: Sequence[Operand], *, whole: bool = False) -> None:
    w, t = access.w, access.word
    form, arguments = address_arguments(w, access.mem, access.space, whole=whole)
    w.line(f"{t} vv[{32 * len(items)}] __attribute__((aligned(64)));")
    vector, step = FORMS[t].vector, w.lanes // 2 if t == "u64" else w.lanes
    for c, item in enumerate(items):
        for i in w.pieces(t):
            w.line(f"*({vector} *)&vv[{32 * c + i * step}] = ({vector}){w.v(item, f'u{access.bits}', i)};")
    place = f"w, {access.site}, {SPACE_CODES[access.space]}, {arguments}, {w.mask}"
    w.line(f"rt_store_{form}({place}, {access.size}, {access.count}, vv);")


@handles("prefetch", "prefetchu", "discard", "applypriority")
def prefetch(w: Writer, instr: Instr) -> None:
    """Translate a prefetch, which is a hint, to nothing."""


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


@handles("getctarank")
def rank_of_address(w: Writer, instr: Instr) -> None:
    """The rank of the block that a shared memory address is in."""
    address, t = instr.sources[0], "u32" if BITS[instr.type] == 32 else "u64"
    own = {"s": "w->cluster_rank", "v": f"{FORMS[t].broadcast}(w->cluster_rank)"}
    w.op(instr, "u32", [(address, t)], lambda s, a: f"rank_of_{t}_{s}({a}, {own[s]})")


@handles("mapa")
def map_address(w: Writer, instr: Instr) -> None:
    """The same place in the shared memory of another block of the cluster (CLUSTER_OFFSET of runtime/warp.h)."""
    t = "u32" if BITS[instr.type] == 32 else "u64"
    address, rank = instr.sources
    w.op(
        instr, t, [(address, t), (rank, "u32")], lambda s, a, r: f"(({a} & ~(u{t[1:]})0xff000000u) | (({r} + 1) << 24))"
    )
