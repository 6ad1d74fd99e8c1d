"""The commands that examine one submission: `profile`, and `check --sanitize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.names import handed_in_name
from grader.base.paths import shown
from grader.base.progress import shown_progress
from grader.commands.choice import Choice
from grader.course.assignment import Assignment, load_assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.coherence import suite_of
from grader.course.metrics import COUNTED, DRAM_BYTES, DURATION, FLOPS, READ_BYTES, STALLS, Metric, named_metrics
from grader.course.testcase import Case, Suite
from grader.findings import kind_of, without_echoes
from grader.gpu.facts import gpu_facts, known_limits
from grader.gpu.lock import gpu_to_ourselves
from grader.grading.bench import theory, theory_of
from grader.grading.closer_look import case_to_look_at
from grader.profiling.advice import Gains, advice, by_line
from grader.profiling.counted_run import counted_run
from grader.profiling.counters import counted_launches, instruction_mix
from grader.profiling.kernel_profile import KernelProfile, ProfileStudy, Theory, kernel_profiles, plan
from grader.profiling.ncu import Launch, NotProfiled, run_ncu
from grader.programs.build import Build, build
from grader.programs.engine import Engine
from grader.programs.engine.cuda import CudaEngine
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.oracle import ensure
from grader.programs.run import run_program
from grader.programs.submission import Submission, read_submission
from grader.programs.toolkit import find_toolkit
from grader.programs.trace import Trace
from grader.records.record import Record
from grader.sanitizers import Check, Report, by_place, run_check, with_lines

_EXTRA_METRICS = (
    "shared_load_bank_conflicts",
    "shared_store_bank_conflicts",
    "gld_sectors_per_request",
    "gst_sectors_per_request",
    "dram_throughput",
    "dram_utilization",
    "tensor_use",
)
"""These metrics are shown after the assignment's own."""


Predicted = Callable[[Submission, Assignment, Case], Mapping[str, Gains]]
"""Takes what is profiled and returns predicted gains by kernel."""


@dataclass(frozen=True)
class Subject:
    rules: Assignment
    suite: Suite
    files: TestcaseFiles
    engine: Engine
    submission: Submission
    case: Case


def open_subject(path: Path, choice: Choice) -> Subject:
    """The submission at `path` and the one testcase that is chosen, by default the largest sample, with its files."""
    subject = _chosen(path, choice)
    _make_files(subject)
    return subject


def _chosen(path: Path, choice: Choice) -> Subject:
    rules, test = choice.rules(path), choice.tests
    suite = suite_of(rules)
    cases = suite.select(test) if test else (max(suite.select("public"), key=lambda case: case.flops),)
    if len(cases) != 1:
        raise UsageError(
            f"{test!r} names {len(cases)} testcases, and only one can be examined: choose one, for example t23."
        )
    submission = read_submission(path, rules, any_name=True)
    files = TestcaseFiles.beside(suite)
    return Subject(rules, suite, files, choice.engines(rules)[0], submission, cases[0])


def _make_files(subject: Subject) -> None:
    with shown_progress() as progress:
        ensure([subject.case], subject.suite, subject.files, progress)


def built(subject: Subject, submission: Submission) -> Build:
    made = build(submission, subject.rules, subject.engine, (subject.case,))
    if made.program is None:
        raise UsageError(f"{shown(submission.path)} was not built. {made.reason}\n{made.log}")
    return made


def _traced(subject: Subject, program: Path) -> Trace:
    limits = subject.rules.limits
    with run_program(
        subject.engine,
        program,
        subject.files.input(subject.case),
        output_bytes=subject.case.output_bytes,
        wall_s=limits.emulator_wall_s,
        limits=limits,
    ) as run:
        if run.trace is None or not run.trace.kernels:
            raise _nothing_to_see(subject, run.untraced_reason or f"it launched no kernel ({run.outcome.ending})")
        return run.trace


def _nothing_to_see(subject: Subject, why: str) -> UsageError:
    return UsageError(f"{shown(subject.submission.path)} on {subject.case.name} has nothing to examine: {why}.")


# ---- profile ----------------------------------------------------------------------------------------------------


def profile_program(path: Path, choice: Choice, *, launches: int, gains: Predicted | None = None) -> ProfileStudy:
    """Profile a submission on one testcase, by default on the largest sample. Raises UsageError if it does not compile
    or launches no kernel. `gains` predicts what mending each line would save, for the order of advice."""
    subject = _chosen(path, choice)
    if isinstance(subject.engine, EmulatorEngine):
        subject = replace(subject, engine=replace(subject.engine, count=True))
    else:
        _make_files(subject)
    program = built(subject, subject.submission).program
    assert program is not None
    names = dict.fromkeys((*(subject.rules.metrics or ("achieved_occupancy",)), *_EXTRA_METRICS))
    metrics = named_metrics(tuple(names))
    if isinstance(subject.engine, CudaEngine):
        return _profile_on_gpu(subject, subject.engine, program, metrics, launches)
    predicted = gains(subject.submission, subject.rules, subject.case) if gains is not None else {}
    return _counted(subject, program, metrics, predicted)


def _counted(subject: Subject, program: Path, metrics: tuple[Metric, ...], gains: Mapping[str, Gains]) -> ProfileStudy:
    """A profile with the metrics that the emulator can count. A note lists the other metrics as not measured."""
    rules, who = subject.rules, subject.submission.id
    with shown_progress() as progress:
        counted = counted_run(subject.engine, program, subject.case, rules.limits, progress, who)
    trace = counted.trace
    if trace is None or not trace.kernels:
        raise _nothing_to_see(subject, f"it launched no kernel ({counted.cut_off or counted.ending})")
    limits = known_limits(_compute_capability(subject.rules.build.emulator_target))
    theory = theory_of(find_toolkit(), limits)
    try:
        kernels = counted_kernels(trace, theory, gains)
    except (
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:  # what a trace contains is the program's doing
        problem = f"the counts in its trace do not fit together ({type(error).__name__})"
        raise _nothing_to_see(subject, problem) from error
    missing = [metric.name for metric in metrics if metric.name not in COUNTED]
    units_name = subject.case.operator.units_name
    stopped = f"Cut off {counted.cut_off}: the numbers cover the run until then."
    times = counted.whole / counted.units
    part = (
        f"Counted on {counted.units:,} of {counted.whole:,} {units_name} of the same size: the whole testcase has "
        f"about {times:,.3g} times the blocks or launches, requests and instructions; ratios are the same."
    )
    notes = [
        *([stopped] if counted.cut_off else []),
        *([part] if counted.units < counted.whole else []),
        "The emulator counted exactly what the program's PTX does. A GPU runs the machine code that the assembler "
        "makes from it, with slightly different instruction counts (docs/counters.md).",
        f"not measured: {', '.join(missing)}: only a GPU can measure these (see grader doctor).",
    ]
    return _study(subject, named_metrics(COUNTED), kernels, notes, None)


def counted_kernels(
    trace: Trace, theory: Theory | None, gains: Mapping[str, Gains] | None = None
) -> tuple[KernelProfile, ...]:
    """The profiles of a counted run's kernels, with the cost of each source line and advice on it."""
    profiles = kernel_profiles(trace, counted_launches(trace), named_metrics(COUNTED), theory)
    apart = trace.by_kernel()
    return tuple(
        replace(
            profile,
            mix=instruction_mix(own, profile.name),
            accesses=tuple(replace(access, file=handed_in_name(access.file)) for access in by_line(own.accesses)),
            advice=advice(own, profile.name, handed_in_name, (gains or {}).get(profile.name)),
        )
        for profile in profiles
        for own in (apart[profile.name],)
    )


def _compute_capability(target: str) -> tuple[int, int]:
    number = int(target.removeprefix("sm_").rstrip("af"))
    return number // 10, number % 10


def _profile_on_gpu(
    subject: Subject, engine: CudaEngine, program: Path, metrics: tuple[Metric, ...], most: int
) -> ProfileStudy:
    facts = gpu_facts(engine.gpu.uuid)
    notes: list[str] = []
    launches: tuple[Launch, ...] = ()
    with shown_progress() as progress, gpu_to_ourselves(engine.gpu.uuid, progress.line):
        progress.stage(f"{subject.submission.id}: {subject.case.name}, traced")
        trace = _traced(subject, program)
        chosen = plan(trace, most)
        progress.stage(f"{subject.submission.id}: {subject.case.name}, profiled")
        try:
            launches, wall_s = run_ncu(
                engine,
                program,
                subject.files.input(subject.case),
                metrics=(*(m.ncu for m in metrics), DURATION, READ_BYTES, DRAM_BYTES, *FLOPS, STALLS),
                invocations=chosen,
                output_bytes=subject.case.output_bytes,
                limits=subject.rules.limits,
            )
        except NotProfiled as why:
            notes.append(f"not measured: {why} The numbers shown come from the trace and the launches.")
        else:
            if chosen is not None:
                notes.append(
                    f"sampled: {len(launches):,} of {trace.launch_count:,} launches, spread evenly over the run "
                    "(--launches for more)."
                )
            notes.append(f"Nsight Compute took {wall_s:.1f} s; clocks were not changed.")
    kernels = kernel_profiles(trace, launches, metrics, theory(engine, facts))
    return _study(subject, metrics, kernels, notes, trace.gpu_ns / 1e6 if trace.complete else None)


def _study(
    subject: Subject,
    metrics: tuple[Metric, ...],
    kernels: tuple[KernelProfile, ...],
    notes: Sequence[str],
    gpu_ms: float | None,
) -> ProfileStudy:
    return ProfileStudy(
        submission=subject.submission.id,
        test=subject.case.name,
        shape=subject.case.shape,
        device=subject.engine.device,
        gpu_ms=gpu_ms,
        metrics=metrics,
        kernels=kernels,
        notes=tuple(notes),
    )


# ---- sanitizers -------------------------------------------------------------------------------------------------


def sample_to_sanitize(record: Record) -> str:
    """The name of the testcase to examine with the sanitizers."""
    cases = suite_of(load_assignment(record.assignment)).cases
    return case_to_look_at({cases[test.name]: test.verdict for test in record.tests if test.name in cases}).name


def sanitize_program(path: Path, choice: Choice, checks: Sequence[Check]) -> tuple[Report, ...]:
    """Run the sanitizers on one testcase."""
    subject = open_subject(path, choice)
    if not isinstance(subject.engine, CudaEngine):
        return _emulators_findings(subject, checks)
    flags = with_lines(subject.submission.flags)
    program = built(subject, replace(subject.submission, flags=flags)).program
    assert program is not None
    source = subject.files.input(subject.case).resolve()
    reports = []
    with shown_progress() as progress, gpu_to_ourselves(subject.engine.gpu.uuid, progress.line):
        kernels = _traced(subject, program).launch_count
        for check in checks:
            progress.stage(f"{subject.submission.id}: {subject.case.name} under the {check} sanitizer")
            arguments = (str(source), "{output}")
            reports.append(run_check(subject.engine, program, arguments, check, readable=(source,), kernels=kernels))
    return tuple(reports)


def _emulators_findings(subject: Subject, checks: Sequence[Check]) -> tuple[Report, ...]:
    """Build the program with these checks, run it, and return the emulator's findings by check."""
    if isinstance(subject.engine, EmulatorEngine):
        subject = replace(subject, engine=replace(subject.engine, sanitize=frozenset(checks), leaks="memory" in checks))
    program = built(subject, subject.submission).program
    assert program is not None
    findings = without_echoes(_traced(subject, program).findings)
    return tuple(
        Report(
            check,
            by_place(finding for finding in findings if kind_of(finding).check == check),
            sum(kind_of(f).check == check and kind_of(f).severity != "note" for f in findings),
        )
        for check in checks
    )
