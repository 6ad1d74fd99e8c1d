"""ld and st. The shape of an address decides how an access is translated, and so how fast it is:

    UNIFORM                     one scalar access, broadcast
    AFFINE, adjacent elements   one plain vector access
    AFFINE, otherwise           a gather with constant offsets, one bounds check for all lanes
    VECTOR                      a gather with a vector bounds check

runtime/words.c loads 32-bit words from VECTOR addresses outside shared memory, and four words per lane from addresses
that are not UNIFORM. An access that fails its quick check goes to rt_load_… or rt_store_…, which run lane by lane and
report faults.
"""

from __future__ import annotations

from functools import partial

from cudaemu.analysis.shapes import Kind
from cudaemu.ptx import Imm, Instr, Mem, Operand, Param, Reg, Sym, Variable, items_of
from cudaemu.translate.access import (
    Access,
    Raw,
    cold_load,
    cold_store,
    from_origin,
    lanes_of_piece,
    local_row,
    order_of,
    place,
    pointer,
    row_load,
    row_store,
    scalar_read,
    unneeded_words,
)
from cudaemu.translate.frame import FORMALS
from cudaemu.translate.rows import declare, value_lanes
from cudaemu.translate.types import BITS, FORMS
from cudaemu.translate.writer import Writer, handles


def check_type(w: Writer, t: str) -> None:
    if t not in FORMS or BITS[t] > 64:
        raise w.refuse()


@handles("ld", "ldu")
def load(w: Writer, instr: Instr) -> None:
    t, mem = instr.type, instr.operands[1]
    check_type(w, t)
    if not isinstance(mem, Mem):
        raise w.refuse()
    space, items, bits = instr.mods.space, items_of(instr.operands[0]), BITS[t]
    if space == "param":
        load_param(w, mem, t, items)
        return
    if all(isinstance(i, Reg) and i.name == "_" for i in items):
        return
    count = len(items)
    access = Access(
        w, mem, space, bits, count, w.site("LOAD", bits // 8 * count, order_of(instr) | unneeded_words(w, items, bits))
    )
    kind = access.kind
    # In the local space, and possibly in the generic space, each lane has different memory at the same address.
    raw = Raw.declare(w, count, bits, uniform=kind is Kind.UNIFORM and space not in ("local", "generic"))
    whole = access.is_whole(instr)
    quick = not (w.slow or w.layout.watched or whole)  # divided warps are rare: keep their code small
    many = kind is not Kind.UNIFORM if count == 4 else kind is Kind.VECTOR and space != "shared"
    words = quick and bits == 32 and many and space != "local"
    in_rows = space == "local" and kind is Kind.UNIFORM and not w.layout.watched
    if words or not (in_rows if space == "local" else quick):
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
    check_within(w, base.name, base.offset + mem.offset, size * len(items))
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
    """C expression for the rows of a .param variable: a parameter or result of the function, or of a call in it."""
    if not w.function.entry and name in w.layout.params:
        return f"(*(u32 ***)(F + {FORMALS}))[{w.number(w.layout.params[name])}]"
    return f"(F + {w.number(w.frame.arguments[name])})"


def param_size(w: Writer, name: str) -> int:
    """The bytes of a .param variable; 0 if there is none with this name."""
    local = (each for each in w.function.variables if each.space == "param")
    named: tuple[Param | Variable, ...] = (*w.function.params, *w.function.returns, *local)
    return next((each.size for each in named if each.name == name), 0)


def check_within(w: Writer, name: str, offset: int, size: int) -> None:
    """Refuse what is outside of a .param variable: the generated code reads and writes its rows without a check."""
    if not 0 <= offset <= param_size(w, name) - size:
        raise w.refuse(f"an access outside of the parameter {name}", "use the parameters as they are declared")


def store(w: Writer, instr: Instr) -> None:
    t = instr.type
    check_type(w, t)
    mem, value = instr.operands
    if not isinstance(mem, Mem):
        raise w.refuse()
    space, items, bits = instr.mods.space, items_of(value), BITS[t]
    read = f"u{bits}"
    site = "" if space == "param" else w.site("STORE", bits // 8 * len(items), order_of(instr))
    access = Access(w, mem, space, bits, len(items), site)
    if space == "param":
        assert isinstance(mem.base, Sym)
        check_within(w, mem.base.name, mem.base.offset + mem.offset, access.size * len(items))
        rows = param_rows(w, mem.base.name)
        for c, item in enumerate(items):
            offset = mem.base.offset + mem.offset + c * access.size
            row_store(access, f"((u8 *){rows})", f"{offset}u", partial(w.v, item, read))
        return
    whole = access.is_whole(instr)
    watched = w.slow or w.layout.watched or whole
    quick = not watched
    if space == "local":
        quick = access.kind is Kind.UNIFORM and not w.layout.watched
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


@handles("prefetch", "prefetchu", "discard", "applypriority")
def prefetch(w: Writer, instr: Instr) -> None:
    """Write nothing: these instructions are hints."""


@handles("alloca")
def allocate_on_stack(w: Writer, instr: Instr) -> None:
    d, size, *align = instr.operands
    bits = instr.type
    declare(w, "sizes", "u64")
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
    declare(w, "tops", "u64")
    value_lanes(w, instr.operands[0], instr.type, "tops")
    w.line(f"rt_stack_restore(w, {w.mask}, tops[lowest_lane({w.mask})]);")


@handles("getctarank")
def rank_of_address(w: Writer, instr: Instr) -> None:
    """The rank, in the cluster, of the block whose shared memory contains an address."""
    address, t = instr.sources[0], "u32" if BITS[instr.type] == 32 else "u64"
    own = {"s": "w->cluster_rank", "v": f"{FORMS[t].broadcast}(w->cluster_rank)"}
    w.op(instr, "u32", [(address, t)], lambda s, a: f"rank_of_{t}_{s}({a}, {own[s]})")


@handles("mapa")
def map_address(w: Writer, instr: Instr) -> None:
    """Map an address to the same place in another block of the cluster (CLUSTER_OFFSET of runtime/warp.h)."""
    t = "u32" if BITS[instr.type] == 32 else "u64"
    address, rank = instr.sources
    w.op(
        instr, t, [(address, t), (rank, "u32")], lambda s, a, r: f"(({a} & ~(u{t[1:]})0xff000000u) | (({r} + 1) << 24))"
    )
