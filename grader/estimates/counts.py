"""What a program's kernels execute and access for a testcase, from sampled runs of the emulator on a part of it.

Units (batches, heads, matrices) are alike, so two runs with fewer units show how launches, blocks and counts grow with
their number; one has one block more of each launch. Where even a few blocks take too long, or a single unit is large,
each is three runs with shorter units, which show how counts grow with a unit's length: as polynomials (`_law`); another
law would be a guess. If the blocks that ran do the work of all, as from a queue, their counts shrink with their number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import log2, prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grader.course.assignment import Limits
from grader.course.testcase import Case
from grader.estimates.flow import nnls
from grader.estimates.machine_code import NotPredictable
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.run import run_program
from grader.programs.trace import AccessEvent, ReuseEvent, Trace
from grader.sandbox.scratch import scratch_folder
from grader.timing.sequential import write_sample

_BLOCKS = 2  # of each launch run, in the run with more units
_INPUT_BYTES = 32 << 20  # about the size of the larger input; units beyond it are extrapolated
_PATIENCE_S = 10.0  # few blocks need some seconds; if they need more, shorter units run
_SHORTER = (32, 16, 8, 4, 2)  # of these parts of a unit's length, the first _LENGTHS that are not too short run
_LENGTHS, _SHORTEST = 3, 128


class SampledRun(NamedTuple):
    """A run with so many units of this length; `blocks` of each launch ran and stand for all."""

    units: int
    length: int
    blocks: int
    trace: Trace


class Samples(NamedTuple):
    """Runs with more and with fewer units, the shortest first; the whole case; its work grows with length ** degree."""

    large: Sequence[SampledRun]
    small: Sequence[SampledRun]
    units: int
    length: int
    degree: int = 3


def plans(case: Case) -> list[tuple[list[Case], list[Case]]]:
    """What may stand for a case, with more and with fewer units: first whole ones, if they are small, then shorter."""
    whole, sizes = case.operator.units(case.shape), _sizes(case)
    least = _SHORTEST if whole > 1 else _SHORTEST // 4
    shapes = ([n // part if at in sizes else n for at, n in enumerate(case.shape)] for part in _SHORTER)
    shorter = [replace(case, shape=tuple(shape)) for shape in shapes if not case.operator.problem(shape)]
    shorter = [one for one in shorter if _length(one, sizes) >= least][:_LENGTHS]
    units = min(whole, max(2, _INPUT_BYTES * whole // max(1, case.input_bytes)))
    found = []
    if whole > 1 or case.input_bytes <= 2 * _INPUT_BYTES:
        found.append(([_with(case, units)], [_with(case, max(1, units // 2) if units < whole else units)]))
    if sizes and len(shorter) == _LENGTHS:
        found.append(([_with(one, min(2, whole)) for one in shorter], [_with(one, 1) for one in shorter]))
    return found


def sampled(engine: EmulatorEngine, program: Path, case: Case, limits: Limits) -> Samples:
    """Run a program with counters built in. Raises NotPredictable if it does not end well with a few of its blocks."""
    sizes, possible = _sizes(case), plans(case)
    for plan in possible:
        wall_s = limits.emulator_wall_s if plan is possible[-1] else min(_PATIENCE_S, limits.emulator_wall_s)

        def run(one: Case, blocks: int, wall_s: float = wall_s) -> SampledRun:
            trace = _trace(replace(engine, sample=blocks), program, one, limits, wall_s)
            return SampledRun(one.operator.units(one.shape), _length(one, sizes), blocks, trace)

        with contextlib.suppress(TimeoutError):
            large, small = ([run(one, blocks) for one in cases] for blocks, cases in enumerate(plan, _BLOCKS))
            degree = round(log2(plan[0][-1].flops / plan[0][-2].flops)) if len(large) > 1 else 1
            return Samples(large, small, case.operator.units(case.shape), _length(case, sizes), degree)
    raise NotPredictable("a few of its blocks take longer than the emulator's limit")


def _with(case: Case, units: int) -> Case:
    with contextlib.suppress(ValueError):
        return replace(case, shape=case.operator.shrink(case.shape, units))
    return case


def _length(case: Case, sizes: Collection[int]) -> int:
    return max((int(case.shape[at]) for at in sizes), default=1)


def _sizes(case: Case) -> set[int]:
    """The places in the shape of a unit's length: the largest sizes that do not say how many units there are."""
    shape, dimensions = case.shape, case.operator.dimensions
    try:
        one = case.operator.shrink(shape, 1)
        longest = max(value for value, alone in zip(shape, one, strict=True) if value == alone)
        return {at for at, value in enumerate(shape) if value == one[at] == longest}
    except ValueError:  # one unit, all of whose sizes are its length
        return {at for at, value in enumerate(shape) if value >= _SHORTEST and not dimensions[at].real}


def _trace(engine: EmulatorEngine, program: Path, case: Case, limits: Limits, wall_s: float) -> Trace:
    operator, shape = case.operator, case.shape
    with scratch_folder("sampled") as folder:
        write_sample(operator, shape, operator.units(shape), case.distribution, folder / "input")
        size = operator.output_bytes(shape)
        with run_program(engine, program, folder / "input", output_bytes=size, wall_s=wall_s, limits=limits) as run:
            if run.outcome.timed_out or run.outcome.wall_s > 0.9 * wall_s:
                raise TimeoutError
            if run.trace is None or run.outcome.exit_code != 0:
                raise NotPredictable(f"with few of its blocks it does not end well ({run.outcome.ending})")
            return run.trace


# ---- counts of the whole case ---------------------------------------------------------------------------------------

_PROPORTIONAL = 0.12  # two counts are in proportion, or equal, within 12 %: grids are rounded up to whole blocks
_TOTALS = "requests", "lanes", "units", "excess"


@dataclass
class Group:
    """The launches of one kernel with the same block and shared memory. `blocks` is the sum over `launches`; `lines`
    has how many warps executed each line of PTX; `accesses` and `reuse` are totals, by (line of PTX, space)."""

    kernel: str
    entry: str
    threads: int
    static_shared: int
    local_bytes: int
    dynamic_shared: int
    launches: float = 0.0
    blocks: float = 0.0
    streams: int = 1
    lines: dict[int, float] = field(default_factory=dict)
    accesses: dict[tuple[int, str], AccessEvent] = field(default_factory=dict)
    reuse: dict[tuple[int, str], ReuseEvent] = field(default_factory=dict)

    @property
    def warps(self) -> int:
        """Of a block."""
        return -(-self.threads // 32)

    @property
    def executed(self) -> float:
        """Lines of PTX, by warps."""
        return sum(self.lines.values())


def groups_of(trace: Trace) -> list[Group]:
    """The groups of a sampled run."""
    groups: dict[tuple[str, int, int], Group] = {}
    by_number: dict[int, Group] = {}
    for each in trace.launches:
        threads, shared = prod(each.block), each.dynamic_shared_bytes
        empty = Group(each.kernel, each.entry, threads, each.static_shared_bytes, each.local_bytes, shared)
        group = by_number[each.group] = groups.setdefault((each.entry, threads, shared), empty)
        group.launches += each.count
        group.blocks += each.count * prod(each.grid)
        group.streams = max(group.streams, each.streams)
    for ran in trace.executed:
        lines = by_number[ran.group].lines
        lines.update((line, lines.get(line, 0.0) + ran.warps) for line in range(ran.first, ran.last + 1))
    for seen in trace.accesses:
        accesses, place = by_number[seen.group].accesses, (seen.ptx_line, seen.space)
        if (known := accesses.get(place)) is not None:
            seen = replace(seen, **{name: getattr(known, name) + getattr(seen, name) for name in _TOTALS})
        if seen.ptx_line:
            accesses[place] = seen
    for use in trace.reuse:
        uses, place = by_number[use.group].reuse, (use.ptx_line, "global")
        before = uses[place].near if place in uses else (0,) * len(use.near)
        uses[place] = replace(use, near=tuple(a + b for a, b in zip(before, use.near, strict=True)))
    return sorted(groups.values(), key=lambda group: (group.entry, group.threads, group.dynamic_shared))


def counted(samples: Samples) -> list[Group]:
    """The groups of the whole case, those that execute most first. Raises NotPredictable."""
    try:
        large, small = (
            _grown([(run.length, groups_of(run.trace)) for run in runs], samples.length, samples.degree)
            for runs in (samples.large, samples.small)
        )
        most, fewer = samples.large[-1], samples.small[-1]
        others = {(group.entry, group.threads, group.dynamic_shared): at for at, group in enumerate(small)}
        for number, group in enumerate(large):
            at, each = others.get((group.entry, group.threads, group.dynamic_shared)), group.blocks / group.launches
            if at is None or each <= fewer.blocks or each != small[at].blocks / small[at].launches:
                continue
            law = group.executed / max(small[at].executed, 1) * fewer.units / most.units * most.blocks / fewer.blocks
            if abs(law - 1) <= _PROPORTIONAL:  # a queue: the blocks that ran did the work of all
                large[number], small[at] = (
                    _merged([one], partial(np.dot, [run.blocks / each]))
                    for one, run in ((group, most), (small[at], fewer))
                )
        runs = [(fewer.units, small), (most.units, large)] if most.units < samples.units else [(most.units, large)]
        found = _grown(runs, samples.units)
    except NotPredictable:
        raise
    except Exception as error:  # whatever a trace contains is the program's doing, as in its reader
        raise NotPredictable(f"the counts of its runs do not fit together ({type(error).__name__})") from error
    if not found:
        raise NotPredictable("it launches no kernel")
    return sorted(found, key=lambda group: -group.executed)


def _merged(same: Sequence[Group], law: Callable[[list[float]], float]) -> Group:
    """The last of the groups, with the counts that `law` makes of theirs."""
    last, accesses = same[-1], {}
    for place, access in last.accesses.items():
        seen = [a for group in same if (a := group.accesses.get(place))]
        totals: dict[str, Any] = {name: law([getattr(a, name) for a in seen]) for name in _TOTALS}
        accesses[place] = replace(access, **totals)
    lines = {n: law([group.lines.get(n, 0.0) for group in same]) for n in last.lines}
    return replace(last, lines=lines, accesses=accesses)


def _grown(runs: Sequence[tuple[int, list[Group]]], size: int, degree: int = 1) -> list[Group]:
    """The groups at `size`, from those of runs at two sizes (numbers of units) or three (lengths of a unit), the
    smallest first; those of a single run as they are. Raises NotPredictable."""
    sizes, ordered = [n for n, _ in runs], [groups for _, groups in runs]
    if len(runs) == 1:
        return ordered[0]
    if len({tuple((g.entry, g.threads) for g in groups) for groups in ordered}) > 1:
        raise NotPredictable("it launches other kernels, or other blocks, when there is more data")
    slight = 0.03 * sum(group.executed for group in ordered[-1])  # a wrong law of a slight kernel would not matter
    return [_at(size, sizes, same, degree, same[-1].executed > slight) for same in zip(*ordered, strict=True)]


def _at(size: int, sizes: Sequence[int], same: Sequence[Group], degree: int, matters: bool) -> Group:
    def law(values: Iterable[float], what: str = "") -> float:
        return _law(sizes, list(values), size, degree, f"{what} of {same[-1].kernel}" if what and matters else "")

    law((g.executed for g in same), "executions")
    reuse = {}
    for place, use in same[-1].reuse.items():
        seen = [u for g in same if (u := g.reuse.get(place))]
        near = _farther(sizes, [u.near for u in seen], size) if len(seen) > 2 else use.near
        reuse[place] = replace(use, array_bytes=round(law(u.array_bytes for u in seen)), near=near)
    return replace(
        _merged(same, law),
        dynamic_shared=round(law(g.dynamic_shared for g in same)),
        launches=law((g.launches for g in same), "launches"),
        blocks=law((g.blocks for g in same), "blocks"),
        reuse=reuse,
    )


def _law(sizes: Sequence[int], values: list[float], size: int, degree: int, what: str) -> float:
    """The value at `size` of the polynomial without negative terms that fits `values`; proportional or constant if they
    are nearly that. Up to degree 2, of what a unit is longer than the shortest: a loop whose first turn is peeled goes
    round n (n - 1) times. Raises NotPredictable if nothing fits and `what` they are is given."""
    n, y = np.array(sizes[-len(values) :]) / sizes[-1], np.array(values, float)
    last, most = values[-1], max(values)
    if most <= (1 + _PROPORTIONAL) * min(values):
        return last
    if last and np.abs(y / n / last - 1).max() <= _PROPORTIONAL:
        return last * size / sizes[-1]
    first = n[0] if len(n) > 2 and degree < 3 else 0.0
    powers = np.arange(len(n) + (len(n) > 2 and degree > 2))
    terms = (n[:, None] - first) ** powers * most / np.where(y > 0, y, most)[:, None]
    factors = nnls(terms.T @ terms, terms.T @ (y > 0))
    if what and np.abs(terms @ factors - (y > 0)).max() > _PROPORTIONAL:
        seen = ", ".join(f"{value:,.0f}" for value in values)
        raise NotPredictable(f"there are {seen} {what} at sizes {', '.join(map(str, sizes))}")
    return most * float(factors @ (size / sizes[-1] - first) ** powers)


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
