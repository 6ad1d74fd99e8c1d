"""Times a program on one testcase until the time is known well enough (see `grader.timing.stopping`).

Every run is a new process on a new input (see `grader.timing.fresh_inputs`), watched through NVML. A run during which
the GPU was throttled is repeated, up to a limit, and the result says so. No run is dropped: the result lists every run
and its use. The measured time is the median GPU time of the counted runs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Literal

from grader.base.errors import MachineFault
from grader.course.assignment import Assignment, TimingRules
from grader.course.catalogue import limits
from grader.course.testcase import Case
from grader.gpu.idle import Use
from grader.gpu.outside_clock import OutsideClock
from grader.gpu.state import GpuState, Reader, watching
from grader.operators.tolerance import Tolerance
from grader.programs.engine import Engine
from grader.programs.run import Run, run_program
from grader.records.disclosure import Doubt
from grader.sandbox.scratch import scratch_folder
from grader.timing.evidence import Outside, doubts, hidden_work, tells_runs_apart, witness_of
from grader.timing.fresh_inputs import Answer, FreshInput
from grader.timing.stopping import Interval, agree, decide, mean_interval, median_interval, outliers

UseOfRun = Literal["counted", "warm-up", "throttled"]


@dataclass(frozen=True)
class TimedRun:
    """One run. `cpu_s` is the host CPU time of all its processes, `idle_ms` the sum of the gaps between GPU events."""

    gpu_ms: float
    copy_ms: float
    idle_ms: float
    cpu_s: float
    wall_s: float
    state: GpuState | None = None
    use: UseOfRun = "counted"
    outlier: bool = False
    launches: int = 0

    @property
    def throttled(self) -> bool:
        return self.state is not None and self.state.throttled


@dataclass(frozen=True)
class Timing:
    """All runs of one testcase. `problem` is why its time cannot be used, None if it can; `notes` are further remarks.
    `interval` is None if too few runs fitted into the budget."""

    runs: tuple[TimedRun, ...]
    median_ms: float | None
    interval: Interval | None
    stopped: str
    problem: Doubt | None = None
    notes: tuple[str, ...] = ()
    run_wall_s: float = 0.0
    """Wall time of all runs made for this timing, including those of a refused series."""
    outside: Outside | None = None
    """The outside clock's reading of these runs, including the graded run."""
    shared_with: str = ""
    """The other users of the GPU, if the outside clock saw work that may be theirs; otherwise ''. The program then has
    no time, but is not at fault."""

    @property
    def counted(self) -> tuple[TimedRun, ...]:
        return tuple(run for run in self.runs if run.use == "counted")


Once = Callable[[], TimedRun | Doubt]
"""Makes one run; returns the reason if the run cannot be timed."""


def timed(run: Run, state: GpuState | None) -> TimedRun | Doubt:
    """Read the times of a run that has ended, or the reason why it cannot be timed."""
    trace = run.trace
    if run.outcome.broke:
        return Doubt(f"on a fresh input it was {run.outcome.ending}")
    if trace is None or not trace.complete:
        return Doubt("a timed run left no complete trace of the GPU")
    return TimedRun(
        gpu_ms=trace.gpu_ns / 1e6,
        copy_ms=trace.copy_ns / 1e6,
        idle_ms=trace.idle_ns / 1e6,
        cpu_s=run.outcome.cpu_s,
        wall_s=run.outcome.wall_s,
        state=state,
        launches=trace.launch_count,
    )


def repeat(
    once: Once,
    rule: TimingRules,
    *,
    first: TimedRun | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Timing:
    """Call `once` until the rule is satisfied. `first` is an earlier run that serves as the first warm-up. A warm-up
    during which the GPU was throttled never counts."""
    began = clock()
    runs: list[TimedRun] = [replace(first, use="warm-up")] if first is not None else []
    retries = rule.throttled_retries
    notes: list[str] = []
    wall_s = 0.0
    while True:
        counted = [run.gpu_ms for run in runs if run.use == "counted"]
        warm_up = [run.gpu_ms for run in runs if run.use == "warm-up" and not run.throttled]
        verdict = decide(counted, clock() - began, rule, warm_up)
        if verdict == "agreed" and agree([*warm_up, *counted], rule):
            runs = [replace(run, use="counted") if not run.throttled else run for run in runs]
        if verdict != "more":
            return replace(_timing(runs, verdict, notes), run_wall_s=wall_s)
        made = once()
        if isinstance(made, Doubt):
            return Timing(tuple(runs), None, None, "failed", made, tuple(notes), wall_s)
        wall_s += made.wall_s
        use: UseOfRun = "counted"
        if sum(run.use == "warm-up" for run in runs) < rule.warm_up:
            use = "warm-up"
        elif made.throttled and made.state is not None:
            if retries > 0:
                retries -= 1
                use = "throttled"
                notes.append(f"a run was repeated because the GPU was throttled ({', '.join(made.state.slowed)})")
            else:
                notes.append(f"a counted run was throttled ({', '.join(made.state.slowed)}): repeating did not help")
        runs.append(replace(made, use=use))


def _timing(runs: Sequence[TimedRun], stopped: str, notes: Sequence[str]) -> Timing:
    counted = [run.gpu_ms for run in runs if run.use == "counted"]
    marks = iter(outliers(counted))
    marked = tuple(replace(run, outlier=next(marks)) if run.use == "counted" else run for run in runs)
    interval = median_interval(counted) or mean_interval(counted)
    return Timing(marked, median(counted), interval, stopped, notes=tuple(dict.fromkeys(notes)))


class _Comparison:
    """Compares a run's output while the next run is in progress; one output at a time."""

    def __init__(self, folder: Path, pool: ThreadPoolExecutor) -> None:
        self._kept = folder / "output"
        self._pool = pool
        self._pending: Future[Doubt | None] | None = None

    def begin(self, output: Path, answer: Answer, tolerance: Tolerance) -> None:
        """Move the file `output` out of its folder and compare it with `answer` in the background. Raises MachineFault
        if it cannot be moved."""
        try:
            output.rename(self._kept)
        except FileNotFoundError:
            pass  # the comparison reports a missing file
        except OSError as error:
            raise MachineFault(f"The output of a timed run could not be kept: {error.strerror}.") from error

        def compare() -> Doubt | None:
            try:
                return answer.problem(self._kept, tolerance)
            finally:
                with contextlib.suppress(OSError):
                    self._kept.unlink()

        self._pending = self._pool.submit(compare)

    def result(self) -> Doubt | None:
        """What is wrong with the previous run's output; None if it is right or there was no previous run."""
        pending, self._pending = self._pending, None
        return pending.result() if pending is not None else None


@contextlib.contextmanager
def _comparison() -> Iterator[_Comparison]:
    with scratch_folder("run") as folder, ThreadPoolExecutor(1) as pool:
        yield _Comparison(folder, pool)


@dataclass(frozen=True)
class Timer:
    """What times programs on a GPU: the engine, the rules, and the witnesses outside the program. `read` reads the
    GPU's state, `clock` its counters, and `use` reports its users; each is None if the GPU cannot."""

    engine: Engine
    rules: Assignment
    read: Reader | None = None
    clock: OutsideClock | None = None
    use: Callable[[], Use | None] | None = None

    def time(
        self,
        program: Path,
        case: Case,
        fresh: FreshInput,
        *,
        wall_s: float,
        first: TimedRun | None = None,
        since: object = None,
    ) -> Timing:
        """Time `program` on inputs of `case` from `fresh`. `wall_s` limits each run; `first` is the graded run, which
        has just ended, and `since` the mark of the outside clock before it. Raises MachineFault if the disk is full.

        If the outside clock saw work that no trace explains, the whole series is repeated once, because another program
        may have used the GPU meanwhile. A program that hides work does so in the second series too. Between the runs no
        process of a submission exists, so if the GPU is in use then, the work may be another user's.
        """
        timing = self._series(program, case, fresh, wall_s, first, since)
        if timing.outside is not None and (why := hidden_work(timing.outside)):
            others = self._others()
            second = self._series(program, case, fresh, wall_s, None, None)
            others = others or self._others()
            notes = (*second.notes, f"its runs were timed again because {why}")
            if others and second.outside is not None and hidden_work(second.outside):
                second = replace(second, median_ms=None, problem=None, shared_with=others)
            timing = replace(second, notes=notes, run_wall_s=timing.run_wall_s + second.run_wall_s)
        if timing.problem or timing.median_ms is None or first is None:
            return timing
        return replace(timing, problem=tells_runs_apart(first.gpu_ms, timing.median_ms))

    def _others(self) -> str:
        found = self.use() if self.use is not None else None
        return found.others if found is not None else ""

    def _series(
        self, program: Path, case: Case, fresh: FreshInput, wall_s: float, first: TimedRun | None, since: object
    ) -> Timing:
        """One series of runs, with the reading of the outside clock."""
        tolerance, clock = limits(case, fresh.files, self.rules.tolerance), self.clock
        made = [first] if first is not None else []

        with _comparison() as comparison:

            def once() -> TimedRun | Doubt:
                answer = fresh.renew()
                with (
                    watching(self.read) as watch,
                    run_program(
                        self.engine,
                        program,
                        fresh.path,
                        output_bytes=case.output_bytes,
                        wall_s=wall_s,
                        limits=self.rules.limits,
                    ) as run,
                ):
                    watch.stop()
                    if clock is not None:
                        clock.worked(run.ended)
                    found = timed(run, watch.state)
                    if isinstance(found, Doubt):
                        return found
                    made.append(found)
                    if said := doubts(run.trace, witness_of(self.engine.name, case, run)):
                        return Doubt("a timed run was refused", str(said[0]))
                    wrong = comparison.result()
                    comparison.begin(run.output, answer, tolerance)
                    return wrong or found

            begin = clock.mark() if clock is not None and since is None else since
            timing = repeat(once, self.rules.timing, first=first)
            if wrong := comparison.result():
                timing = replace(timing, problem=timing.problem or wrong, median_ms=None)
            busy = None if timing.problem or clock is None else clock.between(begin, clock.mark())
        if busy is None:
            return timing
        outside = Outside(
            busy,
            explained_s=sum(run.gpu_ms for run in made) / 1e3,
            runs=len(made),
            launches=sum(run.launches for run in made),
        )
        return replace(timing, outside=outside, problem=hidden_work(outside))
