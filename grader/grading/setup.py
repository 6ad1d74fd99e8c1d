"""What all submissions of one grading share, in a form that can be sent to other processes."""

from __future__ import annotations

from dataclasses import dataclass

from grader.course.assignment import Assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.testcase import Case, Suite
from grader.programs.engine import Engine
from grader.records.conditions import Conditions, conditions


@dataclass(frozen=True)
class Setup:
    """An assignment, its testcases and their files, the `cases` to grade on, and the engine that runs programs."""

    assignment: Assignment
    suite: Suite
    files: TestcaseFiles
    cases: tuple[Case, ...]
    engine: Engine
    show: int = 0
    """The number of rows and columns of every output tensor that records keep, where a student may see them."""
    quick: bool = False
    """True for a student's own check: tests run in the order of the testcases, none after the first that hits its time
    limit, and the grader looks for races even if all passed."""

    @property
    def conditions(self) -> Conditions:
        """The conditions that make gradings comparable: see `records.conditions`."""
        tests = [(case.name, case.shape) for case in self.cases]
        return conditions(self.assignment.measured_sha256, self.assignment.rules_sha256, tests, self.engine.name)
