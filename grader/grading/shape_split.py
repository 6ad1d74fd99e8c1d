"""Finds the number of the shape that decides which tests fail, and the launch that serves only its other value."""

from __future__ import annotations

from collections.abc import Sequence

from grader.base.verdict import Fault
from grader.cpp.reading import asked
from grader.cpp.solve import launch_for_another
from grader.findings import Finding, quoted
from grader.grading.tested import Tested
from grader.operators import Shape
from grader.programs.submission import Submission


def deciding_number(failed: Sequence[Shape], passed: Sequence[Shape]) -> tuple[int, float, float] | None:
    """(place, value of every failed test, value of every passed one) if a single number of the shape decides which
    tests fail, by the student's fault; else None. Several tests must have the same value of this number."""
    if min(len(passed), len(failed)) < 2:
        return None
    found = []
    for place in range(len(passed[0])):
        good, bad = ({shape[place] for shape in shapes} for shapes in (passed, failed))
        if len(good) == len(bad) == 1 and good != bad:
            found.append((place, bad.pop(), good.pop()))
    return found[0] if len(found) == 1 else None


def wrong_launch(tests: Sequence[Tested], submission: Submission) -> str:
    """The cause if the kernel for the value of the deciding number with which all tests pass is launched for the other
    value as well, as a template argument; else ''."""
    failed = [test.case.shape for test in tests if test.judgement.fault is Fault.STUDENT]
    decides = deciding_number(failed, [test.case.shape for test in tests if test.passed])
    if decides is None:
        return ""
    place, bad, good = decides
    launch = asked(None, launch_for_another, submission.files, f"{bad:g}", f"{good:g}")
    if launch is None:
        return ""
    name = tests[0].case.operator.dimensions[place].name
    line = quoted(Finding(kind="step_wrong", file=launch.file, line=launch.line), submission.line)
    return (
        f"{launch.file}:{launch.line} launches the kernel for {name} = {good:g} where {name} is {bad:g}: every test "
        f"with {name} = {bad:g} fails, every one with {name} = {good:g} passes. Look at {line}."
    )
