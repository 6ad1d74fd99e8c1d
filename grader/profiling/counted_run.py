"""Runs a program with the emulator's counters, on as many units of a testcase (batches, say) as fit into a time budget.

With counters, a run takes several times as long. All units of a testcase need the same time. So one unit runs first,
and then as many as fit into the time budget. The result says how many units were counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.base.progress import Progress
from grader.course.assignment import Limits
from grader.course.testcase import Case
from grader.findings import short_kernel
from grader.programs.engine import Engine
from grader.programs.run import Run, run_program
from grader.programs.trace import Trace
from grader.sandbox.scratch import scratch_folder
from grader.timing.sequential import write_sample

BUDGET_S = 10.0
"""All units run if they are likely to take no longer than this."""
_WORTH_ANOTHER = 2
"""A second run is worthwhile only with at least this many times the units of the first."""


@dataclass(frozen=True)
class CountedRun:
    """The result of a run on `units` of the `whole` units of a testcase. `trace` is None if nothing was traced;
    `ending` then says why. `cut_off` says how far the program came if it was stopped."""

    trace: Trace | None
    units: int
    whole: int
    ending: str
    cut_off: str = ""


def counted_run(engine: Engine, program: Path, case: Case, limits: Limits, progress: Progress, who: str) -> CountedRun:
    """Run `program`, built to count, on inputs like the case's, with as many units as the budget allows."""
    operator, whole = case.operator, case.operator.units(case.shape)
    units = 0
    with scratch_folder("counted") as folder:
        wanted = 1
        while True:
            source = folder / f"in{wanted}"
            shape = write_sample(operator, case.shape, wanted, case.distribution, source)
            units = operator.units(shape)
            of = f"{units} of {whole} {operator.units_name}" if units < whole else "all of it"
            progress.stage(f"{who}: {case.name}, counted on the emulator, {of}")
            with run_program(
                engine,
                program,
                source,
                output_bytes=operator.output_bytes(shape),
                wall_s=limits.emulator_wall_s,
                limits=limits,
            ) as run:
                counted = CountedRun(run.trace, units, whole, run.outcome.ending, _cut_off(run))
                spent_s = run.outcome.wall_s
            source.unlink()
            wanted = min(whole, int(units * BUDGET_S / max(spent_s, 1e-3)))
            if units == whole or counted.cut_off or (wanted < whole and wanted < _WORTH_ANOTHER * units):
                return counted
            if spent_s > BUDGET_S / _WORTH_ANOTHER:
                return counted


def _cut_off(run: Run) -> str:
    """A phrase on how far a program came before it was stopped; '' if it ended by itself."""
    kernels = run.trace.kernels if run.trace is not None else ()
    for number, stopped in enumerate(kernels, 1):
        if "blocks_begun" not in stopped.counters:
            continue
        blocks = stopped.grid[0] * stopped.grid[1] * stopped.grid[2]
        begun = int(stopped.counters["blocks_begun"])
        launch = f"launch {number:,} ({short_kernel(stopped.name)})"
        share = f"{begun:,} of {blocks:,} blocks had begun ({begun / blocks:.1%})"
        return f"after {run.outcome.wall_s:.0f} s, in {launch}, of which {share}"
    if run.outcome.timed_out:
        return f"after {run.outcome.wall_s:.0f} s, when {len(kernels):,} launches had finished"
    return ""
