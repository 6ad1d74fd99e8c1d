"""The values of a function, numbered as in SSA form without rewriting any code, and the webs that they form.

A web is a set of values joined by phis. The values of a web come from one PTX register and never interfere, so each web
becomes one C variable.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cudaemu.analysis.cfg import Block, Graph
from cudaemu.analysis.effects import keeps_old_values, read, written
from cudaemu.ptx import Instr

T = TypeVar("T")


@dataclass
class Webs:
    """Sets of values that share a variable, numbered. A web's C variable is named after its register and number."""

    web_at: dict[tuple[int, str, bool], int]  # (instr.index, register, is a write) → web
    web_at_end: list[dict[str, int]]  # per block: register → web, for the terminator's operands
    register: list[str]  # web → register
    local: list[bool]  # web → used in one block only, and written there before each use
    live_in: list[set[int]]  # per block: webs that are live at its start
    of_value: list[int]  # value → web

    def of_read(self, instr: Instr, name: str) -> int:
        return self.web_at[(instr.index, name, False)]

    def of_write(self, instr: Instr, name: str) -> int:
        return self.web_at[(instr.index, name, True)]


class Ssa:
    """SSA names: `def_of` and `use_of` map (instruction, register) to a value number."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        blocks = graph.blocks
        self.effects = [[(i, read(i), written(i)) for i in b.instrs] for b in blocks]
        self.conditions = [b.condition for b in blocks]
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
        reads, self.kill = [], []
        for steps, condition in zip(self.effects, self.conditions, strict=True):
            names = [(names, results) for _, names, results in steps]
            first, changed = exposed([*names, ((condition,) if condition is not None else (), ())])
            reads.append(first)
            self.kill.append(changed)
        self.live_in = live_at_starts(self.graph.blocks, reads, self.kill)

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
        """The value that a register has here: a new, undefined value if nothing has written the register."""
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
            p = self.conditions[number]
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


def _web_roots(ssa: Ssa) -> list[int]:
    """For each value, the representative of its web, the set of values that must share a variable."""
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
            for name in results:  # the old value can stay, so the new value needs the same variable
                parent[find(ssa.use_of[(instr.index, name)])] = find(ssa.def_of[(instr.index, name)])
    return [find(value) for value in range(len(ssa.register))]


def _webs(graph: Graph, ssa: Ssa) -> Webs:
    number: dict[int, int] = {}
    register: list[str] = []
    for value, root in enumerate(ssa.roots):
        if root not in number:
            number[root] = len(register)
            register.append(ssa.register[value])
    of_value = [number[root] for root in ssa.roots]
    web_at = {(index, name, False): of_value[value] for (index, name), value in ssa.use_of.items()}
    web_at |= {(index, name, True): of_value[value] for (index, name), value in ssa.def_of.items()}
    web_at_end: list[dict[str, int]] = []
    used_in: list[set[int]] = [set() for _ in register]
    reads, writes = [], []
    for block in graph.blocks:
        condition = block.condition
        web_at_end.append({condition: of_value[ssa.end_use[block.number]]} if condition is not None else {})
        steps = [
            ([web_at[i.index, name, False] for name in names], [web_at[i.index, name, True] for name in results])
            for i, names, results in ssa.effects[block.number]
        ]
        steps.append(([*web_at_end[-1].values()], []))
        for web in itertools.chain(*itertools.chain(*steps)):
            used_in[web].add(block.number)
        first, changed = exposed(steps)
        reads.append(first)
        writes.append(changed)
    read_first = set().union(*reads)
    local = [len(blocks) <= 1 and web not in read_first for web, blocks in enumerate(used_in)]
    return Webs(web_at, web_at_end, register, local, live_at_starts(graph.blocks, reads, writes), of_value)


# ---- liveness ---------------------------------------------------------------------------------------------------


def exposed(steps: Iterable[tuple[Iterable[T], Iterable[T]]]) -> tuple[set[T], set[T]]:
    """The names that a block reads before it writes them, and the names that it writes. `steps` are the reads and
    writes of its instructions."""
    first: set[T] = set()
    changed: set[T] = set()
    for reads, writes in steps:
        first.update(name for name in reads if name not in changed)
        changed.update(writes)
    return first, changed


def live_at_starts(blocks: Sequence[Block], reads: Sequence[set[T]], writes: Sequence[set[T]]) -> list[set[T]]:
    """The names that are live at the start of each block. `reads` are the names that a block reads before it writes
    them, `writes` the names that it writes."""
    live = [set(each) for each in reads]
    changed = True
    while changed:
        changed = False
        for b in reversed(blocks):
            after = set().union(*(live[s] for s in b.successors))
            new = reads[b.number] | (after - writes[b.number])
            if new != live[b.number]:
                live[b.number] = new
                changed = True
    return live
