"""How often a GPU executes each block of machine code, from how often the emulator executed each line of PTX.

ptxas unrolls, moves and merges code, so a line of PTX may stand in several blocks, or in none. But it says which line
each machine instruction comes from, and what flows into a block flows out of it. Both are linear equations in the
number of times that each edge between blocks is taken. They are solved by non-negative least squares (Lawson and
Hanson, "Solving Least Squares Problems", 1974, chapter 23). Where several solutions remain, the one with fewer
executions is taken, since ptxas prefers unrolled loops to their remainders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grader.estimates.sass import Kernel

Vector = NDArray[np.float64]

_ANCHORS = {
    "ld.shared": "LDS", "st.shared": "STS", "ld.global": "LDG", "st.global": "STG", "ld.local": "LDL",
    "st.local": "STL", "atom": "ATOM", "red": "RED", "fma": "FFMA", "mul": "FMUL", "add": "FADD", "sub": "FADD",
    "max": "FMNMX", "min": "FMNMX", "ex2": "MUFU", "bar": "BAR", "shfl": "SHFL", "mma": "HMMA", "ldmatrix": "LDSM",
    "cp.async": "LDGSTS", "wgmma": "HGMMA",
}  # fmt: skip
"""A PTX operation → the machine instruction that it becomes one of. Others become several, or none."""
_CONSERVED = 10.0
"""The weight of what flows in flowing out, against the counts of lines."""
_STEEP = 10.0
"""Of flows into and out of a block that are thought to differ more, the smaller is a first guess, and the equations
would be too badly conditioned."""
_ROUNDS = 5
_FEWER = 1e-4
"""The weight of having few executions, against equations whose sides are near 1."""


@dataclass(frozen=True)
class Flow:
    """`executions` of each block, by warps, over all launches; `misfit` is the part of the anchored lines' executions
    that the solution does not explain, from 0 to 1."""

    executions: tuple[float, ...]
    misfit: float


def block_executions(kernel: Kernel, ptx: Mapping[int, str], lines: Mapping[int, float], warps: float) -> Flow:
    """Solve for the executions of a kernel's blocks. `ptx` has the operation in each line of PTX ("ld.shared.f32"),
    `lines` how many warps executed it, and `warps` is the number of warps that entered the kernel."""
    reached = _reachable(kernel)
    edges = [(-1, 0)] + [(b.number, to) for b in kernel.blocks if b.number in reached for to in b.successors]
    ends = [b for b in reached if not kernel.blocks[b].successors]
    edges += [(b, -1) for b in ends]
    into: dict[int, list[int]] = {}
    out: dict[int, list[int]] = {}
    for number, (a, b) in enumerate(edges):
        out.setdefault(a, []).append(number)
        into.setdefault(b, []).append(number)
    anchors = list(_anchors(kernel, ptx, lines, reached))
    scale = np.full(len(edges), max(warps, 1.0))
    for copies, count in anchors:
        for block in copies:
            for edge in into.get(block, ()):
                scale[edge] = max(scale[edge], count)
    flow = np.zeros(len(edges))
    for _ in range(_ROUNDS):  # so that having few executions weighs the same on every edge
        scale = np.maximum(scale, flow)
        flow = _solved(reached, into, out, anchors, scale, max(warps, 1.0))
    executions = [float(sum(flow[e] for e in into.get(block.number, ()))) for block in kernel.blocks]
    missed = sum(abs(sum(k * executions[at] for at, k in copies.items()) - count) for copies, count in anchors)
    return Flow(tuple(executions), missed / max(warps, sum(count for _, count in anchors), 1.0))


def _solved(
    reached: Iterable[int],
    into: Mapping[int, Sequence[int]],
    out: Mapping[int, Sequence[int]],
    anchors: Sequence[tuple[Mapping[int, int], float]],
    scale: Vector,
    warps: float,
) -> Vector:
    """How often each edge is taken; `scale` is about that, and numbers near 1 are solved for."""
    rows: list[tuple[dict[int, float], float]] = [({0: 1 / warps}, 1.0)]
    for block in reached:
        size = max(scale[e] for e in into.get(block, ()) or (0,))
        size = max(size, max(scale[e] for e in out.get(block, ()) or (0,)) / _STEEP)
        row: dict[int, float] = {}
        for e in into.get(block, ()):
            row[e] = row.get(e, 0.0) + _CONSERVED / size
        for e in out.get(block, ()):
            row[e] = row.get(e, 0.0) - _CONSERVED / size
        rows.append((row, 0.0))
    for copies, count in anchors:
        row = {}
        for block, times in copies.items():
            for e in into.get(block, ()):
                row[e] = row.get(e, 0.0) + times / (count or warps)
        rows.append((row, 1.0 if count else 0.0))
    a = np.zeros((len(rows), len(scale)))
    for i, (row, _) in enumerate(rows):
        for e, value in row.items():
            a[i, e] = value * scale[e]
    sides = np.array([value for _, value in rows])
    return nnls(a.T @ a, a.T @ sides - _FEWER) * scale


def _reachable(kernel: Kernel) -> set[int]:
    found, left = {0}, [0]
    while left:
        for to in kernel.blocks[left.pop()].successors:
            if to not in found:
                found.add(to)
                left.append(to)
    return found


def _anchors(
    kernel: Kernel, ptx: Mapping[int, str], lines: Mapping[int, float], reached: Iterable[int]
) -> Iterable[tuple[dict[int, int], float]]:
    """For each PTX line that becomes one instruction: how many copies each block has, and the line's executions."""
    copies: dict[int, dict[int, int]] = {}
    guarded = set()
    for number in reached:
        for instruction in kernel.blocks[number].instructions:
            operation = ptx.get(instruction.ptx_line, "")
            name = next((to for prefix, to in _ANCHORS.items() if operation.startswith(prefix)), None)
            if name is None or not instruction.name.startswith(name):
                continue
            if instruction.predicate and not operation.startswith("@"):
                guarded.add(instruction.ptx_line)  # a branch that became a predicate: executed by more warps
            here = copies.setdefault(instruction.ptx_line, {})
            here[number] = here.get(number, 0) + 1
    for line, blocks in copies.items():
        count = lines.get(line, 0.0)
        if count > 0 and line not in guarded:
            yield blocks, count
        elif line not in guarded:
            yield blocks, 0.0


def nnls(gram: Vector, target: Vector) -> Vector:
    """The x ≥ 0 that minimises xᵀGx/2 − tᵀx."""
    n = len(target)
    gram = gram + 1e-9 * np.eye(n) * max(1.0, float(np.trace(gram)) / n)
    x = np.zeros(n)
    passive = np.zeros(n, bool)
    for _ in range(3 * n):
        gradient = target - gram @ x
        gradient[passive] = -np.inf
        best = int(np.argmax(gradient))
        if gradient[best] <= 1e-10:
            break
        passive[best] = True
        while True:
            chosen = np.flatnonzero(passive)
            z = np.linalg.solve(gram[np.ix_(chosen, chosen)], target[chosen])
            if (z > 0).all():
                break
            old = x[chosen]
            falling = z <= 0
            step = float(np.min(old[falling] / np.maximum(old[falling] - z[falling], 1e-300)))
            x[chosen] = old + step * (z - old)
            passive[chosen[(x[chosen] <= 1e-14) & falling]] = False
            x[~passive] = 0.0
        x[:] = 0.0
        x[chosen] = z
    return x
