"""The foreman: one thread that takes submissions from the ledger and gives them to lanes (see `classes.schedule`).

The lanes of the verdict stage come first. A run that takes long goes on in a lane aside, where there is one, while its
lane serves others. While the queue is empty, lanes of the timing stage recheck results (see `rechecks`). While the
store cannot be written, for example because the disk is full, no submission is started.

Workers never touch the store, and the kernel ends them when this thread ends (see `classes.executors.local`). So a
killed judge leaves no half-stored result; `Ledger.recover` returns what was running to its queue. What a worker says
comes on the connection that it inherited, which no program that it runs has.
"""

from __future__ import annotations

import contextlib
import logging
import os
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
from grader.base.verdict import Verdict
from grader.base.workers import cores
from grader.classes.batch.late import lateness
from grader.classes.batch.roster import Student
from grader.classes.batch.view import first_line
from grader.classes.executors.elsewhere import Elsewhere
from grader.classes.executors.executor import Task
from grader.classes.schedule import MAX_TRIES_ON_BROKEN_MACHINES, Held, Lane, Schedule
from grader.judge.lanes import StageLane, Work
from grader.judge.ledger import Ledger, Stage, Step, Upload
from grader.judge.predictions import DueTime, Prediction, keep
from grader.judge.rechecks import Due, store_recheck
from grader.judge.stage_task import Ended, EndedTest, Judged, Stepped
from grader.judge.store_thread import StoreThread
from grader.records.record import RecheckRecord
from grader.store import HandIn

_SLOW_S = 15.0
"""A run that has taken this long goes aside if others wait, where there is a lane for that."""
_DISK_RETRY_S = 3.0
_TICK_S = 5.0
_SAME_FILES = "These files were graded before: this is their result."
_UNPREDICTED = 200
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


class Foreman(Schedule[Work], threading.Thread):
    """Runs until `stop`. It calls `publish` with every change, and `changed` after every new record. `next_due` gets
    the keys of the rechecks that were tried already, and returns the next result to recheck."""

    lanes: Sequence[StageLane]

    def __init__(
        self,
        books: StoreThread,
        lanes: Sequence[StageLane],
        roster: dict[str, Student],
        publish: Callable[[Event], None],
        changed: Callable[[], None],
        next_due: NextDue = lambda tried: None,
    ) -> None:
        threading.Thread.__init__(self, name="foreman", daemon=True)
        Schedule.__init__(self, lanes, at_once=max(1, cores() // 2))  # the web server needs cores, too
        self._books, self._roster = books, roster
        self._publish, self._changed, self._next_due = publish, changed, next_due
        self._rechecked: set[object] = set()
        """The keys of the rechecks that were given to a lane. Each is tried only once while the judge runs."""
        self._idle_since: float | None = None
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._ending = False
        self._stopped = deque[str]()
        """The ids of submissions that were withdrawn while they ran."""
        self._unpredicted = deque[str](maxlen=_UNPREDICTED)
        """The ids of submissions that passed their samples and have no predicted time, the newest last."""
        self._quiet = False
        """Whether no submission waits for a verdict or gets one."""
        self.live: dict[str, Live] = {}
        self.problem = ""
        """The reason why nothing is being started, for the staff; '' if all is well."""
        self.has_timing = any(lane.stage is Stage.TIMING for lane in lanes)
        self._rules = lanes[0].setup.assignment

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
        for lane in self._of(stage):
            if lane.rests_until <= now and not lane.aside:
                live = self.live.get(lane.upload.id) if lane.upload is not None else None
                left_s = _left_s(live, measured_s, typical_s) if live is not None else 0.0
                if live is not None and self._lane_aside(lane):
                    left_s = min(left_s, max(0.0, _SLOW_S - live.elapsed_s))
                found.append(left_s)
        return found

    def _lane_aside(self, lane: StageLane) -> StageLane | None:
        """A free lane to which a run of this lane can go."""
        same = (other for other in self.lanes if other.aside and other.setup is lane.setup)
        return next((other for other in same if not other.occupied), None)

    # ---- this thread ----

    def run(self) -> None:
        try:
            while not self._ending:
                self._once()
        except Exception:
            log.exception("The foreman ended")
            self.problem = "A bug of the grader ended the judge's foreman (see the log): restart the judge."
        finally:
            self.close()

    def _once(self) -> None:
        wait_s, problem = _TICK_S, ""
        try:
            self.save()
            self._end_withdrawn()
            self._look_at_the_queue()
            self.give_out([*self._of(Stage.VERDICT), *self._of(Stage.TIMING)])
        except (MachineFault, UsageError, GraderFault) as fault:  # the disk is full, or locked, or read-only
            self.problem, problem, wait_s = str(fault), str(fault), _DISK_RETRY_S
        try:
            self.wait(wait_s, self._bell)
        except MachineFault as fault:  # Slurm
            problem = str(fault)
        self.problem = problem
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)

    def _of(self, stage: Stage) -> list[StageLane]:
        return [lane for lane in self.lanes if lane.stage is stage]

    def _end_withdrawn(self) -> None:
        while self._stopped:
            id = self._stopped.popleft()
            for lane in self.lanes:
                if lane.upload is not None and lane.upload.id == id:
                    upload, seconds = lane.upload, time.monotonic() - lane.began
                    self._unsaved.append(partial(self._books.call, Ledger.count_stopped, upload, seconds))
                    self.end(lane)
            self.live.pop(id, None)

    def _look_at_the_queue(self) -> None:
        """Free lanes for those that wait: end rechecks, and move slow runs aside."""
        now = time.monotonic()
        waiting = {stage for stage in Stage if self._books.call(Ledger.places, stage)}
        self._quiet = Stage.VERDICT not in waiting and not any(lane.upload for lane in self._of(Stage.VERDICT))
        for lane in self.lanes:
            if waiting and lane.rechecking is not None:
                self._rechecked.discard(lane.rechecking.key)
                self.end(lane)
            if not self._quiet and isinstance(lane.job, DueTime):
                self._unpredicted.append(lane.job.upload.id)
                self.end(lane)
            slow = lane.upload is not None and not lane.aside and now - lane.began > _SLOW_S
            if slow and lane.stage in waiting and (other := self._lane_aside(lane)):
                other.executor, lane.executor = lane.executor, other.executor
                other.job, other.began, lane.job = lane.job, lane.began, None
        if waiting or any(lane.upload for lane in self.lanes) or self._books.call(Ledger.switch, "paused"):
            self._idle_since = None
        else:
            self._idle_since = self._idle_since or now

    # ---- the queue ----

    def wanted(self, lane: Lane[Work]) -> bool:
        return isinstance(lane, StageLane) and (not lane.aside or self._predicts(lane))

    def next(self, lane: Lane[Work]) -> tuple[Work, Task] | None:
        assert isinstance(lane, StageLane)
        if lane.aside:
            return self._next_prediction(lane)
        upload = self._books.call(Ledger.claim, lane.stage)
        if upload is None:
            return self._next_recheck(lane)
        conditions = lane.setup.conditions
        known = frozenset[str]() if upload.again else self._books.call(Ledger.judged_before, upload.student, conditions)
        ended = self._books.call(Ledger.ended_tests, upload, conditions)
        live = Live(time.monotonic(), tests={test.name: test.verdict.words for test in ended})
        if isinstance(lane.setup.engine, Elsewhere):
            live.stage = "waiting for a node of the cluster"
        self.live[upload.id] = live
        self._tell(upload, lane.stage, Step.RUNNING)
        return upload, lane.make_task(upload, self._books.call(Ledger.files, upload), known, ended)

    def _predicts(self, lane: StageLane) -> bool:
        return self._quiet and bool(self._unpredicted) and lane.predict is not None

    def _next_prediction(self, lane: StageLane) -> tuple[Work, Task] | None:
        if lane.predict is None or not self._predicts(lane):
            return None
        upload = self._books.call(Ledger.upload, self._unpredicted.pop())
        return (DueTime(upload), lane.predict(self._books.call(Ledger.files, upload))) if upload is not None else None

    def _next_recheck(self, lane: StageLane) -> tuple[Work, Task] | None:
        idle = self._idle_since is not None and time.monotonic() - self._idle_since >= IDLE_S
        due = self._next_due(self._rechecked) if idle and lane.recheck is not None else None
        if due is None or lane.recheck is None:
            return None
        self._rechecked.add(due.key)
        files = self._books.call(lambda it, of: it.store.compressed_sources(of), due.attempt.submission)
        return due, lane.recheck(due.attempt.record, files, due.tests)

    def told(self, lane: Lane[Work], job: Work, said: object) -> None:
        """Show a report on the page of the lane's submission."""
        live = self.live.get(job.id) if isinstance(job, Upload) else None
        if live is None or not isinstance(job, Upload):
            return
        if isinstance(said, EndedTest):
            self._unsaved.append(partial(self._books.call, Ledger.keep_test, job, lane.setup.conditions, said.test))
            return
        if isinstance(said, Ended):
            # Another thread may be rendering the old dictionary, so it must not change.
            live.tests = {**live.tests, said.test: said.words}
        elif isinstance(said, Stepped):
            live.stage, live.total = said.stage, said.total or live.total
        self._publish({"kind": "test", "id": job.id, "student": job.student})

    def tries(self, job: Work) -> int:
        return job.tries if isinstance(job, Upload) else MAX_TRIES_ON_BROKEN_MACHINES

    def again(self, lane: Lane[Work], held: Held[Work]) -> None:
        upload = held.job
        assert isinstance(upload, Upload), "a recheck has no tries left"
        self._books.call(Ledger.requeue, upload, f"{first_line(held.fault)} It will be tried again.")
        self._tell(upload, upload.stage, Step.WAITING)
        self.live.pop(upload.id, None)

    def finish(self, lane: Lane[Work], held: Held[Work]) -> None:
        job, answer = held.job, held.answer
        if isinstance(job, Upload):
            self._finish_upload(lane, held, job)
        elif isinstance(job, DueTime):
            if isinstance(answer, Prediction):
                self._books.call(keep, job.upload, answer)
                self._publish({"kind": "test", "id": job.upload.id, "student": job.upload.student})
        elif isinstance(answer, RecheckRecord):
            self._books.call(store_recheck, job.attempt, answer)
            self._changed()
        else:
            log.warning("%s could not be rechecked: %s", job.attempt.student.id, held.fault)

    def _finish_upload(self, lane: Lane[Work], held: Held[Work], upload: Upload) -> None:
        judged = held.answer if isinstance(held.answer, Judged) else None
        record = judged.record if judged is not None else None
        failed, known = bool(held.fault), judged is not None and record is None
        self._books.call(
            Ledger.finish,
            upload,
            self._hand_in(upload, judged) if judged is not None else None,
            None if record is None else (lane.setup.conditions, record),
            seconds=held.seconds,
            state=Step.FAILED if failed else Step.DONE,
            then_timing=not failed and upload.stage is Stage.VERDICT and self.has_timing,
            note=_SAME_FILES if known else first_line(held.fault),
        )
        right = record is not None and all(test.verdict is Verdict.PASSED for test in record.tests)
        if right and upload.stage is Stage.VERDICT:
            self._unpredicted.append(upload.id)
        self._changed()
        self._tell(upload, upload.stage, Step.FAILED if judged is None else Step.DONE)
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
