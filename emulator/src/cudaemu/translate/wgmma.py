"""Products of warpgroups: wgmma. runtime/wgmma.c computes a product when wgmma.wait_group waits for its group."""

from __future__ import annotations

from cudaemu.analysis.hazards import TOUCHED, UNFENCED
from cudaemu.ptx import Imm, Instr, Vec
from cudaemu.translate.access import ASYNC
from cudaemu.translate.rows import fill, first_lane, register_rows, rows_from
from cudaemu.translate.tensor import element
from cudaemu.translate.writer import Writer, handles


@handles("wgmma")
def wgmma(w: Writer, instr: Instr) -> None:
    what = instr.mods.action
    if what == "mma_async":
        _multiply(w, instr)
    elif what == "commit_group":
        w.line("rt_wgmma_commit(w);")
    elif what == "wait_group":
        _wait(w, instr)
    elif what == "fence":
        w.line("rt_wgmma_fence(w);")
    elif what in (TOUCHED, UNFENCED):
        _misuse(w, instr)
    else:
        raise w.refuse()


def _misuse(w: Writer, instr: Instr) -> None:
    """Report a misuse that hazards.py found. The first operand is the index of the product whose register is touched,
    or of the write without a fence after it."""
    place, how = (o.value for o in instr.operands if isinstance(o, Imm))
    other = w.function.body[place]
    assert isinstance(other, Instr)
    sites = f"w, {w.site('OTHER')}, {w.number(w.layout.site(other.loc, 'OTHER', 0, 0))}"
    w.line(f"rt_wgmma_touched({sites}, {how});" if instr.mods.action == TOUCHED else f"rt_wgmma_unfenced({sites});")


def _multiply(w: Writer, instr: Instr) -> None:
    """D = A B + D, or D = A B if scale-d is false. The operands after scale-d are imm-scale-a and imm-scale-b, and for
    16-bit elements an imm-trans for each matrix in shared memory."""
    shape, mods = instr.mods.shape, instr.mods
    if shape is None or len(mods.types) != 3 or "sp" in mods:
        raise w.refuse()
    d, a, b, adds, *rest = instr.operands
    assert isinstance(d, Vec)
    numbers = [o.value for o in rest if isinstance(o, Imm)]
    in_registers = isinstance(a, Vec)
    transposed = numbers[2:]
    sums_type, a_type, b_type = mods.types
    if len(numbers) != len(rest):
        raise w.refuse()
    flags = [name for name, given in zip(("MMA_NEGATE_A", "MMA_NEGATE_B"), numbers, strict=False) if given == -1]
    flags += ["MMA_SATURATE"] * ("satfinite" in mods) + ["MMA_AND"] * ("and" in mods)
    how = ["WGMMA_A_BY_COLUMNS"] * (len(transposed) == 2 and transposed[0]) + ["WGMMA_B_BY_COLUMNS"] * (
        sum(transposed[-1:])
    )
    elements = ", ".join(element(t) for t in (a_type, b_type, sums_type, sums_type))
    number = w.layout.sums.index(d)
    w.line(
        f"const struct mma how = {{{w.layout.architecture}, {', '.join(map(str, shape))}, {elements}, {' | '.join(flags) or '0'}}};"
    )
    w.line(f"u32 *const sums = rt_wgmma_sums(w, {number}, {len(d.items)});")
    w.line("if (sums) {")
    for k, item in enumerate(d.items):
        fill(w, "sums", item, at=32 * k)
    w.line("}")
    added = f"({w.pred(adds)} & {w.mask} ? WGMMA_ADDS : 0)"
    from_registers = register_rows(w, a, "ra") if in_registers else "NULL"
    descriptors = f"{'0' if in_registers else first_lane(w, a, 'u64')}, {first_lane(w, b, 'u64')}"
    w.line(
        f"rt_wgmma(w, {w.site('LOAD', 0, ASYNC)}, how, {number}, "
        f"(struct wgmma_operands){{{descriptors}, {from_registers}, {' | '.join([*how, added])}}});"
    )


def _wait(w: Writer, instr: Instr) -> None:
    pending = instr.operands[-1]
    w.line(f"rt_wgmma_wait(w, {w.s(pending, 'u32')});")
    for number, registers in enumerate(w.layout.sums):
        w.line(f"{{ const u32 *const done = rt_wgmma_result(w, {number}); if (done) {{")
        rows_from(w, registers, "done")
        w.line("} }")
