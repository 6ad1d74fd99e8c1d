"""What every submission of a class has in common, as it is sent to the processes that do the work."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from grader.course.assignment import Assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.testcase import Case, Suite
from grader.grading.bench import open_bench
from grader.grading.pipeline import Grading
from grader.programs.engine import Engine
from grader.store.exchange import conditions
from grader.timing.baseline import Baseline, time_baseline


@dataclass(frozen=True)
class Setup:
    """As `Grading`, but for the baselines, which each process looks up itself."""

    assignment: Assignment
    suite: Suite
    files: TestcaseFiles
    cases: tuple[Case, ...]
    engine: Engine

    @property
    def conditions(self) -> str:
        """What makes gradings comparable: see `store.exchange.conditions`."""
        tests = [(case.name, case.shape) for case in self.cases]
        return conditions(self.assignment.rules_sha256, tests, self.engine.name)

    @contextlib.contextmanager
    def grading(self) -> Iterator[Grading]:
        """For this process. Sequential times come from the cache, and are measured where they are not in it."""
        rules, suite, files = self.assignment, self.suite, self.files
        with open_bench(self.engine, rules, suite, files) as bench:
            yield Grading(rules, suite, files, self.cases, self.engine, self.baselines(), bench)

    def baselines(self) -> Callable[[Case], Baseline] | None:
        """Sequential times on this machine, by case; None where times are not compared."""
        if not self.engine.measures_time:
            return None
        rules = self.assignment

        @cache
        def of_case(case: Case) -> Baseline:
            return time_baseline(
                case,
                source=rules.reference_folder / rules.baseline.source,
                flags=rules.baseline.flags,
                budget_s=rules.baseline.budget_s,
            )

        return of_case
