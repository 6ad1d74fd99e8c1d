"""Runs one test again with all of the emulator's checks, to find the cause with which the report of a failed test
begins.

The warps of a GPU run nearly in step, so a program without a needed barrier may pass there by luck. On the emulator it
fails, but the wrong values alone do not show which line is wrong. A closer look finds that line. Its finding is a hint:
the checker still decides the verdict, and a look that fails changes nothing.

The program is built for the look in the background, while the tests run. That build starts at the first failure, with
only the kernels that the failed test launched; if the grader looks for races in any case (`grader check`), after the
first test. A right program's build records no values, so it needs no PTX of its own.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from cudaemu import WATCHING
from grader.base.errors import GraderFault, MachineFault
from grader.base.hints import report
from grader.base.verdict import Verdict
from grader.checking.check import Check, check_output
from grader.checking.contradictions import contradictions
from grader.checking.slips import slips
from grader.checking.watch.look import Explained, explain, wrong_values
from grader.checking.watch.recording import MOST_BYTES, Watched
from grader.course.assignment import Assignment
from grader.course.catalogue import TestcaseFiles, limits
from grader.course.testcase import Case
from grader.findings import Finding, kind_of, rank, sentence
from grader.grading.hidden_testcases import shows_diagnosis
from grader.grading.repairing import Changed, with_changes
from grader.grading.tested import BEFORE_ITS_RUN, Tested
from grader.programs.build import Build, build
from grader.programs.engine import Engine
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.run import Run, ValueRecording, run_program
from grader.programs.submission import Submission
from grader.records.record import MAX_FINDINGS, CloserLookRecord
from grader.sandbox.streams import Receiver
from grader.sanitizers import CHECKS, explained, likeliest

LOOK_LIMIT_S, ENDLESS_LOOK_LIMIT_S = 20.0, 5.0
"""The limits of a run with checks, in seconds of processor time, so that a loaded machine sees what an idle one sees.
The second applies if the test hit its time limit, since this run will too. Findings made before the limit count."""
_WALL_PER_CPU_S = 8
"""The wall limit is a net for programs that sleep."""

SMALLEST, SMALLEST_OF_A_RIGHT = (1 / 200, 8e5), (1 / 10, 1e6)
"""A sample is worth a closer look if it has at least this share of the largest sample's operations, or at least this
many operations. The second pair is for a program that passed: loops over tiles must make several passes."""
MANY = 16
"""A sample of so many times the work of one that passed is run with checks only if that one shows no race."""
_NO_KERNEL = "cudaErrorInvalidDeviceFunction"
_CRASHED = (Verdict.RUNTIME_ERROR, Verdict.MEMORY_LIMIT)


def case_to_look_at(verdicts: Mapping[Case, Verdict]) -> Case:
    """The testcase to look at: one that crashed, or else one that failed, or else any; of these the smallest that is
    not trivially small, or else the smallest."""
    ran = sorted(verdicts, key=lambda case: case.flops)
    crashed = [case for case in ran if verdicts[case] in _CRASHED]
    failed = [case for case in ran if verdicts[case] not in (Verdict.PASSED, *BEFORE_ITS_RUN)]
    among = crashed or failed or ran
    return next((case for case in among if is_worth_it(case, ran, right=not failed)), among[0])


def is_worth_it(case: Case, ran: Iterable[Case], *, right: bool = False) -> bool:
    """Whether a case is not trivially small among others."""
    share, enough = SMALLEST_OF_A_RIGHT if right else SMALLEST
    return case.flops >= min(max(each.flops for each in ran) * share, enough)


def is_explained(seen: Sequence[Finding], verdict: Verdict) -> bool:
    """Whether a run without checks has shown which line is wrong. The line of an endless kernel does not explain it,
    since the kernel may wait for a value that a race destroyed. The line of endless host code does."""
    severity = "note" if verdict is Verdict.TIME_LIMIT else "error"
    placed = (kind_of(each) for each in seen if each.line)
    return any(kind.severity == severity and kind.check in ("memory", "sync") for kind in placed)


def in_a_right_program(found: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings that matter although the output is right: a program may copy the gaps of its arrays to the host, and
    provoke errors of calls."""
    return tuple(each for each in found if kind_of(each).check in WATCHING and each.kind != "never_written")


def _relevant(found: Sequence[Finding], verdict: Verdict) -> tuple[Finding, ...]:
    """The findings that can explain this verdict."""
    if verdict is Verdict.PASSED:
        return in_a_right_program(found)
    return tuple(each for each in found if verdict is not Verdict.TIME_LIMIT or kind_of(each).check == "race")


@dataclass
class CloserLook:
    """The closer look at one submission. Use it as a context manager, since it may compile in the background."""

    engine: Engine
    assignment: Assignment
    submission: Submission
    files: TestcaseFiles
    quick: bool = False

    def __enter__(self) -> CloserLook:
        self._background = ThreadPoolExecutor(2)
        self._building: dict[bool, Future[Build]] = {}
        self._launched: tuple[str, ...] = ()
        self._changing: Future[Changed] | None = None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._background.shutdown(cancel_futures=True)

    @property
    def possible(self) -> bool:
        """Whether the engine can look for races while a program runs."""
        return isinstance(self.engine, EmulatorEngine)

    def _checking(self, *, record: bool) -> EmulatorEngine:
        assert isinstance(self.engine, EmulatorEngine)
        return replace(self.engine, sanitize=frozenset(CHECKS), record=record, few_runs=True)

    def cases(self, case: Case, passed: Sequence[Case]) -> Iterator[Case]:
        """`case`, and before it the smallest that `passed`, if `case` failed and is MANY times its work: it may show a
        race sooner. Nothing is said of a hidden one without diagnosis."""
        shown = [other for other in passed if shows_diagnosis(self.assignment.hidden_inputs, other)]
        able = (other for other in shown if is_worth_it(other, (*passed, case)))
        small = min(able, key=lambda case: case.flops, default=case)
        if MANY * small.flops < case.flops and case not in passed and not self.submission.is_python:
            self.prepare(record=True)
            yield small
        yield case

    def prepare(self, test: Tested | None = None, *, record: bool) -> None:
        """Start compiling the program with checks, unless that has already started. With `record` it can record where
        its values come from, as the look at a failed test wants, and has the kernels that this `test` launched. A
        Python submission's build is for one test, which is not known yet."""
        if record not in self._building and not self.submission.is_python:
            engine = self._checking(record=record)
            if record:
                wrong = test is not None and test.verdict is Verdict.WRONG_ANSWER  # others may end before a launch does
                self._launched = test.ran.launched if test and test.ran and wrong else ()
                engine = replace(engine, launched=self._launched)
            self._building[record] = self._background.submit(build, self.submission, self.assignment, engine)

    def changing(self) -> Future[Changed]:
        """The program with the changes that may repair it, which is built in the background."""
        if self._changing is None:
            self._changing = self._background.submit(with_changes, self.engine, self.assignment, self.submission)
        return self._changing

    def _built(self, case: Case, engine: Engine, *, record: bool) -> Build:
        self.prepare(record=record)
        if self._building:
            return self._building[record].result()
        return build(self.submission, self.assignment, engine, (case,))

    def at(self, case: Case, verdict: Verdict) -> CloserLookRecord:
        """The findings of a run of `case` with checks. If the test hit its time limit, only races count: the plain run
        has already shown where it hangs. Raises nothing."""
        began = time.monotonic()
        found, cause, problem = tuple[Finding, ...](), "", ""
        try:
            found, problem = self._run(case, verdict)
            first = likeliest(found)
            found = rank([found])[:MAX_FINDINGS]
            cause = sentence(first, self.submission.line) if first is not None else ""
        except (MachineFault, GraderFault, OSError) as fault:
            problem = str(fault)
        except Exception as bug:
            report(bug)
            problem = "the look itself failed, by a mistake of the grader"
        seconds = round(time.monotonic() - began, 2)
        return CloserLookRecord(test=case.name, cause=cause, problem=problem, seconds=seconds, findings=found)

    def _run(self, case: Case, verdict: Verdict) -> tuple[tuple[Finding, ...], str]:
        """Return (the findings, what was not looked at and why); either may be empty."""
        limit_s = ENDLESS_LOOK_LIMIT_S if verdict is Verdict.TIME_LIMIT else LOOK_LIMIT_S
        record = verdict is not Verdict.PASSED or True in self._building
        engine = self._checking(record=record)
        built = self._built(case, engine, record=record)
        if built.program is None:
            return (), f"it was not built with checks: {built.reason}"
        with run_program(
            engine,
            built.program,
            self.files.input(case),
            output_bytes=case.output_bytes,
            wall_s=_WALL_PER_CPU_S * limit_s,
            cpu_s=limit_s,
            limits=self.assignment.limits,
        ) as run:
            seen = run.trace.findings if run.trace is not None else ()
            launched = {kernel.name for kernel in run.trace.kernels} if run.trace is not None else set[str]()
            if record and self._launched and not launched.issubset(self._launched):  # the build has too few kernels
                del self._building[True]
                self.prepare(record=True)
                return self._run(case, verdict)
            if run.trace is not None and any(error.name == _NO_KERNEL for error in run.trace.api_errors):
                return (), "the build with checks lacks a kernel that the program launches"
            found = list(explained(_relevant(seen, verdict), self.submission.files))
            check = self._check(case, run) if verdict is Verdict.WRONG_ANSWER else None
            if check is not None:
                right = check.first.index * case.output_bytes // check.values if check.first is not None else 0
                against = contradictions(self.submission.files, run.trace, right, case.output_bytes)
                found += explained(against, self.submission.files)
            if verdict not in (Verdict.PASSED, Verdict.TIME_LIMIT):
                weak = all(kind_of(each).check == "init" for each in found)
                found += [each for each in slips(self.submission.files) if weak or each.kind == "bytes_without_sizeof"]
            if run.outcome.timed_out and verdict is not Verdict.TIME_LIMIT:
                return tuple(found), f"with checks it was stopped after {limit_s:g} s of processor time"
            if run.outcome.broke:
                return tuple(found), f"with checks it was stopped for its {run.outcome.broke}"
            if check is None or likeliest(found):
                return tuple(found), ""
            if self.quick:
                self.changing()  # what is known so far does not explain it
            watched = self._wrong_values(case, run, check)
            seen_values = self._watched(built.program, case, watched) if watched else Explained()
            return (*found, *explained(seen_values.findings, self.submission.files)), seen_values.unread

    def _check(self, case: Case, run: Run) -> Check:
        tolerance = limits(case, self.files, self.assignment.tolerance)
        expected, input = self.files.expected(case), self.files.input(case)
        return check_output(case.operator, case.shape, expected, run.output, tolerance, input)

    def _wrong_values(self, case: Case, run: Run, check: Check) -> tuple[Watched, ...]:
        if check.kind != "values":
            return ()
        expected, tolerance = self.files.expected(case), limits(case, self.files, self.assignment.tolerance)
        return wrong_values(case.operator, case.shape, expected, run.output, tolerance, check.violated)

    def _watched(self, program: Path, case: Case, watched: tuple[Watched, ...]) -> Explained:
        """What a recording of these values shows."""
        with contextlib.closing(Receiver(MOST_BYTES)) as receiver:
            receiver.start()
            wanted = [(each.word, each.bits) for each in watched]
            with run_program(
                self._checking(record=True),
                program,
                self.files.input(case),
                output_bytes=case.output_bytes,
                wall_s=_WALL_PER_CPU_S * LOOK_LIMIT_S,
                cpu_s=LOOK_LIMIT_S,
                limits=self.assignment.limits,
                recording=ValueRecording(receiver.descriptor, case.output_bytes // 4, wanted),
            ) as run:
                recording, broke = receiver.finish(), run.outcome.broke
            if broke:
                return Explained(
                    unread=f"its values were not followed: the run that records them was stopped for its {broke}"
                )
            return explain(case.operator, case.shape, self.files.input(case), recording, watched)
