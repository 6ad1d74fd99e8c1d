"""Counts a program's kernels for a testcase: sampled runs of the emulator on some of its units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from grader.course.assignment import Limits
from grader.course.testcase import Case
from grader.estimates.counts import Group, NoLaw, extrapolated, groups_of, grown
from grader.estimates.gpus import Gpu
from grader.programs.engine import Engine
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.run import run_program
from grader.programs.trace import Trace
from grader.sandbox.scratch import scratch_folder
from grader.timing.sequential import write_sample

BLOCKS = 2
"""Blocks of each launch that run."""
_INPUT_BYTES = 32 << 20
"""About the size of the larger input; units beyond it are extrapolated."""
_FILL_MS = 0.0018
_PATIENCE_S = 10.0
"""Few blocks need some seconds. If they need more, shorter units run."""
_SHORTER = (32, 16, 8, 4, 2)
"""Of these parts of a unit's length, the first _LENGTHS that are no shorter than _SHORTEST run."""
_LENGTHS, _SHORTEST = 3, 128


def counted(engine: EmulatorEngine, program: Path, case: Case, limits: Limits, gpu: Gpu) -> tuple[list[Group], float]:
    """The groups of launches of the whole case, and the ms that the program's fills take. Raises NoLaw."""
    whole = case.operator.units(case.shape)
    units = min(whole, max(2, _INPUT_BYTES * whole // max(1, case.input_bytes)))
    sizes = units, max(1, units // 2) if units < whole else units

    def run(case: Case, which: int, wall_s: float) -> tuple[int, Trace]:
        return _run(replace(engine, sample=BLOCKS + which), program, case, limits, sizes[which], wall_s)

    lengths = [(0, case)]
    try:
        runs = [[run(case, which, min(_PATIENCE_S, limits.emulator_wall_s))] for which in (0, 1)]
    except _TooLong:
        lengths, sizes = _lengths(case), (min(2, whole), 1)
        runs = [[run(shorter, which, limits.emulator_wall_s) for _, shorter in lengths] for which in (0, 1)]
    try:
        groups = _groups(runs, [n for n, _ in lengths], case, whole)
    except NoLaw:
        raise
    except Exception as error:  # whatever a trace contains is the program's doing, as in its reader
        raise NoLaw(f"the counts of its runs do not fit together ({type(error).__name__})") from error
    if not groups:
        raise NoLaw("it launches no kernel")
    most, trace = runs[0][-1]
    fills = sum(_FILL_MS + memset.bytes / gpu.dram_gb_per_s / 1e6 for memset in trace.memsets)
    return groups, whole / most * fills


def _groups(runs: Sequence[Sequence[tuple[int, Trace]]], lengths: Sequence[int], case: Case, whole: int) -> list[Group]:
    """The groups of the whole case, from runs with more and with fewer units, (units, trace) for each length."""
    large, small = (
        grown([(n, groups_of(trace)) for n, (_, trace) in zip(lengths, some, strict=True)], _longest(case))
        if len(some) > 1
        else groups_of(some[0][1])
        for some in runs
    )
    return extrapolated(large, small, (runs[0][-1][0], runs[1][-1][0]), whole, BLOCKS)


class _TooLong(NoLaw):
    pass


def _longest(case: Case) -> int:
    """The largest size of a unit: what runs are made shorter by."""
    return max(value for _, value in _sizes(case))


def _sizes(case: Case) -> list[tuple[int, int]]:
    """(place in the shape, value) of the sizes that do not say how many units there are."""
    one = case.operator.shrink(case.shape, 1)
    return [
        (at, int(value))
        for at, (value, dimension) in enumerate(zip(case.shape, case.operator.dimensions, strict=True))
        if not dimension.real and one[at] == value
    ]


def _lengths(case: Case) -> list[tuple[int, Case]]:
    """The case with shorter units, by their length, the shortest first. Raises NoLaw if the operator has none."""
    try:
        longest, places = _longest(case), _sizes(case)
    except ValueError:
        raise NoLaw("a few of its blocks take longer than the emulator's limit") from None
    found: list[tuple[int, Case]] = []
    for divisor in _SHORTER:
        shape = list(case.shape)
        for at, value in places:
            if value == longest:
                shape[at] = value // divisor
        if len(found) < _LENGTHS and longest // divisor >= _SHORTEST and not case.operator.problem(shape):
            found.append((longest // divisor, replace(case, shape=tuple(shape))))
    if len(found) < _LENGTHS:
        raise NoLaw("a few of its blocks take longer than the emulator's limit")
    return found


def _run(engine: Engine, program: Path, case: Case, limits: Limits, wanted: int, wall_s: float) -> tuple[int, Trace]:
    operator = case.operator
    with scratch_folder("sampled") as folder:
        shape = write_sample(operator, case.shape, wanted, case.distribution, folder / "input")
        size = operator.output_bytes(shape)
        with run_program(engine, program, folder / "input", output_bytes=size, wall_s=wall_s, limits=limits) as run:
            if run.outcome.timed_out or run.outcome.wall_s > 0.9 * wall_s:
                raise _TooLong(f"a few of its blocks take longer than {wall_s:.0f} s on the emulator")
            if run.trace is None or run.outcome.exit_code != 0:
                raise NoLaw(f"with few of its blocks it does not end well ({run.outcome.ending})")
            return operator.units(shape), run.trace
