"""A second run of one test with all of the emulator's checks, for the cause that a failed test's report leads with.

A GPU's warps run nearly in step, so a program whose barrier is missing may pass there by luck. The emulator's fail, and
that alone helps nobody: the wrong values say nothing of the line that is wrong. What is found here is a hint. The
verdict stays the checker's, and a look that fails, in whatever way, changes nothing.

The program is built for it in the background, while the tests run: from the first failure on, or from the start where
races are looked for in any case (`grader check`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType

from grader.base.errors import GraderFault, MachineFault
from grader.base.verdict import Fault, Verdict
from grader.course.assignment import Assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.testcase import Case
from grader.programs.build import Build, build
from grader.programs.engine import Engine
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.run import run_program
from grader.programs.submission import Submission
from grader.programs.trace import Diagnostic
from grader.records.record import CloserLookRecord, TestRecord
from grader.sanitizers import CHECKS, cause_of, race_of

LOOK_LIMIT_S, ENDLESS_LOOK_LIMIT_S = 20.0, 5.0
"""A run with checks is stopped after so long, the latter where the test ran into its time limit and so will this one.
What it found until then counts."""

SMALLEST_SHARE, SMALLEST_FLOPS = 1 / 200, 1e6
"""A sample that is worth a closer look has this share of the largest one's operations, or so many."""
_CRASHED = (Verdict.RUNTIME_ERROR, Verdict.MEMORY_LIMIT)
_BEFORE_ITS_RUN = (Verdict.COMPILE_ERROR, Verdict.NOT_RUN)


def case_to_look_at(tests: Sequence[TestRecord], cases: Mapping[str, Case]) -> Case:
    """The testcase to look at closely: the smallest that crashed, else the smallest that failed, else the smallest that
    is no mere 1 x 1."""
    ran = sorted((test for test in tests if test.name in cases), key=lambda test: cases[test.name].flops)
    crashed = (test for test in ran if test.verdict in _CRASHED)
    failed = (test for test in ran if test.verdict not in (Verdict.PASSED, *_BEFORE_ITS_RUN))
    worth = min(cases[ran[-1].name].flops * SMALLEST_SHARE, SMALLEST_FLOPS)
    large = (test for test in ran if cases[test.name].flops >= worth)
    return cases[next(test for each in (crashed, failed, large) for test in each).name]


def failed_by_itself(test: TestRecord) -> bool:
    """Whether the program ran on `test` and failed by a fault of its own."""
    return test.fault is Fault.STUDENT and test.verdict not in _BEFORE_ITS_RUN


def explained(seen: Sequence[Diagnostic], verdict: Verdict) -> bool:
    """Whether a plain run has shown which line is wrong. A kernel that does not end may wait for what a race keeps
    from it; host code that does not end is explained by its line."""
    severity = "note" if verdict is Verdict.TIME_LIMIT else "error"
    return any(each.severity == severity and each.tool in ("memory", "sync") and each.line for each in seen)


def with_cause(test: TestRecord, cause: str, compared: str) -> TestRecord:
    """The test's record with the cause where a student reads it; `compared` is what comparing its output said."""
    if not cause:
        return test
    if test.verdict is Verdict.PASSED:
        return test.model_copy(update={"warnings": (cause, *test.warnings)})
    # What wrong values look like, and the call that failed, are consequences.
    rest = compared if test.verdict is Verdict.WRONG_ANSWER else test.reason.removeprefix(test.cause)
    return test.model_copy(update={"reason": f"{cause} {rest}".strip(), "cause": cause})


@dataclass
class CloserLook:
    """The look at one submission. Use it as a context: it may be compiling in the background."""

    engine: Engine
    assignment: Assignment
    submission: Submission
    files: TestcaseFiles

    def __enter__(self) -> CloserLook:
        self._background = ThreadPoolExecutor(1)
        self._building: Future[Build] | None = None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._background.shutdown(cancel_futures=True)

    @property
    def possible(self) -> bool:
        """Whether the engine can look for races as it runs."""
        return isinstance(self.engine, EmulatorEngine)

    @property
    def _checking(self) -> Engine:
        assert isinstance(self.engine, EmulatorEngine)
        return replace(self.engine, sanitize=frozenset(CHECKS))

    def prepare(self) -> Future[Build]:
        """Begin to compile the program with checks, if that has not begun."""
        if self._building is None:
            self._building = self._background.submit(build, self.submission, self.assignment, self._checking)
        return self._building

    def at(self, case: Case, verdict: Verdict) -> CloserLookRecord:
        """What a run of `case` with checks finds. Only races count where it passed, or ran into its time limit: why it
        does not end is known without. Raises nothing."""
        began = time.monotonic()
        cause, problem = "", ""
        try:
            cause, problem = self._run(case, verdict)
        except (MachineFault, GraderFault, OSError) as fault:
            problem = str(fault)
        seconds = round(time.monotonic() - began, 2)
        return CloserLookRecord(test=case.name, cause=cause, problem=problem, seconds=seconds)

    def _run(self, case: Case, verdict: Verdict) -> tuple[str, str]:
        """(the cause, why there could be no proper look)."""
        limit_s = ENDLESS_LOOK_LIMIT_S if verdict is Verdict.TIME_LIMIT else LOOK_LIMIT_S
        name_it = race_of if verdict in (Verdict.PASSED, Verdict.TIME_LIMIT) else cause_of
        built = self.prepare().result()
        if built.program is None:
            return "", f"it was not built with checks: {built.reason}"
        with run_program(
            self._checking,
            built.program,
            self.files.input(case),
            output_bytes=case.output_bytes,
            wall_s=limit_s,
            limits=self.assignment.limits,
        ) as run:
            found = run.trace.diagnostics if run.trace is not None else ()
            cause = name_it(found, self.submission.line)
            if cause or (run.outcome.timed_out and verdict is Verdict.TIME_LIMIT):
                return cause, ""
            if run.outcome.timed_out:
                return "", f"with checks it was stopped after {limit_s:g} s"
            if run.outcome.broke:
                return "", f"with checks it was stopped for its {run.outcome.broke}"
            return "", ""
