"""Lanes, each of which grades one submission at a time. A GPU has a lane for verdicts and a lane for times, which take
turns, while a lane of the emulator gives verdicts, too. On a cluster, a lane waits for a job."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.progress import Progress
from grader.base.workers import cores
from grader.classes.batch.work import Task
from grader.classes.batch.worker_process import Worker
from grader.classes.cluster.cluster_engine import Elsewhere, engine_of_jobs
from grader.classes.cluster.slurm import slurm_executor
from grader.course.assignment import Assignment, Cluster
from grader.course.catalogue import TestcaseFiles
from grader.course.coherence import suite_of
from grader.grading.pipeline import open_grading
from grader.grading.setup import Setup
from grader.judge.ledger import Files, Stage, Upload
from grader.judge.rechecks import Due, RecheckTask
from grader.judge.stage_task import SlurmStageTask, StageTask
from grader.programs.engine import Engine, select_engine, select_engines
from grader.programs.oracle import ensure
from grader.records.record import Record

MakeTask = Callable[[Upload, Files, str, frozenset[str]], Task]
MakeRecheck = Callable[[Record, Files, Sequence[str]], Task]


def stage_task(upload: Upload, files: Files, address: str, judged_before: frozenset[str]) -> Task:
    """The task of a lane for a submission."""
    return StageTask(upload.id, upload.student, files, address, judged_before)


@dataclass(eq=False)
class Lane:
    """One engine for one stage. Lanes of one `device` never run at the same time."""

    name: str
    device: str
    stage: Stage
    setup: Setup
    make_task: MakeTask = stage_task
    recheck: MakeRecheck | None = None
    """Makes the task that rechecks a result while the queue is empty; None if this lane rechecks nothing."""
    worker: Worker | None = None
    starting: bool = False
    """True while a new worker imports modules and opens the engine."""
    upload: Upload | None = None
    rechecking: Due | None = None
    began: float = 0.0
    """On the monotonic clock, like `rests_until`: the time of day may jump."""
    busy_s: float = 0.0
    finished: int = 0
    faults_in_a_row: int = 0
    rests_until: float = -math.inf
    last_fault: str = ""

    @property
    def has_a_task(self) -> bool:
        """Whether its worker is expected to answer."""
        return self.starting or self.upload is not None or self.rechecking is not None


_JOBS = 8
"""The number of cluster jobs at a time without --jobs; a process on this machine waits for each."""


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
        lanes.append(Lane(name, name, Stage.VERDICT, setup(gpu, False)))
        lanes.append(Lane(name, name, Stage.TIMING, setup(gpu, True), recheck=RecheckTask))
    if engine == "auto":
        emulator = select_engine("emulator", rules.build.emulator_target)
        lanes.append(Lane("emulator", "emulator", Stage.VERDICT, setup(emulator, False)))
    return lanes


def cluster_lanes(rules: Assignment, engine: str, jobs: int | None) -> list[Lane]:
    """Lanes whose work is done by jobs of Slurm, `jobs` of them at a time; their workers here only wait."""
    slurm_executor()  # fails now rather than with the first submission
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
        with open_grading(timing) as grading:
            if grading.baseline is not None:
                progress.stage("Timing the sequential program, where this machine has not timed it yet")
                for case in timing.cases:
                    grading.baseline(case)
