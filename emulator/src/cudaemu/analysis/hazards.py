"""Finds registers of a wgmma that other instructions use at the wrong time.

wgmma.mma_async adds a matrix product to registers, its sums, while the thread continues. Until wgmma.wait_group has
waited for the product, no instruction may read or write the sums, or write registers that hold the product's matrix A.
And a wgmma.fence must come between a write of a product's registers and the product (PTX ISA, "Asynchronous Warpgroup
Level Matrix Instructions"). Both kinds of misuse are found on all paths through the function. Marks in the function's
body, `wgmma.touched` and `wgmma.unfenced`, make the runtime report a misuse when it is executed.

Moves are exempt from both rules, because compilers copy registers and move the copies across fences without any effect
on the machine code. A use of a copy counts as a use of the register.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from cudaemu.analysis.cfg import Block, build
from cudaemu.analysis.effects import is_wgmma, read, written
from cudaemu.ptx import Function, Imm, Instr, Reg, Vec
from cudaemu.ptx.model import Label
from cudaemu.ptx.modifiers import Modifiers

TOUCHED, UNFENCED = "touched", "unfenced"
READ_SUMS, WROTE_SUMS, WROTE_A = range(3)
_MAX_GROUPS = 8  # the analysis counts committed groups up to this number


@dataclass(frozen=True)
class _Product:
    index: int
    sums: frozenset[str]
    a: frozenset[str]


@dataclass(frozen=True)
class _State:
    """The facts that hold before an instruction, on some path to it.

    `flying`: the index of each product in flight, with the number of groups committed since. `copies`: registers into
    which sums were moved. `written`: registers written since the last fence, with the index of the write.
    `is_fenced`: whether a fence came after the last product; later writes are then not recorded, because a compiler can
    move arithmetic from before a fence to after it."""

    flying: Mapping[int, int]
    copies: Mapping[str, frozenset[int]]
    written: Mapping[str, int]
    is_fenced: bool

    def joined(self, other: _State) -> _State:
        flying = {**self.flying}
        for product, groups in other.flying.items():
            flying[product] = min(groups, flying.get(product, groups))
        copies = {**self.copies}
        for register, products in other.copies.items():
            copies[register] = products | copies.get(register, frozenset())
        written = {**other.written, **self.written}
        return _State(flying, copies, written, self.is_fenced and other.is_fenced)


Report = Callable[[Instr, str, int, int], None]


def mark_misused_registers(function: Function) -> None:
    """Put marks into the function's body before instructions that misuse registers of products."""
    products = {i.index: _product(i) for i in function.body if isinstance(i, Instr) and is_wgmma(i, "mma_async")}
    if not products:
        return
    marks: dict[int, set[tuple[str, int, int]]] = {}

    def report(instr: Instr, what: str, other: int, how: int) -> None:
        marks.setdefault(instr.index, set()).add((what, other, how))

    blocks = build(function).blocks
    for block, state in zip(blocks, _states(blocks, products), strict=True):
        if state is not None:
            _through(block, state, products, report)
    if marks:
        function.body[:] = _with_marks(function, marks)


def _with_marks(function: Function, marks: Mapping[int, set[tuple[str, int, int]]]) -> list[Instr | Label]:
    """The function's body with marks, and with instructions renumbered by their positions in it."""
    body: list[Instr | Label] = []
    moved: dict[int, int] = {}
    for item in function.body:
        if isinstance(item, Instr):
            for what, other, how in sorted(marks.get(item.index, ())):
                operands = (Imm(other), Imm(how))
                body.append(Instr("wgmma", Modifiers.of((what,)), operands, item.guard, item.loc, -1))
            moved[item.index] = len(body)
        body.append(item)
    for at, item in enumerate(body):
        if isinstance(item, Instr):
            body[at] = item = replace(item, index=at)
            if item.op == "wgmma" and item.mods.action in (TOUCHED, UNFENCED) and isinstance(item.operands[0], Imm):
                body[at] = replace(item, operands=(Imm(moved[item.operands[0].value]), item.operands[1]))
    return body


def _states(blocks: list[Block], products: Mapping[int, _Product]) -> list[_State | None]:
    """The state at the beginning of each block; None for a block that cannot be reached."""
    states: list[_State | None] = [None] * len(blocks)
    states[0] = _State({}, {}, {}, False)
    pending = {0}
    while pending:
        number = min(pending)
        pending.remove(number)
        begin = states[number]
        assert begin is not None
        end = _through(blocks[number], begin, products, lambda *_: None)
        for successor in blocks[number].successors:
            known = states[successor]
            joined = end if known is None else known.joined(end)
            if joined != known:
                states[successor] = joined
                pending.add(successor)
    return states


def _through(block: Block, state: _State, products: Mapping[int, _Product], report: Report) -> _State:
    flying, copies, dirty = dict(state.flying), dict(state.copies), dict(state.written)
    is_fenced = state.is_fenced
    for instr in block.instrs:
        if instr.op == "wgmma":
            if (product := products.get(instr.index)) is not None:
                _check_sums(instr, product.a, flying, copies, products, report)
                for other in {dirty[r] for r in product.sums | product.a if r in dirty}:
                    report(instr, UNFENCED, other, 0)
                for register in product.sums:
                    copies.pop(register, None)
                flying[instr.index], is_fenced = 0, False
            elif is_wgmma(instr, "commit_group"):
                flying = {p: min(groups + 1, _MAX_GROUPS) for p, groups in flying.items()}
            elif is_wgmma(instr, "wait_group") and isinstance(left := instr.operands[-1], Imm):
                flying = {p: groups for p, groups in flying.items() if groups <= left.value}
            elif is_wgmma(instr, "fence"):
                dirty, is_fenced = {}, True
            continue
        results = written(instr)
        if instr.op == "mov" and len(instr.operands) == 2 and len(results) == 1:
            (result,), source = results, instr.operands[1]
            name = source.name if isinstance(source, Reg) else ""
            copies[result] = copies.get(name, frozenset()) | {p for p in flying if name in products[p].sums}
            if name in dirty:
                dirty[result] = dirty[name]
            else:
                dirty.pop(result, None)
            continue
        _check_sums(instr, frozenset(read(instr)), flying, copies, products, report)
        for register in results:
            for p in flying:
                if register in products[p].sums | products[p].a:
                    report(instr, TOUCHED, p, WROTE_SUMS if register in products[p].sums else WROTE_A)
            copies.pop(register, None)
            if not is_fenced:
                dirty[register] = instr.index
    return _State(flying, copies, dirty, is_fenced)


def _check_sums(
    instr: Instr,
    registers: frozenset[str],
    flying: Mapping[int, int],
    copies: Mapping[str, frozenset[int]],
    products: Mapping[int, _Product],
    report: Report,
) -> None:
    for p in flying:
        if registers & products[p].sums or any(p in copies.get(r, ()) for r in registers):
            report(instr, TOUCHED, p, READ_SUMS)


def _product(instr: Instr) -> _Product:
    sums, a = instr.operands[:2]
    return _Product(instr.index, _names(sums), _names(a))


def _names(operand: object) -> frozenset[str]:
    items = operand.items if isinstance(operand, Vec) else ()
    return frozenset(item.name for item in items if isinstance(item, Reg))
