"""Which lanes a machine has: each GPU verdicts and times in turn, and the emulator gives verdicts next to them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.progress import Progress
from grader.base.workers import cores
from grader.classes.batch.setup import Setup
from grader.classes.batch.work import Task
from grader.classes.cluster.elsewhere import Elsewhere, engine_of_jobs
from grader.course.assignment import Assignment, Cluster
from grader.course.catalogue import TestcaseFiles
from grader.course.coherence import suite_of
from grader.judge.foreman import Lane
from grader.judge.ledger import Files, Stage, Upload
from grader.judge.stage_task import SlurmStageTask
from grader.programs.engine import Engine, select_engine, select_engines
from grader.programs.oracle import ensure

_JOBS = 8
"""Jobs of a cluster at a time, where --jobs does not say; each has a process here that waits for it."""


def lanes_for(rules: Assignment, engine: str, jobs: int | None) -> list[Lane]:
    """The lanes of this machine. Without a GPU, `jobs` emulators at a time grade the samples, and nothing is timed.
    With GPUs, each first runs the samples and later everything, as `grader grade` does; an emulator helps out with
    samples while the GPUs are busy."""
    suite = suite_of(rules)
    files = TestcaseFiles.beside(suite)
    samples, all_cases = suite.select("public"), suite.select("all")
    engines = select_engines(engine, rules.build.emulator_target)

    def setup(chosen: Engine, timed: bool) -> Setup:
        return Setup(rules, suite, files, all_cases if timed else samples, chosen)

    if not engines[0].measures_time:
        count = jobs or max(1, cores() // 2)
        names = [f"emulator {number}" for number in range(count)]
        return [Lane(name, name, Stage.VERDICT, setup(engines[0], False)) for name in names]
    if jobs is not None:
        raise UsageError("--jobs is for the emulator: a GPU always runs one submission at a time.")
    lanes = []
    for number, gpu in enumerate(engines):
        name = f"GPU {number}"
        lanes += [Lane(name, name, stage, setup(gpu, stage is Stage.TIMING)) for stage in Stage]
    if engine == "auto":
        emulator = select_engine("emulator", rules.build.emulator_target)
        lanes.append(Lane("emulator", "emulator", Stage.VERDICT, setup(emulator, False)))
    return lanes


def cluster_lanes(rules: Assignment, engine: str, jobs: int | None) -> list[Lane]:
    """Lanes whose work is done by jobs of Slurm, `jobs` of them at a time; their workers here only wait."""
    cluster = rules.cluster or Cluster()
    elsewhere, folder = engine_of_jobs(engine), Path(cluster.folder).expanduser().resolve() / "judge"
    suite = suite_of(rules)
    files = TestcaseFiles.beside(suite)
    cases = {Stage.VERDICT: suite.select("public"), Stage.TIMING: suite.select("all")}
    stages = tuple(Stage) if elsewhere.measures_time else (Stage.VERDICT,)
    lanes = []
    for number in range(jobs or min(_JOBS, cluster.at_once)):
        for stage in stages:
            setup = Setup(rules, suite, files, cases[stage], elsewhere)
            task = partial(_slurm_task, str(folder / f"{rules.name}-{number}-{stage}"))
            lanes.append(Lane(f"slurm {number}", f"slurm {number}", stage, setup, task))
    return lanes


def _slurm_task(folder: str, upload: Upload, files: Files, address: str, judged_before: frozenset[str]) -> Task:
    return SlurmStageTask(upload.id, upload.student, files, address, judged_before, folder)


def prepare(rules: Assignment, lanes: Sequence[Lane], progress: Progress) -> None:
    """Make the testcases that are missing, and time the sequential programs before anything makes the machine busy."""
    for setup in {lane.stage: lane.setup for lane in lanes}.values():
        ensure(setup.cases, setup.suite, setup.files, progress)
    timing = next((lane.setup for lane in lanes if lane.stage is Stage.TIMING), None)
    if timing is not None and not isinstance(timing.engine, Elsewhere):  # a job times it on its own node
        with timing.grading() as grading:
            if grading.baseline is not None:
                progress.stage("Timing the sequential program, where this machine has not timed it yet")
                for case in timing.cases:
                    grading.baseline(case)
