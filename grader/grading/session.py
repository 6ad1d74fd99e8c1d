"""What one process holds while it grades: a setup with the machine's own parts opened, and one test within it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from grader.base.stopwatch import Stopwatch
from grader.course.testcase import Case
from grader.grading.bench import Bench, open_bench
from grader.grading.setup import Setup
from grader.programs.submission import Submission
from grader.records.record import TestRecord
from grader.timing.baseline import Baseline, baselines_of


@dataclass(frozen=True)
class Grading(Setup):
    """A setup with what this process needs to grade submissions. Unlike a `Setup`, it cannot be sent to a process."""

    baseline: Callable[[Case], Baseline] | None = None
    """Returns the sequential time of a case on this machine; None if times are not compared."""
    bench: Bench | None = None
    prepared_s: float = 0.0
    """Seconds spent on making testcases before this grading, for the record's timings."""
    ended: tuple[TestRecord, ...] = ()
    """Tests that ended before this grading was interrupted: they are not run again."""
    keep: Callable[[TestRecord], None] | None = None
    """Gets every test that need not run again if this grading is interrupted."""

    @property
    def setup(self) -> Setup:
        """The part that can be sent to other processes."""
        return Setup(**{each.name: getattr(self, each.name) for each in fields(Setup)})


@dataclass(frozen=True)
class Trial:
    """One test of one submission: what runs, on what, within which limits of wall time and of processor time."""

    grading: Grading
    submission: Submission
    program: Path
    case: Case
    watch: Stopwatch
    limit_s: float
    limit_name: str
    limit_cpu_s: float | None


@contextlib.contextmanager
def open_grading(setup: Setup) -> Iterator[Grading]:
    """Open the `Grading` of this process. Sequential times come from the cache or are measured when first needed."""
    with open_bench(setup) as bench:
        yield Grading(**vars(setup), baseline=baselines_of(setup.assignment, setup.engine), bench=bench)
