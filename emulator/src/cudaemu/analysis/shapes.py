"""Shapes: whether a register's values in the 32 lanes are all equal, evenly spaced, or unrelated.

Most arithmetic of a CUDA kernel computes addresses and loop counters that are the same in all lanes, or differ by a
fixed step from one lane to the next. Knowing this at translation time turns vector code into scalar code, gathers
into plain loads and per-lane bounds checks into one comparison.

Each value of the function (ssa.py) gets a shape by a fixed point over the lattice UNIFORM < AFFINE < VECTOR. Control
flow can make lanes' values differ too, by the usual rules of divergence analysis (Karrenberg and Hack, "Whole-Function
Vectorization"; Rosemann, Moll and Hack, "An Abstract Interpretation for SPMD Divergence"): a phi where divergent paths
reconverge is a VECTOR. So is a value that is computed in a loop and used after it, if lanes leave the loop at different
times.

These rules hold as long as diverged lanes reconverge before any of them continues. In functions whose lanes may run
apart for longer (analysis/waiting.py), lanes at different places share the variables that are stored once for all
lanes. So in these functions a value can be UNIFORM or AFFINE only if a single instruction computes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from cudaemu.analysis.cfg import Block, Graph
from cudaemu.analysis.ssa import Ssa, Webs
from cudaemu.ptx import Instr


class Kind(IntEnum):
    """UNIFORM: all lanes equal. AFFINE: lane i holds base + i·stride, base the same in all lanes. VECTOR: anything."""

    UNIFORM = 0
    AFFINE = 1
    VECTOR = 2


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """`stride` of an AFFINE shape is a number known at translation time, or None for a value known only at run time.
    `affine` returns the same object for equal shapes, so that they compare quickly."""

    kind: Kind
    stride: int | None = 0

    @property
    def is_dynamic(self) -> bool:
        """Whether the stride is stored in a variable."""
        return self.stride is None


UNIFORM = Shape(Kind.UNIFORM)
VECTOR = Shape(Kind.VECTOR)
DYNAMIC = Shape(Kind.AFFINE, None)


def affine(stride: int | None) -> Shape:
    return UNIFORM if stride == 0 else DYNAMIC if stride is None else _spaced(stride)


@cache
def _spaced(stride: int) -> Shape:
    return Shape(Kind.AFFINE, stride)


def join(a: Shape | None, b: Shape | None) -> Shape | None:
    if a is None or a == b:
        return b
    if b is None:
        return a
    if a.kind is Kind.VECTOR or b.kind is Kind.VECTOR:
        return VECTOR
    return DYNAMIC


ShapeRule = Callable[[Instr, Callable[[str], Shape | None], str], Shape | None]
"""(instruction, function that returns the shape of a register, written register) → shape of the result. Both shapes are
None while unknown."""


@dataclass
class Values(Webs):
    """The result of the analysis: the shape of each web, and the blocks at whose ends lanes may diverge."""

    shape: list[Shape]
    divergent: set[int]


def analyse(ssa: Ssa, rule: ShapeRule, *, apart: bool = False) -> Values:
    """Find the shapes of a function's webs. With `apart`, lanes may be at different places of the function at the same
    time."""
    webs = ssa.webs
    merged: list[Shape | None] = [None] * len(webs.register)
    for value, shape in enumerate(_solve(ssa, rule, apart)):
        merged[webs.of_value[value]] = join(merged[webs.of_value[value]], shape)
    shapes = [s if s is not None else UNIFORM for s in merged]
    divergent = {
        block.number
        for block in ssa.graph.blocks
        if block.condition is not None and shapes[next(iter(webs.web_at_end[block.number].values()))] != UNIFORM
    }
    return Values(**vars(webs), shape=shapes, divergent=divergent)


def _solve(ssa: Ssa, rule: ShapeRule, apart: bool) -> list[Shape | None]:
    graph = ssa.graph
    count = len(ssa.register)
    shapes: list[Shape | None] = [None] * count
    if not graph.reducible:
        return [VECTOR] * count
    # The values of a web share one variable, so they all get the least regular shape among them.
    members: dict[int, list[int]] = {}
    roots = ssa.roots
    for value, root in enumerate(roots):
        members.setdefault(root, []).append(value)
    undefined = set(ssa.entry_values.values())
    forced: set[int] = set()  # values that control flow makes VECTOR
    divergent: set[int] = set()
    changed = True
    if apart:
        forced = {value for values in members.values() if len(values) > 1 for value in values}
        for value in forced:
            shapes[value] = VECTOR

    def operand(value: int) -> Shape | None:
        """The shape of an operand. A register that nothing has written counts as UNIFORM: nvcc omits writes of bits
        that do not matter, such as half of a pair."""
        shape = shapes[value]
        return UNIFORM if shape is None and value in undefined else shape

    def update(value: int, new: Shape | None) -> None:
        nonlocal changed
        new = VECTOR if value in forced else join(shapes[value], new)
        if new != shapes[value]:
            changed = True
            for member in members[roots[value]]:
                shapes[member] = join(shapes[member], new)

    while changed or _give_undefined(undefined, shapes, update):
        changed = False
        for b in graph.blocks:
            for phi in ssa.phis[b.number].values():
                merged: Shape | None = shapes[phi]
                for argument in ssa.phi_args[phi]:
                    merged = join(merged, shapes[argument])
                update(phi, merged)
            for instr, _, results in ssa.effects[b.number]:
                for name in results:
                    key = instr.index
                    if shapes[ssa.def_of[(key, name)]] == VECTOR:  # the top of the lattice: final
                        continue
                    new = rule(instr, lambda n, key=key: operand(ssa.use_of[(key, n)]), name)  # type: ignore[misc]
                    if instr.guard is not None and new is not None:
                        old = shapes[ssa.use_of[(key, name)]]
                        guard = shapes[ssa.use_of[(key, instr.guard.name)]]
                        if ssa.use_of[(key, name)] not in undefined:
                            new = join(new, old) if guard == UNIFORM else VECTOR
                    update(ssa.def_of[(key, name)], new)
            if b.number in ssa.end_use and b.number not in divergent:
                shape = shapes[ssa.end_use[b.number]]
                if shape is not None and shape != UNIFORM:
                    divergent.add(b.number)
                    for value in _made_vector(graph, ssa, b):
                        if value not in forced:
                            forced.add(value)
                            changed = True
                            for member in members[roots[value]]:
                                shapes[member] = VECTOR
    return shapes


def _give_undefined(
    undefined: set[int], shapes: list[Shape | None], update: Callable[[int, Shape | None], None]
) -> bool:
    """Give the shape UNIFORM to values that are read before anything writes them, if their web has no shape yet. Return
    whether there was such a value. Called last, so that a value undefined on one path keeps the shape that it has on
    the other."""
    left = [value for value in undefined if shapes[value] is None]
    for value in left:
        update(value, UNIFORM)
    return bool(left)


def _made_vector(graph: Graph, ssa: Ssa, block: Block) -> set[int]:
    """The values that differ between lanes because the lanes diverge at the end of `block`."""
    result: set[int] = set()
    stop = graph.postdominator[block.number]
    reach: list[set[int]] = []
    for start in block.successors:
        seen: set[int] = set()
        work = [start]
        while work:
            node = work.pop()
            if node in seen or node == graph.exit:
                continue
            seen.add(node)
            if node in (stop, block.number):
                continue
            work.extend(graph.blocks[node].successors)
        reach.append(seen)
    for i, a in enumerate(reach):
        for b in reach[i + 1 :]:
            for node in a & b:
                for phi in ssa.phis[node].values():
                    if len(set(ssa.phi_args[phi])) > 1:
                        result.add(phi)
    for body in graph.loops.values():
        if block.number not in body:
            continue
        region = set().union(*reach)
        if region <= body:  # lanes that diverge here reconverge inside the loop
            continue
        for value, users in ssa.users.items():
            if ssa.block_of[value] in body and any(b not in body for b, _ in users):
                result.add(value)
    return result
