"""The judge's lanes. A lane grades one submission at a time, with one engine and for one stage. A GPU has two lanes,
for verdicts and for times, which take turns; an emulator has one, for verdicts. A cluster's lane waits for jobs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from grader.base.errors import MachineFault, UsageError
from grader.base.progress import Progress
from grader.base.workers import cores
from grader.classes.batch.work import Task
from grader.classes.batch.worker_process import Worker
from grader.classes.cluster import job_states
from grader.classes.cluster.cluster_engine import Elsewhere, engine_of_jobs
from grader.classes.cluster.slurm import slurm_executor
from grader.course.assignment import Assignment, Cluster
from grader.course.catalogue import TestcaseFiles
from grader.course.coherence import suite_of
from grader.grading.session import Grading, open_grading
from grader.grading.setup import Setup
from grader.judge.ledger import Stage, Upload
from grader.judge.rechecks import Due, RecheckTask
from grader.judge.stage_task import SlurmStageTask, StageTask
from grader.programs import control
from grader.programs.engine import Engine, select_engine, select_engines
from grader.programs.oracle import ensure
from grader.records.record import Record, TestRecord
from grader.sandbox.budget import WALL_PER_CPU
from grader.store import Compressed

MakeTask = Callable[[Upload, Compressed, frozenset[str], tuple[TestRecord, ...]], Task]
MakeRecheck = Callable[[Record, Compressed, Sequence[str]], Task]


def stage_task(upload: Upload, files: Compressed, judged_before: frozenset[str], ended: tuple[TestRecord, ...]) -> Task:
    """The task of a lane on this machine for a submission."""
    return StageTask(upload.student, files, judged_before, ended)


@dataclass(frozen=True)
class Control:
    """A task that asks whether the grader's own program can be built and run on this lane. Its answer says why not, or
    is '' if it can."""

    def __call__(self, grading: Grading) -> str:
        return control.problem(grading.engine)


@dataclass(frozen=True)
class SlurmControl:
    """The control of a cluster's lane. A job has run the control program on its node; here Slurm itself must answer."""

    def __call__(self, grading: Grading) -> str:
        try:
            job_states.ask()
        except MachineFault as fault:
            return str(fault)
        return ""


@dataclass(frozen=True)
class Held:
    """The answer of a worker to a submission's stage: its fault is believed to be the machine's only if the control
    fails, too."""

    upload: Upload
    answer: object
    fault: str
    seconds: float


@dataclass(eq=False)
class Lane:
    """One engine for one stage. Lanes of one `device` never run at the same time."""

    name: str
    device: str
    stage: Stage
    setup: Setup
    make_task: MakeTask = stage_task
    control: Task = Control()
    recheck: MakeRecheck | None = None
    """Makes the task that rechecks a result while the queue is empty; None if this lane rechecks nothing."""
    worker: Worker | None = None
    aside: bool = False
    """Whether it only goes on with runs that another lane of its engine has had for long, so that others are served."""
    starting: bool = False
    """True while a new worker imports modules and opens the engine."""
    upload: Upload | None = None
    rechecking: Due | None = None
    held: Held | None = None
    """The result of a run that found a fault of the grader or the machine, until the control has run."""
    controlling: bool = False
    """True while the control runs."""
    longest_s: float = math.inf
    """The wall time after which a stage has hung: see `longest_s`."""
    ends_by: float | None = None
    """When the worker, which was told to end, is killed; None if it was not told."""
    began: float = 0.0
    """On the monotonic clock, like `ends_by` and `rests_until`: the time of day may jump."""
    busy_s: float = 0.0
    finished: int = 0
    broken_in_a_row: int = 0
    """How often in a row the control failed, or no worker could be opened."""
    rests_until: float = -math.inf
    last_fault: str = ""

    @property
    def has_a_task(self) -> bool:
        """Whether an answer of its worker is expected."""
        doing = self.upload is not None or self.rechecking is not None
        return self.starting or self.controlling or self.ends_by is not None or doing

    @property
    def occupied(self) -> bool:
        """Whether its device is in use, or will be as soon as its control can run."""
        return self.has_a_task or self.held is not None


_STEPS_S, _RUNS = 1800.0, 6


def longest_s(setup: Setup) -> float:
    """The wall time that no stage takes if all its parts keep their limits: three builds (the program, the one with
    checks, source rules), the search for a cause (`grading.closer_look`), and for each test six runs and its timing."""
    rules = setup.assignment
    run_s = max([rules.limits.emulator_wall_s, *(limit.seconds for limit in rules.limits.wall_s)])
    times_s = rules.timing.budget_s if setup.engine.measures_time else 0.0
    return _STEPS_S + 3 * WALL_PER_CPU * rules.build.limit_s + len(setup.cases) * (_RUNS * run_s + times_s)


_JOBS = 8
"""The number of cluster jobs that run at once without --jobs. A process on this machine waits for each job."""


def lanes_for(rules: Assignment, engine: str, jobs: int | None) -> list[Lane]:
    """The lanes on this machine. Without a GPU, these are `jobs` emulators for the samples, each with a lane aside for
    slow programs; nothing is timed. Each GPU
    has a lane for the samples and a lane that grades everything, as `grader grade` does. With engine `auto`, an
    emulator also runs samples, since the GPUs may be busy. Raises UsageError for `jobs` with a GPU."""
    suite = suite_of(rules)
    files = TestcaseFiles.beside(suite)
    samples, all_cases = suite.select("public"), suite.select("all")
    engines = select_engines(engine, rules.build.emulator_target)

    def setup(chosen: Engine, timed: bool) -> Setup:
        return Setup(rules, suite, files, all_cases if timed else samples, chosen)

    if not engines[0].measures_time:
        count = jobs or max(1, cores() // 2)
        names = [f"emulator {number}" for number in range(count)]
        both = setup(engines[0], False)
        most_s = longest_s(both)
        lanes = [Lane(name, name, Stage.VERDICT, both, longest_s=most_s) for name in names]
        return lanes + [
            Lane(name, name, Stage.VERDICT, both, aside=True, longest_s=most_s)
            for name in (f"{name} aside" for name in names)
        ]
    if jobs is not None:
        raise UsageError("--jobs is for the emulator: a GPU always runs one submission at a time.")
    lanes = []
    for number, gpu in enumerate(engines):
        name = f"GPU {number}"
        first, all_tests = setup(gpu, False), setup(gpu, True)
        lanes.append(Lane(name, name, Stage.VERDICT, first, longest_s=longest_s(first)))
        lanes.append(Lane(name, name, Stage.TIMING, all_tests, recheck=RecheckTask, longest_s=longest_s(all_tests)))
    if engine == "auto":
        emulator = select_engine("emulator", rules.build.emulator_target)
        both = setup(emulator, False)
        lanes.append(Lane("emulator", "emulator", Stage.VERDICT, both, longest_s=longest_s(both)))
    return lanes


def cluster_lanes(rules: Assignment, engine: str, jobs: int | None) -> list[Lane]:
    """Lanes that grade in Slurm jobs, `jobs` of them at a time; the workers on this machine only wait."""
    slurm_executor()  # without Slurm, this fails now rather than with the first submission
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
            lanes.append(Lane(f"slurm {number}", f"slurm {number}", stage, setup, task, SlurmControl()))
    return lanes


def _slurm_task(
    folder: str, upload: Upload, files: Compressed, judged_before: frozenset[str], ended: tuple[TestRecord, ...]
) -> Task:
    return SlurmStageTask(upload.student, files, judged_before, ended, folder)


def prepare(rules: Assignment, lanes: Sequence[Lane], progress: Progress) -> None:
    """Make missing testcases, and time the sequential programs before submissions make the machine busy."""
    for setup in {lane.stage: lane.setup for lane in lanes}.values():
        ensure(setup.cases, setup.suite, setup.files, progress)
    timing = next((lane.setup for lane in lanes if lane.stage is Stage.TIMING), None)
    if timing is not None and not isinstance(timing.engine, Elsewhere):  # a cluster's job times its baseline itself
        with open_grading(timing) as grading:
            if grading.baseline is not None:
                progress.stage("Timing the sequential program on the testcases that this machine has not timed yet")
                for case in timing.cases:
                    grading.baseline(case)
