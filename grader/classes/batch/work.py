"""The three steps of grading one submission of a class, each done by a worker process: read, build, grade."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.progress import Progress
from grader.grading.pipeline import grade
from grader.grading.session import Grading
from grader.programs.build import Build, build_to_grade
from grader.programs.source_rules import violations
from grader.programs.submission import Submission, read_submission, unreadable
from grader.records.record import Record


@dataclass(frozen=True)
class Reading:
    """A submission as it was read. If it could not be read, `problem` says why and the submission has no files."""

    submission: Submission
    problem: str = ""


@dataclass(frozen=True)
class ReadTask:
    """Read the submission of `student` at `path`."""

    student: str
    path: Path

    def __call__(self, grading: Grading) -> Reading:
        try:
            rules, shared = grading.assignment, self.path.name != grading.assignment.submission.main
            submission = read_submission(self.path, rules, shared_folder=shared)
            return Reading(replace(submission, id=self.student))
        except UsageError as error:
            if isinstance(error.__cause__, OSError):  # not the student's fault: permissions, a failing disk
                raise MachineFault(str(error)) from error
            return Reading(unreadable(self.student, self.path, str(error)), str(error))
        except (OSError, ValueError, RecursionError) as error:  # a name or a folder tree that Python cannot read
            problem = f"{self.path.name!r} cannot be read as a submission: {error}."
            return Reading(unreadable(self.student, self.path, problem), problem)


@dataclass(frozen=True)
class BuildTask:
    """Compile a submission, or take the build from the cache. It also looks for violations of the source rules, whose
    results are cached, so that the GPU does not wait for them in `GradeTask`."""

    submission: Submission

    def __call__(self, grading: Grading) -> Build:
        with contextlib.suppress(MachineFault, GraderFault):  # `GradeTask` meets it again, and finds out whose it is
            violations(self.submission, grading.assignment, grading.engine)
        return build_to_grade(self.submission, grading.assignment, grading.engine, grading.cases)


@dataclass(frozen=True)
class GradeTask:
    """Run, check and score a built submission on the testcases named in `tests`."""

    submission: Submission
    built: Build
    tests: frozenset[str]

    def __call__(self, grading: Grading) -> Record:
        cases = tuple(case for case in grading.cases if case.name in self.tests)
        return grade(replace(grading, cases=cases), self.submission, Progress(), self.built)


class Task(Protocol):
    """A step of grading: a function that is sent to a worker process, which sends the result back."""

    def __call__(self, grading: Grading) -> object: ...
