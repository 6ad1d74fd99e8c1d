"""How often a GPU executes each block of machine code, from how often the emulator executed each line of PTX.

ptxas unrolls, moves and merges code, so a line of PTX may stand in several blocks, or in none. But it says which line
each machine instruction comes from, and what flows into a block flows out of it. Both are linear equations in the
number of times that each edge between blocks is taken. They are solved by non-negative least squares (Lawson and
Hanson, "Solving Least Squares Problems", 1974, chapter 23). Where several solutions remain, the one with fewer
executions is taken, since ptxas prefers unrolled loops to their remainders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from grader.estimates.machine_code import Code

Vector = NDArray[np.float64]

_ANCHORS = {  # PTX operations, and the machine instruction that they become one of: others become several, or none
    "ld.shared": "LDS", "st.shared": "STS", "ld.global": "LDG", "st.global": "STG", "ld.local": "LDL",
    "st.local": "STL", "atom": "ATOM", "red": "RED", "fma": "FFMA", "mul": "FMUL", "add": "FADD", "sub": "FADD",
    "max": "FMNMX", "min": "FMNMX", "ex2": "MUFU", "bar": "BAR", "shfl": "SHFL", "mma": "HMMA", "ldmatrix": "LDSM",
    "cp.async": "LDGSTS", "wgmma": "HGMMA",
}  # fmt: skip
_CONSERVED = 10.0  # the weight of what flows in flowing out, against the counts of lines
_STEEP = 10.0  # flows into and out of a block differ by less: the smaller may be a first guess
_ROUNDS = 5
_FEWER = 1e-4  # the weight of having few executions, against equations whose sides are near 1


def block_executions(code: Code, lines: Mapping[int, float], warps: float) -> tuple[Vector, float]:
    """The executions of a kernel's blocks, by warps over all launches; and the misfit, the part of the anchored lines'
    executions that they do not explain, from 0 to 1. `lines` has how many warps executed each line of PTX, and `warps`
    is the number of warps that entered the kernel."""
    warps, size, reached = max(warps, 1.0), len(code.blocks), [0]
    for block in reached:
        reached += [to for to in code.blocks[block].successors if to not in reached]
    edges = [(size, 0)] + [(b, to) for b in reached for to in code.blocks[b].successors or (size,)]  # size: outside
    out, into = np.zeros((2, size + 1, len(edges)))
    for number, (a, b) in enumerate(edges):
        out[a, number] += 1
        into[b, number] += 1
    into, out = into[reached], out[reached]
    anchors = _anchors(code, reached)
    copies = np.array([[blocks[b] for b in reached] for blocks in anchors.values()]).reshape(-1, len(reached))
    counts = np.array([lines.get(line, 0.0) for line in anchors])
    through = copies @ into
    scale = np.maximum(warps, ((through > 0) * counts[:, None]).max(axis=0, initial=0.0))
    flow = np.zeros(len(edges))
    for _ in range(_ROUNDS):  # so that having few executions weighs the same on every edge
        scale = np.maximum(scale, flow)
        most = np.maximum((into * scale).max(axis=1), (out * scale).max(axis=1) / _STEEP)[:, None]
        known = through / np.where(counts, counts, warps)[:, None]
        rows = np.eye(1, len(edges)) / warps, _CONSERVED * (into - out) / most, known
        sides = np.concatenate([[1.0], np.zeros(len(reached)), counts > 0])
        a = np.concatenate(rows) * scale  # numbers near 1 are solved for
        flow = nnls(a.T @ a, a.T @ sides - _FEWER) * scale
    executions = np.zeros(size)
    executions[reached] = into @ flow
    return executions, float(np.abs(through @ flow - counts).sum() / max(warps, counts.sum()))


def _anchors(code: Code, reached: list[int]) -> dict[int, Counter[int]]:
    """How many copies of each line of PTX that becomes one instruction a block has, or else of predicated ones."""
    found: dict[int, Counter[int]] = {}
    guarded = set()
    for number in reached:
        for instruction in code.blocks[number].instructions:
            line, operation = instruction.ptx_line, code.ptx.get(instruction.ptx_line, "")
            name = next((to for prefix, to in _ANCHORS.items() if operation.startswith(prefix)), None)
            if name is not None and instruction.name.startswith(name):
                found.setdefault(line, Counter())[number] += 1
                if instruction.predicate:  # a branch that became a predicate: executed by more warps
                    guarded.add(line)
    free = {number for line, blocks in found.items() if line not in guarded for number in blocks}
    return {line: blocks for line, blocks in found.items() if line not in guarded or not free & blocks.keys()}


def nnls(gram: Vector, target: Vector) -> Vector:
    """The x ≥ 0 that minimises xᵀGx/2 − tᵀx."""
    n = len(target)
    gram = gram + 1e-9 * np.eye(n) * max(1.0, float(np.trace(gram)) / n)
    x = np.zeros(n)
    passive = np.zeros(n, bool)
    for _ in range(3 * n):
        gradient = np.where(passive, -np.inf, target - gram @ x)
        best = int(np.argmax(gradient))
        if gradient[best] <= 1e-10:
            break
        passive[best] = True
        while True:
            chosen = np.flatnonzero(passive)
            z = np.linalg.solve(gram[np.ix_(chosen, chosen)], target[chosen])
            falling = z <= 0
            if not falling.any():
                break
            old = x[chosen]
            step = float(np.min(old[falling] / np.maximum(old[falling] - z[falling], 1e-300)))
            x[chosen] = old + step * (z - old)
            passive[chosen[(x[chosen] <= 1e-14) & falling]] = False
            x[~passive] = 0.0
        x[:] = 0.0
        x[chosen] = z
    return x
