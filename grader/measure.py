"""Times a program on one testcase until the time is known well enough (see `grader.stopping`).

Every run is a process of its own on an input of its own (see `grader.fresh`), watched through NVML. A run during
which the GPU was throttled is repeated, a few times at most, and the result says so. Nothing is dropped: every run
is in the result with what became of it. What counts is the median of the counted runs' GPU times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Literal

from grader.assignment import Assignment, TimingRules
from grader.engine import Engine
from grader.evidence import doubts, witness_of
from grader.fresh import FreshInput
from grader.gpu_state import GpuState, Reader, watching
from grader.run import Run, run_program
from grader.stopping import Interval, Rule, decide, median_interval, outliers
from grader.testcase import Case

Use = Literal["counted", "warm-up", "throttled"]


@dataclass(frozen=True)
class TimedRun:
    """One run. `cpu_s` is host CPU time of all its processes, `idle_ms` the gaps between GPU events."""

    gpu_ms: float
    copy_ms: float
    idle_ms: float
    cpu_s: float
    wall_s: float
    state: GpuState | None = None
    use: Use = "counted"
    outlier: bool = False


@dataclass(frozen=True)
class Timing:
    """All runs of one testcase. `problem` is why its time cannot be used, '' when it can; `notes` are worth
    knowing. `interval` is None when too few runs fitted into the budget."""

    runs: tuple[TimedRun, ...]
    median_ms: float | None
    interval: Interval | None
    stopped: str
    problem: str = ""
    notes: tuple[str, ...] = ()
    run_wall_s: float = 0.0
    """Wall time of all runs that were made for this, those of a failed attempt included."""

    @property
    def counted(self) -> tuple[TimedRun, ...]:
        return tuple(run for run in self.runs if run.use == "counted")


Once = Callable[[], TimedRun | str]
"""Makes one run; a sentence when it cannot be timed."""


def rule_of(rules: TimingRules) -> Rule:
    """The stopping rule that an assignment asks for."""
    return Rule(budget_s=rules.budget_s, within=rules.within, warm_up=rules.warm_up, most=rules.most)


def timed(run: Run, state: GpuState | None) -> TimedRun | str:
    """The times of a run that has ended."""
    trace = run.trace
    if run.outcome.broke:
        return f"on a fresh input it was {run.outcome.ending}"
    if trace is None or not trace.complete:
        return "a timed run left no complete trace of the GPU"
    return TimedRun(
        gpu_ms=trace.gpu_ns / 1e6,
        copy_ms=trace.copy_ns / 1e6,
        idle_ms=trace.idle_ns / 1e6,
        cpu_s=run.outcome.cpu_s,
        wall_s=run.outcome.wall_s,
        state=state,
    )


def repeat(
    once: Once,
    rule: Rule,
    *,
    first: TimedRun | None = None,
    throttled_retries: int = 3,
    clock: Callable[[], float] = time.monotonic,
) -> Timing:
    """Run `once` until the rule is satisfied. `first` is a run made before that serves as the first warm-up."""
    began = clock()
    runs: list[TimedRun] = [replace(first, use="warm-up")] if first is not None else []
    retries = throttled_retries
    notes: list[str] = []
    wall_s = 0.0
    while True:
        counted = [run.gpu_ms for run in runs if run.use == "counted"]
        verdict = decide(counted, clock() - began, rule)
        if verdict != "more":
            return replace(_timing(runs, verdict, notes), run_wall_s=wall_s)
        made = once()
        if isinstance(made, str):
            return Timing(tuple(runs), None, None, "failed", made, tuple(notes), wall_s)
        wall_s += made.wall_s
        use: Use = "counted"
        if sum(run.use == "warm-up" for run in runs) < rule.warm_up:
            use = "warm-up"
        elif made.state is not None and made.state.throttled:
            if retries > 0:
                retries -= 1
                use = "throttled"
                notes.append(f"a run was repeated because the GPU was slowed ({', '.join(made.state.slowed)})")
            else:
                notes.append(f"a counted run was slowed ({', '.join(made.state.slowed)}): repeating did not help")
        runs.append(replace(made, use=use))


def _timing(runs: Sequence[TimedRun], stopped: str, notes: Sequence[str]) -> Timing:
    counted = [run.gpu_ms for run in runs if run.use == "counted"]
    marks = iter(outliers(counted))
    marked = tuple(replace(run, outlier=next(marks)) if run.use == "counted" else run for run in runs)
    interval = median_interval(counted)
    return Timing(marked, median(counted), interval, stopped, notes=tuple(dict.fromkeys(notes)))


def measure_case(
    engine: Engine,
    program: Path,
    case: Case,
    rules: Assignment,
    fresh: FreshInput,
    *,
    wall_s: float,
    first: TimedRun | None = None,
    read: Reader | None = None,
) -> Timing:
    """Time `program` on inputs of `case` from `fresh`; `wall_s` limits each run, `first` is the graded run. Raises
    MachineFault when the machine has no room."""

    def once() -> TimedRun | str:
        fresh.renew()
        with (
            watching(read) as watch,
            run_program(
                engine,
                program,
                fresh.path,
                output_bytes=case.output_bytes,
                wall_s=wall_s,
                limits=rules.limits,
            ) as run,
        ):
            watch.stop()
            found = timed(run, watch.state)
            if isinstance(found, str):
                return found
            if said := doubts(run.trace, witness_of(engine.name, case, run)):
                return f"a timed run is not believed: {said[0]}"
            return fresh.problem(run.output, case.operator.tolerances(case.shape, rules.tolerance)) or found

    return repeat(once, rule_of(rules.timing), first=first, throttled_retries=rules.timing.throttled_retries)
