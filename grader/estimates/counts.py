"""What a program's kernels execute and access for a shape, from sampled runs of the emulator on some of its units.

A run of the whole shape would read and write hundreds of megabytes. Units (batches, heads, matrices) are alike, so two
runs with fewer units show how launches, blocks and counts grow with their number (`extrapolated`). The smaller run has
one more block of each launch. If the blocks that run do the work of all, as from a queue, what one counts shrinks with
it, and counts must not be multiplied.

Where even two blocks take too long, runs with shorter units show how counts grow with a unit's length. Counts of loops
are polynomials without negative terms (`grown`). A kernel with another law would be a guess (`NoLaw`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log2, prod

import numpy as np

from grader.estimates.flow import nnls
from grader.programs.trace import Trace

_PROPORTIONAL = 0.12
"""Two counts are in proportion, or equal, if they are within 12 % of it: grids are rounded up to whole blocks."""


class NoLaw(Exception):
    """The program's launches follow no law that can be extrapolated; the message says what was seen."""


@dataclass
class Access:
    """One load, store or atomic: totals over all launches. `near` is a histogram of reuse distances (`ReuseEvent`)."""

    space: str
    operation: str
    file: str
    line: int
    bytes: int
    stride: int | None = 0
    requests: float = 0.0
    lanes: float = 0.0
    units: float = 0.0
    excess: float = 0.0
    near: tuple[int, ...] = ()
    array: int = 0
    array_bytes: float = 0.0


@dataclass
class Group:
    """The launches of one kernel with the same block and shared memory. `blocks` is the sum over `launches`; `lines`
    has how many warps executed each line of PTX, `accesses` the accesses by (line, space)."""

    kernel: str
    entry: str
    threads: int
    static_shared: int
    dynamic_shared: int
    local_bytes: int
    launches: float = 0.0
    blocks: float = 0.0
    streams: int = 1
    lines: dict[int, float] = field(default_factory=dict)
    accesses: dict[tuple[int, str], Access] = field(default_factory=dict)

    @property
    def warps(self) -> int:
        """Of a block."""
        return -(-self.threads // 32)


Key = tuple[str, int, int]
Groups = dict[Key, Group]


def groups_of(trace: Trace) -> Groups:
    """The groups of a sampled run. Raises NoLaw for a trace that the emulator would not write."""
    groups: Groups = {}
    by_number: dict[int, Group] = {}
    for event in trace.launches:
        threads = prod(event.block)
        key = event.entry, threads, event.dynamic_shared_bytes
        empty = Group(
            event.kernel, event.entry, threads, event.static_shared_bytes, event.dynamic_shared_bytes, event.local_bytes
        )
        group = by_number[event.group] = groups.setdefault(key, empty)
        group.launches += event.count
        group.blocks += event.count * prod(event.grid)
        group.streams = max(group.streams, event.streams)
    groups_named = ({event.group for event in events} for events in (trace.executed, trace.accesses, trace.reuse))
    if not by_number.keys() >= set[int]().union(*groups_named):
        raise NoLaw("its trace counts launches that it does not name")
    for ran in trace.executed:
        lines = by_number[ran.group].lines
        for line in range(ran.first, ran.last + 1):
            lines[line] = lines.get(line, 0.0) + ran.warps
    for seen in trace.accesses:
        if not seen.ptx_line:
            continue
        place = seen.ptx_line, seen.space
        access = by_number[seen.group].accesses.setdefault(
            place, Access(seen.space, seen.operation, seen.file, seen.line, seen.bytes, seen.stride)
        )
        access.requests += seen.requests
        access.lanes += seen.lanes
        access.units += seen.units
        access.excess += seen.excess
    for reuse in trace.reuse:
        found = by_number[reuse.group].accesses.get((reuse.ptx_line, "global"))
        if found is not None:
            if found.near and len(found.near) != len(reuse.near):
                raise NoLaw("its trace has histograms of two lengths")
            sums = zip(found.near or (0,) * len(reuse.near), reuse.near, strict=True)
            found.near = tuple(a + b for a, b in sums)
            found.array, found.array_bytes = reuse.array, reuse.array_bytes
    return groups


def extrapolated(large: Groups, small: Groups, sizes: tuple[int, int], units: int, sample: int) -> list[Group]:
    """The groups for `units` units, from those of a run with sizes[0] of them and `sample` blocks of each launch, and
    of one with sizes[1], half of them, and one block more. Raises NoLaw."""
    most, fewer = sizes
    for key in large.keys() & small.keys():
        group = large[key]
        each, ran, before = group.blocks / group.launches, sum(group.lines.values()), sum(small[key].lines.values())
        law = ran / max(before, 1.0) * fewer / most * sample / (sample + 1)
        if each > sample + 1 and abs(law - 1) <= _PROPORTIONAL:  # a queue: the blocks that ran did the work of all
            _multiply(group, sample / each)
            _multiply(small[key], (sample + 1) / each)
    found = grown([(fewer, small), (most, large)], units) if most < units else large
    return sorted(found.values(), key=lambda group: -sum(group.lines.values()))


def _multiply(group: Group, times: float) -> None:
    group.lines = {line: times * count for line, count in group.lines.items()}
    for access in group.accesses.values():
        for name in _TOTALS:
            setattr(access, name, times * getattr(access, name))


_TOTALS = "requests", "lanes", "units", "excess"


def grown(runs: Sequence[tuple[int, Groups]], size: int) -> Groups:
    """The groups at `size`, from runs at two sizes (numbers of units) or three (lengths of a unit), the smallest first.
    Raises NoLaw."""
    sizes = [n for n, _ in runs]
    ordered = [sorted(groups.values(), key=lambda g: (g.entry, g.threads, g.dynamic_shared)) for _, groups in runs]
    if len({tuple((g.entry, g.threads) for g in groups) for groups in ordered}) > 1:
        raise NoLaw("it launches other kernels, or other blocks, when there is more data")
    found: Groups = {}
    total = sum(sum(g.lines.values()) for g in ordered[-1])
    for same in zip(*ordered, strict=True):
        last = same[-1]
        totals = [sum(g.lines.values()) for g in same]
        kernel = "" if totals[-1] < 0.03 * total else last.kernel  # a wrong law would not matter
        _law(sizes, totals, size, kernel)
        group = replace(
            last,
            dynamic_shared=round(_law(sizes, [g.dynamic_shared for g in same], size)),
            launches=_law(sizes, [g.launches for g in same], size, kernel),
            blocks=_law(sizes, [g.blocks for g in same], size, kernel),
            lines={n: _law(sizes, [g.lines.get(n, 0.0) for g in same], size) for n in last.lines},
            accesses={},
        )
        for place, access in last.accesses.items():
            seen = [a for g in same if (a := g.accesses.get(place))]
            at = {name: _law(sizes, [getattr(a, name) for a in seen], size) for name in (*_TOTALS, "array_bytes")}
            near = _farther(sizes, [a.near for a in seen], size) if len(seen) > 2 else access.near
            group.accesses[place] = replace(access, **at, near=near)
        found[group.entry, group.threads, group.dynamic_shared] = group
    return found


def _law(sizes: Sequence[int], values: Sequence[float], size: int, kernel: str = "") -> float:
    """The value at `size` of the polynomial without negative terms that fits `values`; of two values, in proportion or
    constant if they are nearly that. Raises NoLaw if nothing fits and `kernel` is named."""
    sizes = sizes[-len(values) :]
    last = values[-1]
    if not any(values):
        return 0.0
    if max(values) <= (1 + _PROPORTIONAL) * min(values):
        return last
    in_proportion = [value * sizes[-1] / n / last if last else 0.0 for n, value in zip(sizes, values, strict=True)]
    if max(abs(share - 1) for share in in_proportion) <= _PROPORTIONAL:
        return last * size / sizes[-1]
    scale = np.array([value or max(values) for value in values])[:, None] / max(values)
    terms = np.array([[(n / sizes[-1]) ** k for k in range(len(sizes) + (len(sizes) > 2))] for n in sizes]) / scale
    sides = np.array([float(value > 0) for value in values])
    factors = nnls(terms.T @ terms, terms.T @ sides)
    if kernel and np.abs(terms @ factors - sides).max() > _PROPORTIONAL:
        seen = ", ".join(f"{value:,.0f}" for value in values)
        raise NoLaw(f"{kernel} has {seen} launches, blocks or executions at sizes {', '.join(map(str, sizes))}")
    return max(values) * float(sum(factor * (size / sizes[-1]) ** k for k, factor in enumerate(factors)))


_QUANTILES = np.linspace(0.0, 1.0, 65)[1:] - 1 / 128


def _farther(sizes: Sequence[int], nears: Sequence[tuple[int, ...]], size: int) -> tuple[int, ...]:
    """Reuse distances at `size`: each quantile of them moves with the logarithm of the size as between the two largest
    runs, and the share of first uses falls as it does there."""
    last = nears[-1]
    if not all(sum(near[:-1]) for near in nears[-2:]):
        return last
    doublings, more = log2(sizes[-1] / sizes[-2]), log2(size / sizes[-1])
    at = [np.searchsorted(np.cumsum(near[:-1]) / sum(near[:-1]), _QUANTILES) for near in nears[-2:]]
    moved = np.clip(np.rint(at[1] + np.maximum(0, at[1] - at[0]) / doublings * more), 0, len(last) - 2)
    first = [max(near[-1], 1) / sum(near) for near in nears[-2:]]
    share = min(first[1], first[1] * (first[1] / first[0]) ** (more / doublings))
    counts = np.bincount(moved.astype(int), minlength=len(last) - 1) * (1 - share) * 1e6 / len(_QUANTILES)
    return (*(round(float(count)) for count in counts), round(1e6 * share))
