"""Grades one submission: build, then every testcase through run, check and measure, then the score → Record."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from grader import __version__, sandbox
from grader.base.errors import MachineFault
from grader.base.machine import cpu_model
from grader.base.names import printable_name, spelled_out
from grader.base.progress import Progress
from grader.base.stopwatch import Stopwatch
from grader.base.verdict import Fault, Verdict
from grader.checking.check import Check, check_output
from grader.checking.corners import read_corners
from grader.checking.diagnose import diagnose
from grader.course.assignment import Assignment, LogSpeedup, Occupancy, ReferenceRatio
from grader.course.catalogue import TestcaseFiles, changed_files, read_sidecar
from grader.course.testcase import Case, Suite
from grader.gpu.idle import Waited
from grader.gpu.state import watching
from grader.grading.bench import Bench, floor_record, mean_occupancy, timing_record
from grader.grading.closer_look import CloserLook, case_to_look_at, explained, failed_by_itself, with_cause
from grader.grading.hidden_testcases import (
    NO_TIMES,
    both,
    drawn_sentence,
    fresh_files,
    shows_diagnosis,
    shuffled,
    to_draw_again,
)
from grader.grading.judge import Judgement, judge
from grader.programs.build import Build, build
from grader.programs.engine import Engine
from grader.programs.run import Run, run_program
from grader.programs.source_rules import violations
from grader.programs.submission import Submission
from grader.programs.trace import Trace
from grader.records.disclosure import disclosed, disclosed_profile
from grader.records.points import total_of
from grader.records.record import (
    BaselineRecord,
    BuildRecord,
    CloserLookRecord,
    EngineRecord,
    MachineRecord,
    ProfileRecord,
    Record,
    Scores,
    SubmissionRecord,
    TestRecord,
)
from grader.records.score import Evidence, is_practice, score
from grader.timing.baseline import Baseline
from grader.timing.evidence import Witness, computed_on_the_host, doubts, flags_of, witness_of
from grader.timing.fresh_inputs import FreshInput, one_ahead
from grader.timing.measurement import TimedRun, timed
from grader.timing.phases import phase_times

_MACHINE_RETRIES = 1
"""How often a test that a machine fault spoilt is run again before the fault is reported."""


@dataclass(frozen=True)
class Grading:
    """What every submission of one grading has in common.

    `baseline` gives the sequential time of a case on this machine; None where times are not compared.
    """

    assignment: Assignment
    suite: Suite
    files: TestcaseFiles
    cases: tuple[Case, ...]
    engine: Engine
    baseline: Callable[[Case], Baseline] | None
    bench: Bench | None = None
    submission: Submission | None = None
    """The one that is graded, to name its lines; None where there is none yet."""
    prepared_s: float = 0.0
    """What making testcases took before this grading, for its timings."""
    show: int = 0
    """Rows and columns of every output tensor to keep in the record, where a student may see them."""
    quick: bool = False
    """A student's own look: in the order of the testcases, none after the first that ran into its time limit, and
    with a look for races also where all passed."""


@dataclass(frozen=True)
class _Tested:
    """A test's record, and its trace where the score needs a profile of it."""

    record: TestRecord
    trace: Trace | None = None
    compared: str = ""
    """What comparing the output said."""
    explained: bool = False
    """Whether the engine itself saw, in this run, which line is wrong."""


def grade(grading: Grading, submission: Submission, progress: Progress) -> Record:
    """Grade `submission`; the testcases' files must be there. Raises MachineFault or GraderFault when the grading
    as a whole cannot go on; what befalls one test is in its record."""
    watch = Stopwatch()
    progress.stage(f"{submission.id}: compiling")
    with _closer_look(grading, submission) as closer:
        if grading.quick and closer.possible:
            closer.prepare()
        with watch.stage("compile"):
            built = build(submission, grading.assignment, grading.engine)
        return _grade_built(grading, submission, built, progress, watch, closer)


def _closer_look(grading: Grading, submission: Submission) -> CloserLook:
    return CloserLook(grading.engine, grading.assignment, submission, grading.files)


def _within_rules(grading: Grading, submission: Submission, built: Build) -> tuple[Submission, Build]:
    """Both as they are graded: what the source rules refuse is not run, what they warn of is noted."""
    broken = violations(submission, grading.assignment, grading.engine)
    if built.program is None:
        broken = tuple(violation for violation in broken if not violation.unexamined)
    if refusals := [violation for violation in broken if violation.refused]:
        built = replace(built, program=None, fault=Fault.STUDENT, reason=" ".join(map(str, refusals[:5])))
    notes = (*submission.notes, *(str(violation) for violation in broken if not violation.refused))
    return replace(submission, notes=notes), built


def grade_built(grading: Grading, submission: Submission, built: Build, progress: Progress) -> Record:
    """As `grade`, from what came of building: also of one that failed, whoever's fault that was."""
    with _closer_look(grading, submission) as closer:
        return _grade_built(grading, submission, built, progress, Stopwatch(), closer)


def _grade_built(
    grading: Grading, submission: Submission, built: Build, progress: Progress, watch: Stopwatch, closer: CloserLook
) -> Record:
    with watch.stage("source rules"):
        submission, built = _within_rules(grading, submission, built)
    bench, waited = grading.bench, Waited(None, "")
    with bench.to_ourselves(progress) if bench is not None else contextlib.nullcontext():
        if bench is not None and built.program is not None:
            with watch.stage("waiting for an idle GPU"):
                waited = bench.wait_until_idle(progress.line)
        by_case: dict[Case, _Tested] = {}
        looks = closer.possible and built.program is not None
        # Its place in the order tells a program nothing.
        order = grading.cases if grading.quick else shuffled(grading.cases)
        with contextlib.closing(one_ahead(order, lambda case: _input_of(grading, case))) as opened:
            if built.program is not None:
                progress.stage(f"{submission.id}: running", total=len(grading.cases))
            for number, (case, fresh) in enumerate(opened):
                progress.step(case.name)
                progress.advance(number)
                if grading.quick and (stopped := _first_over_time(by_case)):
                    by_case[case] = _not_run(case, stopped)
                    continue
                by_case[case] = _grade_case(grading, built, case, watch, fresh)
                if built.program is not None:
                    progress.step(case.name, _in_short(by_case[case].record))
                if looks and _needs_a_look(grading, case, by_case[case]):
                    closer.prepare()
        again = to_draw_again(
            grading.assignment.hidden_inputs, grading.suite, {case.name: by_case[case].record for case in by_case}
        )
        with fresh_files(grading.suite, again) as drawn:  # made while the GPU is profiled on
            profiled = _profiles(grading, built, [by_case[case] for case in grading.cases], watch, progress)
            redrawn, missed = _on_fresh_draws(grading, built, by_case, drawn, watch, progress)
        tested = [by_case[case] for case in grading.cases]
        passed = {test.record.name for test in tested if test.record.verdict is Verdict.PASSED}
        profiles = tuple(profile for profile in profiled if profile.test in passed)
        look, tested = (None, tested) if not looks else _looked_at(grading, closer, tested, watch, progress)
    timings = {"testcases": round(grading.prepared_s, 4)} | watch.timings()
    if waited.warning:
        submission = replace(submission, notes=(*submission.notes, waited.warning))
    tests = tuple(test.record for test in tested)
    record = _record(
        grading, submission, built, tests, profiles, timings, drawn_sentence(redrawn, grading.cases, missed)
    )
    machine = record.machine.model_copy(update={"gpu_prepared": waited.sentence})
    return record.model_copy(update={"machine": machine, "closer_look": look})


@contextlib.contextmanager
def _input_of(grading: Grading, case: Case) -> Iterator[FreshInput | MachineFault | None]:
    """Inputs for timed runs of `case`, or why there are none; None where it isn't timed."""
    bench = grading.bench
    with contextlib.ExitStack() as stack:
        fresh: FreshInput | MachineFault | None = None
        if bench is not None and bench.is_timed(case):
            try:
                fresh = stack.enter_context(bench.fresh_input(case))
            except MachineFault as fault:  # raised when it is this case's turn
                fresh = fault
        yield fresh


def _in_short(test: TestRecord) -> str:
    """ "passed, 0.21 s": how a test ended."""
    return test.verdict.replace("_", " ") + (f", {test.wall_s:.2f} s" if test.wall_s is not None else "")


def _first_over_time(tested: Mapping[Case, _Tested]) -> str:
    """The name of the test that ran into its time limit; '' while none has."""
    return next((case.name for case, test in tested.items() if test.record.verdict is Verdict.TIME_LIMIT), "")


def _not_run(case: Case, stopped: str) -> _Tested:
    reason = f"Not run: {stopped} ran into its time limit."
    return _Tested(TestRecord(name=case.name, shape=case.shape, verdict=Verdict.NOT_RUN, fault=None, reason=reason))


def _needs_a_look(grading: Grading, case: Case, test: _Tested) -> bool:
    """Whether the test failed and nothing says yet which line is wrong; in a student's own look, whether the report
    has no cause to lead with."""
    shown = shows_diagnosis(grading.assignment.hidden_inputs, case)
    leads = test.explained and not (grading.quick and test.record.verdict is not Verdict.TIME_LIMIT)
    return shown and failed_by_itself(test.record) and not leads


def _looked_at(
    grading: Grading, closer: CloserLook, tested: list[_Tested], watch: Stopwatch, progress: Progress
) -> tuple[CloserLookRecord | None, list[_Tested]]:
    """A second run of one test with checks, where a test failed without a cause, or where all passed a student's own
    look; and the tests, with what it found in the reason or a warning of that one."""
    by_case = dict(zip(grading.cases, tested, strict=True))
    failed = {case: test for case, test in by_case.items() if _needs_a_look(grading, case, test)}
    if not failed and not (grading.quick and all(t.record.verdict is Verdict.PASSED for t in tested)):
        return None, tested
    among = failed or by_case
    case = case_to_look_at([test.record for test in among.values()], {case.name: case for case in among})
    progress.stage(f"{case.name} again, with checks for races and other faults")
    with watch.stage("closer look"):
        look = closer.at(case, by_case[case].record.verdict)
    by_case[case] = replace(by_case[case], record=with_cause(by_case[case].record, look.cause, by_case[case].compared))
    return look, [by_case[case] for case in grading.cases]


def _on_fresh_draws(
    grading: Grading,
    built: Build,
    tested: dict[Case, _Tested],
    drawn: Iterator[tuple[Case, TestcaseFiles]],
    watch: Stopwatch,
    progress: Progress,
) -> tuple[list[Case], str]:
    """Run hidden cases that passed on other values as well; one that fails there has failed. Gives those that were
    run, and why the machine could not do all of them; that costs nobody anything."""
    done, missed = list[Case](), ""
    with watch.stage("fresh draws"):
        try:
            for case, files in drawn:
                progress.stage(f"{case.name} on fresh values")
                again = _grade_case(replace(grading, files=files, baseline=None, bench=None), built, case, watch).record
                tested[case] = replace(tested[case], record=both(tested[case].record, again))
                if again.verdict is Verdict.GRADER_ERROR:
                    missed = again.reason
                else:
                    done.append(case)
        except MachineFault as fault:
            missed = str(fault)
    return done, missed


def _grade_case(
    grading: Grading, built: Build, case: Case, watch: Stopwatch, fresh: FreshInput | MachineFault | None = None
) -> _Tested:
    """`fresh`: its input, opened ahead, for the first try."""
    if built.program is None:
        verdict = Verdict.COMPILE_ERROR if built.fault is Fault.STUDENT else Verdict.GRADER_ERROR
        return _Tested(
            TestRecord(
                name=case.name,
                shape=case.shape,
                verdict=verdict,
                fault=built.fault,
                reason=built.reason,
                cause=built.reason if built.fault is Fault.STUDENT else "",
            )
        )
    for left in reversed(range(1 + _MACHINE_RETRIES)):
        ahead = contextlib.nullcontext(fresh) if left == _MACHINE_RETRIES else _input_of(grading, case)
        test = _try_case(grading, built.program, case, ahead, watch, last=left == 0)
        if test.record.fault is not Fault.MACHINE:
            break
    return test


def _try_case(
    grading: Grading,
    program: Path,
    case: Case,
    ahead: AbstractContextManager[FreshInput | MachineFault | None],
    watch: Stopwatch,
    *,
    last: bool,
) -> _Tested:
    try:
        with ahead as fresh:
            if isinstance(fresh, MachineFault):
                raise fresh
            return _run_case(grading, program, case, fresh, watch, last=last)
    except MachineFault as fault:
        return _Tested(
            TestRecord(
                name=case.name, shape=case.shape, verdict=Verdict.GRADER_ERROR, fault=Fault.MACHINE, reason=str(fault)
            )
        )


def _run_case(
    grading: Grading, program: Path, case: Case, fresh: FreshInput | None, watch: Stopwatch, *, last: bool
) -> _Tested:
    """`last`: it is not tried again, so what the program says of the machine is not taken on trust."""

    def machine_fails() -> bool:
        return not last or bool(grading.engine.problem())

    limit_s, limit_name = wall_limit(grading, case)
    files, bench = grading.files, grading.bench
    with (
        watching(bench.read if bench is not None else None) as watched,
        run_program(
            grading.engine,
            program,
            fresh.path if fresh is not None else files.input(case),
            output_bytes=case.output_bytes,
            wall_s=limit_s,
            limits=grading.assignment.limits,
        ) as run,
    ):
        watched.stop()
        watch.add("graded runs", run.outcome.wall_s)
        with watch.stage("check"):
            tolerance = case.operator.tolerances(case.shape, grading.assignment.tolerance)
            check = check_output(case.operator, case.shape, files.expected(case), run.output, tolerance)
            diagnosis = None
            if shows_diagnosis(grading.assignment.hidden_inputs, case):
                diagnosis = diagnose(check, case.operator, files.input(case), files.expected(case), run.output)
            judgement = judge(
                run,
                check,
                limit_s=limit_s,
                limit_name=limit_name,
                diagnosis=diagnosis,
                submission=grading.submission,
                machine_fails=machine_fails,
            )
            if judgement.fault is Fault.STUDENT and (run.trace is None or not run.trace.kernels):
                _see_programs_start(grading.engine)
            if judgement.fault is Fault.STUDENT and (changed := changed_files(case, files)):
                # Nobody is to blame for failing on a file that is not what was generated.
                judgement = Judgement(Verdict.GRADER_ERROR, Fault.MACHINE, " ".join(changed))
        record = _test_record(grading, case, run, check, judgement, limit_s)
        if grading.show and shows_diagnosis(grading.assignment.hidden_inputs, case):
            corners = read_corners(case.operator, case.shape, files.expected(case), run.output, grading.show)
            record = record.model_copy(update={"corners": corners})
        credible = judgement.verdict is Verdict.PASSED and not record.flags
        first = timed(run, watched.state) if credible else ""
        trace, witness = run.trace, witness_of(grading.engine.name, case, run)
    if isinstance(first, TimedRun):
        record = _timed(grading, program, case, record, first, fresh, limit_s, watch)
        record = _compared(grading, case, record, limit_s, watch)
        record = _computed_on_the_gpu(grading, record, trace, witness)
    keep = bench is not None and record.verdict is Verdict.PASSED and case.name in bench.scored_tests()
    seen = trace.diagnostics if trace is not None else ()
    return _Tested(
        disclosed(record, grading.assignment.hidden_inputs, case),
        trace if keep else None,
        check.reason,
        explained(seen, judgement.verdict),
    )


@cache
def _see_programs_start(engine: Engine) -> None:
    """Raises MachineFault where no program at all can run; where one can, that is remembered."""
    if problem := engine.problem():
        raise MachineFault(f"No CUDA program can run on this machine as it is: {problem}. `grader doctor` says more.")


def _timed(
    grading: Grading,
    program: Path,
    case: Case,
    record: TestRecord,
    first: TimedRun,
    fresh: FreshInput | None,
    limit_s: float,
    watch: Stopwatch,
) -> TestRecord:
    """The record of a passed test with its time: repeated where there are inputs for that, and compared with the
    least time the GPU could need."""
    bench = grading.bench
    if bench is None or record.gpu_ms is None:
        return record
    changes: dict[str, object] = {}
    gpu_ms, refused, notes = record.gpu_ms, "", tuple[str, ...]()
    if fresh is not None:
        with watch.stage("fresh inputs and their checks"):
            timing = bench.time(program, case, fresh, wall_s=limit_s, first=first)
            watch.add("timed runs", timing.run_wall_s)
        if timing.problem:
            refused = f"It passed, but {timing.problem}: its time is refused and earns no points."
        elif timing.median_ms is not None:
            gpu_ms, notes = timing.median_ms, timing.notes
        changes |= {"timing": timing_record(timing, grading.assignment)}
    floor = bench.floor(case)
    if floor is not None:
        refused = refused or floor.refusal(gpu_ms)
        changes |= {"floor": floor_record(floor, gpu_ms)}
    warnings = (*record.warnings, *notes, *((refused,) if refused else ()))
    flags = (*record.flags, *((refused,) if refused else ()))
    changes |= {"gpu_ms": gpu_ms, "timing_refused": refused, "warnings": warnings, "flags": flags}
    return record.model_copy(update=changes)


def _compared(grading: Grading, case: Case, record: TestRecord, limit_s: float, watch: Stopwatch) -> TestRecord:
    """The record with the times it is compared with: the sequential program's and a reference solution's."""
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
    """The record without its times where the host's processor may have done the work."""
    if trace is None or record.baseline is None:
        return record
    runs = record.timing.runs if record.timing is not None else ()
    startup_cpu_s = grading.bench.starting.result() if grading.bench is not None and runs else None
    why = computed_on_the_host(trace, witness, record.baseline.seconds, runs, startup_cpu_s)
    if not why:
        return record
    return record.model_copy(update={"flags": (*record.flags, why), "timing_refused": why, **NO_TIMES})


def _profiles(
    grading: Grading, built: Build, tested: Sequence[_Tested], watch: Stopwatch, progress: Progress
) -> tuple[ProfileRecord, ...]:
    """Profiles of the tests that the rubric wants the occupancy of, as far as they were graded and passed."""
    bench, profiles = grading.bench, []
    for case, test in zip(grading.cases, tested, strict=True):
        if bench is not None and built.program is not None and test.trace is not None:
            progress.stage(f"profiling {case.name}")
            with watch.stage("profile"):
                timing = test.record.timing
                outside = timing.outside if timing is not None else None
                made = bench.profile(built.program, case, test.trace, outside, watch)
            profiles.append(disclosed_profile(made, grading.assignment.hidden_inputs, case))
    return tuple(profiles)


def wall_limit(grading: Grading, case: Case) -> tuple[float, str]:
    """Seconds of wall time that `case` may take, and whose limit that is."""
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
        max_error=check.max_error,
        wrong_elements=check.wrong if check.kind in ("passed", "values") else None,
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


def _seed_name(sidecar: dict[str, dict[str, str]]) -> str | None:
    seed = sidecar.get("seed")
    return f"{seed['kind']} {seed['id']}" if seed else None


def _baseline_record(baseline: Baseline) -> BaselineRecord:
    return BaselineRecord(
        seconds=baseline.seconds,
        description=baseline.describe(),
        source_sha256=baseline.source_sha256,
        cpu=baseline.cpu,
    )


def _record(
    grading: Grading,
    submission: Submission,
    built: Build,
    tests: tuple[TestRecord, ...],
    profiles: tuple[ProfileRecord, ...],
    timings: dict[str, float],
    redrawn: str,
) -> Record:
    assignment, engine = grading.assignment, grading.engine
    evidence = _evidence(grading, tests, profiles)
    practice = is_practice(evidence)
    parts = score(assignment, evidence)
    points = {part.part: part.points for part in parts}
    total = total_of(parts, tests, practice=practice)
    return Record(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        grader=__version__,
        assignment=assignment.name,
        assignment_sha256=assignment.rules_sha256,
        submission=SubmissionRecord(
            id=submission.id,
            path=printable_name(str(submission.path)),
            sha256=submission.sha256,
            files=tuple(name for name, _ in submission.files),
        ),
        engine=EngineRecord(name=engine.name, device=engine.device, facts=dict(engine.facts)),
        machine=MachineRecord(host=platform.node(), cpu=cpu_model(), confinement=sandbox.confinement()),
        build=BuildRecord(
            ok=built.ok,
            log=built.log,
            seconds=round(built.seconds, 3),
            flags=tuple(printable_name(flag) for flag in submission.flags),
            flags_from=submission.flags_from,
            cached=built.cached,
        ),
        tests=tests,
        occupancy=evidence.occupancy,
        scores=Scores(total=total, max=assignment.max_points, **points),
        parts=parts,
        practice=practice,
        not_measured=tuple(f"{part.part}: {part.how}" for part in parts if part.points is None),
        notes=submission.notes,
        profiles=profiles,
        timings=timings,
        flags=flags_of(tests, profiles),
        hidden_inputs=redrawn,
    )


def _evidence(grading: Grading, tests: Sequence[TestRecord], profiles: tuple[ProfileRecord, ...]) -> Evidence:
    rubric = grading.assignment.rubric
    engine = grading.engine
    untimed = None
    if not engine.measures_time:
        untimed = f"the {engine.name}'s times say nothing about a GPU"
    elif all(test.gpu_ms is None and not test.flags for test in tests if test.verdict is Verdict.PASSED):
        reasons = [test for test in tests if test.verdict is Verdict.PASSED]
        untimed = "the run left no complete trace of the GPU" if reasons else None
    named = {part.part: part.tests for part in rubric if isinstance(part, LogSpeedup | ReferenceRatio | Occupancy)}
    occupancy, no_occupancy = mean_occupancy(profiles)
    return Evidence(
        tests=tuple(tests),
        graded=frozenset(case.name for case in grading.suite.graded),
        in_part={part: frozenset(case.name for case in grading.suite.select(words)) for part, words in named.items()},
        untimed_reason=untimed,
        occupancy=occupancy,
        no_occupancy_reason=no_occupancy if engine.measures_time else "achieved occupancy is a GPU's",
    )
