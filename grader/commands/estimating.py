"""`grader estimate`: what a program would take on a GPU. Predicted times are never grades."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.names import handed_in_name
from grader.base.paths import shown
from grader.base.progress import Progress, shown_progress
from grader.course.assignment import Assignment, chosen_assignment
from grader.course.coherence import suite_of
from grader.course.testcase import Case, Suite
from grader.estimates.counts import NoLaw
from grader.estimates.estimate import Fix, interval, predicted
from grader.estimates.gpus import GPUS, Gpu
from grader.estimates.machine_code import NoMachineCode, disassembler, machine_code
from grader.estimates.sampled import counted
from grader.programs.build import build
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.submission import Submission, read_submission
from grader.programs.toolkit import find_toolkit
from grader.report.estimate import Estimate
from grader.sandbox.room import Unreadable
from grader.timing.baseline import baseline_of


def estimate_program(
    path: Path, tests: str | None, gpu: str, assignment: str | None, *, fixes: bool = True
) -> list[Estimate]:
    """Predict the times of a submission on the chosen tests, by default the timed one with the most operations. Raises
    UsageError if it does not compile, MachineFault without nvdisasm."""
    if gpu not in GPUS:
        raise UsageError(f"--gpu {gpu}: predicted times are for {', '.join(GPUS)}; choose one of them.")
    rules = chosen_assignment(assignment, path)
    suite = suite_of(rules)
    cases = suite.select(tests) if tests else [_usual_case(rules, suite)]
    submission = read_submission(path, rules, any_name=True)
    with shown_progress() as progress:
        return estimates(submission, rules, cases, GPUS[gpu], progress, fixes=fixes)


def estimates(
    submission: Submission, rules: Assignment, cases: Sequence[Case], gpu: Gpu, progress: Progress, *, fixes: bool
) -> list[Estimate]:
    """The estimates of a submission on some cases."""
    toolkit = find_toolkit()
    disassembler(toolkit)
    target = "sm_90" if gpu.capability >= (9, 0) else "sm_89" if gpu.capability == (8, 9) else "sm_80"
    engine = EmulatorEngine(toolkit, target, count=True)
    progress.stage(f"{submission.id}: built to be counted")
    built = build(submission, rules, engine, cases)
    if built.program is None:
        raise UsageError(f"{shown(submission.path)} was not built. {built.reason}\n{built.log}")
    found = []
    for case in cases:
        estimate = Estimate(case.name, case.shape, gpu.title, gpu.calibrated, gpu.note)
        progress.stage(f"{submission.id}: {case.name}, counted on the emulator")
        try:
            code = machine_code(built.program, gpu, toolkit)
            groups, fills_ms = counted(engine, built.program, case, rules.limits, gpu)
            kernels = predicted(code, groups, gpu, fixes=fixes)
        except (NoLaw, NoMachineCode, Unreadable) as why:
            found.append(replace(estimate, why=str(why)))
            continue
        if lacking := next((kernel for kernel in kernels if kernel.why), None):
            found.append(replace(estimate, why=f"{lacking.name}: {lacking.why}"))
            continue
        kernels = [replace(k, file=handed_in_name(k.file), fixes=_named(k.fixes)) for k in kernels]
        kernels.sort(key=lambda kernel: -kernel.ms)
        time = interval(kernels, gpu, fills_ms)
        found.append(replace(estimate, time=time, kernels=tuple(kernels), sequential_s=_sequential_s(rules, case)))
    return found


def _named(fixes: Sequence[Fix]) -> tuple[Fix, ...]:
    return tuple(replace(fix, file=handed_in_name(fix.file)) for fix in fixes)


def _sequential_s(rules: Assignment, case: Case) -> float | None:
    """The sequential program's time on this machine; None where there is no such program, as at a student's."""
    if rules.reference_folder.is_dir():
        with contextlib.suppress(MachineFault, GraderFault):
            return baseline_of(rules, case).seconds
    return None


def _usual_case(rules: Assignment, suite: Suite) -> Case:
    timed = suite.select(rules.timed_tests) if rules.timed_tests else suite.select("all")
    return max(timed, key=lambda case: (case.flops, case.name))
