"""The commands that look closer at one submission: its profile, and what sanitizers find in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.assignment import Assignment, assignment_for, load_assignment
from grader.bench import theory
from grader.build import Build, build
from grader.catalogue import TestcaseFiles
from grader.engine import Engine, select_engine
from grader.engine.cuda import CudaEngine
from grader.engine.emulator import EmulatorEngine
from grader.errors import UsageError
from grader.floors import peak_flops
from grader.gpu_facts import GpuFacts, gpu_facts
from grader.gpu_lock import gpu_to_ourselves
from grader.metrics import DRAM_BYTES, DURATION, FLOPS, READ_BYTES, STALLS, Metric, named_metrics
from grader.ncu import Launch, NotProfiled, run_ncu
from grader.paths import shown
from grader.profile import LAUNCHES, KernelProfile, kernel_profiles, plan
from grader.progress import shown_progress
from grader.run import run_program
from grader.sandbox import runner
from grader.sanitize import Check, Finding, Report, run_check, with_lines
from grader.session import ensure
from grader.submission import Submission, read_submission
from grader.testcase import Case, Suite, load_suite
from grader.trace import Diagnostic, Trace

_MAKE_LIMIT_S = 10

_BESIDE = (
    "shared_load_bank_conflicts",
    "shared_store_bank_conflicts",
    "gld_sectors_per_request",
    "gst_sectors_per_request",
    "dram_throughput",
    "dram_utilization",
    "tensor_use",
)
"""Shown after the assignment's own metrics."""


@dataclass(frozen=True)
class Roof:
    """A limit of the roofline: `flops` per second, by the unit `name`."""

    name: str
    flops: float


@dataclass(frozen=True)
class ProfileStudy:
    """What `grader profile` reports. `notes` say what was sampled and what could not be measured. `roofs` and
    `bandwidth` (bytes per second) are the device's limits, empty and None where they are not known."""

    submission: str
    test: str
    shape: tuple[int | float, ...]
    device: str
    gpu_ms: float | None
    metrics: tuple[Metric, ...]
    kernels: tuple[KernelProfile, ...]
    notes: tuple[str, ...]
    roofs: tuple[Roof, ...] = ()
    bandwidth: float | None = None


@dataclass(frozen=True)
class _Subject:
    rules: Assignment
    suite: Suite
    files: TestcaseFiles
    engine: Engine
    submission: Submission
    case: Case


def _subject(path: Path, test: str, assignment: str | None, engine: str) -> _Subject:
    rules = load_assignment(assignment) if assignment else assignment_for(path)
    suite = load_suite(rules.testcases_file)
    cases = suite.select(test)
    if len(cases) != 1:
        raise UsageError(f"One testcase is looked at here; {test!r} names {len(cases)}: choose one, t23 for example.")
    submission = read_submission(path, rules, runner(_MAKE_LIMIT_S))
    files = TestcaseFiles.beside(suite)
    with shown_progress() as progress:
        ensure(cases, suite, files, progress)
    return _Subject(rules, suite, files, select_engine(engine, rules.build.emulator_target), submission, cases[0])


def _built(subject: _Subject, submission: Submission) -> Build:
    made = build(submission, subject.rules, subject.engine)
    if made.program is None:
        raise UsageError(f"{shown(submission.path)} was not built. {made.reason}\n{made.log}")
    return made


def _traced(subject: _Subject, program: Path) -> Trace:
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
            why = run.untraced_reason or f"it launched no kernel ({run.outcome.ending})"
            raise UsageError(f"{shown(subject.submission.path)} on {subject.case.name} left nothing to look at: {why}.")
        return run.trace


# ---- profile ----------------------------------------------------------------------------------------------------


def profile_program(
    path: Path, test: str, *, assignment: str | None, engine: str, launches: int = LAUNCHES
) -> ProfileStudy:
    """Profile a submission on one testcase. Raises UsageError where it does not build or launches nothing."""
    subject = _subject(path, test, assignment, engine)
    program = _built(subject, subject.submission).program
    assert program is not None
    names = dict.fromkeys((*(subject.rules.metrics or ("achieved_occupancy",)), *_BESIDE))
    metrics = named_metrics(tuple(names))
    if isinstance(subject.engine, CudaEngine):
        return _profile_on_gpu(subject, subject.engine, program, metrics, launches)
    trace = _traced(subject, program)
    notes = [f"not measured: {', '.join(metric.name for metric in metrics)}: these are a GPU's (see grader doctor)."]
    counters = _counters(trace)
    notes += [f"counted by the emulator: {counters}"] if counters else []
    kernels = kernel_profiles(trace, (), (), None)
    return _study(subject, metrics, kernels, notes, None)


def _profile_on_gpu(
    subject: _Subject, engine: CudaEngine, program: Path, metrics: tuple[Metric, ...], most: int
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
            notes.append(f"not measured: {why} Below is what the trace and the launches say.")
        else:
            if chosen is not None:
                notes.append(
                    f"sampled: {len(launches):,} of {len(trace.kernels):,} launches, spread evenly over the run "
                    "(--launches for more)."
                )
            notes.append(f"Nsight Compute took {wall_s:.1f} s; clocks were left alone.")
    kernels = kernel_profiles(trace, launches, metrics, theory(engine, facts))
    return _study(subject, metrics, kernels, notes, trace.gpu_ns / 1e6 if trace.complete else None, facts)


def _study(
    subject: _Subject,
    metrics: tuple[Metric, ...],
    kernels: tuple[KernelProfile, ...],
    notes: Sequence[str],
    gpu_ms: float | None,
    facts: GpuFacts | None = None,
) -> ProfileStudy:
    roofs = []
    for unit in ("fp32", "tf32", "fp16") if facts is not None else ():
        peak = peak_flops(facts, unit) if facts is not None else None
        if peak is not None:
            roofs.append(Roof(unit, peak[0]))
    return ProfileStudy(
        submission=subject.submission.id,
        test=subject.case.name,
        shape=subject.case.shape,
        device=subject.engine.device,
        gpu_ms=gpu_ms,
        metrics=metrics,
        kernels=kernels,
        notes=tuple(notes),
        roofs=tuple(roofs),
        bandwidth=facts.bandwidth if facts is not None else None,
    )


def _counters(trace: Trace) -> str:
    """The emulator's counters, summed over all launches."""
    sums: dict[str, float] = {}
    for kernel in trace.kernels:
        for name, value in kernel.counters.items():
            sums[name] = sums.get(name, 0.0) + value
    return ", ".join(f"{name} {value:,.0f}" for name, value in sorted(sums.items()))


# ---- sanitizers -------------------------------------------------------------------------------------------------


def sanitize_program(
    path: Path, checks: Sequence[Check], *, tests: str, assignment: str | None, engine: str
) -> tuple[Report, ...]:
    """Run the sanitizers on the smallest of the `tests`."""
    rules = load_assignment(assignment) if assignment else assignment_for(path)
    cases = load_suite(rules.testcases_file).select(tests)
    smallest = min(cases, key=lambda case: case.flops)
    subject = _subject(path, smallest.name, assignment, engine)
    if not isinstance(subject.engine, CudaEngine):
        return _emulators_findings(subject, checks)
    flags = with_lines(subject.submission.flags)
    program = _built(subject, replace(subject.submission, flags=flags)).program
    assert program is not None
    source = subject.files.input(subject.case).resolve()
    reports = []
    with shown_progress() as progress, gpu_to_ourselves(subject.engine.gpu.uuid, progress.line):
        kernels = len(_traced(subject, program).kernels)
        for check in checks:
            progress.stage(f"{subject.submission.id}: {subject.case.name} under the {check} sanitizer")
            arguments = (str(source), "{output}")
            reports.append(run_check(subject.engine, program, arguments, check, readable=(source,), kernels=kernels))
    return tuple(reports)


def _emulators_findings(subject: _Subject, checks: Sequence[Check]) -> tuple[Report, ...]:
    """What the emulator reports in its trace, by tool, of a program built with these checks."""
    if isinstance(subject.engine, EmulatorEngine):
        subject = replace(subject, engine=replace(subject.engine, sanitize=frozenset(checks), leaks="memory" in checks))
    program = _built(subject, subject.submission).program
    assert program is not None
    found: dict[str, dict[Diagnostic, int]] = {check: {} for check in checks}
    for diagnostic in _traced(subject, program).diagnostics:
        if diagnostic.tool in found:
            seen = found[diagnostic.tool]
            seen[diagnostic] = seen.get(diagnostic, 0) + 1
    return tuple(
        Report(
            check,
            tuple(Finding(*item) for item in found[check].items()),
            sum(times for diagnostic, times in found[check].items() if diagnostic.severity != "note"),
        )
        for check in checks
    )
