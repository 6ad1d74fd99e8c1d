from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from grader.base.errors import UsageError
from grader.base.progress import Progress
from grader.base.workers import cores
from grader.classes.executors.elsewhere import Elsewhere, engine_of_jobs
from grader.classes.executors.executor import Task
from grader.classes.executors.slurm import open_jobs, shared_folder
from grader.classes.schedule import Lane, longest_s
from grader.course.assignment import Assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.coherence import suite_of
from grader.grading.session import open_grading
from grader.grading.setup import Setup
from grader.judge.ledger import Stage, Upload
from grader.judge.predictions import DueTime
from grader.judge.rechecks import Due, RecheckTask
from grader.judge.stage_task import StageTask
from grader.programs.engine import Engine, select_engine, select_engines
from grader.programs.oracle import ensure
from grader.records.record import Record, TestRecord
from grader.store import Compressed
from grader.timing.baseline import time_all

MakeTask = Callable[[Upload, Compressed, frozenset[str], tuple[TestRecord, ...]], Task]
MakeRecheck = Callable[[Record, Compressed, Sequence[str]], Task]
MakePrediction = Callable[[Compressed], Task]
Work = Upload | Due | DueTime


def stage_task(upload: Upload, files: Compressed, judged_before: frozenset[str], ended: tuple[TestRecord, ...]) -> Task:
    """The task of a lane for a submission."""
    return StageTask(upload.student, files, judged_before, ended)


@dataclass(eq=False, kw_only=True)
class StageLane(Lane[Work]):
    """A lane for one stage."""

    stage: Stage
    make_task: MakeTask = stage_task
    recheck: MakeRecheck | None = None
    """Makes the task that rechecks a result while the queue is empty; None if this lane rechecks nothing."""
    aside: bool = False
    """Whether it only goes on with runs that another lane of its engine has had for long, so that others are served,
    and predicts times while nobody is."""
    predict: MakePrediction | None = None
    """Makes the task of a lane aside that predicts a submission's GPU time; None if it predicts none."""

    @property
    def upload(self) -> Upload | None:
        """The submission that it grades."""
        return self.job if isinstance(self.job, Upload) else None

    @property
    def rechecking(self) -> Due | None:
        """The result that it rechecks."""
        return self.job if isinstance(self.job, Due) else None


_JOBS = 8
"""The number of cluster jobs that run at once without --jobs."""


def lanes_for(rules: Assignment, engine: str, jobs: int | None, *, cluster: bool = False) -> list[StageLane]:
    """The judge's lanes. Without a GPU, these are `jobs` emulators for the samples, each with a lane aside for slow
    programs; nothing is timed. Each GPU has a lane for the samples and a lane that grades everything, as `grader grade`
    does. With engine `auto`, an emulator also runs samples, since the GPUs may be busy. On a `cluster`, `jobs` Slurm
    jobs run at a time. Raises UsageError for `jobs` with a GPU, and if Slurm cannot be used."""
    suite = suite_of(rules)
    files = TestcaseFiles.beside(suite)
    cases = {Stage.VERDICT: suite.select("public"), Stage.TIMING: suite.select("all")}

    def lane(name: str, engine: Engine, stage: Stage = Stage.VERDICT) -> StageLane:
        setup = Setup(rules, suite, files, cases[stage], engine)
        recheck = RecheckTask if stage is Stage.TIMING else None
        return StageLane(name, name, setup, longest_s=longest_s(setup), stage=stage, recheck=recheck)

    if cluster:
        elsewhere = engine_of_jobs(engine)
        slurm, _ = open_jobs(rules, shared_folder(rules) / "judge" / rules.name, None)
        stages = tuple(Stage) if elsewhere.measures_time else (Stage.VERDICT,)
        names = [f"slurm {number}" for number in range(jobs or min(_JOBS, slurm.rules.at_once))]
        lanes = [lane(name, elsewhere, stage) for name in names for stage in stages]
        for each in lanes:  # how long a job waits for a node is not known
            each.start, each.most_tries, each.longest_s, each.recheck = slurm.executor, slurm.most_tries, math.inf, None
        return lanes
    engines = select_engines(engine, rules.build.emulator_target)
    if not engines[0].measures_time:
        names = [f"emulator {number}" for number in range(jobs or max(1, cores() // 2))]
        one, asides = lane("", engines[0]), [(name, False) for name in names] + [(f"{n} aside", True) for n in names]
        return [replace(one, name=name, device=name, aside=aside) for name, aside in asides]
    if jobs is not None:
        raise UsageError("--jobs is for the emulator: a GPU always runs one submission at a time.")
    lanes = [lane(f"GPU {number}", gpu, stage) for number, gpu in enumerate(engines) for stage in Stage]
    if engine == "auto":
        one = lane("emulator", select_engine("emulator", rules.build.emulator_target))
        lanes += [one, replace(one, name="emulator aside", device="emulator aside", aside=True)]
    return lanes


def prepare(rules: Assignment, lanes: Sequence[StageLane], progress: Progress) -> None:
    """Make missing testcases, and time the sequential programs before submissions make the machine busy."""
    for setup in {lane.stage: lane.setup for lane in lanes}.values():
        ensure(setup.cases, setup.suite, setup.files, progress)
    timing = next((lane.setup for lane in lanes if lane.stage is Stage.TIMING), None)
    if timing is not None and not isinstance(timing.engine, Elsewhere):  # a cluster's job times its baseline itself
        with open_grading(timing) as grading:
            time_all(grading.assignment, grading.baseline, timing.cases, progress.stage)
