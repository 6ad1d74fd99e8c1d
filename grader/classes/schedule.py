"""Runs the jobs of a queue on lanes: one loop for a class and for the judge, on this machine and on Slurm.

Theory of operation. A lane does one job at a time, on an executor (`classes.executors`). Lanes of one device never run
at the same time, so that nothing disturbs a timed run. The queue is a subclass: it says which job a free lane gets next
and what becomes of a result. Nothing here knows what a job is.

If the grader or the machine fails in a job, the lane runs the grader's own control before anything else. The job is
then tried again, once, or more often if the control failed, too. Only a failing control lets the lane rest, longer each
time in a row: a submission cannot make a lane rest. A job that takes longer than all limits of its parts together
hangs: it is ended and has failed. A result that the queue cannot store, for example because the disk is full, waits in
memory, and no job is started until it is stored.
"""

from __future__ import annotations

import math
import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from grader.base.errors import GraderFault
from grader.base.remote import Report
from grader.classes.executors.executor import Died, Executor, Task, fault_of
from grader.classes.executors.local import LocalExecutor
from grader.grading.setup import Setup
from grader.sandbox.budget import WALL_PER_CPU

MAX_TRIES, MAX_TRIES_ON_BROKEN_MACHINES = 2, 5
"""The number of times that a job is run before a fault of the grader or the machine is final; more often if the
grader's own program did not run either. On Slurm, `cluster.retries` of the assignment says how often it runs again."""
REST_S, LONGEST_REST_S = 5.0, 60.0
_LAST_WORDS_S = 10.0
"""An executor that was told to end is killed after this long."""
_STEPS_S, _RUNS = 1800.0, 6

Job = TypeVar("Job")


def longest_s(setup: Setup) -> float:
    """The wall time that no job takes if all its parts keep their limits: three builds (the program, the one with
    checks, source rules), the search for a cause (`grading.closer_look`), and for each test six runs and its timing."""
    rules = setup.assignment
    run_s = max([rules.limits.emulator_wall_s, *(limit.seconds for limit in rules.limits.wall_s)])
    times_s = rules.timing.budget_s if setup.engine.measures_time else 0.0
    return _STEPS_S + 3 * WALL_PER_CPU * rules.build.limit_s + len(setup.cases) * (_RUNS * run_s + times_s)


@dataclass(frozen=True)
class Held(Generic[Job]):
    """The result of a job; `fault` is the fault of the grader or the machine in it, or ''. It is believed to be the
    machine's only if the control fails, too. `where` is the place that it ran on."""

    job: Job
    answer: object
    fault: str
    seconds: float
    where: str


@dataclass(eq=False)
class Lane(Generic[Job]):
    """A place for one job at a time. Lanes of one `device` never run at the same time."""

    name: str
    device: str
    setup: Setup
    start: Callable[[str, Setup], Executor] = field(default_factory=lambda: LocalExecutor)
    """Starts this lane's executor."""
    most_tries: int = MAX_TRIES
    longest_s: float = math.inf
    """The wall time after which a job has hung: see `longest_s`."""
    executor: Executor | None = None
    opening: bool = False
    """True while a new executor imports modules and opens the engine."""
    controlling: bool = False
    """True while the control runs."""
    ends_by: float | None = None
    """When the executor, which was told to end, is killed; None if it was not told."""
    job: Job | None = None
    held: Held[Job] | None = None
    """The result of a run that found a fault of the grader or the machine, until the control has run."""
    began: float = 0.0
    """On the monotonic clock, like `ends_by` and `rests_until`: the time of day may jump."""
    busy_s: float = 0.0
    finished: int = 0
    broken_in_a_row: int = 0
    """How often in a row the control failed, or no executor could be opened."""
    rests_until: float = -math.inf
    last_fault: str = ""

    @property
    def has_a_task(self) -> bool:
        """Whether a result of its executor is expected."""
        return self.opening or self.controlling or self.ends_by is not None or self.job is not None

    @property
    def occupied(self) -> bool:
        """Whether its device is in use, or will be as soon as its control can run."""
        return self.has_a_task or self.held is not None


class Schedule(Generic[Job]):
    """A queue's lanes, and the loop over them. Subclasses say which jobs there are, and take their results."""

    def __init__(self, lanes: Sequence[Lane[Job]], at_once: int) -> None:
        """`at_once`: the number of executors that may start at the same time; it takes a core for about a second."""
        self.lanes, self._start_at_once = lanes, at_once
        self._unsaved: deque[Callable[[], None]] = deque()
        """What is still to be stored, oldest first."""

    # ---- for the queue to define ----

    def next(self, lane: Lane[Job]) -> tuple[Job, Task] | None:
        """Take the next job for a free lane; None if there is none for it."""
        raise NotImplementedError

    def tries(self, job: Job) -> int:
        """How often a job has run by now."""
        raise NotImplementedError

    def again(self, lane: Lane[Job], held: Held[Job]) -> None:
        """Return a job to the queue after a fault of the grader or the machine."""
        raise NotImplementedError

    def finish(self, lane: Lane[Job], held: Held[Job]) -> None:
        """Take a job's final result. Repeated if it raises."""
        raise NotImplementedError

    def told(self, lane: Lane[Job], job: Job, said: object) -> None:
        """Take what a running job reports."""

    def wanted(self, lane: Lane[Job]) -> bool:
        """Whether a lane should have its executor ready."""
        return True

    def rests(self, lane: Lane[Job]) -> None:
        """Called when a lane begins to rest."""

    # ---- the loop ----

    def save(self) -> None:
        """Store what has not been stored yet."""
        while self._unsaved:
            self._unsaved[0]()
            self._unsaved.popleft()

    def give_out(self, lanes: Sequence[Lane[Job]]) -> None:
        """Give every free lane its next job; earlier lanes come first."""
        self._end_hung()
        for lane in lanes:
            if lane.has_a_task or lane.rests_until > time.monotonic():
                continue
            if any(other.occupied for other in self.lanes if other.device == lane.device and other is not lane):
                continue
            if lane.executor is None:
                opening = sum(other.opening for other in self.lanes)
                if opening < self._start_at_once and (lane.held is not None or self.wanted(lane)):
                    lane.executor, lane.opening = lane.start(lane.name, lane.setup), True
                    if lane.executor.done():  # one of a cluster opens at once
                        self._take(lane, lane.executor)
            if lane.executor is None or lane.opening:
                continue
            if lane.held is not None:
                lane.controlling = True
                lane.executor.control()
            elif (given := self.next(lane)) is not None:
                lane.job, task = given
                lane.began = time.monotonic()
                lane.executor.submit(task)

    def _end_hung(self) -> None:
        for lane in self.lanes:
            seconds = time.monotonic() - lane.began
            if lane.job is not None and seconds > lane.longest_s:
                note = (
                    f"Grading it was ended after {seconds / 60:.0f} minutes, which is longer than all its limits "
                    "together: please tell the staff, who can grade it again."
                )
                held = Held(lane.job, GraderFault(note), note, seconds, lane.name)
                self._unsaved.append(partial(self.finish, lane, held))
                self.end(lane)

    def end(self, lane: Lane[Job]) -> None:
        """Tell a lane's executor to end now. The lane is free as soon as it has ended."""
        assert lane.executor is not None
        lane.executor.cancel()
        lane.ends_by, lane.job = time.monotonic() + _LAST_WORDS_S, None

    def wait(self, wait_s: float, *bells: int) -> None:
        """Take the results that come within `wait_s`; return early when one of the descriptors `bells` is readable."""
        now = time.monotonic()
        for lane in self.lanes:
            if lane.executor is not None and lane.ends_by is not None and lane.ends_by < now:
                lane.executor.kill()
            if lane.rests_until > now:
                wait_s = min(wait_s, lane.rests_until - now)
        busy = [(lane, lane.executor) for lane in self.lanes if lane.executor is not None and lane.has_a_task]
        wait_s = min([wait_s, *(executor.poll_s for _, executor in busy)])
        descriptors = [number for _, executor in busy if (number := executor.fileno()) is not None]
        if wait_s == math.inf and not (bells or descriptors):
            return
        select.select([*bells, *descriptors], [], [], None if wait_s == math.inf else wait_s)
        for lane, executor in busy:
            if executor.done():
                self._take(lane, executor)

    def _take(self, lane: Lane[Job], executor: Executor) -> None:
        """Take a report, or the result of a lane's task."""
        answer = executor.result()
        if isinstance(answer, Report):
            if lane.job is not None:
                self.told(lane, lane.job, answer.value)
            return
        opening, lane.opening = lane.opening, False
        failed = str(answer) if isinstance(answer, Exception) else ""
        if lane.ends_by is not None or isinstance(answer, Died) or (opening and failed):
            executor.cancel()
            executor.close()
            lane.executor, was_told, lane.ends_by = None, lane.ends_by is not None, None
            if was_told:
                return
        if opening:
            self._count_broken(lane, failed)
        elif lane.controlling:
            lane.controlling, held, lane.held = False, lane.held, None
            self._count_broken(lane, str(answer))
            if held is not None:
                most = max(lane.most_tries, MAX_TRIES_ON_BROKEN_MACHINES) if str(answer) else lane.most_tries
                self._unsaved.append(partial(self._settle, lane, held, most))
        elif lane.job is not None:
            seconds = time.monotonic() - lane.began
            held, lane.job = Held(lane.job, answer, fault_of(answer), seconds, executor.where), None
            lane.busy_s += seconds
            lane.finished += 1
            if held.fault:
                lane.held = held
            else:
                self._unsaved.append(partial(self.finish, lane, held))

    def _settle(self, lane: Lane[Job], held: Held[Job], most: int) -> None:
        (self.again if self.tries(held.job) < most else self.finish)(lane, held)

    def _count_broken(self, lane: Lane[Job], why: str) -> None:
        """Let a lane rest because the grader's own program does not run on it, each time in a row for longer."""
        lane.broken_in_a_row = lane.broken_in_a_row + 1 if why else 0
        if why:
            lane.last_fault = why
            rest_s = min(LONGEST_REST_S, REST_S * 2.0 ** (lane.broken_in_a_row - 1))
            lane.rests_until = time.monotonic() + rest_s
            self.rests(lane)

    def close(self) -> None:
        """End everything that runs."""
        executors = [lane.executor for lane in self.lanes if lane.executor is not None]
        for executor in executors:
            executor.cancel()
        for executor in executors:
            executor.close()
