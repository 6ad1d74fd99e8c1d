"""The foreman: one thread that takes submissions from the ledger and gives them to worker processes.

A lane is a worker process with one engine and one stage. Lanes of the same device (a GPU's two stages) take turns, so
that nothing disturbs a timed run; the lanes of the verdict stage come first. If a worker dies, or the grader or the
machine fails, the submission loses one of its tries, and a dead worker is replaced. A lane with three such faults in a
row rests for a minute. While the store cannot be written, for example because the disk is full, finished results wait
in memory, and no submission is started.

Workers never touch the store, and the kernel ends them when this thread ends (see `classes.batch.worker_process`). So
a killed judge leaves no half-stored result; `Ledger.recover` returns what was running to its queue.
"""

from __future__ import annotations

import json
import logging
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.names import printable_name
from grader.base.verdict import Fault
from grader.base.workers import cores
from grader.classes.batch.desk import first_fault
from grader.classes.batch.late import lateness
from grader.classes.batch.roster import Student
from grader.classes.batch.view import first_line
from grader.classes.batch.worker_process import Died, Worker
from grader.grading.pipeline import Grading
from grader.judge.lanes import Lane
from grader.judge.ledger import MAX_TRIES, Ledger, Stage, Step, Upload
from grader.judge.rechecks import Due, store_recheck
from grader.judge.stage_task import Judged
from grader.judge.store_thread import StoreThread
from grader.programs.submission import Submission
from grader.records.record import RecheckRecord, Record
from grader.sandbox.scratch import scratch_folder
from grader.store import HandIn

_FAULTS_TO_REST = 3
_REST_S = 60.0
_DISK_RETRY_S = 3.0
_TICK_S = 5.0
_LONGEST_REPORT = 4096
_SAME_FILES = "These files were graded before: this is their result."
IDLE_S = 30.0
"""Rechecks begin after the queue has been empty for this long."""
log = logging.getLogger(__name__)

Event = dict[str, object]
NextDue = Callable[[set[object]], Due | None]


@dataclass(eq=False)
class Live:
    """The progress of a running submission: its current step in words, and the results of its finished tests."""

    stage: str = ""
    total: int | None = None
    tests: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Opened:
    """The first task of every worker. Its answer, the engine's name, shows that the engine is open."""

    def __call__(self, grading: Grading) -> str:
        return grading.engine.name


class Foreman(threading.Thread):
    """Runs until `stop`. It calls `publish` with every change, and `changed` after every new record. `next_due` gets
    the keys of the rechecks that were tried already, and returns the next result to recheck."""

    def __init__(
        self,
        books: StoreThread,
        lanes: Sequence[Lane],
        roster: dict[str, Student],
        publish: Callable[[Event], None],
        changed: Callable[[], None],
        next_due: NextDue = lambda tried: None,
    ) -> None:
        super().__init__(name="foreman", daemon=True)
        self._books, self.lanes, self._roster = books, lanes, roster
        self._publish, self._changed, self._next_due = publish, changed, next_due
        self._rechecked: set[object] = set()
        """The keys of the rechecks that were given to a lane. Each is tried only once while the judge runs."""
        self._idle_since: float | None = None
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._ending = False
        self._unsaved: deque[Callable[[], None]] = deque()
        self.live: dict[str, Live] = {}
        self.problem = ""
        """The reason why nothing is being started, for the staff; '' if all is well."""
        self.has_timing = any(lane.stage is Stage.TIMING for lane in lanes)
        self._rules = lanes[0].setup.assignment
        self._start_at_once = max(1, cores() // 2)
        """The number of workers that may start at the same time. Starting one occupies a core for about a second, and
        the web server needs cores, too."""

    # ---- for other threads ----

    def ring(self) -> None:
        """Wake the foreman: there may be something to start."""
        os.eventfd_write(self._bell, 1)

    def stop(self) -> None:
        """End after the current step; the next start puts running submissions back into their queue."""
        self._ending = True
        self.ring()

    def free_after(self, stage: Stage, typical_s: float) -> list[float]:
        """The seconds until each lane of a stage is free, if every run takes `typical_s`; without resting lanes."""
        now, found = time.monotonic(), []
        for lane in self.lanes:
            if lane.stage is stage and lane.rests_until <= now:
                busy = lane.upload is not None
                found.append(max(0.0, typical_s - (now - lane.began)) if busy else 0.0)
        return found

    # ---- this thread ----

    def run(self) -> None:
        with (
            scratch_folder("judge-reports") as folder,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as self._reports,
        ):
            self._address = str(folder / "reports")
            self._reports.bind(self._address)
            self._reports.setblocking(False)
            try:
                while not self._ending:
                    self._once()
            except Exception:
                log.exception("The foreman ended")
                self.problem = "A bug of the grader ended the judge's foreman (see the log): restart the judge."
            finally:
                for lane in self.lanes:
                    if lane.worker is not None:
                        lane.worker.end()
                for lane in self.lanes:
                    if lane.worker is not None:
                        lane.worker.join()

    def _once(self) -> None:
        wait_s = _TICK_S
        try:
            while self._unsaved:
                self._unsaved[0]()
                self._unsaved.popleft()
            self._give_out()
            self.problem = ""
        except (MachineFault, UsageError, GraderFault) as fault:  # the disk is full, or locked, or read-only
            self.problem, wait_s = str(fault), _DISK_RETRY_S
        busy = {lane.worker.fileno(): lane for lane in self.lanes if lane.worker and lane.has_a_task}
        watched = [self._bell, self._reports.fileno(), *busy]
        ready = select.select(watched, [], [], wait_s)[0]
        if self._bell in ready:
            os.eventfd_read(self._bell)
        if self._reports.fileno() in ready:
            self._take_reports()
        for descriptor in ready:
            if lane := busy.get(descriptor):
                self._take(lane)

    def _give_out(self) -> None:
        """Start the next submission on every free lane, or rechecks while the queue is empty."""
        now = time.monotonic()
        if waiting := any(self._books.call(Ledger.places, stage) for stage in Stage):
            self._end_rechecks()
        for lane in sorted(self.lanes, key=lambda lane: lane.stage is Stage.TIMING):
            devices = {other.device for other in self.lanes if other.upload is not None}
            if lane.device in devices or lane.rests_until > now:
                continue
            if lane.worker is None and sum(other.starting for other in self.lanes) < self._start_at_once:
                lane.worker, lane.starting = Worker(lane.name, lane.setup), True
                lane.worker.give(Opened())
            if lane.worker is None or lane.starting:
                continue
            upload = self._books.call(Ledger.claim, lane.stage)
            if upload is None:
                continue
            conditions = lane.setup.conditions
            known = (
                frozenset[str]() if upload.again else self._books.call(Ledger.judged_before, upload.student, conditions)
            )
            lane.upload, lane.began = upload, now
            self.live[upload.id] = Live()
            lane.worker.give(
                lane.make_task(upload, self._books.call(Ledger.files, upload.number), self._address, known)
            )
            self._tell(upload, lane.stage, Step.RUNNING)

        if waiting or any(lane.upload for lane in self.lanes) or self._books.call(Ledger.switch, "paused"):
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
        elif now - self._idle_since >= IDLE_S:
            self._begin_rechecks()

    def _begin_rechecks(self) -> None:
        for lane in self.lanes:
            ready = lane.recheck and lane.worker and not lane.starting and not lane.rechecking
            due = self._next_due(self._rechecked) if ready else None
            if due is not None and lane.recheck and lane.worker:
                self._rechecked.add(due.key)
                lane.rechecking = due
                files = self._books.call(lambda ledger, of: ledger.store.sources(of), due.attempt.submission)
                lane.worker.give(lane.recheck(due.attempt.record, files, due.tests))

    def _end_rechecks(self) -> None:
        """Stop rechecks to free the devices for a submission; they are repeated later."""
        for lane in self.lanes:
            if lane.rechecking is not None and lane.worker is not None:
                self._rechecked.discard(lane.rechecking.key)
                lane.worker.end()
                lane.worker.join()
                lane.worker = lane.rechecking = None

    def _take_reports(self) -> None:
        while True:
            try:
                content = json.loads(self._reports.recv(_LONGEST_REPORT))
            except BlockingIOError:
                return
            live = self.live.get(content["upload"])
            if live is None:
                continue
            if "test" in content:
                # Another thread may be rendering the old dictionary, so it must not change.
                live.tests = {**live.tests, content["test"]: content["ended"]}
            else:
                live.stage, live.total = content["stage"], content["total"]
            lane = next((one for one in self.lanes if one.upload and one.upload.id == content["upload"]), None)
            if lane is not None and lane.upload is not None:
                self._publish({"kind": "test", "id": lane.upload.id, "student": lane.upload.student})

    def _take(self, lane: Lane) -> None:
        upload, worker = lane.upload, lane.worker
        assert worker is not None
        answer = worker.answer()
        if isinstance(answer, Died) or (lane.starting and not isinstance(answer, str)):
            worker.end()
            worker.join()
            lane.worker = None
        if lane.starting:
            lane.starting = False
            self._count_fault(lane, "" if isinstance(answer, str) else str(answer))
            return
        if lane.rechecking is not None:
            attempt, lane.rechecking = lane.rechecking.attempt, None
            if isinstance(answer, RecheckRecord):
                self._unsaved.append(lambda: self._books.call(store_recheck, attempt, answer))
                self._unsaved.append(self._changed)
            else:
                log.warning("%s could not be rechecked: %s", attempt.student.id, answer)
            return
        assert upload is not None
        lane.upload, seconds = None, time.monotonic() - lane.began
        lane.busy_s += seconds
        lane.finished += 1
        fault = _machine_fault(answer)
        self._count_fault(lane, fault)
        self._unsaved.append(lambda: self._settle(lane, upload, answer, fault, seconds))

    def _count_fault(self, lane: Lane, fault: str) -> None:
        """Count a lane's faults in a row, and pause the lane after three. A success resets the count."""
        lane.faults_in_a_row = lane.faults_in_a_row + 1 if fault else 0
        lane.last_fault = fault or lane.last_fault
        if lane.faults_in_a_row >= _FAULTS_TO_REST:
            lane.rests_until, lane.faults_in_a_row = time.monotonic() + _REST_S, 0

    def _settle(self, lane: Lane, upload: Upload, answer: object, fault: str, seconds: float) -> None:
        """Store the result of a stage. It is called again if the store could not be written."""
        if fault and upload.tries < MAX_TRIES:
            self._books.call(Ledger.requeue, upload, f"{first_line(fault)} It will be tried again.")
            self._tell(upload, lane.stage, Step.WAITING)
        elif isinstance(answer, Judged):
            record = answer.record
            failed = record is not None and record.infrastructure_failed
            note = first_line(fault) if failed else "" if record is not None else _SAME_FILES
            self._books.call(
                Ledger.finish,
                upload,
                self._hand_in(upload, answer.submission),
                None if record is None else (lane.setup.conditions, record),
                seconds=seconds,
                state=Step.FAILED if failed else Step.DONE,
                then_timing=not failed and lane.stage is Stage.VERDICT and self.has_timing,
                note=note,
            )
            self._changed()
            self._tell(upload, lane.stage, Step.DONE)
        else:
            note = first_line(fault or str(answer))
            self._books.call(Ledger.finish, upload, None, None, seconds=seconds, state=Step.FAILED, note=note)
            self._tell(upload, lane.stage, Step.FAILED)
        self.live.pop(upload.id, None)

    def late(self, student: str, received: float) -> tuple[int, float]:
        """The number of days by which a submission received at this time is late, and the penalty."""
        known = self._roster.get(student) or Student(student)
        return lateness(datetime.fromtimestamp(received, UTC), self._rules.deadline, known)

    def _hand_in(self, upload: Upload, submission: Submission) -> HandIn:
        days, penalty = self.late(upload.student, upload.received)
        return HandIn(
            assignment=self._rules.name,
            student=upload.student,
            sha256=submission.sha256,
            path=printable_name(str(submission.path)),
            handed_in=datetime.fromtimestamp(upload.received, UTC),
            days_late=days,
            penalty=penalty,
            files=submission.files,
        )

    def _tell(self, upload: Upload, stage: Stage, state: Step) -> None:
        self._publish(
            {"kind": "upload", "id": upload.id, "student": upload.student, "stage": str(stage), "state": str(state)}
        )


def _machine_fault(answer: object) -> str:
    """The fault of the grader or the machine in a worker's answer; '' if there is none."""
    if isinstance(answer, Judged):
        record: Record | None = answer.record
        failed = record is not None and any(test.fault is not Fault.STUDENT for test in record.tests if test.fault)
        return first_fault(record) if failed and record is not None else ""
    if isinstance(answer, MachineFault | GraderFault):
        return str(answer)
    return f"A worker answered with {type(answer).__name__}; this is a bug of the grader."
