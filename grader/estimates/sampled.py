"""Counts a program's kernels for a testcase: sampled runs of the emulator on some of its units."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from grader.course.assignment import Limits
from grader.course.testcase import Case
from grader.estimates.counts import Group, NoLaw, extrapolated
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
_PATIENCE_S = 30.0
"""Few blocks need some seconds."""


def counted(engine: EmulatorEngine, program: Path, case: Case, limits: Limits, gpu: Gpu) -> tuple[list[Group], float]:
    """The groups of launches of the whole case, and the ms that the program's fills take. Raises NoLaw."""
    whole = case.operator.units(case.shape)
    units = min(whole, max(2, _INPUT_BYTES * whole // max(1, case.input_bytes)))
    sizes = (units, max(1, units // 2) if units < whole else units)
    try:
        runs = _two_runs(engine, program, case, limits, sizes, min(_PATIENCE_S, limits.emulator_wall_s))
    except _TooLong:  # the blocks that ran do the work of all, as from a queue: fewer units then
        runs = _two_runs(engine, program, case, limits, (min(2, whole), 1), limits.emulator_wall_s)
    try:
        groups = extrapolated(runs, whole, BLOCKS)
    except NoLaw:
        raise
    except Exception as error:  # whatever a trace contains is the program's doing, as in its reader
        raise NoLaw(f"the counts of its runs do not fit together ({type(error).__name__})") from error
    if not groups:
        raise NoLaw("it launches no kernel")
    memsets, times = runs[0][1].memsets, whole / runs[0][0]
    fills = sum(_FILL_MS + memset.bytes / gpu.dram_gb_per_s / 1e6 for memset in memsets)
    return groups, times * fills


class _TooLong(NoLaw):
    pass


def _two_runs(
    engine: EmulatorEngine, program: Path, case: Case, limits: Limits, sizes: tuple[int, int], wall_s: float
) -> list[tuple[int, Trace]]:
    return [
        _run(replace(engine, sample=BLOCKS + more), program, case, limits, size, wall_s)
        for more, size in enumerate(sizes)
    ]


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
