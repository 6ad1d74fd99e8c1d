"""Everything that the submissions of a class have in common, in the form that is sent to the worker processes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from grader.course.assignment import Assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.testcase import Case, Suite
from grader.grading.bench import open_bench
from grader.grading.pipeline import Grading
from grader.programs.engine import Engine
from grader.store.exchange import conditions
from grader.timing.baseline import baselines_of


@dataclass(frozen=True)
class Setup:
    """The same as `Grading`, except for the baselines, which each process looks up itself."""

    assignment: Assignment
    suite: Suite
    files: TestcaseFiles
    cases: tuple[Case, ...]
    engine: Engine

    @property
    def conditions(self) -> str:
        """The conditions that make gradings comparable: see `store.exchange.conditions`."""
        tests = [(case.name, case.shape) for case in self.cases]
        return conditions(self.assignment.rules_sha256, tests, self.engine.name)

    @contextlib.contextmanager
    def grading(self) -> Iterator[Grading]:
        """Open the `Grading` of this process. Sequential times come from the cache or are measured."""
        rules, suite, files = self.assignment, self.suite, self.files
        with open_bench(self.engine, rules, suite, files) as bench:
            yield Grading(rules, suite, files, self.cases, self.engine, baselines_of(rules, self.engine), bench)
