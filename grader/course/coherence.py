"""Checks an assignment's two YAML files against each other, the operator and the files that they name.

Each file is validated alone when it is read (`assignment`, `testcase`). This module finds contradictions between files,
such as a rubric for testcases that do not exist or do not count, before they stop the grading of a class halfway.
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.base.errors import UsageError
from grader.base.names import did_you_mean
from grader.base.paths import course_root, shown
from grader.base.yaml_model import place
from grader.base.yaml_text import Location
from grader.course.assignment import Assignment, FailedTests, ReferenceRatio
from grader.course.metrics import named_metrics
from grader.course.testcase import Suite, load_suite
from grader.operators import Operator
from grader.operators.tolerance import TimesPlain

_Words = tuple[Location, str]


def suite_of(rules: Assignment) -> Suite:
    """The testcases of an assignment. Raises UsageError, with file, line and key, if they contradict its rules."""
    if not rules.testcases_file.is_file():
        raise UsageError(
            f"{shown(rules.testcases_file)} is missing: it defines the testcases of the assignment {rules.name}."
        )
    suite = load_suite(rules.testcases_file)
    for key, found, expected in (
        ("assignment", suite.assignment, rules.name),
        ("operator", suite.operator.name, rules.operator),
    ):
        if found != expected:
            raise UsageError(
                f"{place(suite.path, [key])}: expected {expected!r}, as in assignment.yaml, found {found!r}."
            )
    if not suite.graded:
        raise UsageError(f"{place(suite.path, ['groups'])}: no group is graded: set `graded: true` in one group.")
    _check_selections(rules, suite)
    _check_rubric(rules, suite)
    _check_names(rules, suite)
    return suite


def _where(rules: Assignment, location: Location) -> str:
    return place(course_root() / "assignment" / rules.name / "assignment.yaml", location)


def _selections(rules: Assignment) -> Iterator[_Words]:
    """The (location, words) of all keys in assignment.yaml that select testcases."""
    for key in ("wall_s", "emulator_cpu_s"):
        for number, limit in enumerate(getattr(rules.limits, key)):
            yield ("limits", key, number, "tests"), limit.tests
    yield ("hidden_inputs", "fresh_from"), rules.hidden_inputs.fresh_from
    if rules.timing.tests is not None:
        yield ("timing", "tests"), rules.timing.tests
    yield from _scored(rules)


def _scored(rules: Assignment) -> Iterator[_Words]:
    for number, part in enumerate(rules.rubric):
        if (words := getattr(part, "tests", None)) is not None:
            yield ("rubric", number, "tests"), words


def _check_selections(rules: Assignment, suite: Suite) -> None:
    for location, words in _selections(rules):
        try:
            suite.select(words)
        except UsageError as error:
            raise UsageError(f"{_where(rules, location)}: {error}") from error


def _check_rubric(rules: Assignment, suite: Suite) -> None:
    for location, words in _scored(rules):
        if ungraded := [case.name for case in suite.select(words) if not case.graded]:
            raise UsageError(
                f"{_where(rules, location)}: {ungraded[0]} is not graded, so no one could ever earn these points: name "
                "testcases of a graded group."
            )
    for number, part in enumerate(rules.rubric):
        if isinstance(part, FailedTests) and part.per_failure * len(suite.graded) < part.points:
            left = part.points - part.per_failure * len(suite.graded)
            raise UsageError(
                f"{_where(rules, ['rubric', number, 'per_failure'])}: with all {len(suite.graded)} graded testcases "
                f"failed, {left:g} of {part.points:g} points are left; expected at least "
                f"{part.points / len(suite.graded):.4g}, found {part.per_failure:g}."
            )


def _check_names(rules: Assignment, suite: Suite) -> None:
    """Check the names of output tensors, dimensions and metrics, and of reference files if that folder exists; students
    lack it."""
    by_tensor: object = rules.tolerance
    if isinstance(rules.tolerance, TimesPlain):
        if type(suite.operator).plain is Operator.plain:
            raise UsageError(
                f"{_where(rules, ['tolerance', 'times_plain'])}: {rules.operator} has no plain implementation to "
                "compare with: expected a number, the largest error that passes."
            )
        by_tensor = rules.tolerance.times_plain
    if isinstance(by_tensor, dict):
        tensors = [tensor.name for tensor in suite.operator.outputs(suite.graded[0].shape)]
        unknown = [name for name in by_tensor if name not in tensors]
        missing = [name for name in tensors if name not in by_tensor]
        if unknown or missing:
            location: Location = ["tolerance", *unknown[:1]]
            raise UsageError(
                f"{_where(rules, location)}: expected a number for each of {', '.join(tensors)}, the output tensors of "
                f"{rules.operator}, found {', '.join(by_tensor)}."
            )
    for number, name in enumerate(rules.baseline.rate_by):
        if name not in suite.operator.dimension_names:
            raise UsageError(
                f"{_where(rules, ['baseline', 'rate_by', number])}: expected a dimension of {rules.operator} "
                f"({', '.join(suite.operator.dimension_names)}), found {name}."
            )
    for number, name in enumerate(rules.metrics):
        try:
            named_metrics([name])
        except UsageError as error:
            raise UsageError(f"{_where(rules, ['metrics', number])}: {error}") from error
    if not rules.reference_folder.is_dir():
        return
    wanted: list[_Words] = [(["baseline", "source"], rules.baseline.source)]
    wanted += [
        (["rubric", number, "reference"], part.reference)
        for number, part in enumerate(rules.rubric)
        if isinstance(part, ReferenceRatio)
    ]
    for location, name in wanted:
        if not rules.reference_file(name).is_file():
            there = sorted(path.name for path in rules.reference_folder.iterdir() if path.suffix in (".c", ".cu"))
            raise UsageError(
                f"{_where(rules, location)}: there is no file {name!r} in {shown(rules.reference_folder)}, which has "
                f"{', '.join(there) or 'none'}.{did_you_mean(name, there)}"
            )
