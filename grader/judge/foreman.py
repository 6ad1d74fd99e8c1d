"""The foreman: one thread that takes submissions from the ledger and gives them to worker processes.

A lane is a worker process with one engine and one stage. Lanes of the same device (a GPU's two stages) take turns, so
that nothing disturbs a timed run; the lanes of the verdict stage come first. If a worker dies, or the grader or the
machine fails, the lane runs the grader's own control before anything else. Only if that fails, too, does the lane rest,
longer each time in a row: a submission cannot make it rest. A run that takes long goes on in a lane aside, where there
is one, while its lane serves others. The submission loses one of its tries. A stage that takes longer than all limits
of its parts together hangs: it is ended, and its submission fails. While the store
cannot be written, for example because the disk is full, finished results wait in memory, and no submission is started.

Workers never touch the store, and the kernel ends them when this thread ends (see `classes.batch.worker_process`). So
a killed judge leaves no half-stored result; `Ledger.recover` returns what was running to its queue. What a worker says
comes on the connection that it inherited, which no program that it runs has.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from statistics import fmean

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.names import printable_name
from grader.base.remote import Report
from grader.base.verdict import Fault
from grader.base.workers import cores
from grader.classes.batch.late import lateness
from grader.classes.batch.roster import Student
from grader.classes.batch.view import first_line
from grader.classes.batch.worker_process import Died, Worker
from grader.classes.retries import MAX_TRIES, MAX_TRIES_ON_BROKEN_MACHINES, first_fault, rest_s
from grader.grading.session import Grading
from grader.judge.lanes import Held, Lane
from grader.judge.ledger import Ledger, Stage, Step, Upload
from grader.judge.rechecks import Due, store_recheck
from grader.judge.stage_task import Ended, EndedTest, Judged, Stepped
from grader.judge.store_thread import StoreThread
from grader.records.record import RecheckRecord, Record
from grader.store import HandIn

_LAST_WORDS_S = 10.0
"""A worker that was told to end is killed after this long."""
_SLOW_S = 15.0
"""A run that has taken this long goes aside if others wait, where there is a lane for that."""
_DISK_RETRY_S = 3.0
_TICK_S = 5.0
_SAME_FILES = "These files were graded before: this is their result."
IDLE_S = 30.0
"""Rechecks begin after the queue has been empty for this long."""
log = logging.getLogger(__name__)

Event = dict[str, object]
NextDue = Callable[[set[object]], Due | None]


@dataclass(eq=False)
class Live:
    """The progress of a running submission: its current step in words, and the results of its finished tests.
    `began` is on the monotonic clock."""

    began: float
    stage: str = ""
    total: int | None = None
    tests: dict[str, str] = field(default_factory=dict)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.began

    @property
    def step(self) -> int:
        """0 while files are read, 1 while they are compiled, 2 while tests run."""
        return {"": 0, "reading": 0, "compiling": 1}.get(self.stage, 2)


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
        self._stopped = deque[str]()
        """The ids of submissions that were withdrawn while they ran."""
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

    def withdrawn(self, id: str) -> None:
        """End the run of a submission that the ledger has withdrawn, if it still runs."""
        self._stopped.append(id)
        self.ring()

    def free_after(self, stage: Stage, measured_s: Sequence[float], typical_s: float) -> list[float]:
        """The predicted seconds until each lane of a stage is free, without resting lanes. `measured_s` are the
        durations of recent runs."""
        now, found = time.monotonic(), []
        for lane in self.lanes:
            if lane.stage is stage and lane.rests_until <= now and not lane.aside:
                live = self.live.get(lane.upload.id) if lane.upload is not None else None
                left_s = _left_s(live, measured_s, typical_s) if live is not None else 0.0
                if live is not None and self._lane_aside(lane):
                    left_s = min(left_s, max(0.0, _SLOW_S - live.elapsed_s))
                found.append(left_s)
        return found

    def _lane_aside(self, lane: Lane) -> Lane | None:
        """A free lane to which a run of this lane can go."""
        same = (other for other in self.lanes if other.aside and other.setup is lane.setup)
        return next((other for other in same if not other.occupied and not other.starting), None)

    # ---- this thread ----

    def run(self) -> None:
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
            self._end_withdrawn()
            self._end_hung()
            self._give_out()
            self.problem = ""
        except (MachineFault, UsageError, GraderFault) as fault:  # the disk is full, or locked, or read-only
            self.problem, wait_s = str(fault), _DISK_RETRY_S
        now = time.monotonic()
        for lane in self.lanes:
            if lane.worker is not None and lane.ends_by is not None and lane.ends_by < now:
                lane.worker.kill()
            wait_s = min(wait_s, max(0.0, lane.rests_until - now) or wait_s)
        busy = {one.worker.fileno(): one for one in self.lanes if one.worker and one.has_a_task}
        ready = select.select([self._bell, *busy], [], [], wait_s)[0]
        if self._bell in ready:
            os.eventfd_read(self._bell)
        for descriptor in ready:
            if descriptor in busy:
                self._take(busy[descriptor])

    def _end_withdrawn(self) -> None:
        while self._stopped:
            id = self._stopped.popleft()
            for lane in self.lanes:
                if lane.upload is not None and lane.upload.id == id:
                    upload, seconds = lane.upload, time.monotonic() - lane.began
                    self._unsaved.append(partial(self._books.call, Ledger.count_stopped, upload, seconds))
                    self._end_worker(lane)
            self.live.pop(id, None)

    def _end_hung(self) -> None:
        for lane in self.lanes:
            seconds = time.monotonic() - lane.began
            if lane.upload is not None and seconds > lane.longest_s:
                note = (
                    f"Grading it was ended after {seconds / 60:.0f} minutes, which is longer than all its limits "
                    "together: please tell the staff, who can grade it again."
                )
                log.warning("%s: %s", lane.upload.id, note)
                self._unsaved.append(partial(self._fail, lane, lane.upload, seconds, note))
                self._end_worker(lane)

    def _end_worker(self, lane: Lane) -> None:
        """Tell a lane's worker to end now. The lane is free as soon as it has ended."""
        assert lane.worker is not None
        lane.worker.end()
        lane.ends_by, lane.upload, lane.rechecking = time.monotonic() + _LAST_WORDS_S, None, None

    def _give_out(self) -> None:
        """Start the next submission on every free lane, or rechecks while the queue is empty."""
        now = time.monotonic()
        if waiting := any(self._books.call(Ledger.places, stage) for stage in Stage):
            self._end_rechecks()
        for lane in self.lanes:
            slow = lane.upload is not None and not lane.aside and now - lane.began > _SLOW_S
            if slow and self._books.call(Ledger.places, lane.stage) and (other := self._lane_aside(lane)):
                other.worker, lane.worker = lane.worker, other.worker
                other.upload, other.began, lane.upload = lane.upload, lane.began, None
        for lane in sorted(self.lanes, key=lambda lane: lane.stage is Stage.TIMING):
            if (lane.aside and lane.held is None) or lane.has_a_task or lane.rests_until > now:
                continue
            if any(other.occupied for other in self.lanes if other.device == lane.device and other is not lane):
                continue
            if lane.worker is None:
                if sum(other.starting for other in self.lanes) < self._start_at_once:
                    lane.worker, lane.starting = Worker(lane.name, lane.setup), True
                    lane.worker.give(Opened())
                continue
            if lane.held is not None:
                lane.controlling = True
                lane.worker.give(lane.control)
                continue
            upload = self._books.call(Ledger.claim, lane.stage)
            if upload is None:
                continue
            conditions = lane.setup.conditions
            known = (
                frozenset[str]() if upload.again else self._books.call(Ledger.judged_before, upload.student, conditions)
            )
            ended = self._books.call(Ledger.ended_tests, upload, conditions)
            lane.upload, lane.began = upload, now
            self.live[upload.id] = Live(now, tests={test.name: test.verdict.words for test in ended})
            lane.worker.give(lane.make_task(upload, self._books.call(Ledger.files, upload), known, ended))
            self._tell(upload, lane.stage, Step.RUNNING)

        if waiting or any(lane.upload for lane in self.lanes) or self._books.call(Ledger.switch, "paused"):
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
        elif now - self._idle_since >= IDLE_S:
            self._begin_rechecks()

    def _begin_rechecks(self) -> None:
        for lane in self.lanes:
            ready = lane.recheck and lane.worker and not lane.has_a_task and lane.held is None
            due = self._next_due(self._rechecked) if ready else None
            if due is not None and lane.recheck and lane.worker:
                self._rechecked.add(due.key)
                lane.rechecking = due
                files = self._books.call(lambda it, of: it.store.compressed_sources(of), due.attempt.submission)
                lane.worker.give(lane.recheck(due.attempt.record, files, due.tests))

    def _end_rechecks(self) -> None:
        """Stop rechecks to free the devices for a submission; they are repeated later."""
        for lane in self.lanes:
            if lane.rechecking is not None:
                self._rechecked.discard(lane.rechecking.key)
                self._end_worker(lane)

    def _take(self, lane: Lane) -> None:
        """Take what a lane's worker sent: a report, or the answer to its task."""
        assert lane.worker is not None
        answer = lane.worker.answer()
        if isinstance(answer, Report):
            self._show(lane, answer.value)
            return
        opening, lane.starting = lane.starting, False
        if lane.ends_by is not None or isinstance(answer, Died) or (opening and not isinstance(answer, str)):
            lane.worker.end()
            lane.worker.join()
            lane.worker, was_told, lane.ends_by = None, lane.ends_by is not None, None
            if was_told:
                return
        if opening:
            self._count_broken(lane, "" if isinstance(answer, str) else str(answer))
        elif lane.controlling:
            lane.controlling = False
            self._take_control(lane, answer)
        elif lane.rechecking is not None:
            attempt, lane.rechecking = lane.rechecking.attempt, None
            if isinstance(answer, RecheckRecord):
                self._unsaved.append(lambda: self._books.call(store_recheck, attempt, answer))
                self._unsaved.append(self._changed)
            else:
                log.warning("%s could not be rechecked: %s", attempt.student.id, answer)
        elif lane.upload is not None:
            upload, lane.upload, seconds = lane.upload, None, time.monotonic() - lane.began
            lane.busy_s += seconds
            lane.finished += 1
            if fault := _fault_of(answer):
                lane.held = Held(upload, answer, fault, seconds)
            else:
                self._unsaved.append(partial(self._settle, lane, Held(upload, answer, "", seconds), MAX_TRIES))

    def _show(self, lane: Lane, said: object) -> None:
        """Show a report on the page of the lane's submission."""
        live = self.live.get(lane.upload.id) if lane.upload is not None else None
        if live is None or lane.upload is None:
            return
        if isinstance(said, EndedTest):
            keep = partial(self._books.call, Ledger.keep_test, lane.upload, lane.setup.conditions, said.test)
            self._unsaved.append(keep)
            return
        if isinstance(said, Ended):
            # Another thread may be rendering the old dictionary, so it must not change.
            live.tests = {**live.tests, said.test: said.words}
        elif isinstance(said, Stepped):
            live.stage, live.total = said.stage, said.total or live.total
        self._publish({"kind": "test", "id": lane.upload.id, "student": lane.upload.student})

    def _take_control(self, lane: Lane, answer: object) -> None:
        """Settle what was held until the control had run."""
        why = answer if isinstance(answer, str) else str(answer)
        self._count_broken(lane, why)
        held, lane.held = lane.held, None
        if held is not None:
            most = MAX_TRIES_ON_BROKEN_MACHINES if why else MAX_TRIES
            self._unsaved.append(partial(self._settle, lane, held, most))

    def _count_broken(self, lane: Lane, why: str) -> None:
        """Let a lane rest because the grader's own program does not run on it, each time in a row for longer."""
        lane.broken_in_a_row = lane.broken_in_a_row + 1 if why else 0
        if why:
            lane.last_fault = why
            lane.rests_until = time.monotonic() + rest_s(lane.broken_in_a_row)

    def _settle(self, lane: Lane, held: Held, most_tries: int) -> None:
        """Store the result of a stage. It is called again if the store could not be written."""
        upload, answer, fault, seconds = held.upload, held.answer, held.fault, held.seconds
        if fault and upload.tries < most_tries:
            self._books.call(Ledger.requeue, upload, f"{first_line(fault)} It will be tried again.")
            self._tell(upload, lane.stage, Step.WAITING)
        elif isinstance(answer, Judged):
            record = answer.record
            failed = record is not None and record.infrastructure_failed
            note = first_line(fault) if failed else "" if record is not None else _SAME_FILES
            self._books.call(
                Ledger.finish,
                upload,
                self._hand_in(upload, answer),
                None if record is None else (lane.setup.conditions, record),
                seconds=seconds,
                state=Step.FAILED if failed else Step.DONE,
                then_timing=not failed and lane.stage is Stage.VERDICT and self.has_timing,
                note=note,
            )
            self._changed()
            self._tell(upload, lane.stage, Step.DONE)
        else:
            self._fail(lane, upload, seconds, first_line(fault or str(answer)))
        self.live.pop(upload.id, None)

    def _fail(self, lane: Lane, upload: Upload, seconds: float, note: str) -> None:
        self._books.call(Ledger.finish, upload, None, None, seconds=seconds, state=Step.FAILED, note=note)
        self._tell(upload, lane.stage, Step.FAILED)
        self.live.pop(upload.id, None)

    def late(self, student: str, received: float) -> tuple[int, float]:
        """The number of days by which a submission received at this time is late, and the penalty."""
        known = self._roster.get(student) or Student(student)
        return lateness(datetime.fromtimestamp(received, UTC), self._rules.deadline, known)

    def _hand_in(self, upload: Upload, judged: Judged) -> HandIn:
        days, penalty = self.late(upload.student, upload.received)
        return HandIn(
            assignment=self._rules.name,
            student=upload.student,
            sha256=judged.sha256,
            path=printable_name(judged.path),
            handed_in=datetime.fromtimestamp(upload.received, UTC),
            days_late=days,
            penalty=penalty,
            compressed=judged.files,
        )

    def _tell(self, upload: Upload, stage: Stage, state: Step) -> None:
        self._publish(
            {"kind": "upload", "id": upload.id, "student": upload.student, "stage": str(stage), "state": str(state)}
        )


def _fault_of(answer: object) -> str:
    """The fault of the grader or the machine in a worker's answer; '' if there is none."""
    if isinstance(answer, Judged):
        record: Record | None = answer.record
        failed = record is not None and any(test.fault is not Fault.STUDENT for test in record.tests if test.fault)
        return first_fault(record) if failed and record is not None else ""
    if isinstance(answer, MachineFault | GraderFault):
        return str(answer)
    return f"A worker answered with {type(answer).__name__}; this is a bug of the grader."


def _left_s(live: Live, measured_s: Sequence[float], typical_s: float) -> float:
    """The predicted seconds until a running submission is done: by the rate of its tests or, before the first has
    ended, by the recent runs that took longer than it has taken. If none did, it is expected to take as long again."""
    elapsed_s, done = live.elapsed_s, len(live.tests)
    if done and live.total and live.total > done:
        return elapsed_s / done * (live.total - done)
    if not measured_s and elapsed_s < typical_s:
        return typical_s - elapsed_s
    longer = [measured for measured in measured_s if measured > elapsed_s]
    return fmean(longer) - elapsed_s if longer else elapsed_s
