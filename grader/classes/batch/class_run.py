"""Grades a class: worker processes read, build and grade every submission, and each result is stored at once.

Theory of operation. This process is the coordinator. It runs no submitted program; it gives tasks to worker processes,
and only it writes to the store. There are two kinds of workers. Helpers read and build submissions on the CPU's cores.
A lane has one engine (one GPU) and runs one submission at a time, so that nothing disturbs the timed runs. For the same
reason, the sequential baselines are timed before anything else starts. Helpers work only a few submissions ahead of the
lanes, so memory does not grow with the class.

The store alone decides what is done: a submission whose content was judged under the same conditions (rules, testcases,
engine) is done. If only points have changed in the rules, they are computed from the stored record. So if the grader is
killed at any moment, the same command continues where it stopped.

After a fault of the machine, a submission is tried again once, after the others, and by every later run of the same
command. A lane with three such faults in a row on which the grader's own program fails too is closed, since a lost GPU
would otherwise spoil the rest of the class in seconds.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from grader.base.errors import GraderFault, MachineFault
from grader.base.progress import Progress
from grader.base.verdict import Fault
from grader.base.workers import cores
from grader.classes.batch.class_folder import Found
from grader.classes.batch.desk import Desk
from grader.classes.batch.policy import Policy
from grader.classes.batch.roster import Student
from grader.classes.batch.view import Tally, View, duration, first_line
from grader.classes.batch.work import BuildTask, GradeTask, Reading, ReadTask
from grader.classes.batch.worker_process import Died, Worker, first_done
from grader.classes.retries import FAULTS_TO_CLOSE_A_LANE, MAX_TRIES, first_fault, runs_again
from grader.course.testcase import Case
from grader.grading.pipeline import grade
from grader.grading.session import open_grading
from grader.grading.setup import Setup
from grader.programs import control
from grader.programs.build import Build, failed_build
from grader.programs.engine import Engine
from grader.programs.submission import Submission, unreadable
from grader.records.record import Record
from grader.sandbox import memory_share
from grader.store import Store


@dataclass(frozen=True)
class Outcome:
    """The outcome of grading a class. `faulted` are students whose submission could not be judged, with the reason;
    `busy` maps each lane to the share of the time in which it ran a submission."""

    tally: Tally
    faulted: tuple[tuple[str, str], ...]
    busy: dict[str, float]
    notes: tuple[str, ...]


@dataclass(eq=False)
class _Job:
    """A submission that is read, built and graded, in three steps."""

    found: Found
    submission: Submission | None = None
    number: int = 0
    cases: tuple[Case, ...] = ()
    """The cases that it is graded on."""
    built: Build | None = None
    tries: int = 0
    began: float = 0.0


@dataclass(eq=False)
class _Lane:
    worker: Worker
    where: str
    job: _Job | None = None
    began: float = 0.0
    busy_s: float = 0.0
    faults_in_a_row: int = 0
    closed: bool = False


@dataclass(eq=False)
class _Coordinator:
    desk: Desk
    setup: Setup
    engines: Sequence[Engine]
    view: View
    helpers: int
    last_fault: str = ""
    to_read: deque[_Job] = field(default_factory=deque)
    to_build: deque[_Job] = field(default_factory=deque)
    to_grade: deque[_Job] = field(default_factory=deque)
    to_record: deque[_Job] = field(default_factory=deque)
    """Failed builds. A helper makes their records, since that examines their sources."""

    def run(self, found: Sequence[Found]) -> Outcome:
        """Grade the submissions that the policy chooses from `found`."""
        with memory_share.announced(len(self.engines), self.helpers), open_grading(self.setup) as self.grading:
            return self._run(found)

    def _run(self, found: Sequence[Found]) -> Outcome:
        chosen = self.desk.open(found)
        if plan := self.desk.plan(chosen):
            self.view.say(plan)
        self.to_read.extend(_Job(one) for one in chosen)
        self._time_baselines()
        self.lanes = [self._lane(engine, number) for number, engine in enumerate(self.engines)]
        self.idle = [self._helper(number) for number in range(min(self.helpers, max(1, len(chosen))))]
        self.at_work: dict[Worker, _Job] = {}
        began = time.monotonic()
        try:
            while self._give_out():
                self._take(first_done([*self.at_work, *(lane.worker for lane in self.lanes if lane.job)]))
        finally:
            workers = [*self.idle, *self.at_work, *(lane.worker for lane in self.lanes)]
            for worker in workers:
                worker.end()
            for worker in workers:
                worker.join()
        elapsed = max(1e-9, time.monotonic() - began)
        busy = {lane.where: lane.busy_s / elapsed for lane in self.lanes}
        return Outcome(self.desk.tally, tuple(self.desk.faulted.items()), busy, self._notes(found, elapsed))

    def _time_baselines(self) -> None:
        """Time all baselines that the class needs, before other work makes the machine busy."""
        if self.grading.baseline is not None and self.to_read:
            self.view.say("Timing the sequential program on the testcases that this machine has not timed yet ...")
            for case in self.setup.cases:
                self.grading.baseline(case)

    def _lane(self, engine: Engine, number: int) -> _Lane:
        name = f"{'GPU' if engine.measures_time else engine.name} {number}"
        return _Lane(Worker(name, replace(self.setup, engine=engine)), name)

    def _helper(self, number: int) -> Worker:
        return Worker(f"helper {number}", self.setup)

    # ---- giving out work ----

    def _give_out(self) -> bool:
        """Give tasks to idle workers. Return whether any work is in progress or waiting."""
        for lane in self.lanes:
            if lane.job is None and not lane.closed and self.to_grade:
                self._start_lane(lane, self.to_grade.popleft())
        while self.idle:
            if self.to_record:
                job = self.to_record.popleft()
                self._start_helper(job, _grade_task(job))
            elif self.to_build:
                job = self.to_build.popleft()
                assert job.submission is not None
                self._start_helper(job, BuildTask(job.submission))
            elif self.to_read and self._ahead() < 2 * len(self.lanes) + self.helpers:
                job = self.to_read.popleft()
                job.began = time.monotonic()
                self._start_helper(job, ReadTask(job.found.student, job.found.path))
            else:
                break
        if all(lane.closed for lane in self.lanes):
            left = self.desk.tally.total - self.desk.tally.finished
            raise MachineFault(
                f"{FAULTS_TO_CLOSE_A_LANE} submissions in a row failed because of the machine on every "
                f"lane (engine {self.engines[0].name}), the last one with: {self.last_fault} Submissions left: "
                f"{left}. All results so far are stored, and the same command continues with the rest."
            )
        waiting = self.to_read or self.to_build or self.to_grade or self.to_record
        return bool(waiting or self.at_work or any(lane.job for lane in self.lanes))

    def _ahead(self) -> int:
        return len(self.to_grade) + len(self.to_build) + len(self.at_work)

    def _start_helper(self, job: _Job, task: ReadTask | BuildTask | GradeTask) -> None:
        worker = self.idle.pop()
        self.at_work[worker] = job
        worker.give(task)

    def _start_lane(self, lane: _Lane, job: _Job) -> None:
        lane.job, lane.began = job, time.monotonic()
        lane.worker.give(_grade_task(job))
        self.view.working(lane.where, job.found.student)

    # ---- taking answers ----

    def _take(self, worker: Worker) -> None:
        answer = worker.answer()
        living = worker
        if isinstance(answer, Died):
            worker.join()
            living = Worker(worker.name, worker.setup)
        lane = next((lane for lane in self.lanes if lane.worker is worker), None)
        if lane is not None:
            lane.worker = living
            self._take_from_lane(lane, answer)
            return
        job = self.at_work.pop(worker)
        self.idle.append(living)
        match answer:
            case Reading() as reading:
                self._read(job, reading)
            case Build() as built:
                self._built(job, built)
            case Record() as record:
                self._keep(job, record, "", time.monotonic() - job.began)
            case Exception() as fault:
                self._failed(job, fault)

    def _read(self, job: _Job, reading: Reading) -> None:
        job.submission = reading.submission
        job.number, job.cases = self.desk.take(job.found, job.submission)
        if reading.problem:
            job.built = failed_build(Fault.STUDENT, reading.problem)
        if job.cases:
            self._next(job)

    def _next(self, job: _Job) -> None:
        """Queue a job for its next step; its submission has been read already."""
        if job.built is None:
            self.to_build.append(job)
        elif job.built.ok:
            self.to_grade.append(job)
        else:  # nothing to run, so no lane is needed
            self.to_record.append(job)

    def _built(self, job: _Job, built: Build) -> None:
        job.built = built
        self._next(job)

    def _record_without_running(self, job: _Job, built: Build) -> None:
        """Record a fault of the machine or the grader, which takes no step of grading."""
        assert job.submission is not None
        record = grade(replace(self.grading, cases=job.cases), job.submission, Progress(), built)
        self._keep(job, record, "", time.monotonic() - job.began)

    def _take_from_lane(self, lane: _Lane, answer: object) -> None:
        job, seconds = lane.job, time.monotonic() - lane.began
        assert job is not None
        lane.job = None
        lane.busy_s += seconds
        self.view.working(lane.where, None)
        machine = isinstance(answer, MachineFault)
        if machine:
            self.last_fault = str(answer)
        if isinstance(answer, Record) and any(test.fault is Fault.MACHINE for test in answer.tests):
            machine, self.last_fault = True, first_fault(answer)
        lane.faults_in_a_row = lane.faults_in_a_row + 1 if machine else 0
        if lane.faults_in_a_row >= FAULTS_TO_CLOSE_A_LANE and not control.problem(lane.worker.setup.engine):
            lane.faults_in_a_row = 0  # the submissions', not the lane's
        elif lane.faults_in_a_row >= FAULTS_TO_CLOSE_A_LANE:
            lane.closed = True
            self.view.say(f"{lane.where} is closed after {lane.faults_in_a_row} faults of the machine in a row.")
        if isinstance(answer, Record):
            self._keep(job, answer, lane.where, seconds)
        elif isinstance(answer, Exception):
            self._failed(job, answer)

    def _failed(self, job: _Job, fault: Exception) -> None:
        """Handle a fault of the machine or the grader in a step: try the job again once, then record the fault."""
        job.tries += 1
        if job.tries < MAX_TRIES:
            self.view.say(f"{job.found.student}: {first_line(str(fault))} It will be tried again.")
            failed = job.built is not None and not job.built.ok
            (self.to_read if job.submission is None else self.to_record if failed else self.to_build).append(job)
            return
        if job.submission is None:
            job.submission = unreadable(job.found.student, job.found.path, str(fault))
            job.number, job.cases = self.desk.take(job.found, job.submission)
            if not job.cases:
                return
        whose = Fault.GRADER if isinstance(fault, GraderFault) else Fault.MACHINE
        self._record_without_running(job, failed_build(whose, str(fault)))

    def _keep(self, job: _Job, record: Record, where: str, seconds: float) -> None:
        record = self.desk.keep(job.number, record)
        if runs_again(record, job.tries):
            job.tries += 1
            self.view.say(f"{job.found.student}: {first_line(first_fault(record))} It will be tried again.")
            self.to_grade.append(job)
            return
        self.desk.finish(job.found.student, record, where, seconds)

    def _notes(self, found: Sequence[Found], elapsed: float) -> tuple[str, ...]:
        notes = []
        if self.desk.tally.graded:
            shares = ((lane.where, lane.busy_s / elapsed) for lane in self.lanes)
            notes += [f"{where} was busy for {share:.0%} of {duration(elapsed)}." for where, share in shares]
        return (*notes, *self.desk.notes(found))


def _grade_task(job: _Job) -> GradeTask:
    assert job.submission is not None and job.built is not None
    return GradeTask(job.submission, job.built, frozenset(case.name for case in job.cases))


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
    """Grade the submissions `found` into `store`, one at a time on each of `engines`; the testcases' files must exist.
    Raises MachineFault when the machine or the store fails for good; the results finished by then are in the store."""
    desk = Desk(setup, store, policy or Policy(), roster or {}, view or View())
    coordinator = _Coordinator(
        desk=desk, setup=setup, engines=engines, view=desk.view, helpers=helpers or max(1, cores() - len(engines))
    )
    return coordinator.run(found)
