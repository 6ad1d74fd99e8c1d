"""The gradient check for students: it compares their gradients with central differences, entry by entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.paths import shown
from grader.base.progress import shown_progress
from grader.checking.check import Check, check_output, share_in_words
from grader.checking.diagnose import diagnose
from grader.checking.gradient import MOST_FLOPS, QUICK_FLOPS, STEP, flops, write_differences
from grader.commands.choice import Choice
from grader.commands.inspection import Subject, built, open_subject
from grader.course.catalogue import limits
from grader.course.coherence import suite_of
from grader.course.testcase import Case
from grader.programs.run import run_program
from grader.sandbox.scratch import scratch_folder


def check_gradients(path: Path, choice: Choice) -> tuple[bool, str]:
    """Run the submission on one of the tests, and compare its gradients with central differences. Return whether they
    are right, and the text for the student."""
    rules = choice.rules(path)
    case = chosen_case(rules.name, suite_of(rules).select(choice.tests or "public"))
    subject = open_subject(path, replace(choice, tests=case.name))
    program = built(subject, subject.submission).program
    assert program is not None
    with (
        shown_progress() as progress,
        scratch_folder("gradients") as folder,
        run_program(
            subject.engine,
            program,
            subject.files.input(case),
            output_bytes=case.output_bytes,
            wall_s=rules.limits.emulator_wall_s,
            limits=rules.limits,
        ) as run,
    ):
        progress.stage(f"{case.name}: every entry is moved by ±{STEP:g}")
        expected = folder / "differences"
        write_differences(case.operator, case.shape, subject.files.input(case), expected)
        passing = limits(case, subject.files, rules.tolerance)
        check = check_output(case.operator, case.shape, expected, run.output, passing)
        diagnosis = diagnose(check, case.operator, subject.files.input(case), expected, run.output)
    return check.passed, "\n".join(_lines(subject, check, str(diagnosis or "")))


def chosen_case(assignment: str, cases: tuple[Case, ...]) -> Case:
    """Choose the largest testcase whose check takes only some seconds; if there is none, the smallest testcase."""
    able = [case for case in cases if case.operator.differentiable]
    if not able:
        raise UsageError(f"{assignment} asks for no gradients: --gradcheck is for assignments that do.")
    work = {case.name: flops(case.operator, case.shape) for case in able}
    quick = [case for case in able if work[case.name] <= QUICK_FLOPS]
    chosen = max(quick, key=lambda case: work[case.name]) if quick else min(able, key=lambda case: work[case.name])
    if work[chosen.name] > MOST_FLOPS:
        names = ", ".join(case.name for case in able)
        raise UsageError(f"Moving every entry of {names} takes too long: choose a smaller sample with --tests.")
    return chosen


def _lines(subject: Subject, check: Check, diagnosis: str) -> Iterator[str]:
    case = subject.case
    names = ", ".join(f"{name} = {n:.4g}" for name, n in zip(case.operator.dimension_names, case.shape, strict=True))
    yield f"{shown(subject.submission.path)} on {case.name} ({names}):"
    yield f"gradients by central differences of the forward pass, in float64, with every entry moved by ±{STEP:g}."
    for found in check.precision:
        count, size = found.wrong, found.values
        verdict = f"{count:,} of {size:,} entries differ ({share_in_words(count, size)})" if count else "right"
        if not count and found.sloppy:
            verdict = "imprecise"
        errors = f"the largest difference is {found.largest:.2g}, allowed {found.limit.largest:.2g}"
        yield f"  {found.tensor:3} {verdict}; {errors}"
    if not check.passed:
        yield check.reason
    if diagnosis:
        yield diagnosis
