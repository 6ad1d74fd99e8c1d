"""Matrix instructions and asynchronous copies. The arithmetic is in runtime/tensor.c; registers travel as rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.emulator.ptx import Imm, Instr, Mem, Operand, Reg, Vec
from grader.emulator.translate.function import Writer, handles
from grader.emulator.translate.memory import _SPACE_CODES, lane_addresses, lanes_meet, space_of
from grader.emulator.translate.types import FORMS

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")
_ELEMENTS = {"f16": "ELEMENT_F16", "bf16": "ELEMENT_BF16", "tf32": "ELEMENT_TF32", "s8": "ELEMENT_S8", "u8": "ELEMENT_U8",
             "f32": "ELEMENT_F32", "s32": "ELEMENT_S32"}  # fmt: skip
_WIDTH = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "f32": 32, "s32": 32}


def _shape(w: Writer, instr: Instr) -> tuple[int, int, int]:
    for m in instr.mods:
        found = _SHAPE.match(m)
        if found:
            return int(found[1]), int(found[2]), int(found[3])
    raise w.refuse()


def _rows(w: Writer, operand: Operand, stem: str) -> str:
    """Writes registers into u32 name[count * 32]."""
    items = operand.items if isinstance(operand, Vec) else (operand,)
    name = w.fresh(stem)
    w.line(f"u32 {name}[{32 * len(items)}] __attribute__((aligned(64)));")
    for k, item in enumerate(items):
        for i in w.pieces("u32"):
            w.line(f"*(VU *)&{name}[{32 * k + i * w.lanes}] = {w.v(item, 'u32', i)};")
    return name


def _deliver(w: Writer, operand: Operand, name: str) -> None:
    items = operand.items if isinstance(operand, Vec) else (operand,)
    for k, item in enumerate(items):
        w.put(item, "u32", lambda i, k=k: f"*(const VU *)&{name}[{32 * k + i * w.lanes}]")  # type: ignore[misc]


def _count(operand: Operand) -> int:
    return len(operand.items) if isinstance(operand, Vec) else 1


@handles("mma")
def mma(w: Writer, instr: Instr) -> None:
    m, n, k = _shape(w, instr)
    types = [t for t in instr.mods if t in _ELEMENTS or t == "f64"]
    supported = {
        "f16": {(16, 8, 8), (16, 8, 16)}, "bf16": {(16, 8, 8), (16, 8, 16)}, "tf32": {(16, 8, 4), (16, 8, 8)},
        "s8": {(16, 8, 16), (16, 8, 32), (8, 8, 16)}, "u8": {(16, 8, 16), (16, 8, 32), (8, 8, 16)}, "f64": set(),
    }  # fmt: skip
    if len(types) != 4 or (m, n, k) not in supported.get(types[1], set()) or "sp" in instr.mods:
        raise w.refuse()
    dt, at, bt, _ = types
    d, a, b, c = instr.operands
    ra, rb, rc = _rows(w, a, "ra"), _rows(w, b, "rb"), _rows(w, c, "rc")
    rd = w.fresh("rd")
    w.line(f"u32 {rd}[{32 * _count(d)}] __attribute__((aligned(64)));")
    saturate = int("satfinite" in instr.mods)
    w.line(
        f"rt_mma({m}, {n}, {k}, {_ELEMENTS[at]}, {_ELEMENTS[bt]}, {_ELEMENTS[dt]}, {ra}, {rb}, {rc}, {rd}, {saturate});"
    )
    _deliver(w, d, rd)


@handles("ldmatrix")
def ldmatrix(w: Writer, instr: Instr) -> None:
    d, mem = instr.operands
    if not isinstance(mem, Mem) or "m8n8" not in instr.mods:
        raise w.refuse()
    lanes_meet(w)
    count = _count(d)
    lane_addresses(w, mem, "aa", "shared" if space_of(instr) == "shared" else "generic")
    out = w.fresh("out")
    w.line(f"u32 {out}[{32 * count}] __attribute__((aligned(64)));")
    space = _SPACE_CODES[space_of(instr)]
    w.line(f"rt_ldmatrix(w, {w.site('LOAD', 16)}, {space}, aa, {count}, {int('trans' in instr.mods)}, {out});")
    _deliver(w, d, out)


@handles("stmatrix")
def stmatrix(w: Writer, instr: Instr) -> None:
    mem, value = instr.operands
    if not isinstance(mem, Mem) or "m8n8" not in instr.mods:
        raise w.refuse()
    lanes_meet(w)
    rows = _rows(w, value, "rv")
    lane_addresses(w, mem, "aa", "shared" if space_of(instr) == "shared" else "generic")
    space = _SPACE_CODES[space_of(instr)]
    w.line(
        f"rt_stmatrix(w, {w.site('STORE', 16)}, {space}, aa, {_count(value)}, {int('trans' in instr.mods)}, {rows});"
    )


@handles("wmma")
def wmma(w: Writer, instr: Instr) -> None:
    m, n, k = _shape(w, instr)
    what = instr.mods[0]
    if what == "mma":
        types = [t for t in instr.mods if t in _ELEMENTS]
        d, a, b, c = instr.operands
        if len(types) == 2:  # f16: .dtype.ctype
            dt, ct, at, bt = types[0], types[1], "f16", "f16"
        elif len(types) == 4:
            dt, at, bt, ct = types
        else:
            raise w.refuse()
        ra, rb, rc = _rows(w, a, "ra"), _rows(w, b, "rb"), _rows(w, c, "rc")
        rd = w.fresh("rd")
        w.line(f"u32 {rd}[{32 * _count(d)}] __attribute__((aligned(64)));")
        w.line(
            f"rt_wmma({m}, {n}, {k}, {_ELEMENTS[at]}, {_ELEMENTS[bt]}, {_ELEMENTS[ct]}, {_ELEMENTS[dt]}, {ra}, {_count(a)}, {rb}, {_count(b)}, "
            f"{rc}, {_count(c)}, {rd}, {_count(d)}, {int('satfinite' in instr.mods)});"
        )
        _deliver(w, d, rd)
        return
    part = instr.mods[1]
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}[part]
    layout = next(x for x in instr.mods if x in ("row", "col"))
    t = instr.mods[-1]
    if t not in _WIDTH:
        raise w.refuse()
    register, mem, *rest = (
        instr.operands if what == "load" else (instr.operands[1], instr.operands[0], *instr.operands[2:])
    )
    if not isinstance(mem, Mem):
        raise w.refuse()
    lanes_meet(w)
    default = columns if layout == "row" else rows
    lane_addresses(w, mem, "aa", space_of(instr))
    if not rest:
        stride = str(default)
    elif isinstance(rest[0], Imm) or w.uniform(rest[0]):
        stride = w.s(rest[0], "u32")
    else:
        line = w.fresh("ld")
        w.line(f"u32 {line}[32] __attribute__((aligned(64)));")
        for i in w.pieces("u32"):
            w.line(f"*({FORMS['u32'].vector} *)&{line}[{i * w.lanes}] = {w.v(rest[0], 'u32', i)};")
        stride = f"{line}[0]"
    shape = f"{rows}, {columns}, {int(layout == 'col')}, {_WIDTH[t]}, {_count(register)}"
    if what == "load":
        out = w.fresh("out")
        w.line(f"u32 {out}[{32 * _count(register)}] __attribute__((aligned(64)));")
        w.line(
            f"rt_wmma_load(w, {w.site('LOAD', _WIDTH[t] // 8)}, {_SPACE_CODES[space_of(instr)]}, aa[0], {stride}, {shape}, {out});"
        )
        _deliver(w, register, out)
    else:
        value = _rows(w, register, "rv")
        w.line(
            f"rt_wmma_store(w, {w.site('STORE', _WIDTH[t] // 8)}, {_SPACE_CODES[space_of(instr)]}, aa[0], {stride}, {shape}, {value});"
        )


@handles("cp")
def copy_async(w: Writer, instr: Instr) -> None:
    """cp.async: what is issued here arrives at the thread's wait (runtime/copies.c)."""
    mods = instr.mods
    if mods[:3] == ("async", "mbarrier", "arrive"):
        arrive_with_copies(w, instr)
        return
    if mods[0] != "async" or "bulk" in mods or "reduce" in mods:
        raise w.refuse(advice="use cp.async through __pipeline_memcpy_async or plain loads and stores")
    if "commit_group" in mods or "wait_all" in mods:
        w.line(f"rt_copy_commit(w, {w.mask});")
    if "wait_group" in mods or "wait_all" in mods:
        pending = w.s(instr.operands[0], "u32") if "wait_group" in mods else "0"
        w.line(f"rt_copy_wait(w, {pending}, {w.mask});")
    if any(m in ("commit_group", "wait_group", "wait_all") for m in mods):
        return
    to, source, size, *rest = instr.operands
    if not (isinstance(to, Mem) and isinstance(source, Mem) and isinstance(size, Imm)):
        raise w.refuse()
    lane_addresses(w, to, "ta", "shared")
    lane_addresses(w, source, "fa", "global")
    w.line(f"u32 nn[32] __attribute__((aligned(64)));")  # noqa: F541
    for i in w.pieces("u32"):
        w.line(f"*(VU *)&nn[{i * w.lanes}] = {_source_bytes(w, size.value, rest, i)};")
    w.line(
        f"rt_copy_async(w, {w.site('LOAD', size.value)}, {w.site('COPY', size.value)}, ta, fa, nn, {size.value}, {w.mask});"
    )


def arrive_with_copies(w: Writer, instr: Instr) -> None:
    """cp.async.mbarrier.arrive: an arrival at a barrier object when the thread's copies have arrived. Without `noinc` the
    object first waits for one arrival more, so nothing is left of it."""
    (mem,) = instr.operands
    if not isinstance(mem, Mem):
        raise w.refuse()
    w.line(f"rt_copy_arrive_all(w, {w.mask});")
    if "noinc" not in instr.mods:
        return
    space = space_of(instr)
    lane_addresses(w, mem, "aa", space)
    w.line("u64 vv[32] __attribute__((aligned(64)));")
    w.line("for (u32 l = 0; l < 32; l++) vv[l] = 1;")
    w.line(f"rt_mbarrier_arrive(w, {w.site('ATOMIC', 8)}, {_SPACE_CODES[space]}, aa, {w.mask}, vv, 0);")


def _source_bytes(w: Writer, size: int, rest: Sequence[Operand], piece: int) -> str:
    """How many bytes of a cp.async come from the source, the others being zeros: all, `src-size`, or by `ignore-src`."""
    if not rest:
        return f"BU({size}u)"
    operand = rest[0]
    if isinstance(operand, Reg) and w.function.registers.get(operand.name) == "pred":
        return f"SELU(MK({w.pred(operand)}, {piece}), BU(0), BU({size}u))"
    return w.v(operand, "u32", piece)
