"""Grades one submission: builds it, runs every testcase, computes the score, and returns the record."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

from grader import sandbox
from grader.base.errors import MachineFault
from grader.base.hints import hint
from grader.base.identity import identity
from grader.base.machine import cpu_model
from grader.base.names import printable_name
from grader.base.progress import Progress
from grader.base.stopwatch import Stopwatch
from grader.base.verdict import Fault, Verdict
from grader.course.catalogue import TestcaseFiles
from grader.course.testcase import Case
from grader.findings import kind_of
from grader.gpu.idle import Waited
from grader.grading.closer_look import CloserLook, case_to_look_at, is_worth_it
from grader.grading.experiments import with_experiments
from grader.grading.hidden_testcases import drawn_sentence, fresh_files, shows_diagnosis, shuffled, to_draw_again
from grader.grading.judgement import Judgement
from grader.grading.one_test import Later, grade_case, inputs_ahead
from grader.grading.session import Grading
from grader.grading.shape_split import wrong_launch
from grader.grading.tested import Tested, both, record_of
from grader.programs import control
from grader.programs.build import Build, build, failed_build
from grader.programs.source_rules import Violation, refusal, violations
from grader.programs.submission import Submission
from grader.records.disclosure import disclosed_profile, fitting
from grader.records.record import (
    BuildRecord,
    CloserLookRecord,
    EngineRecord,
    GraderRecord,
    MachineRecord,
    ProfileRecord,
    Record,
    SubmissionRecord,
)
from grader.records.rescore import scored
from grader.timing.baseline import time_all
from grader.timing.evidence import flags_of
from grader.timing.fresh_inputs import OwnInput


def grade(grading: Grading, submission: Submission, progress: Progress, built: Build | None = None) -> Record:
    """Grade `submission`; the testcases' files must exist. `built` is its build, if that has finished, successfully or
    not. Raises MachineFault or GraderFault if the grading as a whole cannot continue. A fault in one test goes into
    that test's record, and what the submission itself causes into the record of a failed build (`control`)."""
    blame = control.Blame(grading.engine, python=submission.is_python)
    for _ in range(control.TRIES):
        with blame:
            return _grade(grading, submission, progress, built)
    broken = failed_build(Fault.STUDENT, blame.caused)
    with _closer_look(grading, submission) as closer:
        return _grade_built(grading, submission, broken, progress, Stopwatch(), closer)


def _grade(grading: Grading, submission: Submission, progress: Progress, built: Build | None) -> Record:
    watch = Stopwatch()
    with _closer_look(grading, submission) as closer, ThreadPoolExecutor(1) as background:
        looked: Future[tuple[Violation, ...]] = Future()
        if built is None or built.fault in (None, Fault.STUDENT):
            looked = background.submit(violations, submission, grading.assignment, grading.engine)
        else:  # what the machine or the grader failed at has no points to refuse
            looked.set_result(())
        if built is None:
            progress.stage(f"{submission.id}: compiling")
            with watch.stage("compile"):
                built = build(submission, grading.assignment, grading.engine, grading.cases)
        with watch.stage("source rules"):  # their check can outlast a build from the cache
            submission, built = _within_rules(submission, built, looked.result())
        return _grade_built(grading, submission, built, progress, watch, closer)


def _closer_look(grading: Grading, submission: Submission) -> CloserLook:
    return CloserLook(grading.engine, grading.assignment, submission, grading.files, grading.quick)


def _within_rules(submission: Submission, built: Build, broken: tuple[Violation, ...]) -> tuple[Submission, Build]:
    """Apply the source rules: a submission that they refuse is not run, and their warnings become notes."""
    compiles = built.program is not None
    if why := refusal(broken, built=compiles):
        built = replace(built, program=None, fault=Fault.STUDENT, reason=why)
    warnings = [each for each in broken if not each.refused and (compiles or not each.unexamined)]
    notes = (*submission.notes, *map(str, warnings))
    return replace(submission, notes=notes), built


def _grade_built(
    grading: Grading, submission: Submission, built: Build, progress: Progress, watch: Stopwatch, closer: CloserLook
) -> Record:
    bench, waited, whole, before = grading.bench, Waited(None, ""), grading.cases, {t.name: t for t in grading.ended}
    grading = replace(grading, cases=tuple(case for case in whole if case.name not in before) or whole[-1:])
    with contextlib.ExitStack() as stack:
        later = None
        if built.program is not None:
            with watch.stage("baseline"):  # before threads prepare inputs, which would disturb it, and without the GPU
                time_all(grading.assignment, grading.baseline, grading.cases, progress.stage)
        if bench is not None:
            later = stack.enter_context(Later(watch))
            with watch.stage("waiting for the GPU"):
                stack.enter_context(bench.to_ourselves(progress))
        if bench is not None and built.program is not None:
            with watch.stage("waiting for an idle GPU"):
                waited = bench.wait_until_idle(progress.line)
        by_case: dict[Case, Tested] = {}
        looks = closer.possible and built.program is not None

        # In random order, a test's position tells the program nothing.
        order = grading.cases if grading.quick else shuffled(grading.cases)
        with contextlib.closing(inputs_ahead(grading, built, order, watch)) as opened:
            if built.program is not None:
                progress.stage(f"{submission.id}: running", total=len(whole))

            def ran(case: Case, own: OwnInput | MachineFault | None = None) -> bool:
                """Run a case; whether it ended within its time limit."""
                progress.step(case.name)
                progress.advance(len(before) + len(by_case))
                by_case[case] = test = grade_case(grading, submission, built, case, watch, own, later)
                if built.program is not None:
                    progress.step(case.name, _in_short(test))
                if grading.keep is not None and _final(grading, test):
                    grading.keep(record_of(test, grading.assignment.hidden_inputs))
                needed = _needs_a_look(grading, test)
                if looks and (is_worth_it(case, grading.cases) if needed else grading.quick and test.passed):
                    closer.prepare(test, record=needed)
                return _ended(test)

            smallest = min(grading.cases, key=lambda case: case.flops)
            for case, own in opened:
                if case in by_case or ran(case, own):
                    continue
                if grading.quick or not (ran(smallest) if smallest not in by_case else _ended(by_case[smallest])):
                    break
        over_time = ", ".join(case.name for case in by_case if not _ended(by_case[case]))
        for case in grading.cases:
            if case not in by_case:
                by_case[case] = _left_out(case, over_time, quick=grading.quick)
        passed = [case for case, test in by_case.items() if test.passed]
        again = to_draw_again(grading.assignment.hidden_inputs, grading.suite, passed)
        with watch.stage("fresh draws"), fresh_files(grading.suite, again) as drawn:  # made during profiling
            profiled = _profiles(grading, built, [by_case[case] for case in grading.cases], watch, progress)
            redrawn, missed = _on_fresh_draws(grading, submission, built, by_case, drawn, watch, progress)
        names = {case.name for case, test in by_case.items() if test.passed}
        profiles = tuple(profile for profile in profiled if profile.test in names)
    tested = [by_case[case].settled() for case in grading.cases]
    look, tested = (None, tested) if not looks else _looked_at(grading, closer, tested, watch, progress)
    tested = hint(tested, with_experiments, grading, closer, built, tested, watch, progress)
    tested = hint(tested, _for_one_shape, grading, submission, tested)
    timings = {"testcases": round(grading.prepared_s, 4)} | watch.timings()
    if waited.warning:
        submission = replace(submission, notes=(*submission.notes, waited.warning))
    made_now = {test.case.name: record_of(test, grading.assignment.hidden_inputs) for test in tested}
    tests = fitting([(before | made_now)[case.name] for case in whole])
    assignment, engine = grading.assignment, grading.engine
    made = scored(assignment, grading.suite, tests, profiles, engine=engine.name, measures_time=engine.measures_time)
    machine = MachineRecord(
        host=platform.node(), cpu=cpu_model(), confinement=sandbox.confinement(), gpu_prepared=waited.sentence
    )
    return Record(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        grader=GraderRecord.of(identity()),
        assignment=assignment.name,
        assignment_sha256=assignment.rules_sha256,
        measured_sha256=assignment.measured_sha256,
        submission=SubmissionRecord(
            id=submission.id,
            path=printable_name(str(submission.path)),
            sha256=submission.sha256,
            files=tuple(name for name, _ in submission.files),
        ),
        engine=EngineRecord(name=engine.name, device=engine.device, facts=dict(engine.facts)),
        machine=machine,
        build=BuildRecord(
            ok=built.ok,
            log=built.log,
            seconds=round(built.seconds, 3),
            flags=tuple(printable_name(flag) for flag in submission.flags),
            flags_from=submission.flags_from,
            cached=built.cached,
        ),
        tests=tests,
        occupancy=made.occupancy,
        scores=made.scores,
        parts=made.parts,
        practice=made.practice,
        not_measured=made.not_measured,
        notes=submission.notes,
        profiles=profiles,
        timings=timings,
        flags=flags_of(tests, profiles),
        hidden_inputs=drawn_sentence(redrawn, whole, missed),
        closer_look=look,
    )


def _for_one_shape(grading: Grading, submission: Submission, tested: list[Tested]) -> list[Tested]:
    """The tests; those that failed get the cause that only a comparison of all tests shows, if there is one."""
    cause = "" if any(case.hidden for case in grading.cases) else wrong_launch(tested, submission)
    return [test if test.passed else test.with_cause(cause) for test in tested]


def _in_short(test: Tested) -> str:
    """A short form of a test's result, such as "passed, 0.21 s"."""
    return test.verdict.words + (f", {test.ran.wall_s:.2f} s" if test.ran is not None else "")


def _ended(test: Tested) -> bool:
    return test.verdict is not Verdict.TIME_LIMIT


def _final(grading: Grading, test: Tested) -> bool:
    """Whether nothing more will be found out about the test: it passed without a doubt, and neither its occupancy is
    scored nor can it be among those that run on a second draw."""
    again = to_draw_again(grading.assignment.hidden_inputs, grading.suite, [test.case])
    return test.passed and not test.times.doubts and test.trace is None and not again


def _left_out(case: Case, over_time: str, *, quick: bool) -> Tested:
    """The result of a test that is not run, because others ran into their time limits. A student's own check stops at
    the first; a grading when the smallest test is among them. Then this test, which is larger, has failed, too."""
    if quick:
        return Tested(case, Judgement(Verdict.NOT_RUN, None, f"Not run: {over_time} ran into its time limit."))
    reason = f"Not run: {over_time} ran into the time limit, and this test is not smaller."
    return Tested(case, Judgement(Verdict.TIME_LIMIT, Fault.STUDENT, reason))


def _needs_a_look(grading: Grading, test: Tested) -> bool:
    """Whether the test failed and a closer look may explain it. A look helps if the run did not show which line is
    wrong. In a student's own check it helps even if the run did, since a race may be behind it, but not after a time
    limit."""
    shown = shows_diagnosis(grading.assignment.hidden_inputs, test.case)
    leads = test.explained and not (grading.quick and test.verdict is not Verdict.TIME_LIMIT)
    return shown and test.failed_by_itself and not leads


def _looked_at(
    grading: Grading, closer: CloserLook, tested: list[Tested], watch: Stopwatch, progress: Progress
) -> tuple[CloserLookRecord | None, list[Tested]]:
    """Run one test again with checks, if a test failed without a known cause or if all passed in a student's own check.
    Return the record of this closer look, and the tests; the test that was run again has the finding in its reason or
    warnings."""
    by_case = {test.case: test for test in tested}
    failed = [test for test in tested if _needs_a_look(grading, test)]
    if not failed and not (grading.quick and all(test.passed for test in tested)):
        return None, tested
    case = case_to_look_at({test.case: test.verdict for test in failed or tested})
    with watch.stage("closer look"):
        for each in closer.cases(case, [test.case for test in tested if test.passed]):
            progress.stage(f"{each.name} again, with checks for races and other faults")
            look = closer.at(each, by_case[each].verdict)
            if any(kind_of(found).severity == "error" for found in look.findings):
                break
    by_case[case] = by_case[case].with_cause(look.cause, look.findings)
    return look, list(by_case.values())


def _on_fresh_draws(
    grading: Grading,
    submission: Submission,
    built: Build,
    tested: dict[Case, Tested],
    drawn: Iterator[tuple[Case, TestcaseFiles]],
    watch: Stopwatch,
    progress: Progress,
) -> tuple[list[Case], str]:
    """Rerun, on other values, the hidden cases that passed. A case passes only if both runs pass. Return the cases that
    were rerun, and the reason why the machine could not rerun all of them, or ''. A rerun that the machine could not
    make costs no points."""
    done, missed = list[Case](), ""
    try:
        for case, files in drawn:
            progress.stage(f"{case.name} on fresh values")
            once = replace(grading, files=files, baseline=None, bench=None)
            again = grade_case(once, submission, built, case, watch)
            tested[case] = both(tested[case], again)
            if again.verdict is Verdict.GRADER_ERROR:
                missed = again.judgement.reason
            else:
                done.append(case)
    except MachineFault as fault:
        missed = str(fault)
    return done, missed


def _profiles(
    grading: Grading, built: Build, tested: Sequence[Tested], watch: Stopwatch, progress: Progress
) -> tuple[ProfileRecord, ...]:
    """Profile the tests whose occupancy the rubric scores, if they were graded and passed."""
    bench, profiles = grading.bench, []
    for test in tested:
        case = test.case
        if bench is not None and built.program is not None and test.trace is not None:
            progress.stage(f"profiling {case.name}")
            with watch.stage("profile"):
                timing = test.times.timing
                outside = timing.outside if timing is not None else None
                made = bench.profile(built.program, case, test.trace, outside, watch)
            profiles.append(disclosed_profile(made, grading.assignment.hidden_inputs, case))
    return tuple(profiles)
