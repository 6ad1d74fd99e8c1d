"""Emits loads and stores: accesses in C after a quick bounds check, rows of local memory and parameters, and calls of
the runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cudaemu.analysis.shapes import Kind
from cudaemu.ptx import Instr, Mem, Operand, Reg
from cudaemu.translate.addresses import (
    SPACE_CODES,
    address_arguments,
    address_kind,
    address_stride,
    address_type,
    base_address,
    vector_address,
)
from cudaemu.translate.rows import declare, fill, row_piece, rows
from cudaemu.translate.types import BITS, FORMS, half_of, is_signed

if TYPE_CHECKING:
    from cudaemu.translate.writer import Writer

_UNALIGNED = {8: "u8", 16: "u16a", 32: "u32a", 64: "u64a"}


# enum site_order of runtime/warp.h
STRONG, RELEASES, TOLERANT, OVERWRITES, ORDERED, ASYNC, OBJECT, UNNEEDED = 1, 2, 4, 8, 16, 32, 64, 256


def order_of(instr: Instr) -> int:
    """The memory order of an access, as SITE_… flags."""
    order = STRONG if "volatile" in instr.mods else 0
    if any(m in ("relaxed", "acquire", "release", "acq_rel", "mmio") for m in instr.mods):
        order |= STRONG | ORDERED
    if any(m in ("release", "acq_rel") for m in instr.mods):
        order |= RELEASES
    return order


def unneeded_words(w: Writer, items: Sequence[Operand], bits: int) -> int:
    """The elements of a vector load that no instruction uses, as UNNEEDED flags: nvcc joins loads of neighbouring words
    to wider ones, beyond what the program reads."""
    if bits != 32 or len(items) == 1:
        return 0
    flags = (
        UNNEEDED << n for n, item in enumerate(items) if isinstance(item, Reg) and item.name not in w.read_registers
    )
    return sum(flags)


@dataclass(frozen=True)
class Access:
    """The memory that the lanes of an instruction read or write: `count` neighbouring elements of `bits` each. The
    properties say what is known about the addresses."""

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
        """Whether the lanes' elements are adjacent in memory, as in a C vector."""
        return self.kind is Kind.AFFINE and self.stride == self.size == self.total and self.bits >= 32

    def is_whole(self, instr: Instr) -> bool:
        """Whether other threads must see a vector access as a single access (runtime/whole.c)."""
        shared_by_workers = self.space in ("generic", "global") and not self.w.layout.watched
        return shared_by_workers and self.count > 1 and self.total in (8, 16) and bool(order_of(instr) & STRONG)


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
        bits, register_bits = BITS[t], BITS[w.function.registers[item.name]]
        sign = "s" if is_signed(t) and bits < 64 else "u"
        if self.uniform:
            if sign == "s" and bits < 32:
                wide = 64 if register_bits == 64 else 32
                w.put_scalar(
                    item,
                    f"s{64 if register_bits == 64 else 32 if register_bits == 32 else 16}",
                    f"(i{wide})(i32)(i{bits}){names[0]}",
                )
            elif sign == "s" and register_bits == 64:
                w.put_scalar(item, "s64", f"(i64)(i32){names[0]}")
            else:
                w.put_scalar(item, "u64" if 64 in (bits, register_bits) else "u32", names[0])
        elif bits == 64:
            w.put(item, "u64", lambda i: names[i])
        elif sign == "u":
            w.put(item, "u32", lambda i: names[i])
        elif bits == 32:
            w.put(item, "s32", lambda i: f"(VI){names[i]}")
        else:
            shift = 32 - bits
            w.put(item, "s16" if register_bits == 16 else "s32", lambda i: f"((VI){names[i]} << {shift} >> {shift})")


def scalar_read(p: str, offset: int | str, bits: int) -> str:
    return f"*(const {_UNALIGNED[bits]} *)({p} + {offset})"


def local_row(access: Access) -> None:
    """Declare `u8 *p`, the row of local memory at which an access begins; its offset is the same in all lanes."""
    offset = base_address(access.w, access.mem, "u32")
    access.w.line(f"const u32 lo_ = {offset}; u8 *const p = local_row(w, lo_, {access.total});")


def pointer(access: Access) -> None:
    """Declare `u8 *p`: the host address of lane 0's access, or the origin of VECTOR addresses. It is NULL if the quick
    check fails. For VECTOR addresses also declare their offsets o0… (VU in shared memory, VQ elsewhere)."""
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
    """The suffix of the gather or scatter for piece `i` of an element's row, its offsets from `p`, and its lane masks.
    `everywhere`: for all lanes, active or not. Offsets have 32 bits for 32-bit elements at AFFINE or shared addresses;
    otherwise they have 64 bits, which take two pieces unless the elements have 64 bits too."""
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


def cold_load(access: Access, raw: Raw, *, whole: bool = False, words: bool = False) -> None:
    """Emit a load through the runtime. `whole` selects whole.c, and `words` selects words.c with a row of addresses."""
    w, t, size, count = access.w, access.word, access.size, access.count
    form, arguments = address_arguments(w, access.mem, access.space, whole=whole, row=words)
    declare(w, "oo", t, count)
    place = f"w, {access.site}, {SPACE_CODES[access.space]}, {arguments}, {w.mask}"
    call = "rt_load_quads" if form == "w" else f"rt_load_words{count}"
    w.line(f"{call}({place}, oo);" if words else f"rt_load_{form}({place}, {size}, {count}, oo);")
    for c, names in enumerate(raw.names):
        if raw.uniform:
            w.line(f"{names[0]} = oo[{32 * c} + lowest_lane({w.mask})];")
            continue
        for i, name in enumerate(names):
            w.line(f"{name} = {row_piece(w, 'oo', t, i, 32 * c, 'const ')};")


def row_load(access: Access, names: Sequence[str], p: str, relative: str) -> None:
    """Write the load of an element from rows, as in local memory and .param variables. `p` is the row of the access's
    first word; `relative` is the byte offset from it."""
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


def place(access: Access, item: Operand, at: int) -> None:
    """Emit a store that writes one element of every lane at `p` + `at`."""
    w, bits, t, read = access.w, access.bits, access.word, f"u{access.bits}"
    target = _UNALIGNED[bits]
    if access.kind is Kind.UNIFORM:
        if w.uniform(item):
            w.line(f"*({target} *)(p + {at}) = ({target}){w.s(item, read)};")
            return
        # All lanes write to one address: the highest lane's value stays.
        w.line("{")
        rows(w, "all", item, t, read)
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


def cold_store(access: Access, items: Sequence[Operand], *, whole: bool = False) -> None:
    w, t = access.w, access.word
    form, arguments = address_arguments(w, access.mem, access.space, whole=whole)
    declare(w, "vv", t, len(items))
    for c, item in enumerate(items):
        fill(w, "vv", item, t, f"u{access.bits}", 32 * c)
    place = f"w, {access.site}, {SPACE_CODES[access.space]}, {arguments}, {w.mask}"
    w.line(f"rt_store_{form}({place}, {access.size}, {access.count}, vv);")
