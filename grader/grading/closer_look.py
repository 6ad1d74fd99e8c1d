"""Runs one test again with all of the emulator's checks, to find the cause with which the report of a failed test
begins.

The warps of a GPU run nearly in step, so a program without a needed barrier may pass there by luck. On the emulator it
fails, but the wrong values alone do not show which line is wrong. A closer look finds that line. Its finding is a hint:
the checker still decides the verdict, and a look that fails changes nothing.

The program is built for the look in the background, while the tests run. That build starts at the first failure, or at
the beginning if the grader looks for races in any case (`grader check`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from grader.base.errors import GraderFault, MachineFault
from grader.base.verdict import Fault, Verdict
from grader.checking.check import check_output
from grader.checking.contradictions import contradictions
from grader.checking.slips import find_slip
from grader.checking.suspects import suspect
from grader.checking.watch.look import Watched, explain, wrong_values
from grader.checking.watch.recording import MOST_BYTES
from grader.course.assignment import Assignment
from grader.course.catalogue import TestcaseFiles, limits
from grader.course.testcase import Case
from grader.emulator import WATCHING
from grader.findings import claimed, sentence
from grader.operators.base import Step
from grader.programs.build import Build, build
from grader.programs.engine import Engine
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.run import Run, ValueRecording, run_program
from grader.programs.submission import Submission
from grader.programs.trace import Diagnostic
from grader.records.record import CloserLookRecord, TestRecord
from grader.sandbox.streams import Receiver
from grader.sanitizers import CHECKS, cause_of, race_of

LOOK_LIMIT_S, ENDLESS_LOOK_LIMIT_S = 20.0, 5.0
"""The time limits of a run with checks; the second applies if the test hit its time limit, since this run will too.
Findings made before the limit count."""

SMALLEST_SHARE, SMALLEST_FLOPS = 1 / 200, 1e6
"""A sample is worth a closer look if it has at least this share of the largest sample's operations, or at least this
many operations."""
_NEVER_WRITTEN = "copied to the host were never written"
"""Words of a finding whose place is a copy, although the mistake is in the kernel that should have written the values
(emulator/runtime)."""
_CRASHED = (Verdict.RUNTIME_ERROR, Verdict.MEMORY_LIMIT)
_BEFORE_ITS_RUN = (Verdict.COMPILE_ERROR, Verdict.NOT_RUN)


def case_to_look_at(tests: Sequence[TestRecord], cases: Mapping[str, Case]) -> Case:
    """The testcase to look at: the smallest that crashed, or else the smallest that failed, or else the smallest that
    is not trivially small."""
    ran = sorted((test for test in tests if test.name in cases), key=lambda test: cases[test.name].flops)
    crashed = (test for test in ran if test.verdict in _CRASHED)
    failed = (test for test in ran if test.verdict not in (Verdict.PASSED, *_BEFORE_ITS_RUN))
    worth = min(cases[ran[-1].name].flops * SMALLEST_SHARE, SMALLEST_FLOPS)
    large = (test for test in ran if cases[test.name].flops >= worth)
    return cases[next(test for each in (crashed, failed, large) for test in each).name]


def failed_by_itself(test: TestRecord) -> bool:
    """Whether the program ran on `test` and failed by the student's fault."""
    return test.fault is Fault.STUDENT and test.verdict not in _BEFORE_ITS_RUN


def explained(seen: Sequence[Diagnostic], verdict: Verdict) -> bool:
    """Whether a run without checks has shown which line is wrong. The line of an endless kernel does not explain it,
    since the kernel may wait for a value that a race destroyed. The line of endless host code does."""
    severity = "note" if verdict is Verdict.TIME_LIMIT else "error"
    return any(each.severity == severity and each.tool in ("memory", "sync") and each.line for each in seen)


def in_a_right_program(found: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The findings that matter although the output is right: a program may copy the gaps of its arrays to the host, and
    provoke errors of calls."""
    return tuple(each for each in found if each.tool in WATCHING and _NEVER_WRITTEN not in each.message)


def with_cause(test: TestRecord, cause: str, compared: str) -> TestRecord:
    """The test's record with `cause` in its reason, or in a warning if it passed. `compared` is the sentence from the
    comparison of its output."""
    if not cause:
        return test
    if test.verdict is Verdict.PASSED:
        return test.model_copy(update={"warnings": (cause, *test.warnings)})
    # The pattern of the wrong values and the call that failed are consequences.
    rest = compared if test.verdict is Verdict.WRONG_ANSWER else test.reason.removeprefix(test.cause)
    return test.model_copy(update={"reason": f"{cause} {rest}".strip(), "cause": cause})


@dataclass
class CloserLook:
    """The closer look at one submission. Use it as a context manager, since it may compile in the background."""

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
        """Whether the engine can look for races while a program runs."""
        return isinstance(self.engine, EmulatorEngine)

    @property
    def _checking(self) -> Engine:
        assert isinstance(self.engine, EmulatorEngine)
        return replace(self.engine, sanitize=frozenset(CHECKS), record=True)

    def prepare(self) -> None:
        """Start compiling the program with checks, unless that has already started. A Python submission's build is for
        one test, which is not known yet."""
        if self._building is None and not self.submission.is_python:
            self._building = self._background.submit(build, self.submission, self.assignment, self._checking)

    def _built(self, case: Case) -> Build:
        self.prepare()
        if self._building is not None:
            return self._building.result()
        return build(self.submission, self.assignment, self._checking, (case,))

    def at(self, case: Case, verdict: Verdict) -> CloserLookRecord:
        """The findings of a run of `case` with checks. If the test hit its time limit, only races count: the plain run
        has already shown where it hangs. Raises nothing."""
        began = time.monotonic()
        cause, problem = "", ""
        try:
            cause, problem = self._run(case, verdict)
        except (MachineFault, GraderFault, OSError) as fault:
            problem = str(fault)
        seconds = round(time.monotonic() - began, 2)
        return CloserLookRecord(test=case.name, cause=cause, problem=problem, seconds=seconds)

    def _run(self, case: Case, verdict: Verdict) -> tuple[str, str]:
        """Return (the cause, the reason why the look failed); either may be ''."""
        limit_s = ENDLESS_LOOK_LIMIT_S if verdict is Verdict.TIME_LIMIT else LOOK_LIMIT_S
        name_it = race_of if verdict is Verdict.TIME_LIMIT else cause_of
        built = self._built(case)
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
            if verdict is Verdict.PASSED:
                found = in_a_right_program(found)
            broken = contradictions(self.submission.files, run.trace) if verdict is Verdict.WRONG_ANSWER else ()
            if broken:
                return sentence(broken[0], self.submission.line), ""
            cause = name_it(found, self.submission.line)
            if cause and (slip := find_slip(self.submission.files, "host")):
                cause = sentence(slip, self.submission.line)
            elif cause and cause == name_it([each for each in found if each.tool == "init"], self.submission.line):
                cause = self._unwritten(cause)
            if cause:
                return cause, ""
            watched = self._wrong_values(case, run) if verdict is Verdict.WRONG_ANSWER else ()
            if watched and (cause := self._watched(built.program, case, watched)):
                return cause, ""
            if run.outcome.timed_out:
                return "", f"with checks it was stopped after {limit_s:g} s"
            if run.outcome.broke:
                return "", f"with checks it was stopped for its {run.outcome.broke}"
            return "", ""

    def _wrong_values(self, case: Case, run: Run) -> tuple[Watched, ...]:
        tolerance = limits(case, self.files, self.assignment.tolerance)
        check = check_output(
            case.operator, case.shape, self.files.expected(case), run.output, tolerance, self.files.input(case)
        )
        if check.kind != "values":
            return ()
        return wrong_values(case.operator, case.shape, self.files.expected(case), run.output, tolerance)

    def _watched(self, program: Path, case: Case, watched: tuple[Watched, ...]) -> str:
        """The cause that a recording of these values shows; '' if none is certain enough."""
        with contextlib.closing(Receiver(MOST_BYTES)) as receiver:
            receiver.start()
            wanted = [(each.word, each.bits) for each in watched]
            with run_program(
                self._checking,
                program,
                self.files.input(case),
                output_bytes=case.output_bytes,
                wall_s=LOOK_LIMIT_S,
                limits=self.assignment.limits,
                recording=ValueRecording(receiver.descriptor, case.output_bytes // 4, wanted),
            ):
                pass
            found = explain(case.operator, case.shape, self.files.input(case), receiver.finish(), watched)
        first = claimed([found])
        return sentence(first, self.submission.line) if first is not None else ""

    def _unwritten(self, cause: str) -> str:
        """The `cause`, which speaks of memory that was never written, with the line of the mistake if it is found."""
        if slip := find_slip(self.submission.files, "all"):
            return sentence(slip, self.submission.line)
        return f"{cause}{self._where_results_are_written()}" if _NEVER_WRITTEN in cause else cause

    def _where_results_are_written(self) -> str:
        """A sentence such as " Look at kernel.cu:36: `o[i] = sum / l;`, launched at kernel.cu:67.", without lines that
        are not found."""
        steps: tuple[Step, ...] = ("store", "launch", "grid", "row")
        store, launch, grid, row = (suspect(self.submission.files, (step,)) for step in steps)
        launched = f", launched at {launch.file}:{launch.number}" if launch is not None else ""
        if grid is not None and launch is not None and grid != launch:
            launched += f" with the grid of line {grid.number}"
        if row is not None and row not in (launch, store):
            launched += f"; line {row.number} computes the row"
        return f" Look at {store.quoted}{launched}." if store is not None else ""
