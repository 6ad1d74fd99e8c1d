"""The control-flow graph of a PTX function, numbered so that "lowest pending block first" makes lanes reconverge.

The execution model (see runtime/warp.h) rests on two properties of the numbering:

* a block has a higher number than all its predecessors except along back edges, and the blocks of a loop are numbered
  without gaps, the only latch of the loop last. Running the lowest-numbered pending block first then makes lanes that
  diverged at a branch reconverge no later than the branch's immediate post-dominator;
* a barrier ends its block, so that lanes of a divided warp can wait at it block by block.

A loop with several back edges gets one new latch that they all lead to. A graph that is not reducible (gotos into
loops) keeps the order of the blocks in the PTX source. Then `reducible` is False, and no value may be assumed uniform.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from cudaemu.ptx import Function, Imm, Instr, Reg, Sym
from cudaemu.ptx.model import UNKNOWN, Label, Loc

MAX_LOOPS, MAX_NESTED_LOOPS = 2000, 200
"""Of one function, and inside one another: time and memory grow with the square of both."""


class TooManyLoops(Exception):
    """The message is a phrase: which limit a function exceeds. `loc` is the place of one of the loops."""

    def __init__(self, what: str, block: Block) -> None:
        super().__init__(what)
        end = block.end
        self.loc = next((i.loc for i in block.instrs), end.loc if isinstance(end, Branch | Switch) else UNKNOWN)


_NESTED = f"more than {MAX_NESTED_LOOPS} loops inside one another"


@dataclass(frozen=True, slots=True)
class Goto:
    target: int


@dataclass(frozen=True, slots=True)
class Branch:
    condition: Reg
    taken: int
    fallthrough: int
    loc: Loc


@dataclass(frozen=True, slots=True)
class Switch:
    index: Reg
    targets: tuple[int, ...]
    loc: Loc


@dataclass(frozen=True, slots=True)
class Gate:
    """A branch that the number of the change to try decides (switches.py): it is taken if that number plus `offset`, in
    32 bits, is less than `count`."""

    offset: int
    count: int
    taken: int
    fallthrough: int


@dataclass(frozen=True, slots=True)
class Leave:
    """A ret or exit. `exits`: whether it ends the thread, not only the function."""

    exits: bool


Terminator = Goto | Branch | Switch | Gate | Leave


@dataclass(slots=True)
class Block:
    number: int
    instrs: list[Instr]
    end: Terminator
    predecessors: list[int] = field(default_factory=list)

    @property
    def successors(self) -> tuple[int, ...]:
        end = self.end
        if isinstance(end, Goto):
            return (end.target,)
        if isinstance(end, Branch | Gate):
            return (end.taken, end.fallthrough) if end.taken != end.fallthrough else (end.taken,)
        if isinstance(end, Switch):
            return tuple(dict.fromkeys(end.targets))
        return ()

    @property
    def condition(self) -> str | None:
        """The register that decides where lanes go from the block's end, if there is one."""
        end = self.end
        return end.condition.name if isinstance(end, Branch) else end.index.name if isinstance(end, Switch) else None


@dataclass(slots=True)
class Graph:
    blocks: list[Block]
    reducible: bool
    dominator: list[int]  # immediate dominators; block 0 is its own
    postdominator: list[int]  # immediate post-dominators; len(blocks) stands for the exit
    loops: dict[int, set[int]]  # header → the loop's blocks

    @property
    def exit(self) -> int:
        return len(self.blocks)

    def region(self, number: int) -> set[int]:
        """The blocks that lanes can run after the end of block `number` and before its post-dominator."""
        beyond = (self.postdominator[number], self.exit)
        seen: set[int] = set()
        work = list(self.blocks[number].successors)
        while work:
            node = work.pop()
            if node not in seen and node not in beyond:
                seen.add(node)
                work.extend(self.blocks[node].successors)
        return seen


def is_barrier(instr: Instr) -> bool:
    """Whether threads of a thread block wait for each other at this instruction."""
    return instr.op in ("bar", "barrier") and instr.mods.action in ("sync", "red")


def build(function: Function, split: frozenset[int] = frozenset()) -> Graph:
    """Build the graph of a function. `split` holds indices of instructions that must begin a block. Raises
    TooManyLoops."""
    blocks = _blocks(function, split)
    blocks = _merge_latches(_reachable(blocks))
    order, reducible = _order(blocks)
    blocks = _renumber(blocks, order)
    _fill_predecessors(blocks)
    dominator = dominators([b.predecessors for b in blocks], 0, list(range(len(blocks))))
    return Graph(blocks, reducible, dominator, _postdominators(blocks), _loops(blocks, dominator))


# ---- blocks ---------------------------------------------------------------------------------------------------


def _blocks(function: Function, split: frozenset[int]) -> list[Block]:
    starts: list[list[Instr]] = [[]]
    labels: dict[str, int] = {}
    for item in function.body:
        if isinstance(item, Label):
            if starts[-1] or len(starts) == 1:  # a label never begins block 0, which must have no predecessors
                starts.append([])
            labels[item.name] = len(starts) - 1
            continue
        if item.index in split and starts[-1]:
            starts.append([])
        starts[-1].append(item)
        if item.op in ("bra", "ret", "exit", "brx", "trap") or is_barrier(item):
            starts.append([])
    leave = len(starts)
    blocks: list[Block] = []
    for number, instrs in enumerate(starts):
        end: Terminator = Goto(number + 1) if number + 1 < len(starts) else Leave(function.entry)
        if instrs:
            last = instrs[-1]
            if last.op == "bra":
                instrs = instrs[:-1]
                label = last.operands[0]
                assert isinstance(label, Sym)
                target = labels[label.name]
                end = Branch(last.guard, target, number + 1, last.loc) if last.guard else Goto(target)
                match last.operands[1:]:
                    case (Imm(offset), Imm(count)):
                        end = Gate(offset, count, target, number + 1)
            elif last.op == "brx":
                instrs = instrs[:-1]
                index = last.operands[0]
                assert isinstance(index, Reg)
                end = Switch(index, tuple(labels[t] for t in last.targets), last.loc)
            elif last.op in ("ret", "exit"):
                instrs = instrs[:-1]
                exits = function.entry or last.op == "exit"
                if last.guard:
                    end = Branch(last.guard, leave, number + 1, last.loc)
                    blocks.append(Block(number, instrs, end))
                    continue
                end = Leave(exits)
            elif last.op == "trap" and last.guard is None:
                end = Leave(True)
        blocks.append(Block(number, instrs, end))
    blocks.append(Block(leave, [], Leave(function.entry)))
    return blocks


def _reachable(blocks: list[Block]) -> list[Block]:
    seen = {0}
    work = [0]
    while work:
        for s in blocks[work.pop()].successors:
            if s not in seen:
                seen.add(s)
                work.append(s)
    return _renumber(blocks, [b.number for b in blocks if b.number in seen])


def _renumber(blocks: list[Block], order: list[int]) -> list[Block]:
    new = {old: i for i, old in enumerate(order)}
    result = []
    for i, old in enumerate(order):
        block = blocks[old]
        result.append(Block(i, block.instrs, _map(block.end, new)))
    return result


def _map(end: Terminator, new: dict[int, int]) -> Terminator:
    if isinstance(end, Goto):
        return Goto(new.get(end.target, end.target))
    if isinstance(end, Branch):
        return Branch(end.condition, new.get(end.taken, end.taken), new.get(end.fallthrough, end.fallthrough), end.loc)
    if isinstance(end, Gate):
        return Gate(end.offset, end.count, new.get(end.taken, end.taken), new.get(end.fallthrough, end.fallthrough))
    if isinstance(end, Switch):
        return Switch(end.index, tuple(new.get(t, t) for t in end.targets), end.loc)
    return end


def _fill_predecessors(blocks: list[Block]) -> None:
    for b in blocks:
        b.predecessors = []
    for b in blocks:
        for s in b.successors:
            blocks[s].predecessors.append(b.number)


def _merge_latches(blocks: list[Block]) -> list[Block]:
    _fill_predecessors(blocks)
    order = _reverse_postorder([b.successors for b in blocks], 0)
    position = {n: i for i, n in enumerate(order)}
    headers = {s for b in blocks for s in b.successors if position[s] <= position[b.number]}
    if len(headers) > MAX_LOOPS:
        raise TooManyLoops(f"more than {MAX_LOOPS:,} loops", blocks[min(headers)])
    dominator = dominators([b.predecessors for b in blocks], 0, order)
    latches: dict[int, list[int]] = {}
    for b in blocks:
        for s in b.successors:
            if _dominates(dominator, s, b.number):
                latches.setdefault(s, []).append(b.number)
    for header, sources in latches.items():
        if len(sources) == 1:  # already the loop's only latch
            continue
        latch = len(blocks)
        blocks.append(Block(latch, [], Goto(header)))
        for source in sources:
            blocks[source].end = _map(blocks[source].end, {header: latch})
    return blocks


# ---- orders and dominance ---------------------------------------------------------------------------------------


def dominators(predecessors: list[list[int]], entry: int, order: list[int]) -> list[int]:
    """Immediate dominators (Cooper, Harvey and Kennedy, 2001). `order` is a reverse post-order from the entry."""
    position = {n: i for i, n in enumerate(order)}
    result = [-1] * len(predecessors)
    result[entry] = entry
    changed = True
    while changed:
        changed = False
        for node in order:
            if node == entry:
                continue
            new = -1
            for p in predecessors[node]:
                if result[p] < 0:
                    continue
                if new < 0:
                    new = p
                    continue
                a, b = p, new
                while a != b:
                    while position[a] > position[b]:
                        a = result[a]
                    while position[b] > position[a]:
                        b = result[b]
                new = a
            if new >= 0 and result[node] != new:
                result[node] = new
                changed = True
    return result


def _dominates(dominator: list[int], a: int, b: int) -> bool:
    while True:
        if a == b:
            return True
        up = dominator[b]
        if up in (b, -1):
            return False
        b = up


def _postdominators(blocks: list[Block]) -> list[int]:
    n = len(blocks)
    reverse: list[list[int]] = [list(b.successors) or [n] for b in blocks] + [[]]
    forward: list[list[int]] = [list(b.predecessors) for b in blocks] + [[b.number for b in blocks if not b.successors]]
    # Endless loops do not reach the exit: add edges from them to it, until the order covers all blocks.
    order = _reverse_postorder(forward, n)
    while len(order) < n + 1:
        missing = max(set(range(n)) - set(order))
        reverse[missing] = [*reverse[missing], n]
        forward[n].append(missing)
        order = _reverse_postorder(forward, n)
    return dominators(reverse, n, order)[:n]


def _reverse_postorder(edges: Sequence[Sequence[int]], entry: int) -> list[int]:
    seen = {entry}
    result: list[int] = []
    stack = [(entry, list(edges[entry]))]
    while stack:
        node, pending = stack[-1]
        if pending:
            s = pending.pop()
            if s not in seen:
                seen.add(s)
                stack.append((s, list(edges[s])))
        else:
            stack.pop()
            result.append(node)
    return result[::-1]


def _loops(blocks: list[Block], dominator: list[int]) -> dict[int, set[int]]:
    """The loops, outermost first. Raises TooManyLoops."""
    loops: dict[int, set[int]] = {}
    left = (MAX_NESTED_LOOPS + 1) * (len(blocks) + 1)  # of the sizes of all loops
    for b in blocks:
        for header in b.successors:
            if not _dominates(dominator, header, b.number):
                continue
            body = loops.setdefault(header, {header})
            work = [b.number]
            while work:
                node = work.pop()
                if node not in body:
                    body.add(node)
                    work.extend(blocks[node].predecessors)
                    left -= 1
                    if left < 0:
                        raise TooManyLoops(_NESTED, blocks[header])
    return dict(sorted(loops.items(), key=lambda loop: -len(loop[1])))


def _order(blocks: list[Block]) -> tuple[list[int], bool]:
    """(order, reducible): a topological order in which loops are contiguous and latches come last, and whether the
    graph is reducible."""
    _fill_predecessors(blocks)
    rpo = _reverse_postorder([b.successors for b in blocks], 0)
    dominator = dominators([b.predecessors for b in blocks], 0, rpo)
    loops = _loops(blocks, dominator)
    position = {n: i for i, n in enumerate(rpo)}
    for b in blocks:
        for s in b.successors:
            if position[s] <= position[b.number] and not _dominates(dominator, s, b.number):
                return [b.number for b in blocks], False
    # The innermost loop of each block, the loop around each loop, and how many are around it.
    inner: dict[int, int] = {}
    parent: dict[int, int] = {}
    depth = {-1: 0}
    for header, body in loops.items():
        parent[header] = inner.get(header, -1)
        depth[header] = depth[parent[header]] + 1
        if depth[header] > MAX_NESTED_LOOPS:
            raise TooManyLoops(_NESTED, blocks[header])
        inner |= dict.fromkeys(body, header)

    def unit_in(node: int, region: int) -> int:
        """The node itself if it is directly in `region` (the header of a loop, or -1 for the function), else the header
        of the loop directly in `region` that contains the node."""
        loop = inner.get(node, -1)
        if loop == region:
            return node
        while parent[loop] != region:
            loop = parent[loop]
        return loop

    def arrange(region: int, entry: int) -> list[int]:
        members = loops[region] if region != -1 else {b.number for b in blocks}
        units = {node: unit_in(node, region) for node in members}
        edges: dict[int, set[int]] = {unit: set() for unit in units.values()}
        indegree = dict.fromkeys(edges, 0)
        for node, unit in units.items():
            for s in blocks[node].successors:
                if s in members and s != entry and units[s] != unit and units[s] not in edges[unit]:
                    edges[unit].add(units[s])
                    indegree[units[s]] += 1
        latch = {p for p in blocks[entry].predecessors if p in members} if region != -1 else set()
        ready = [(u in latch, u) for u in edges if indegree[u] == 0]
        heapq.heapify(ready)
        result: list[int] = []
        while ready:
            _, unit = heapq.heappop(ready)  # latches last, the others in the order of the PTX
            if unit in loops and unit != region:
                result.extend(arrange(unit, unit))
            else:
                result.append(unit)
            for target in edges[unit]:
                indegree[target] -= 1
                if indegree[target] == 0:
                    heapq.heappush(ready, (target in latch, target))
        return result

    return arrange(-1, 0), True
