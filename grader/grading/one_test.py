"""Runs, checks, judges and times one testcase of a submission, and makes the test's record."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grader.base.errors import MachineFault
from grader.base.hints import hint
from grader.base.names import spelled_out
from grader.base.stopwatch import Stopwatch
from grader.base.verdict import Fault, Verdict
from grader.checking.check import Check, check_output
from grader.checking.corners import read_corners
from grader.checking.diagnose import diagnose
from grader.course.catalogue import changed_files, limits, read_sidecar
from grader.course.testcase import Case
from grader.gpu.state import watching
from grader.grading.bench import Bench, floor_record, timing_record
from grader.grading.closer_look import is_explained
from grader.grading.hidden_testcases import NO_TIMES, shows_diagnosis
from grader.grading.judgement import Judgement, judge
from grader.grading.setup import Setup
from grader.programs import control
from grader.programs.build import Build
from grader.programs.engine import Engine
from grader.programs.run import Run, run_program
from grader.programs.submission import Submission
from grader.programs.trace import Trace
from grader.records.disclosure import MAX_REASON, bounded, disclosed
from grader.records.record import MAX_FINDINGS, BaselineRecord, PrecisionRecord, TestRecord
from grader.timing.baseline import Baseline
from grader.timing.evidence import Witness, computed_on_the_host, doubts, witness_of
from grader.timing.fresh_inputs import FreshInput, OwnInput, own_input
from grader.timing.measurement import TimedRun, timed
from grader.timing.phases import phase_times

_MACHINE_RETRIES = 1
"""The number of times that the grader repeats a test after a machine fault, before it reports the fault."""


@dataclass(frozen=True)
class Grading(Setup):
    """A setup with what this process needs to grade submissions. Unlike a `Setup`, it cannot be sent to a process."""

    baseline: Callable[[Case], Baseline] | None
    """Returns the sequential time of a case on this machine; None if times are not compared."""
    bench: Bench | None = None
    submission: Submission | None = None
    """The submission being graded, from which messages quote lines; None until grading begins."""
    prepared_s: float = 0.0
    """Seconds spent on making testcases before this grading, for the record's timings."""
    show: int = 0
    """The number of rows and columns of every output tensor that the record keeps, where a student may see them."""
    quick: bool = False
    """True for a student's own check: tests run in the order of the testcases, none after the first that hits its time
    limit, and the grader looks for races even if all passed."""

    @property
    def setup(self) -> Setup:
        """The part that can be sent to other processes."""
        return Setup(self.assignment, self.suite, self.files, self.cases, self.engine)


@dataclass(frozen=True)
class Tested:
    """A test's record, and its trace if the score needs a profile of the test."""

    record: TestRecord
    trace: Trace | None = None
    compared: str = ""
    """The sentence from the comparison of the output."""
    explained: bool = False
    """Whether the engine itself saw in this run which line is wrong."""


@contextlib.contextmanager
def input_of(grading: Grading, case: Case) -> Iterator[OwnInput | MachineFault]:
    """The input of the runs of `case`, fresh ones if it is timed, or the fault that prevented it. All runs of a case,
    second draws included, have an input in the same kind of place."""
    bench = grading.bench
    timed = bench is not None and bench.is_timed(case)
    with contextlib.ExitStack() as stack:
        made: OwnInput | MachineFault
        try:
            one = bench.fresh_input(case) if bench is not None and timed else own_input(case, grading.files)
            made = stack.enter_context(one)
        except MachineFault as fault:  # raised later, when this case runs
            made = fault
        yield made


def grade_case(
    grading: Grading, built: Build, case: Case, watch: Stopwatch, own: OwnInput | MachineFault | None = None
) -> Tested:
    """Grade `case`, and try again after a machine fault. `own` is the input for the first try, opened ahead of
    time."""
    if built.program is None:
        verdict = Verdict.COMPILE_ERROR if built.fault is Fault.STUDENT else Verdict.GRADER_ERROR
        return Tested(
            TestRecord(
                name=case.name,
                shape=case.shape,
                verdict=verdict,
                fault=built.fault,
                reason=bounded(built.reason, MAX_REASON),
                cause=bounded(built.reason, MAX_REASON) if built.fault is Fault.STUDENT else "",
            )
        )
    for left in reversed(range(1 + _MACHINE_RETRIES)):
        opened = own is not None and left == _MACHINE_RETRIES
        ahead = contextlib.nullcontext(own) if own is not None and opened else input_of(grading, case)
        test = _try_case(grading, built.program, case, ahead, watch, last=left == 0)
        if test.record.fault is not Fault.MACHINE:
            break
    return test


def _try_case(
    grading: Grading,
    program: Path,
    case: Case,
    ahead: AbstractContextManager[OwnInput | MachineFault],
    watch: Stopwatch,
    *,
    last: bool,
) -> Tested:
    try:
        with ahead as own:
            if isinstance(own, MachineFault):
                raise own
            return _run_case(grading, program, case, own, watch, last=last)
    except MachineFault as fault:
        return Tested(
            TestRecord(
                name=case.name, shape=case.shape, verdict=Verdict.GRADER_ERROR, fault=Fault.MACHINE, reason=str(fault)
            )
        )


def _run_case(
    grading: Grading,
    program: Path,
    case: Case,
    own: OwnInput,
    watch: Stopwatch,
    *,
    last: bool,
) -> Tested:
    """Run `case` once. On the `last` try, CUDA errors that blame the machine count only if the grader's own test of the
    engine fails too, since a program can provoke or forge them."""

    def machine_fails() -> bool:
        return not last or bool(grading.engine.problem())

    limit_s, limit_name = wall_limit(grading, case)
    files, bench = grading.files, grading.bench
    fresh = own if isinstance(own, FreshInput) else None
    input_file = own.path
    with watch.stage("fresh inputs and their checks"):
        since = bench.mark() if bench is not None and fresh is not None else None
    with contextlib.ExitStack() as stack:
        with watch.stage("starting runs, reading traces"):
            watched = stack.enter_context(watching(bench.read if bench is not None else None))
            run = stack.enter_context(
                run_program(
                    grading.engine,
                    program,
                    input_file,
                    output_bytes=case.output_bytes,
                    wall_s=limit_s,
                    limits=grading.assignment.limits,
                )
            )
            watched.stop()
            watch.add("graded runs", run.outcome.wall_s)
        with watch.stage("check"):
            tolerance = limits(case, files, grading.assignment.tolerance)
            expected, source = files.expected(case), files.input(case)
            check = check_output(case.operator, case.shape, expected, run.output, tolerance, source)
            diagnosis = None
            if shows_diagnosis(grading.assignment.hidden_inputs, case):
                diagnosis = hint(None, diagnose, check, case.operator, source, expected, run.output)
            judgement = judge(
                run,
                check,
                limit_s=limit_s,
                limit_name=limit_name,
                diagnosis=diagnosis,
                submission=grading.submission,
                machine_fails=machine_fails,
                control_fails=lambda: bool(control.problem(grading.engine)),
            )
            if judgement.fault is Fault.STUDENT and (run.trace is None or not run.trace.kernels):
                _see_programs_start(grading.engine)
            if judgement.fault is Fault.STUDENT and (changed := changed_files(case, files)):
                # A student is not to blame for failing on a file that has changed since it was generated.
                judgement = Judgement(Verdict.GRADER_ERROR, Fault.MACHINE, " ".join(changed))
        if bench is not None:  # after a failure, the grader may have tested the GPU itself
            bench.worked(run.ended if judgement.verdict is Verdict.PASSED else time.monotonic())
        with watch.stage("times and doubts"):
            record = _test_record(grading, case, run, check, judgement, limit_s)
        if grading.show and shows_diagnosis(grading.assignment.hidden_inputs, case):
            corners = read_corners(case.operator, case.shape, files.expected(case), run.output, grading.show)
            record = record.model_copy(update={"corners": corners})
        credible = judgement.verdict is Verdict.PASSED and not record.flags
        first = timed(run, watched.state) if credible else ""
        trace, witness = run.trace, witness_of(grading.engine.name, case, run)
    if isinstance(first, TimedRun):
        record = _timed(grading, program, case, record, first, since, fresh, limit_s, watch)
        record = _compared(grading, case, record, limit_s, watch)
        record = _computed_on_the_gpu(grading, record, trace, witness)
    keep = bench is not None and record.verdict is Verdict.PASSED and case.name in bench.scored_tests()
    seen = trace.findings if trace is not None else ()
    return Tested(
        disclosed(record, grading.assignment.hidden_inputs, case),
        trace if keep else None,
        check.reason,
        is_explained(seen, judgement.verdict),
    )


@cache
def _see_programs_start(engine: Engine) -> None:
    """Raise MachineFault if no program at all can run on this machine. A success is remembered."""
    if problem := engine.problem():
        raise MachineFault(f"No CUDA program can run on this machine now: {problem}. Run `grader doctor` for details.")


def _timed(
    grading: Grading,
    program: Path,
    case: Case,
    record: TestRecord,
    first: TimedRun,
    since: object,
    fresh: FreshInput | None,
    limit_s: float,
    watch: Stopwatch,
) -> TestRecord:
    """The record of a passed test with its time. The time is measured again if there are fresh inputs, and compared
    with the floor."""
    bench = grading.bench
    if bench is None or record.gpu_ms is None:
        return record
    changes: dict[str, object] = {}
    gpu_ms: float | None = record.gpu_ms
    refused, notes = "", tuple[str, ...]()
    if fresh is not None:
        with watch.stage("fresh inputs and their checks"):
            timing = bench.time(program, case, fresh, wall_s=limit_s, first=first, since=since)
            watch.add("timed runs", timing.run_wall_s)
        if timing.problem:
            refused = f"It passed, but {timing.problem}: its time is refused and earns no points."
        elif timing.shared_with:
            gpu_ms = None
            notes = (
                f"The GPU was also used by {timing.shared_with} while this test was timed: its time was not measured. "
                "Stop that program, and grade again.",
            )
        elif timing.median_ms is not None:
            gpu_ms, notes = timing.median_ms, timing.notes
        changes |= {"timing": timing_record(timing, grading.assignment)}
    floor = bench.floor(case)
    if floor is not None:
        refused = refused or (floor.refusal(gpu_ms) if gpu_ms is not None else "")
        changes |= {"floor": floor_record(floor, gpu_ms)}
    warnings = (*record.warnings, *notes, *((refused,) if refused else ()))
    flags = (*record.flags, *((refused,) if refused else ()))
    changes |= {"gpu_ms": gpu_ms, "timing_refused": refused, "warnings": warnings, "flags": flags}
    return record.model_copy(update=changes)


def _compared(grading: Grading, case: Case, record: TestRecord, limit_s: float, watch: Stopwatch) -> TestRecord:
    """The record with the times of the sequential program and of a reference solution, and the speedup."""
    if not record.gpu_ms or record.timing_refused:
        return record
    changes: dict[str, object] = {}
    if grading.baseline is not None:
        with watch.stage("baseline"):
            baseline = grading.baseline(case)
        changes |= {"baseline": _baseline_record(baseline), "speedup": baseline.seconds * 1e3 / record.gpu_ms}
    if grading.bench is not None:
        with watch.stage("reference solution"):
            reference = grading.bench.reference(case, limit_s)
        if reference is not None:
            changes |= {"reference": reference, "reference_ms": reference.timing.median_ms}
    return record.model_copy(update=changes)


def _computed_on_the_gpu(grading: Grading, record: TestRecord, trace: Trace | None, witness: Witness) -> TestRecord:
    """The record, without its times if the host's processor may have done the work."""
    if trace is None or record.baseline is None:
        return record
    runs = record.timing.runs if record.timing is not None else ()
    startup_cpu_s = grading.bench.starting.result() if grading.bench is not None and runs else None
    why = computed_on_the_host(trace, witness, record.baseline.seconds, runs, startup_cpu_s)
    if not why:
        return record
    return record.model_copy(update={"flags": (*record.flags, why), "timing_refused": why, **NO_TIMES})


def wall_limit(grading: Grading, case: Case) -> tuple[float, str]:
    """The wall time in seconds that `case` may take, and the name of that limit."""
    limits = grading.assignment.limits
    if not grading.engine.measures_time:
        return limits.emulator_wall_s, f"the {grading.engine.name}'s own limit (not the assignment's)"
    for limit in limits.wall_s:
        if case in grading.suite.select(limit.tests):
            return limit.seconds, "the assignment's limit"
    return limits.emulator_wall_s, "the general limit"


def _test_record(
    grading: Grading, case: Case, run: Run, check: Check, judgement: Judgement, limit_s: float
) -> TestRecord:
    passed = judgement.verdict is Verdict.PASSED
    flags = doubts(run.trace, witness_of(grading.engine.name, case, run)) if passed and not run.untraced_reason else ()
    trace = run.trace if grading.engine.measures_time and not flags else None
    gpu_ms = trace.gpu_ns / 1e6 if trace is not None and trace.complete else None
    sidecar = read_sidecar(case, grading.files) or {}
    tracer_failed = run.trace is not None and bool(run.trace.dropped or run.trace.tracer_errors)
    refused = flags[0] if flags and grading.engine.measures_time and not tracer_failed else ""
    return TestRecord(
        name=case.name,
        shape=case.shape,
        verdict=judgement.verdict,
        fault=judgement.fault,
        reason=judgement.reason,
        cause=judgement.cause,
        findings=judgement.findings[:MAX_FINDINGS],
        max_error=check.max_error,
        wrong_elements=check.wrong if check.kind in ("passed", "values", "precision") else None,
        precision=_precision(check),
        wall_s=round(run.outcome.wall_s, 4),
        limit_s=limit_s,
        cpu_s=round(run.outcome.cpu_s, 4),
        gpu_ms=gpu_ms,
        copy_ms=trace.copy_ns / 1e6 if trace is not None and trace.complete else None,
        phases_ms=phase_times(trace, grading.assignment.phases) if trace is not None and trace.complete else {},
        kernels=len(run.trace.kernels) if run.trace is not None else None,
        input_digest=sidecar.get("input", {}).get("sha256"),
        seed=_seed_name(sidecar),
        exit=run.outcome.ending,
        output=spelled_out(run.outcome.stdout + run.outcome.stderr)[-4000:],
        warnings=judgement.warnings,
        flags=flags,
        timing_refused=refused,
    )


def _precision(check: Check) -> tuple[PrecisionRecord, ...]:
    return tuple(
        PrecisionRecord(
            tensor=found.tensor,
            largest=found.largest,
            plain_largest=found.limit.plain.largest,
            allowed_largest=found.limit.largest,
            rms=found.rms,
            plain_rms=found.limit.plain.rms,
            allowed_rms=found.limit.rms,
        )
        for found in check.precision
        if found.limit.plain is not None and found.limit.rms is not None and found.rms is not None
    )


def _seed_name(sidecar: dict[str, dict[str, str]]) -> str | None:
    seed = sidecar.get("seed")
    return f"{seed['kind']} {seed['id']}" if seed else None


def _baseline_record(baseline: Baseline) -> BaselineRecord:
    return BaselineRecord(
        seconds=baseline.seconds,
        description=baseline.describe(),
        source_sha256=baseline.source_sha256,
        cpu=baseline.cpu,
        spread=round(baseline.rate.spread, 4),
        id=baseline.id,
        date=baseline.date,
    )
