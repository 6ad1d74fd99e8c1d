"""Grades a class: every submission is read, built and graded elsewhere, and each result is stored at once.

Theory of operation. This process is the coordinator. It reads submissions and runs none; it gives tasks to lanes (see
`classes.schedule`), and only it writes to the store. Helpers are lanes that build on the CPU's cores. The other lanes
have an engine (one GPU) each and run one submission at a time, so that nothing disturbs the timed runs. For the same
reason, the sequential baselines are timed before anything else starts. Submissions are read and built only a few ahead
of the lanes, so memory does not grow with the class. On Slurm, there is a lane for each submission, whose job also
builds; there are no helpers, so all jobs start at once and are one array.

The store alone is the queue and decides what is done: a submission whose content was judged under the same conditions
(rules, testcases, engine) is done. If only points have changed in the rules, they are computed from the stored record.
So if the grader is killed at any moment, the same command continues where it stopped.

After a fault of the machine, a submission is tried again, after the others, and by every later run of the same
command. A lane on which the grader's own program fails three times in a row is closed, since a lost GPU would otherwise
spoil the rest of the class.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from grader.base.attempted import Failed, attempted
from grader.base.errors import GraderFault, MachineFault
from grader.base.paths import shown
from grader.base.progress import Progress
from grader.base.verdict import Fault
from grader.base.workers import cores
from grader.classes.batch.class_folder import Found
from grader.classes.batch.desk import Desk
from grader.classes.batch.policy import Policy
from grader.classes.batch.roster import Student
from grader.classes.batch.view import Tally, View, duration, first_line
from grader.classes.batch.work import BuildTask, GradeTask, Reading, ReadTask
from grader.classes.executors.executor import Task
from grader.classes.executors.slurm import SlurmJobs, open_jobs, shared_folder
from grader.classes.schedule import Held, Lane, Schedule, longest_s
from grader.course.testcase import Case
from grader.grading.pipeline import grade
from grader.grading.session import Grading, open_grading
from grader.grading.setup import Setup
from grader.programs.build import Build, failed_build
from grader.programs.engine import Engine
from grader.programs.submission import Submission, unreadable
from grader.records.record import Record
from grader.sandbox import memory_share
from grader.store import Store
from grader.timing.baseline import time_all

FAULTS_TO_CLOSE_A_LANE = 3


@dataclass(frozen=True)
class Outcome:
    """The outcome of grading a class. `faulted` are students whose submission could not be judged, with the reason."""

    tally: Tally
    faulted: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


@dataclass(eq=False)
class _Job:
    """A submission that is read, built and graded, in three steps; `cases` are those that it is graded on."""

    found: Found
    submission: Submission
    number: int = 0
    cases: tuple[Case, ...] = ()
    built: Build | None = None
    tries: int = 1


class _Helper(Lane[_Job]):
    """A lane that builds."""


class _ClassRun(Schedule[_Job]):
    """One run over a class: `lanes` grade, `helpers` prepare. `on_slurm`: the jobs, if the lanes are on a cluster."""

    def __init__(
        self, desk: Desk, lanes: Sequence[Lane[_Job]], helpers: Sequence[_Helper], on_slurm: SlurmJobs | None
    ) -> None:
        super().__init__([*lanes, *helpers], at_once=len(lanes) + len(helpers))
        self._desk, self._view, self._engines, self._helpers = desk, desk.view, lanes, helpers
        self._on_slurm = on_slurm
        self._to_read, self._to_grade = deque[_Job](), deque[_Job]()
        self._nodes = Counter[str]()

    def run(self, chosen: Iterable[Found], grading: Grading) -> list[str]:
        """Grade the submissions, and return notes on the lanes."""
        self._grading = grading
        self._to_read.extend(_Job(one, unreadable(one.student, one.path, "")) for one in chosen)
        began = time.monotonic()
        try:
            while self._left():
                self.give_out(self.lanes)
                self.wait(math.inf)
                self.save()
        finally:
            self.close()
        elapsed = max(1e-9, time.monotonic() - began)
        if self._on_slurm is not None:
            self._on_slurm.files.jobs.unlink(missing_ok=True)
            return [f"{host}: {count} graded in {duration(elapsed)}." for host, count in sorted(self._nodes.items())]
        shares = ((lane.name, lane.busy_s / elapsed) for lane in self._engines if self._desk.tally.graded)
        return [f"{name} was busy for {share:.0%} of {duration(elapsed)}." for name, share in shares]

    def _left(self) -> bool:
        """Whether any work is in progress or waiting. Raises MachineFault if it cannot go on."""
        for lanes in (self._engines, self._helpers):
            if lanes and all(lane.rests_until == math.inf for lane in lanes):
                tally, last = self._desk.tally, lanes[-1]
                raise MachineFault(
                    f"The grader's own program failed {FAULTS_TO_CLOSE_A_LANE} times in a row on every lane (engine "
                    f"{last.setup.engine.name}), the last time with: {last.last_fault} Submissions left: "
                    f"{tally.total - tally.finished}. All results so far are stored, and the same command continues "
                    "with the rest."
                )
        return bool(self._to_read or self._to_grade) or any(lane.occupied for lane in self.lanes)

    # ---- giving out work ----

    def wanted(self, lane: Lane[_Job]) -> bool:
        waiting = self._to_grade or (self._to_read and (self._on_slurm is not None or isinstance(lane, _Helper)))
        return bool(waiting) or any(helper.job is not None for helper in self._helpers)

    def next(self, lane: Lane[_Job]) -> tuple[_Job, Task] | None:
        helps, job = isinstance(lane, _Helper), None
        if self._on_slurm is not None or (helps and len(self._to_grade) < 2 * len(self._engines) + len(self._helpers)):
            job = self._read()
        if job is not None and helps:
            return job, BuildTask(job.submission)
        if job is None and self._to_grade and not helps:
            job = self._to_grade.popleft()
        if job is None:
            return None
        self._show(lane, job.found.name)
        return job, GradeTask(job.submission, job.built, frozenset(case.name for case in job.cases))

    def _read(self) -> _Job | None:
        """Read and register submissions until one has to be built. One that could not be read needs only a record."""
        while self._to_read:
            job = self._to_read.popleft()
            reading = attempted(ReadTask(job.found.student, job.found.path), self._grading)
            whose = reading.whose if isinstance(reading, Failed) else Fault.STUDENT
            if isinstance(reading, Reading):
                job.submission = reading.submission
            job.number, job.cases = self._desk.take(job.found, job.submission)
            job.built = failed_build(whose, reading.problem) if reading.problem else None
            if job.cases and job.built is None:
                return job
            if job.cases:
                self._to_grade.append(job)
        return None

    def _show(self, lane: Lane[_Job], student: str | None) -> None:
        if self._on_slurm is None and not isinstance(lane, _Helper):
            self._view.working(lane.name, student)

    # ---- taking results ----

    def tries(self, job: _Job) -> int:
        return job.tries

    def again(self, lane: Lane[_Job], held: Held[_Job]) -> None:
        job = held.job
        self._show(lane, None)
        self._view.say(f"{job.found.name}: {first_line(held.fault)} It will be tried again.")
        job.tries += 1
        self._to_read.append(job)

    def finish(self, lane: Lane[_Job], held: Held[_Job]) -> None:
        job, answer = held.job, held.answer
        self._show(lane, None)
        if isinstance(answer, Build):
            job.built = answer
            self._to_grade.append(job)
        elif isinstance(answer, Record):
            self._nodes[answer.machine.host] += 1
            where = lane.name if self._on_slurm is None else f"{held.where}, {answer.engine.device}"
            self._keep(job, answer, where, held.seconds)
        else:  # a fault of the machine or the grader: its record takes no step of grading
            failed = failed_build(Fault.GRADER if isinstance(answer, GraderFault) else Fault.MACHINE, held.fault)
            record = grade(replace(self._grading, cases=job.cases), job.submission, Progress(), failed)
            self._keep(job, record, "", held.seconds)

    def _keep(self, job: _Job, record: Record, where: str, seconds: float) -> None:
        self._desk.finish(job.found, self._desk.keep(job.number, record), where, seconds)

    def rests(self, lane: Lane[_Job]) -> None:
        if lane.broken_in_a_row >= FAULTS_TO_CLOSE_A_LANE:
            lane.rests_until = math.inf
            self._view.say(f"{lane.name} is closed after {lane.broken_in_a_row} faults of the machine in a row.")


def grade_class(
    setup: Setup,
    engines: Sequence[Engine],
    found: Sequence[Found],
    store: Store,
    *,
    policy: Policy | None = None,
    roster: dict[str, Student] | None = None,
    view: View | None = None,
    helpers: int | None = None,
) -> Outcome:
    """Grade the submissions `found` into `store`, one at a time on each of `engines`; if there are none, in Slurm jobs,
    with the engine of `setup`. The testcases' files must exist, where jobs can read them.

    Raises MachineFault when the machine, Slurm or the store fails for good; the results finished by then are in the
    store. Raises UsageError when Slurm cannot be used."""
    desk = Desk(setup, store, policy or Policy(), roster or {}, view or View())
    jobs, names = None, list[str]()
    if not engines:
        jobs, said = open_jobs(setup.assignment, shared_folder(setup.assignment), store)
        for sentence in said:
            desk.view.say(sentence)
    count = helpers or max(1, cores() - len(engines))
    with memory_share.announced(max(1, len(engines)), count), open_grading(setup) as grading:
        chosen = desk.open(found)
        if plan := desk.plan(chosen):
            desk.view.say(plan)
        if jobs is not None:
            desk.view.say(f"The files of the Slurm jobs are in {shown(jobs.files.folder)}.")
            places = [f"slurm {number}" for number in range(len(chosen))]
            lanes = [Lane[_Job](name, name, setup, jobs.executor, jobs.most_tries) for name in places]
        else:
            if chosen:  # before other work makes the machine busy
                time_all(setup.assignment, grading.baseline, setup.cases, desk.view.say)
            names = [f"helper {number}" for number in range(min(count, len(chosen)))]
            places = [f"{'GPU' if engine.measures_time else engine.name} {n}" for n, engine in enumerate(engines)]
            own = [replace(setup, engine=engine) for engine in engines]
            lanes = [Lane(name, name, one, longest_s=longest_s(one)) for name, one in zip(places, own, strict=True)]
        run = _ClassRun(desk, lanes, [_Helper(name, name, setup) for name in names], jobs)
        notes = run.run(chosen, grading)
    return Outcome(desk.tally, tuple(desk.faulted.items()), (*notes, *desk.notes(found)))
