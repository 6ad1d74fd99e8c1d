"""What a program's kernels execute and access for a shape, from sampled runs of the emulator on some of its units.

A run of the whole shape would read and write hundreds of megabytes. Units (batches, heads, matrices) are alike, so two
runs with fewer units show how launches, blocks and counts grow with their number: in proportion, or not at all. The
smaller run has one more block of each launch. If the blocks that run do the work of all, as from a queue, what one
counts shrinks with it, and counts must not be multiplied. A kernel with none of these laws would be a guess (`NoLaw`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

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


def groups_of(trace: Trace) -> dict[Key, Group]:
    """The groups of a sampled run. Raises NoLaw for a trace that the emulator would not write."""
    groups: dict[Key, Group] = {}
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


def extrapolated(runs: Sequence[tuple[int, Trace]], units: int, sample: int) -> list[Group]:
    """The groups for `units` units, from a run with as many or fewer and `sample` blocks of each launch, and one with
    half of the units and one block more. Raises NoLaw."""
    (most, trace), (fewer, other_trace) = runs
    large, small = groups_of(trace), groups_of(other_trace)
    if large.keys() != small.keys():
        raise NoLaw("it launches other kernels, or other blocks, when there are more units")
    total = sum(sum(group.lines.values()) for group in large.values())
    for key, group in large.items():
        growth = _Growth(fewer, most, units, group.kernel)
        ran, other = sum(group.lines.values()), small[key]
        slight = ran < 0.03 * total
        each = group.blocks / group.launches
        times = growth(sum(other.lines.values()), ran, slight, sample if each > sample + 1 else 0) / max(1.0, ran)
        if growth.queue:
            times *= sample / each
        group.launches = growth(other.launches, group.launches, slight)
        group.blocks = growth(other.blocks, group.blocks, slight)
        group.lines = {line: times * count for line, count in group.lines.items()}
        for place, access in group.accesses.items():
            access.requests, access.lanes = times * access.requests, times * access.lanes
            access.units, access.excess = times * access.units, times * access.excess
            before = other.accesses.get(place)
            if before is not None and before.array_bytes:
                access.array_bytes = growth(before.array_bytes, access.array_bytes, slight=True)
    return sorted(large.values(), key=lambda group: -sum(group.lines.values()))


@dataclass
class _Growth:
    fewer: int
    most: int
    units: int
    kernel: str
    queue: bool = False

    def __call__(self, a: float, b: float, slight: bool, sample: int = 0) -> float:
        """The count for `units`, from `a` for `fewer` and `b` for `most`. `slight`: a wrong law would not matter. With
        `sample`, `queue` is set if the blocks that ran did the work of all."""
        ratio = b / a if a else 0.0
        in_proportion = ratio * self.fewer / self.most
        if sample and abs(in_proportion * sample / (sample + 1) - 1) <= _PROPORTIONAL:
            self.queue = True
            return b * self.units / self.most
        if abs(in_proportion - 1) <= _PROPORTIONAL or slight:
            return b * self.units / self.most
        if abs(ratio - 1) <= _PROPORTIONAL:
            return b
        if a >= 1 and b <= 4:  # launches of up to so many units each: one for few units, more for many
            return max(b, b * self.units / self.most)
        raise NoLaw(
            f"{self.kernel} has {a:,.0f} launches, blocks or executions for {self.fewer} units, but {b:,.0f} for "
            f"{self.most}"
        )
