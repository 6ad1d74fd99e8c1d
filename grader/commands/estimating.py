"""`grader estimate`: what a program would take on a GPU. Predicted times are never grades."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from grader.base.attempted import Failed, attempted
from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.names import handed_in_name
from grader.base.paths import shown
from grader.base.progress import Progress, shown_progress
from grader.base.verdict import Fault
from grader.commands import classroom
from grader.commands.choice import Choice
from grader.course.assignment import Assignment
from grader.course.coherence import suite_of
from grader.course.testcase import Case, Suite
from grader.estimates.counts import Samples, counted, plans, sampled
from grader.estimates.estimate import KernelEstimate, interval, predicted, unpredictable
from grader.estimates.gpus import ALL, GPUS, Gpu
from grader.estimates.machine_code import NotPredictable, machine_code
from grader.programs.build import build
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.submission import Submission, read_submission
from grader.programs.toolkit import find_toolkit
from grader.report.estimate import Estimate, limit_sentence, sentence
from grader.sandbox.room import Unreadable
from grader.timing.baseline import baseline_of


def estimate_program(path: Path, choice: Choice, gpu: str = "h100", *, fixes: bool = True) -> list[Estimate]:
    """Predict the times of a submission on the chosen tests, by default a timed one of middling size. Raises
    UsageError if it does not compile, MachineFault without nvdisasm."""
    if gpu not in GPUS:
        raise UsageError(f"--gpu {gpu}: predicted times are for {', '.join(GPUS)}; choose one of them.")
    rules = choice.rules(path)
    suite = suite_of(rules)
    cases = suite.select(choice.tests) if choice.tests else [usual_case(rules, suite)]
    submission = read_submission(path, rules, any_name=True)
    with shown_progress() as progress:
        return estimates(submission, rules, cases, GPUS[gpu], progress, fixes=fixes)


def estimates(
    submission: Submission, rules: Assignment, cases: Sequence[Case], gpu: Gpu, progress: Progress, *, fixes: bool
) -> list[Estimate]:
    """The estimates of a submission on some cases."""
    toolkit = find_toolkit()
    progress.stage(f"{submission.id}: built to be counted")
    sizes = [one for case in cases for plan in plans(case) for part in plan for one in part]
    engine = EmulatorEngine(toolkit, gpu.target if gpu.target in ("sm_89", "sm_90a") else "sm_80", count=True)
    built = build(submission, rules, engine, sizes)
    if built.program is None:
        raise UsageError(f"{shown(submission.path)} was not built. {built.reason}\n{built.log}")
    found = []
    for case in cases:
        estimate = Estimate(case.name, case.shape, gpu.title, gpu.calibrated, gpu.note)
        progress.stage(f"{submission.id}: {case.name}, counted on the emulator")
        try:
            code = machine_code(built.program, gpu, toolkit)
            samples = sampled(engine, built.program, case, rules.limits)
            kernels, fills_ms = predicted(code, counted(samples), gpu, fixes=fixes), _fills_ms(samples, gpu)
        except (NotPredictable, Unreadable) as why:
            found.append(replace(estimate, why=str(why)))
            continue
        if why_not := unpredictable(kernels):
            found.append(replace(estimate, why=why_not))
            continue
        time = interval(kernels, gpu, fills_ms)
        times = time.ms / (sum(kernel.ms for kernel in kernels) + fills_ms)
        kernels = sorted((_shown(kernel, times) for kernel in kernels), key=lambda kernel: -kernel.ms)
        found.append(replace(estimate, time=time, kernels=tuple(kernels), sequential_s=_sequential_s(rules, case)))
    return found


def _fills_ms(samples: Samples, gpu: Gpu) -> float:
    run = samples.large[-1]
    ms = (ALL["launch_ms"] + each.bytes / gpu.dram_gb_per_s / 1e6 for each in run.trace.memsets)
    return samples.units / run.units * sum(ms)


def gains(submission: Submission, rules: Assignment, case: Case) -> dict[str, dict[tuple[str, int], float]]:
    """For each kernel, the share of the program's time on an H100 that mending a line is predicted to save. Empty where
    nothing can be predicted; nobody asked for a prediction, so no message says why."""
    with contextlib.suppress(GraderFault, MachineFault, UsageError), shown_progress() as progress:
        (found,) = estimates(submission, rules, [case], GPUS["h100"], progress, fixes=True)
        total = sum(kernel.ms for kernel in found.kernels)
        return {
            kernel.name: {
                (fix.file, fix.line): (kernel.ms - fix.without_ms) / total for fix in kernel.fixes if fix.line
            }
            for kernel in found.kernels
        }
    return {}


def hint(path: Path, assignment: str | None) -> str:
    """What `check` says of the speed to a student without a GPU; '' where nothing can be predicted."""
    with contextlib.suppress(GraderFault, MachineFault, UsageError):
        (found,) = estimate_program(path, Choice(assignment))
        if found.time is not None:
            return f"{sentence(found)} {limit_sentence(found)} More: grader estimate {shown(path)}"
    return ""


RUN_S = 38.0
PER_GPU_S = 6.8
"""A grading of thirty tests on an H100 took 37.7 s for a program with hardly any GPU time, and 74.6 s for a slow one
(commit 99491f6, 2026-11-24). By its 0.265 s for one test, in proportion to operations, the slow one takes 5.4 s of GPU
time for all tests once; timed tests are repeated."""


def class_plan(paths: Sequence[Path], assignment: str | None, gpu: str = "h100") -> tuple[str, bool]:
    """How long grading a class will take on a GPU, from the predicted time of one test of each submission; the times of
    the other tests are taken to be in proportion to their operations. And whether the grader and the machine served
    all of them."""
    rules = Choice(assignment).rules(paths[0])
    found, _ = classroom.hand_ins(paths, rules, classroom.ClassOptions(as_class=True))
    suite = suite_of(rules)
    usual = usual_case(rules, suite)
    times = sum(case.flops for case in suite.graded) / usual.flops
    lines, total_s, unknown, served = [], 0.0, 0, True
    for one in found:
        tried = attempted(estimate_program, one.path, Choice(rules.name, usual.name), gpu, fixes=False)
        made = None if isinstance(tried, Failed) else tried[0]
        if made is None or made.time is None:
            unknown += 1
            served &= not isinstance(tried, Failed) or tried.whose is Fault.STUDENT
            why = tried.headline if isinstance(tried, Failed) else tried[0].why
            lines.append(f"  {one.student}: not predictable: {why}")
            continue
        spent_s = RUN_S + PER_GPU_S * times * made.time.ms / 1e3
        total_s += spent_s
        lines.append(f"  {one.student}: {usual.name} {made.time.ms:,.3g} ms predicted, about {spent_s:,.0f} s in all")
    rest = f", and {unknown} that cannot be predicted" if unknown else ""
    said = (
        f"Predicted for {len(found) - unknown} submissions{rest}: {total_s / 60:,.0f} minutes of one {GPUS[gpu].title}."
    )
    return "\n".join((*lines, said)), served


def _shown(kernel: KernelEstimate, times: float) -> KernelEstimate:
    """The kernel with calibrated times, and files as the student knows them."""
    fixes = [replace(f, file=handed_in_name(f.file), without_ms=times * f.without_ms) for f in kernel.fixes]
    return replace(kernel, ms=times * kernel.ms, file=handed_in_name(kernel.file), fixes=tuple(fixes))


def _sequential_s(rules: Assignment, case: Case) -> float | None:
    """The sequential program's time on this machine; None where there is no such program, as at a student's."""
    if rules.reference_folder.is_dir():
        with contextlib.suppress(MachineFault, GraderFault):
            return baseline_of(rules, case).seconds
    return None


def usual_case(rules: Assignment, suite: Suite) -> Case:
    """A timed test whose units are small enough to be counted in seconds: a quarter of the timed tests have smaller
    ones."""
    timed = list(suite.select(rules.timed_tests) if rules.timed_tests else suite.select("all"))
    return sorted(timed, key=lambda case: case.flops / case.operator.units(case.shape))[len(timed) // 4]
