"""Grades a class: every hand-in through read, build and grade, spread over processes, each result stored at once.

Theory of operation. One coordinator, this process, runs no program of anybody's: it gives tasks to worker processes
and is the one that writes to the store. Helpers read and build on the CPU's cores; each lane is one engine (one GPU)
and runs one submission at a time, so that nothing disturbs what is timed. Sequential baselines are timed before
anything else starts, for the same reason. Helpers work ahead of the lanes by a few submissions only, so memory does
not grow with the class.

What is done is decided by the store alone: a hand-in whose content has a record under the same conditions (rules,
testcases, engine) is done. So the grader may be killed at any moment, and the same command goes on where it stopped.
Before anything is built the hand-in is claimed in the store; what another living grader has claimed is waited for.

A fault of the machine is tried again once, after the others; a lane that brings three such faults in a row is closed,
since a lost GPU would otherwise spoil the rest of the class within seconds.
"""

from __future__ import annotations

import queue
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from grader.batch.crew import Done, Worker
from grader.batch.handins import Found
from grader.batch.late import lateness
from grader.batch.policy import Policy
from grader.batch.roster import Student
from grader.batch.setup import Setup
from grader.batch.view import Quiet, Tally, View, duration, first_line
from grader.batch.work import BuildTask, GradeTask, Reading, ReadTask, failed_build, unreadable
from grader.build import Build
from grader.engine import Engine
from grader.errors import GraderFault, MachineFault
from grader.grading import grade_built
from grader.progress import Silent
from grader.record import Record
from grader.store import HandIn, State, Store
from grader.submission import Submission
from grader.verdict import Fault
from grader.workers import cores

_TRIES = 2
_FAULTS_TO_CLOSE_A_LANE = 3
_POLL_S = 0.5


@dataclass(frozen=True)
class Outcome:
    """What a run came to. `faulted` are students whose hand-in could not be judged, with the reason; `busy` is, by
    lane, the share of the run's time in which it ran a submission."""

    tally: Tally
    faulted: tuple[tuple[str, str], ...]
    busy: dict[str, float]
    notes: tuple[str, ...]


@dataclass(eq=False)
class _Job:
    """A hand-in on its way."""

    found: Found
    submission: Submission | None = None
    number: int = 0
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
    setup: Setup
    engines: Sequence[Engine]
    store: Store
    policy: Policy
    roster: dict[str, Student]
    view: View
    helpers: int
    tally: Tally = field(default_factory=Tally)
    faulted: dict[str, str] = field(default_factory=dict)
    last_fault: str = ""
    to_read: deque[_Job] = field(default_factory=deque)
    to_build: deque[_Job] = field(default_factory=deque)
    to_grade: deque[_Job] = field(default_factory=deque)
    elsewhere: deque[_Job] = field(default_factory=deque)
    answers: queue.Queue[Done] = field(default_factory=queue.Queue)

    def run(self, found: Sequence[Found]) -> Outcome:
        """Grade what the policy chooses of `found`."""
        with self.setup.grading() as self.grading:
            return self._run(found)

    def _run(self, found: Sequence[Found]) -> Outcome:
        chosen = self.policy.chosen(found)
        self.tally.total = len(chosen)
        self.to_read.extend(_Job(one) for one in chosen)
        self.conditions = self.setup.conditions
        self._time_baselines()
        self.lanes = [self._lane(engine, number) for number, engine in enumerate(self.engines)]
        self.idle = [self._helper(number) for number in range(min(self.helpers, max(1, len(chosen))))]
        self.at_work: dict[Worker, _Job] = {}
        began = time.monotonic()
        try:
            while self._give_out():
                try:
                    self._take(self.answers.get(timeout=_POLL_S if self.elsewhere else None))
                except queue.Empty:
                    self._look_elsewhere()
        finally:
            workers = [*self.idle, *self.at_work, *(lane.worker for lane in self.lanes)]
            for worker in workers:
                worker.end()
            for worker in workers:
                worker.join()
        elapsed = max(1e-9, time.monotonic() - began)
        busy = {lane.where: lane.busy_s / elapsed for lane in self.lanes}
        return Outcome(self.tally, tuple(self.faulted.items()), busy, self._notes(found, elapsed))

    def _time_baselines(self) -> None:
        """All that will be asked for, before anything else makes the machine busy."""
        if self.grading.baseline is not None and self.to_read:
            for case in self.setup.cases:
                self.grading.baseline(case)

    def _lane(self, engine: Engine, number: int) -> _Lane:
        name = f"lane {number}"
        return _Lane(Worker(name, replace(self.setup, engine=engine), self.answers), f"{name}, {engine.device}")

    def _helper(self, number: int) -> Worker:
        return Worker(f"helper {number}", self.setup, self.answers)

    # ---- giving out work ----

    def _give_out(self) -> bool:
        """Give every idle worker something to do; whether anything is going on or waiting."""
        for lane in self.lanes:
            if lane.job is None and not lane.closed and self.to_grade:
                self._start_lane(lane, self.to_grade.popleft())
        while self.idle:
            if self.to_build:
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
            left = self.tally.total - self.tally.finished
            raise MachineFault(
                f"{_FAULTS_TO_CLOSE_A_LANE} submissions in a row failed through the machine on every "
                f"{self.engines[0].name} here, the last with: {self.last_fault} {left} are "
                "left; all results so far are stored, and the same command goes on with the rest."
            )
        return bool(
            self.to_read
            or self.to_build
            or self.to_grade
            or self.elsewhere
            or self.at_work
            or any(lane.job for lane in self.lanes)
        )

    def _ahead(self) -> int:
        return len(self.to_grade) + len(self.to_build) + len(self.at_work)

    def _start_helper(self, job: _Job, task: ReadTask | BuildTask) -> None:
        worker = self.idle.pop()
        self.at_work[worker] = job
        worker.give(task)

    def _start_lane(self, lane: _Lane, job: _Job) -> None:
        assert job.submission is not None and job.built is not None
        lane.job, lane.began = job, time.monotonic()
        lane.worker.give(GradeTask(job.submission, job.built))
        self.view.working(lane.where, job.found.student)

    # ---- taking answers ----

    def _take(self, done: Done) -> None:
        lane = next((lane for lane in self.lanes if lane.worker is done.worker), None)
        if lane is not None:
            self._take_from_lane(lane, done)
            return
        job = self.at_work.pop(done.worker)
        if done.died:
            done.worker.join()
        self.idle.append(Worker(done.worker.name, self.setup, self.answers) if done.died else done.worker)
        match done.answer:
            case Reading() as reading:
                self._read(job, reading)
            case Build() as built:
                self._built(job, built)
            case Exception() as fault:
                self._failed(job, fault)

    def _read(self, job: _Job, reading: Reading) -> None:
        job.submission = reading.submission
        job.number = self._register(job)
        if reading.problem:
            job.built = failed_build(Fault.STUDENT, reading.problem)
        if self._claimed(job):
            self._next(job)

    def _register(self, job: _Job) -> int:
        """Enter the attempt and how late it is into the store."""
        assert job.submission is not None
        student = self.roster.get(job.found.student) or Student(job.found.student)
        handed_in = student.handed_in or job.found.handed_in
        days, penalty = lateness(handed_in, self.setup.assignment.deadline, student)
        return self.store.add_submission(
            HandIn(
                assignment=self.setup.assignment.name,
                student=job.found.student,
                sha256=job.submission.sha256,
                path=str(job.found.path),
                handed_in=handed_in,
                days_late=days,
                penalty=penalty,
                files=job.submission.files,
            )
        )

    def _claimed(self, job: _Job) -> bool:
        """Whether this grader is to grade it: not another one, and not done already. The claim comes first: what
        another grader finished in between is then seen as done."""
        if not self.store.claim(job.number, self.conditions):
            self.elsewhere.append(job)
            return False
        if self.policy.wants(self.store.state(job.number, self.conditions)):
            return True
        self.store.release(job.number, self.conditions)
        self.tally.kept += 1
        self.view.kept(self.tally)
        return False

    def _look_elsewhere(self) -> None:
        for _ in range(len(self.elsewhere)):
            job = self.elsewhere.popleft()
            if self.store.state(job.number, self.conditions) is not State.UNGRADED:
                self.tally.kept += 1
                self.view.kept(self.tally)
            elif self._claimed(job):
                self._next(job)

    def _next(self, job: _Job) -> None:
        """Where a claimed job goes from here."""
        if job.built is None:
            self.to_build.append(job)
        elif job.built.ok:
            self.to_grade.append(job)
        else:  # nothing to run: no lane is needed to say so
            self._record_without_running(job, job.built)

    def _built(self, job: _Job, built: Build) -> None:
        job.built = built
        self._next(job)

    def _record_without_running(self, job: _Job, built: Build) -> None:
        assert job.submission is not None
        record = grade_built(self.grading, job.submission, built, Silent())
        self._keep(job, record, "the builders", time.monotonic() - job.began)

    def _take_from_lane(self, lane: _Lane, done: Done) -> None:
        job, seconds = lane.job, time.monotonic() - lane.began
        assert job is not None
        lane.job = None
        lane.busy_s += seconds
        self.view.working(lane.where, None)
        if done.died:
            lane.worker.join()
            lane.worker = Worker(lane.worker.name, lane.worker.setup, self.answers)
        machine = isinstance(done.answer, MachineFault)
        if machine:
            self.last_fault = str(done.answer)
        if isinstance(done.answer, Record) and any(test.fault is Fault.MACHINE for test in done.answer.tests):
            machine, self.last_fault = True, _first_fault(done.answer)
        lane.faults_in_a_row = lane.faults_in_a_row + 1 if machine else 0
        if lane.faults_in_a_row >= _FAULTS_TO_CLOSE_A_LANE:
            lane.closed = True
            self.view.say(f"{lane.where} is closed: {lane.faults_in_a_row} faults of the machine in a row.")
        if isinstance(done.answer, Record):
            self._keep(job, done.answer, lane.where, seconds)
        elif isinstance(done.answer, Exception):
            self._failed(job, done.answer)

    def _failed(self, job: _Job, fault: Exception) -> None:
        """The machine or the grader stood in the way of a whole step."""
        job.tries += 1
        if job.tries < _TRIES:
            self.view.say(f"{job.found.student}: {first_line(str(fault))} It is tried again.")
            (self.to_read if job.submission is None else self.to_build).append(job)
            return
        if job.submission is None:
            job.submission = unreadable(job.found.student, job.found.path, str(fault))
            job.number = self._register(job)
            if not self._claimed(job):
                return
        whose = Fault.GRADER if isinstance(fault, GraderFault) else Fault.MACHINE
        self._record_without_running(job, failed_build(whose, str(fault)))

    def _keep(self, job: _Job, record: Record, where: str, seconds: float) -> None:
        try:
            self.store.add_record(job.number, self.conditions, record)
        except MachineFault as fault:
            raise MachineFault(f"{fault} {_rescue(record)}") from fault
        again = record.infrastructure_failed and job.tries + 1 < _TRIES and record.build.ok
        if again and self.store.claim(job.number, self.conditions):
            job.tries += 1
            self.view.say(f"{job.found.student}: {first_line(_first_fault(record))} It is tried again.")
            self.to_grade.append(job)
            return
        self.tally.count(record)
        if record.infrastructure_failed:
            self.faulted[job.found.student] = _first_fault(record)
        else:
            self.faulted.pop(job.found.student, None)
        self.view.finished(self.tally, record, where, seconds)

    # ---- afterwards ----

    def _notes(self, found: Sequence[Found], elapsed: float) -> tuple[str, ...]:
        notes = []
        if self.tally.graded:
            shares = ((lane.where, lane.busy_s / elapsed) for lane in self.lanes)
            notes += [f"{where} was busy for {share:.0%} of {duration(elapsed)}." for where, share in shares]
        handed_in = [one.student for one in found]
        several = sorted({student for student in handed_in if handed_in.count(student) > 1})
        if several:
            listed = ", ".join(several[:10]) + (" and others" if len(several) > 10 else "")
            notes.append(
                f"{len(several)} students have several hand-ins ({listed}): they are attempts, and the "
                f"{self.policy.which} counts."
            )
        if self.roster:
            silent = sorted(set(self.roster) - set(handed_in))
            strange = sorted(set(handed_in) - set(self.roster))
            if silent:
                notes.append(f"{len(silent)} of the roster handed in nothing: {', '.join(silent)}.")
            if strange:
                notes.append(f"{len(strange)} hand-ins are of nobody on the roster: {', '.join(strange)}.")
        return tuple(notes)


def _first_fault(record: Record) -> str:
    return next(test.reason for test in record.tests if test.fault in (Fault.GRADER, Fault.MACHINE))


def _rescue(record: Record) -> str:
    """A place for a record that the store has no room for."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="grader-rescued-", suffix=".json", delete=False) as file:
            file.write(record.model_dump_json(by_alias=True))
        return f"The result in hand is in {file.name}: `grader store import` takes it."
    except OSError:
        return f"The result of {record.submission.id} could not be kept and will be made again."


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
    """Grade the hand-ins `found` into `store`, one at a time on each of `engines`; the testcases' files must be
    there. Raises MachineFault when the machine or the store fails for good; all that was finished is stored then."""
    coordinator = _Coordinator(
        setup=setup,
        engines=engines,
        store=store,
        policy=policy or Policy(),
        roster=roster or {},
        view=view or Quiet(),
        helpers=helpers or max(1, cores() - len(engines)),
    )
    for student in (roster or {}).values():
        store.add_student(student.id, name=student.name, nickname=student.nickname, section=student.section)
    return coordinator.run(found)
