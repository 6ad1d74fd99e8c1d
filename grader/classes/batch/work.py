"""The three steps of grading one hand-in of a class, each done by a worker process: read, build, grade."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from grader.base.errors import MachineFault, UsageError
from grader.base.progress import Progress
from grader.base.verdict import Fault
from grader.classes.batch.setup import Setup
from grader.grading.pipeline import Grading, grade_built
from grader.programs.build import Build, build
from grader.programs.submission import Submission, read_submission
from grader.records.record import Record


@dataclass(frozen=True)
class Reading:
    """A submission as read. Where it could not be, `problem` is the sentence, and the submission has no files."""

    submission: Submission
    problem: str = ""


@dataclass(frozen=True)
class ReadTask:
    """Read the hand-in at `path` as `student`'s."""

    student: str
    path: Path

    def __call__(self, setup: Setup, grading: Grading) -> Reading:
        try:
            rules, shared = setup.assignment, self.path.name != setup.assignment.submission.main
            submission = read_submission(self.path, rules, shared_folder=shared)
            return Reading(replace(submission, id=self.student))
        except UsageError as error:
            if isinstance(error.__cause__, OSError):  # ours to put right: permissions, a disk that fails
                raise MachineFault(str(error)) from error
            return Reading(unreadable(self.student, self.path, str(error)), str(error))
        except (OSError, ValueError, RecursionError) as error:  # a name or a tree that Python itself cannot read
            problem = f"{self.path.name!r} cannot be read as a submission: {error}."
            return Reading(unreadable(self.student, self.path, problem), problem)


def unreadable(student: str, path: Path, problem: str) -> Submission:
    """Stands for a hand-in that is none; known by the sentence that says why."""
    digest = hashlib.sha256(f"unreadable\0{problem}".encode(errors="replace")).hexdigest()
    return Submission(student, path, (), (), (), "the assignment", (), digest)


@dataclass(frozen=True)
class BuildTask:
    """Compile a submission, or find it compiled."""

    submission: Submission

    def __call__(self, setup: Setup, grading: Grading) -> Build:
        return build(self.submission, setup.assignment, setup.engine)


@dataclass(frozen=True)
class GradeTask:
    """Run and judge what was built."""

    submission: Submission
    built: Build

    def __call__(self, setup: Setup, grading: Grading) -> Record:
        return grade_built(grading, self.submission, self.built, Progress())


def failed_build(fault: Fault, problem: str) -> Build:
    """In place of a build that could not be tried."""
    return Build(None, fault, problem, problem, 0.0, cached=False, key="")


Task = ReadTask | BuildTask | GradeTask
Answer = Reading | Build | Record
