"""Runs, checks, judges and times one testcase of a submission, and keeps the facts."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial

from grader.base.errors import MachineFault
from grader.base.hints import hint
from grader.base.names import spelled_out
from grader.base.stopwatch import Stopwatch
from grader.base.verdict import Fault, Verdict
from grader.checking.check import Check, check_output
from grader.checking.corners import read_corners
from grader.checking.diagnose import diagnose
from grader.course.catalogue import changed_files, limits, read_sidecar
from grader.course.testcase import Case
from grader.gpu.state import watching
from grader.grading.closer_look import is_explained
from grader.grading.gpu_times import graded_time, measured_time
from grader.grading.hidden_testcases import shows_diagnosis
from grader.grading.judgement import Judgement, explained_failure, judge
from grader.grading.session import Grading, Trial
from grader.grading.tested import GpuTime, Ran, Tested
from grader.programs.build import Build
from grader.programs.engine import Engine
from grader.programs.run import Run, run_program
from grader.programs.submission import Submission
from grader.records.record import CornerRecord
from grader.timing.fresh_inputs import FreshInput, OwnInput, own_input
from grader.timing.phases import phase_times

_MACHINE_RETRIES = 1
"""The number of times that the grader repeats a test after a machine fault, before it reports the fault."""
INPUTS = "fresh inputs and their checks"
DIAGNOSIS = "diagnosis"
"""The stage in which causes of failures are looked for, as far as the GPU is not at work meanwhile."""
_PRINTED = 4000
"""Characters of printed text that a record keeps, the last ones."""


@contextlib.contextmanager
def input_of(grading: Grading, case: Case) -> Iterator[OwnInput | MachineFault]:
    """The input of the runs of `case`, fresh ones if it is timed, or the fault that prevented it. All runs of a case,
    second draws included, have an input in the same kind of place."""
    bench = grading.bench
    timed = bench is not None and bench.is_timed(case)
    with contextlib.ExitStack() as stack:
        made: OwnInput | MachineFault
        try:
            one = bench.fresh_input(case) if bench is not None and timed else own_input(case, grading.files)
            made = stack.enter_context(one)
        except MachineFault as fault:  # raised later, when this case runs
            made = fault
        yield made


def inputs_ahead(
    grading: Grading, built: Build, cases: Sequence[Case], watch: Stopwatch
) -> Generator[tuple[Case, OwnInput | MachineFault | None]]:
    """Yield each case with its input; with None if there is no program to run. The next one's input is opened before a
    case is yielded, and a case's input is given up when the next one is requested. A caller that does not request all
    cases must close the generator."""
    waiting: deque[tuple[Case, OwnInput | MachineFault | None, contextlib.ExitStack]] = deque()
    try:
        for case in cases:
            stack = contextlib.ExitStack()
            with watch.stage(INPUTS):
                opened = input_of(grading, case) if built.program is not None else contextlib.nullcontext()
                waiting.append((case, stack.enter_context(opened), stack))
            if len(waiting) > 1:
                yield waiting[0][:2]
                with watch.stage(INPUTS):
                    waiting.popleft()[2].close()
        for case, own, _ in waiting:
            yield case, own
    finally:
        for _, _, stack in waiting:
            stack.close()


def grade_case(
    grading: Grading,
    submission: Submission,
    built: Build,
    case: Case,
    watch: Stopwatch,
    own: OwnInput | MachineFault | None = None,
    later: Later | None = None,
) -> Tested:
    """Grade `case`, and try again after a machine fault. `own` is the input for the first try, opened ahead of
    time. With `later`, the cause of a failure is looked for in the background."""
    if built.program is None:
        if built.fault is Fault.STUDENT:
            return Tested(case, Judgement(Verdict.COMPILE_ERROR, built.fault, cause=built.reason))
        return Tested(case, Judgement(Verdict.GRADER_ERROR, built.fault, built.reason))
    trial = Trial(grading, submission, built.program, case, watch, *time_limits(grading, case))
    for left in reversed(range(1 + _MACHINE_RETRIES)):
        opened = own is not None and left == _MACHINE_RETRIES
        ahead = contextlib.nullcontext(own) if own is not None and opened else input_of(grading, case)
        try:
            with ahead as given:
                if isinstance(given, MachineFault):
                    raise given
                test = _run(trial, given, later, last=left == 0)
        except MachineFault as fault:
            test = Tested(case, Judgement(Verdict.GRADER_ERROR, Fault.MACHINE, str(fault)))
        if test.judgement.fault is not Fault.MACHINE:
            break
    return test


class Later:
    """Looks for the causes of failures in a background thread, one at a time, since each keeps its output file. The end
    of the block waits for the last one."""

    def __init__(self, watch: Stopwatch) -> None:
        self._watch = watch
        self._pool = ThreadPoolExecutor(1)
        self._last: Future[Judgement] | None = None

    def __enter__(self) -> Later:
        return self

    def __exit__(self, *_: object) -> None:
        with self._watch.stage(DIAGNOSIS):
            self._pool.shutdown()

    def begin(self, explain: Callable[[], Judgement]) -> Future[Judgement]:
        if self._last is not None:
            self._last.exception()  # waits
        self._last = self._pool.submit(explain)
        return self._last


def _run(trial: Trial, own: OwnInput, later: Later | None, *, last: bool) -> Tested:
    """Run the test once."""
    grading, case, watch = trial.grading, trial.case, trial.watch
    files, bench, engine, rules = grading.files, grading.bench, grading.engine, grading.assignment
    shown = shows_diagnosis(rules.hidden_inputs, case)

    with watch.stage(INPUTS):
        own_path = own.path  # waits until it is made
        since = bench.mark() if bench is not None and isinstance(own, FreshInput) else None
    with contextlib.ExitStack() as stack:
        with watch.stage("starting runs, reading traces"):
            watched = stack.enter_context(watching(bench.timer.read if bench is not None else None))
            run = stack.enter_context(
                run_program(
                    engine,
                    trial.program,
                    own_path,
                    output_bytes=case.output_bytes,
                    wall_s=trial.limit_s,
                    cpu_s=trial.limit_cpu_s,
                    limits=rules.limits,
                )
            )
            watched.stop()
            watch.add("graded runs", run.outcome.wall_s)
        with watch.stage("check"):
            tolerance = limits(case, files, rules.tolerance)
            expected, source = files.expected(case), files.input(case)
            check = check_output(case.operator, case.shape, expected, run.output, tolerance, source)
            cpu_s = trial.limit_cpu_s if run.outcome.wall_s < trial.limit_s else None
            judgement = judge(
                run,
                check,
                limit=f"{trial.limit_name} of {cpu_s or trial.limit_s:.3g} s{' of processor time' * bool(cpu_s)}",
                files=trial.submission.files,
                engine=engine,
                last=last,
            )
            if judgement.fault is Fault.STUDENT and (run.trace is None or not run.trace.kernels):
                _see_programs_start(engine)
        passed = judgement.verdict is Verdict.PASSED
        if bench is not None:  # after a failure, the grader may have tested the GPU itself
            bench.worked(run.ended if passed else time.monotonic())
        with watch.stage("times and doubts"):
            times = graded_time(trial, run, passed=passed)
            ran = _ran(trial, run, believed=isinstance(times.gpu, GpuTime))
            sidecar = read_sidecar(case, files) or {}
            corners = tuple[CornerRecord, ...]()
            if shown and grading.show:
                corners = read_corners(case.operator, case.shape, expected, run.output, grading.show)
        explaining = None
        if judgement.fault is Fault.STUDENT:
            explain = partial(_explained, trial, run, check, judgement, stack.pop_all(), shown=shown)
            with watch.stage(DIAGNOSIS):
                if later is None:
                    judgement = explain()
                else:
                    explaining = later.begin(explain)
    if passed:
        with watch.stage("times and doubts"):
            times = measured_time(trial, times, run, watched.state, own, since)
    return Tested(
        case,
        judgement,
        ran,
        check,
        times,
        sidecar,
        corners,
        run.trace if passed and bench is not None and case.name in bench.scored_tests() else None,
        is_explained(run.trace.findings if run.trace is not None else (), judgement.verdict),
        explaining=explaining,
    )


def _explained(
    trial: Trial, run: Run, check: Check, judgement: Judgement, kept: contextlib.ExitStack, *, shown: bool
) -> Judgement:
    """The judgement on a failure, with its likely cause. `kept` holds the run's output until then. A student is not to
    blame for failing on a file that has changed since it was generated."""
    with kept:
        files, case = trial.grading.files, trial.case
        if changed := changed_files(case, files, trust=True):
            return Judgement(Verdict.GRADER_ERROR, Fault.MACHINE, " ".join(changed))
        if not judgement.open:
            return judgement
        diagnosis = None
        if shown:
            source, expected = files.input(case), files.expected(case)
            diagnosis = hint(None, diagnose, check, case.operator, source, expected, run.output)
        return hint(judgement, explained_failure, run, check, trial.submission, diagnosis)


def _ran(trial: Trial, run: Run, *, believed: bool) -> Ran:
    """What the run left. `believed`: whether the times of its trace are."""
    outcome, trace = run.outcome, run.trace
    read = trace if believed else None
    return Ran(
        wall_s=outcome.wall_s,
        limit_s=trial.limit_s,
        cpu_s=outcome.cpu_s,
        ending=outcome.ending,
        printed=spelled_out(outcome.stdout + outcome.stderr)[-_PRINTED:],
        kernels=trace.launch_count if trace is not None else None,
        launched=tuple(sorted({kernel.name for kernel in trace.kernels})) if trace is not None else (),
        copy_ms=read.copy_ns / 1e6 if read is not None else None,
        phases_ms=phase_times(read, trial.grading.assignment.phases) if read is not None else {},
    )


@cache
def _see_programs_start(engine: Engine) -> None:
    """Raise MachineFault if no program at all can run on this machine. A success is remembered."""
    if problem := engine.problem():
        raise MachineFault(f"No CUDA program can run on this machine now: {problem}. Run `grader doctor` for details.")


def time_limits(grading: Grading, case: Case) -> tuple[float, str, float | None]:
    """The wall time in seconds that `case` may take, the name of that limit, and on the emulator a limit of processor
    time, if it ends a test earlier."""
    limits = grading.assignment.limits
    ours = limits.wall_s if grading.engine.measures_time else limits.emulator_cpu_s
    own = next((limit.seconds for limit in ours if case in grading.suite.select(limit.tests)), limits.emulator_wall_s)
    if grading.engine.measures_time:
        return own, "the assignment's limit", None
    earlier = own if own < limits.emulator_wall_s else None
    return limits.emulator_wall_s, f"the {grading.engine.name}'s own limit (not the assignment's)", earlier
