"""How the 32 lanes' values of a register relate: all equal, evenly spaced, or free.

Most arithmetic of a CUDA kernel computes addresses and loop counters that are the same in all lanes, or differ by a
fixed step from one lane to the next. Knowing this at translation time turns vector code into scalar code, gathers
into plain loads and per-lane bounds checks into one comparison.

The analysis numbers the function's values as in SSA form, without rewriting any code. Each SSA value gets a shape by a
fixed point over the lattice UNIFORM < AFFINE < VECTOR. Control flow makes values differ too, by the usual rules of
divergence analysis (Karrenberg and Hack, "Whole-Function Vectorization"; Rosemann, Moll and Hack, "An Abstract
Interpretation for SPMD Divergence"): a phi where divergent paths meet again is a VECTOR. So is a value that is computed
in a loop and used after it, if lanes leave the loop at different times.

This holds as long as lanes that part meet again before any of them goes on. Where they may run apart for longer
(analysis/waiting.py), lanes at different places share the values that are stored once for all lanes. There a value is
the same in all lanes only if it is computed once, from values of the same kind.

SSA values joined by phis came from one PTX register and cannot interfere, so each such web becomes one C variable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from grader.emulator.analysis.cfg import Block, Branch, Graph, Switch
from grader.emulator.analysis.effects import keeps_old_values, read, written
from grader.emulator.ptx import Instr


class Kind(IntEnum):
    """UNIFORM: all lanes equal. AFFINE: lane i holds base + i·stride, base the same in all lanes. VECTOR: anything."""

    UNIFORM = 0
    AFFINE = 1
    VECTOR = 2


@dataclass(frozen=True, slots=True)
class Shape:
    """`stride` of an AFFINE shape is a number known at translation, or None for a uniform value known only at run
    time."""

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
    return UNIFORM if stride == 0 else Shape(Kind.AFFINE, stride)


def join(a: Shape | None, b: Shape | None) -> Shape | None:
    if a is None or a == b:
        return b
    if b is None:
        return a
    if a.kind is Kind.VECTOR or b.kind is Kind.VECTOR:
        return VECTOR
    return DYNAMIC


ShapeRule = Callable[[Instr, Callable[[str], Shape | None], str], Shape | None]
"""(instruction, shape of a register it reads, written register) → shape of the result; None while unknown."""


@dataclass(slots=True)
class Values:
    """The result of the analysis. Webs are numbered; a web's C variable is named after its register and number."""

    web_at: dict[tuple[int, str, bool], int]  # (instr.index, register, is a write) → web
    web_at_end: list[dict[str, int]]  # per block: register → web, for the terminator's operands
    register: list[str]  # web → register
    shape: list[Shape]  # web → shape
    local: list[bool]  # web → used in one block only, and written there before each use
    live_in: list[set[int]]  # per block: webs that are live at its start
    divergent: set[int]  # blocks whose branch may part the lanes

    def of_read(self, instr: Instr, name: str) -> int:
        return self.web_at[(instr.index, name, False)]

    def of_write(self, instr: Instr, name: str) -> int:
        return self.web_at[(instr.index, name, True)]


def analyse(ssa: Ssa, rule: ShapeRule, *, apart: bool = False) -> Values:
    """Find the shapes of a function's webs. With `apart`, lanes may be at different places of the function at a
    time."""
    webs = ssa.webs
    merged: list[Shape | None] = [None] * len(webs.register)
    for value, shape in enumerate(_solve(ssa, rule, apart)):
        merged[webs.of_value[value]] = join(merged[webs.of_value[value]], shape)
    shapes = [s if s is not None else UNIFORM for s in merged]
    divergent = {
        block.number
        for block in ssa.graph.blocks
        if isinstance(block.end, Branch | Switch) and shapes[next(iter(webs.at_end[block.number].values()))] != UNIFORM
    }
    return Values(webs.at, webs.at_end, webs.register, shapes, webs.local, webs.live_in, divergent)


# ---- SSA ------------------------------------------------------------------------------------------------------


class Ssa:
    """SSA names: `def_of` and `use_of` map (instruction, register) to a value number. `predicate_of` names the register
    that a block's terminator reads, if any."""

    def __init__(self, graph: Graph, predicate_of: Callable[[Block], str | None]) -> None:
        self.graph = graph
        blocks = graph.blocks
        self.effects = [[(i, read(i), written(i)) for i in b.instrs] for b in blocks]
        self.predicates = [predicate_of(b) for b in blocks]
        self._liveness()
        self.register: list[str] = []
        self.block_of: list[int] = []
        self.def_of: dict[tuple[int, str], int] = {}
        self.use_of: dict[tuple[int, str], int] = {}
        self.end_use: dict[int, int] = {}
        self.phis: list[dict[str, int]] = [{} for _ in blocks]
        self.phi_args: dict[int, list[int]] = {}
        self.users: dict[int, list[tuple[int, Instr | None]]] = {}
        self._place()
        self._rename()
        self.roots = _web_roots(self)
        self.webs = _webs(graph, self)

    def _liveness(self) -> None:
        blocks = self.graph.blocks
        gen: list[set[str]] = []
        kill: list[set[str]] = []
        for b in blocks:
            g: set[str] = set()
            k: set[str] = set()
            for _, names, results in self.effects[b.number]:
                g.update(n for n in names if n not in k)
                k.update(results)
            p = self.predicates[b.number]
            if p is not None and p not in k:
                g.add(p)
            gen.append(g)
            kill.append(k)
        self.kill = kill
        self.live_in: list[set[str]] = [set(g) for g in gen]
        changed = True
        while changed:
            changed = False
            for b in reversed(blocks):
                out: set[str] = set()
                for s in b.successors:
                    out |= self.live_in[s]
                new = gen[b.number] | (out - kill[b.number])
                if new != self.live_in[b.number]:
                    self.live_in[b.number] = new
                    changed = True

    def _place(self) -> None:
        blocks, idom = self.graph.blocks, self.graph.dominator
        frontier: list[set[int]] = [set() for _ in blocks]
        for b in blocks:
            if len(b.predecessors) < 2:
                continue
            for p in b.predecessors:
                runner = p
                while runner != idom[b.number]:
                    frontier[runner].add(b.number)
                    if runner == idom[runner]:
                        break
                    runner = idom[runner]
        if 0 in {s for b in blocks for s in b.successors}:  # the entry is a loop header
            for b in blocks:
                if 0 in b.successors:
                    runner = b.number
                    while True:
                        frontier[runner].add(0)
                        if runner == idom[runner]:
                            break
                        runner = idom[runner]
        sites: dict[str, list[int]] = {}
        for b in blocks:
            for name in sorted(self.kill[b.number]):  # sorted, so that builds are reproducible
                sites.setdefault(name, []).append(b.number)
        for name, places in sites.items():
            work = list(places)
            while work:
                for f in frontier[work.pop()]:
                    if name not in self.phis[f] and name in self.live_in[f]:
                        self.phis[f][name] = -1
                        work.append(f)

    def _new(self, name: str, block: int) -> int:
        self.register.append(name)
        self.block_of.append(block)
        return len(self.register) - 1

    def _current(self, current: dict[str, int], undefined: dict[str, int], name: str) -> int:
        """The value that a register has here; a new, undefined one for a register that nothing has written."""
        value = current.get(name, undefined.get(name))
        if value is None:
            value = undefined[name] = self._new(name, 0)
        return value

    def _rename(self) -> None:
        blocks, idom = self.graph.blocks, self.graph.dominator
        children: list[list[int]] = [[] for _ in blocks]
        for b in blocks:
            if b.number != 0:
                children[idom[b.number]].append(b.number)
        for b in blocks:
            for name in self.phis[b.number]:
                value = self._new(name, b.number)
                self.phis[b.number][name] = value
                self.phi_args[value] = []
        undefined: dict[str, int] = {}
        current: dict[str, int] = {}
        work: list[tuple[int, dict[str, int] | None]] = [(0, None)]
        self.entry_values = undefined
        while work:
            number, saved = work.pop()
            current = dict(saved) if saved is not None else {}
            current.update(self.phis[number])
            for instr, names, results in self.effects[number]:
                for name in names:
                    value = self._current(current, undefined, name)
                    current[name] = value
                    self.use_of[(instr.index, name)] = value
                    self.users.setdefault(value, []).append((number, instr))
                for name in results:
                    value = self._new(name, number)
                    self.def_of[(instr.index, name)] = value
                    current[name] = value
            p = self.predicates[number]
            if p is not None:
                value = self._current(current, undefined, p)
                self.end_use[number] = value
                self.users.setdefault(value, []).append((number, None))
            for s in blocks[number].successors:
                for name, phi in self.phis[s].items():
                    argument = self._current(current, undefined, name)
                    self.phi_args[phi].append(argument)
                    self.users.setdefault(argument, []).append((s, None))
            for child in children[number]:
                work.append((child, current))


# ---- shapes ---------------------------------------------------------------------------------------------------


def _solve(ssa: Ssa, rule: ShapeRule, apart: bool) -> list[Shape | None]:
    graph = ssa.graph
    count = len(ssa.register)
    shapes: list[Shape | None] = [None] * count
    if not graph.reducible:
        return [VECTOR] * count
    # The values of a web share one variable, so they all get the shape that any of them needs.
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
        """The shape that an instruction sees. nvcc leaves registers unwritten if no bits of them matter, such as half
        of a pair."""
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
    """Make registers that are read before anything writes them UNIFORM if their web got no shape. True if there were
    any. This happens last, so that a value undefined on one path keeps the shape that it has on the other."""
    left = [value for value in undefined if shapes[value] is None]
    for value in left:
        update(value, UNIFORM)
    return bool(left)


def _made_vector(graph: Graph, ssa: Ssa, block: Block) -> set[int]:
    """The values that differ between lanes because the lanes part at the end of `block`."""
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
        if region <= body:  # lanes that part here meet again inside the loop
            continue
        for value, users in ssa.users.items():
            if ssa.block_of[value] in body and any(b not in body for b, _ in users):
                result.add(value)
    return result


# ---- webs -----------------------------------------------------------------------------------------------------


def _web_roots(ssa: Ssa) -> list[int]:
    """For each value, one representative of its web, the set of values that must share a variable."""
    parent = list(range(len(ssa.register)))

    def find(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for phi, arguments in ssa.phi_args.items():
        for a in arguments:
            parent[find(a)] = find(phi)
    for block_effects in ssa.effects:
        for instr, _, results in block_effects:
            if not keeps_old_values(instr):
                continue
            for name in results:  # the old value may stay, so the new one needs the same variable
                parent[find(ssa.use_of[(instr.index, name)])] = find(ssa.def_of[(instr.index, name)])
    return [find(value) for value in range(len(ssa.register))]


@dataclass(slots=True)
class _Webs:
    """The part of Values that does not depend on shapes; `of_value` maps SSA values to webs."""

    at: dict[tuple[int, str, bool], int]
    at_end: list[dict[str, int]]
    register: list[str]
    local: list[bool]
    live_in: list[set[int]]
    of_value: list[int]


def _webs(graph: Graph, ssa: Ssa) -> _Webs:
    roots = ssa.roots
    number: dict[int, int] = {}
    register: list[str] = []
    for value, root in enumerate(roots):
        if root not in number:
            number[root] = len(register)
            register.append(ssa.register[value])
    web_at: dict[tuple[int, str, bool], int] = {}
    for (key, name), value in ssa.use_of.items():
        web_at[(key, name, False)] = number[roots[value]]
    for (key, name), value in ssa.def_of.items():
        web_at[(key, name, True)] = number[roots[value]]
    # Values at block ends, and liveness of webs.
    web_at_end: list[dict[str, int]] = []
    for b in graph.blocks:
        p = ssa.predicates[b.number]
        web_at_end.append({p: number[roots[ssa.end_use[b.number]]]} if p is not None else {})
    gen: list[set[int]] = []
    kill: list[set[int]] = []
    used_in: list[set[int]] = [set() for _ in register]
    upward: list[bool] = [False] * len(register)
    for b in graph.blocks:
        g: set[int] = set()
        k: set[int] = set()
        for instr, names, results in ssa.effects[b.number]:
            for name in names:
                web = web_at[(instr.index, name, False)]
                used_in[web].add(b.number)
                if web not in k:
                    g.add(web)
                    upward[web] = True
            for name in results:
                web = web_at[(instr.index, name, True)]
                used_in[web].add(b.number)
                k.add(web)
        for web in web_at_end[b.number].values():
            used_in[web].add(b.number)
            if web not in k:
                g.add(web)
                upward[web] = True
        gen.append(g)
        kill.append(k)
    live_in = [set(g) for g in gen]
    changed = True
    while changed:
        changed = False
        for b in reversed(graph.blocks):
            out: set[int] = set()
            for s in b.successors:
                out |= live_in[s]
            new = gen[b.number] | (out - kill[b.number])
            if new != live_in[b.number]:
                live_in[b.number] = new
                changed = True
    local = [len(blocks) <= 1 and not up for blocks, up in zip(used_in, upward, strict=True)]
    return _Webs(web_at, web_at_end, register, local, live_in, [number[root] for root in roots])
