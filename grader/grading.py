"""Grades one submission: build, then every testcase through run, check and measure, then the score → Record."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from grader import __version__, sandbox
from grader.assignment import Assignment
from grader.baseline import Baseline
from grader.build import Build, build
from grader.catalogue import TestcaseFiles, read_sidecar
from grader.check import Check, check_output
from grader.diagnose import diagnose
from grader.engine import Engine
from grader.errors import MachineFault
from grader.judge import Judgement, judge
from grader.machine import cpu_model
from grader.progress import Progress
from grader.record import (
    BaselineRecord,
    BuildRecord,
    EngineRecord,
    MachineRecord,
    Record,
    Scores,
    SubmissionRecord,
    TestRecord,
)
from grader.run import Run, run_program
from grader.score import Evidence, is_practice, score
from grader.submission import Submission
from grader.testcase import Case, Suite
from grader.verdict import Fault, Verdict

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


def grade(grading: Grading, submission: Submission, progress: Progress) -> Record:
    """Grade `submission`; the testcases' files must be there. Raises MachineFault or GraderFault when the grading
    as a whole cannot go on; what befalls one test is in its record."""
    progress.stage(f"{submission.id}: compiling")
    return grade_built(grading, submission, build(submission, grading.assignment, grading.engine), progress)


def grade_built(grading: Grading, submission: Submission, built: Build, progress: Progress) -> Record:
    """As `grade`, from what came of building: also of one that failed, whoever's fault that was."""
    tests = []
    progress.stage(f"{submission.id}: testing", total=len(grading.cases))
    for number, case in enumerate(grading.cases):
        progress.stage(f"{submission.id}: {case.name}", total=len(grading.cases))
        progress.advance(number)
        tests.append(_grade_case(grading, built, case))
    return _record(grading, submission, built, tuple(tests))


def _grade_case(grading: Grading, built: Build, case: Case) -> TestRecord:
    if built.program is None:
        verdict = Verdict.COMPILE_ERROR if built.fault is Fault.STUDENT else Verdict.GRADER_ERROR
        return TestRecord(name=case.name, shape=case.shape, verdict=verdict, fault=built.fault, reason=built.reason)
    for _ in range(1 + _MACHINE_RETRIES):
        test = _try_case(grading, built.program, case)
        if test.fault is not Fault.MACHINE:
            break
    return test


def _try_case(grading: Grading, program: Path, case: Case) -> TestRecord:
    limit_s, limit_name = wall_limit(grading, case)
    files = grading.files
    try:
        with run_program(
            grading.engine,
            program,
            files.input(case),
            output_bytes=case.output_bytes,
            wall_s=limit_s,
            limits=grading.assignment.limits,
        ) as run:
            check = check_output(
                case.operator, case.shape, files.expected(case), run.output, grading.assignment.tolerance
            )
            cause = None
            if check.kind == "values":
                cause = diagnose(check, case.operator, files.input(case), files.expected(case), run.output)
            judgement = judge(run, check, limit_s=limit_s, limit_name=limit_name, diagnosis=cause)
            return _test_record(grading, case, run, check, judgement, limit_s)
    except MachineFault as fault:
        return TestRecord(
            name=case.name, shape=case.shape, verdict=Verdict.GRADER_ERROR, fault=Fault.MACHINE, reason=str(fault)
        )


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
    trace = run.trace if grading.engine.measures_time else None
    gpu_ms = trace.gpu_ns / 1e6 if trace is not None and trace.complete else None
    baseline = grading.baseline(case) if grading.baseline is not None and passed and gpu_ms else None
    sidecar = read_sidecar(case, grading.files) or {}
    return TestRecord(
        name=case.name,
        shape=case.shape,
        verdict=judgement.verdict,
        fault=judgement.fault,
        reason=judgement.reason,
        max_error=check.max_error,
        wrong_elements=check.wrong if check.kind in ("passed", "values") else None,
        wall_s=round(run.outcome.wall_s, 4),
        limit_s=limit_s,
        gpu_ms=gpu_ms,
        copy_ms=trace.copy_ns / 1e6 if trace is not None and trace.complete else None,
        kernels=len(run.trace.kernels) if run.trace is not None else None,
        speedup=baseline.seconds * 1e3 / gpu_ms if baseline is not None and gpu_ms else None,
        baseline=_baseline_record(baseline) if baseline is not None else None,
        input_digest=sidecar.get("input", {}).get("sha256"),
        seed=_seed_name(sidecar),
        exit=run.outcome.ending,
        output=(run.outcome.stdout + run.outcome.stderr)[-4000:],
        warnings=judgement.warnings,
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


def _record(grading: Grading, submission: Submission, built: Build, tests: tuple[TestRecord, ...]) -> Record:
    assignment, engine = grading.assignment, grading.engine
    evidence = _evidence(grading, tests)
    practice = is_practice(evidence)
    parts = score(assignment, evidence)
    points = {part.part: part.points for part in parts}
    manual = {part.part for part in assignment.rubric if part.kind == "manual"}
    automatic = [part.points for part in parts if part.part not in manual]
    complete = not practice and all(given is not None for given in automatic)
    total = round(sum(given or 0 for given in points.values()), 2) if complete else None
    return Record(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        grader=__version__,
        assignment=assignment.name,
        assignment_sha256=assignment.rules_sha256,
        submission=SubmissionRecord(
            id=submission.id,
            path=str(submission.path),
            sha256=submission.sha256,
            files=tuple(name for name, _ in submission.files),
        ),
        engine=EngineRecord(name=engine.name, device=engine.device, facts=dict(engine.facts)),
        machine=MachineRecord(host=platform.node(), cpu=cpu_model(), confinement=sandbox.confinement()),
        build=BuildRecord(
            ok=built.ok,
            log=built.log,
            seconds=round(built.seconds, 3),
            flags=submission.flags,
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
    )


def _evidence(grading: Grading, tests: Sequence[TestRecord]) -> Evidence:
    rubric = grading.assignment.rubric
    engine = grading.engine
    untimed = None
    if not engine.measures_time:
        untimed = f"the {engine.name}'s times say nothing about a GPU"
    elif all(test.gpu_ms is None for test in tests if test.verdict is Verdict.PASSED):
        reasons = [test for test in tests if test.verdict is Verdict.PASSED]
        untimed = "the run left no complete trace of the GPU" if reasons else None
    named = {part.part: part.tests for part in rubric if part.kind in ("log_speedup", "occupancy")}
    return Evidence(
        tests=tuple(tests),
        graded=frozenset(case.name for case in grading.suite.graded),
        in_part={part: frozenset(case.name for case in grading.suite.select(words)) for part, words in named.items()},
        untimed_reason=untimed,
        occupancy=None,
        no_occupancy_reason=(
            "achieved occupancy is a GPU's" if not engine.measures_time else "it was not profiled with Nsight Compute"
        ),
    )
