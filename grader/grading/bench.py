"""Adds what is needed only when grading on a GPU: the GPU's facts and state, floors, repeated timing, profiling.

A Bench is opened once per grading on the cuda engine. The emulator has no Bench, since its times mean nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.paths import shown
from grader.base.progress import Progress
from grader.base.stopwatch import Stopwatch
from grader.course.assignment import Assignment, Occupancy, ReferenceRatio
from grader.course.metrics import named_metrics
from grader.course.testcase import Case
from grader.gpu.facts import GpuFacts, SmLimits, gpu_facts, known_limits
from grader.gpu.idle import IdleWait, use_reader
from grader.gpu.lock import gpu_to_ourselves
from grader.gpu.outside_clock import outside_clock
from grader.gpu.state import nvml_reader
from grader.grading.setup import Setup
from grader.profiling.kernel_profile import (
    SCORE_METRICS,
    KernelProfile,
    ScoredOccupancy,
    Theory,
    kernel_profiles,
    plan,
    scored_occupancy,
)
from grader.profiling.ncu import NotProfiled, run_ncu
from grader.profiling.occupancy import Demand, calculator, occupancy
from grader.profiling.occupancy import Occupancy as LaunchOccupancy
from grader.programs.build import build
from grader.programs.engine.cuda import CudaEngine
from grader.programs.submission import read_submission
from grader.programs.toolkit import Toolkit
from grader.programs.trace import Trace
from grader.records.record import (
    FloorRecord,
    FloorTerm,
    KernelRecord,
    OutsideRecord,
    ProfileRecord,
    ReferenceRecord,
    TimedRunRecord,
    TimingRecord,
)
from grader.timing.evidence import Outside, other_kernel
from grader.timing.floors import Floor, least_time
from grader.timing.fresh_inputs import FreshInput, fresh_input
from grader.timing.measurement import TimedRun, Timer, Timing
from grader.timing.stopping import agreement

SCORED_LAUNCHES = 24
"""The number of launches to profile for the score; achieved occupancy hardly differs between launches of a kernel."""


@dataclass(frozen=True)
class Bench:
    """A GPU and the rules for measuring submissions on it."""

    setup: Setup
    engine: CudaEngine
    timer: Timer
    reading: Future[GpuFacts | None]
    """The GPU's facts. They are read while the submission compiles, because reading them initialises CUDA, which takes
    time."""
    wait_until_idle: IdleWait
    _references: dict[Case, ReferenceRecord] = field(default_factory=dict)

    @property
    def rules(self) -> Assignment:
        return self.setup.assignment

    @contextlib.contextmanager
    def to_ourselves(self, progress: Progress) -> Iterator[None]:
        """Keep other graders off this GPU while the block runs."""
        with gpu_to_ourselves(self.engine.gpu.uuid, progress.line):
            self.worked(time.monotonic())
            yield

    def worked(self, until: float) -> None:
        """Tell the outside clock that the GPU may have worked until this time of `time.monotonic`."""
        if self.timer.clock is not None:
            self.timer.clock.worked(until)

    @cached_property
    def start_up_cpu_s(self) -> float | None:
        """The processor time in seconds that a minimal CUDA program needs on this machine. It is first asked for while
        the GPU is ours: elsewhere that program's context would be work that another grader cannot explain."""
        found = self.engine.start_up_cpu_s()
        self.worked(time.monotonic())
        return found

    def mark(self) -> object:
        """A mark of the outside clock, from which it measures later work; None if there is no such clock."""
        return self.timer.clock.mark() if self.timer.clock is not None else None

    def is_timed(self, case: Case) -> bool:
        """Whether the assignment asks for the case's time to be measured repeatedly, until it is precise."""
        words = self.rules.timed_tests
        return words is not None and case in self.setup.suite.select(words)

    def floor(self, case: Case) -> Floor | None:
        """The floor of `case` on this GPU; None if the GPU's rates are unknown."""
        facts = self.reading.result()
        if facts is None:
            return None
        return least_time(case.operator, case.shape, facts, self.rules.floor.units)

    def fresh_input(self, case: Case) -> AbstractContextManager[FreshInput]:
        """Inputs for timed runs of `case`; a background thread starts to draw them immediately."""
        return fresh_input(case, self.setup.files, self.setup.suite)

    # ---- the reference solution ---------------------------------------------------------------------------------

    def reference(self, case: Case, wall_s: float) -> ReferenceRecord | None:
        """The reference solution's time on `case`, measured once for all submissions. None if no part of the rubric
        compares with a reference, or if the reference is missing, as on a student's machine. Raises GraderFault if the
        reference cannot be timed, which is not the student's fault."""
        parts = (part for part in self.rules.rubric if isinstance(part, ReferenceRatio))
        part = next((part for part in parts if case in self.setup.suite.select(part.tests)), None)
        if part is None or not self.rules.reference_folder.is_dir():
            return None
        if case not in self._references:
            self._references[case] = self._time_reference(part.reference, case, wall_s)
        return self._references[case]

    def _time_reference(self, name: str, case: Case, wall_s: float) -> ReferenceRecord:
        path = self.rules.reference_file(name)
        submission = read_submission(path, self.rules, any_name=True)
        built = build(submission, self.rules, self.engine, (case,))
        if built.program is None:
            raise GraderFault(f"{shown(path)}: the reference solution does not compile: {built.reason}")
        with self.fresh_input(case) as fresh:
            timing = self.timer.time(built.program, case, fresh, wall_s=wall_s)
        record = timing_record(timing, self.rules)
        if record is None:
            why = str(timing.problem) if timing.problem is not None else f"the GPU was used by {timing.shared_with}"
            raise GraderFault(f"{shown(path)}: the reference solution could not be timed on {case.name}: {why}.")
        return ReferenceRecord(name=name, sha256=submission.sha256, timing=record)

    # ---- occupancy ----------------------------------------------------------------------------------------------

    def scored_tests(self) -> frozenset[str]:
        """The names of the tests that are profiled for the rubric."""
        parts = [part.tests for part in self.rules.rubric if isinstance(part, Occupancy)]
        return frozenset(case.name for words in parts for case in self.setup.suite.select(words))

    def profile(
        self, program: Path, case: Case, trace: Trace, outside: OutsideRecord | None, watch: Stopwatch
    ) -> ProfileRecord:
        """The profile of `program` on `case` for the score. `trace` comes from its graded run, `outside` from the
        outside clock during its timed runs."""
        reason = ""
        metrics = named_metrics(("achieved_occupancy",))
        try:
            launches, wall_s = run_ncu(
                self.engine,
                program,
                self.setup.files.input(case),
                metrics=SCORE_METRICS,
                invocations=plan(trace, SCORED_LAUNCHES),
                output_bytes=case.output_bytes,
                limits=self.rules.limits,
            )
            watch.add("profiled run", wall_s)
        except NotProfiled as why:
            launches, reason = (), str(why)
        profiles = kernel_profiles(trace, launches, metrics, theory(self.engine, self.reading.result()))
        scored = ScoredOccupancy(None, reason, ()) if reason else scored_occupancy(profiles, trace.kernels)
        seen = outside.occupancy if outside is not None else None
        flag = other_kernel(scored.achieved, seen) if scored.achieved is not None and seen is not None else ""
        return ProfileRecord(
            test=case.name,
            achieved=seen if flag else scored.achieved,
            reason=scored.reason,
            counted=scored.kernels,
            kernels=tuple(kernel_record(profile) for profile in profiles),
            flag=flag,
        )


@contextlib.contextmanager
def open_bench(setup: Setup) -> Iterator[Bench | None]:
    """Open the bench of the cuda engine; None for any other engine. Raises UsageError if a reference solution is
    missing."""
    engine, rules = setup.engine, setup.assignment
    if not isinstance(engine, CudaEngine):
        yield None
        return
    for part in rules.rubric if rules.reference_folder.is_dir() else ():  # students do not have it
        if isinstance(part, ReferenceRatio) and not rules.reference_file(part.reference).is_file():
            raise UsageError(
                f"assignment/{rules.name}/assignment.yaml: rubric part {part.part} compares with {part.reference}, "
                f"which is not in {shown(rules.reference_folder)}: put it there, or name another file."
            )
    uuid = engine.gpu.uuid
    with (
        nvml_reader(uuid) as read,
        outside_clock(uuid) as clock,
        use_reader(uuid) as used,
        ThreadPoolExecutor(1) as background,
    ):
        facts = background.submit(gpu_facts, uuid)
        yield Bench(setup, engine, Timer(engine, rules, read, clock, used), facts, IdleWait(used))


def theory(engine: CudaEngine, facts: GpuFacts | None) -> Theory | None:
    """A function that computes the theoretical occupancy on the engine's GPU; None if that is impossible."""
    return theory_of(engine.toolkit, facts.limits if facts is not None else known_limits(engine.gpu.compute_capability))


def theory_of(toolkit: Toolkit, limits: SmLimits | None) -> Theory | None:
    """A function that computes the theoretical occupancy on an SM with these limits; None if that is impossible."""
    if limits is None:
        return None
    try:
        blocks = calculator(toolkit, limits)
        occupancy(Demand(32, 128), limits, blocks)  # fails for an architecture that the header does not know
    except (MachineFault, GraderFault):
        return None

    def of(demand: Demand) -> LaunchOccupancy:
        return occupancy(demand, limits, blocks)

    return of


# ---- records ----------------------------------------------------------------------------------------------------


def kernel_record(profile: KernelProfile) -> KernelRecord:
    """Convert one kernel's profile for the record."""
    return KernelRecord(
        name=profile.name,
        launches=profile.launches,
        profiled=profile.profiled,
        gpu_ms=profile.gpu_ns / 1e6,
        share=profile.share,
        theoretical=profile.theoretical.theoretical if profile.theoretical else None,
        limiter=profile.theoretical.sentence if profile.theoretical else "",
        metrics={name: (found.low, found.high, found.mean) for name, found in profile.ranges.items()},
    )


def timing_record(timing: Timing, rules: Assignment) -> TimingRecord | None:
    """Convert a timing for the record; None if there is no time."""
    if timing.median_ms is None:
        return None
    interval, rule = timing.interval, rules.timing
    return TimingRecord(
        runs=tuple(_run_record(run) for run in timing.runs),
        median_ms=timing.median_ms,
        low_ms=interval.low if interval else None,
        high_ms=interval.high if interval else None,
        confidence=interval.confidence if interval else None,
        stopped=timing.stopped,
        rule=(
            f"until the 95 % interval of the median is within {rule.within:.2%} of it ({agreement(rule):.2%} after 3 "
            f"to 5 runs), or for {rule.budget_s:g} s, or {rule.most} runs; warm-up: {rule.warm_up}, beginning with the "
            "graded run, counted only if it agrees with the others; every run with a fresh input"
        ),
        notes=timing.notes,
        outside=_outside_record(timing.outside),
    )


def _outside_record(outside: Outside | None) -> OutsideRecord | None:
    if outside is None:
        return None
    return OutsideRecord(
        source=outside.busy.source,
        interval_s=round(outside.busy.interval_s, 4),
        busy_ms=round(outside.busy.busy_s * 1e3, 3),
        traced_ms=round(outside.explained_s * 1e3, 3),
        allowed_ms=round(outside.allowed_s * 1e3, 3),
        occupancy=outside.busy.occupancy,
    )


def _run_record(run: TimedRun) -> TimedRunRecord:
    return TimedRunRecord(
        gpu_ms=run.gpu_ms,
        copy_ms=run.copy_ms,
        idle_ms=run.idle_ms,
        cpu_s=round(run.cpu_s, 4),
        wall_s=round(run.wall_s, 4),
        use=run.use,
        outlier=run.outlier,
        **(asdict(run.state) if run.state else {}),
    )


def floor_record(floor: Floor, gpu_ms: float | None) -> FloorRecord:
    """Convert a floor for the record, with the achieved rates."""
    return FloorRecord(
        ms=floor.ms,
        refuse_below_ms=floor.refuse_below_ms,
        limit=floor.limit.name,
        terms=tuple(FloorTerm(name=term.name, ms=term.ms, source=term.source) for term in floor.terms),
        share=floor.share(gpu_ms) if gpu_ms else None,
        tflops=floor.tflops(gpu_ms) if gpu_ms else None,
        gbytes_per_s=floor.min_bytes / gpu_ms / 1e6 if gpu_ms else None,
    )
