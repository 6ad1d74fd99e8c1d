"""The three steps of grading one submission of a class: read, build, grade."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path

from grader.base.errors import GraderFault, MachineFault
from grader.base.progress import Progress
from grader.grading.pipeline import grade
from grader.grading.session import Grading
from grader.programs.build import Build, build
from grader.programs.one_of_several import Reading, read_one_of_several
from grader.programs.source_rules import violations
from grader.programs.submission import Submission
from grader.records.record import Record


@dataclass(frozen=True)
class ReadTask:
    """Read the submission of `student` at `path`."""

    student: str
    path: Path

    def __call__(self, grading: Grading) -> Reading:
        shared = self.path.name != grading.assignment.submission.main
        return read_one_of_several(self.student, self.path, grading.assignment, shared_folder=shared)


@dataclass(frozen=True)
class BuildTask:
    """Compile a submission, or take the build from the cache. It also looks for violations of the source rules, whose
    results are cached, so that the GPU does not wait for them in `GradeTask`."""

    submission: Submission

    def __call__(self, grading: Grading) -> Build:
        with contextlib.suppress(MachineFault, GraderFault):  # `GradeTask` meets it again, and finds out whose it is
            violations(self.submission, grading.assignment, grading.engine)
        return build(self.submission, grading.assignment, grading.engine, grading.cases)


@dataclass(frozen=True)
class GradeTask:
    """Run, check and score a submission on the testcases named in `tests`; it is built first unless it is `built`."""

    submission: Submission
    built: Build | None
    tests: frozenset[str]

    def __call__(self, grading: Grading) -> Record:
        grading = replace(grading, cases=tuple(case for case in grading.cases if case.name in self.tests))
        built = self.built or BuildTask(self.submission)(grading)
        return grade(grading, self.submission, Progress(), built)
