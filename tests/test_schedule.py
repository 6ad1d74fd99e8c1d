"""The loop over lanes, with jobs that are done in this process: tries, rests, hung jobs, devices."""

from collections import Counter, deque
from functools import partial

import pytest

from grader.base.errors import MachineFault
from grader.classes import schedule
from grader.classes.executors.executor import Task
from grader.classes.schedule import Held, Lane, Schedule
from grader.grading.session import Grading
from grader.grading.setup import Setup
from tests.support.executors import InThisProcess


class Jobs(Schedule[str]):
    """Jobs by name. `fails` fails each time, `hangs` never ends, all others succeed."""

    def __init__(self, lanes: list[Lane[str]], *jobs: str) -> None:
        super().__init__(lanes, at_once=len(lanes))
        self.waiting, self.ran, self.ended = deque(jobs), Counter[str](), dict[str, str]()
        self.full = False

    def next(self, lane: Lane[str]) -> tuple[str, Task] | None:
        if not self.waiting:
            return None
        job = self.waiting.popleft()
        self.ran[job] += 1

        def task(grading: Grading) -> object:
            if job == "fails":
                raise MachineFault("The GPU is gone.\nAll of it.")
            return None if job == "hangs" else f"{job} is done"

        return job, task

    def tries(self, job: str) -> int:
        return self.ran[job]

    def again(self, lane: Lane[str], held: Held[str]) -> None:
        self.waiting.append(held.job)

    def finish(self, lane: Lane[str], held: Held[str]) -> None:
        if self.full:
            raise MachineFault("The disk is full.")
        self.ended[held.job] = held.fault or str(held.answer)

    def passes(self, number: int) -> None:
        for _ in range(number):
            self.give_out(self.lanes)
            self.wait(0.0)
            self.save()


def a_lane(
    setup: Setup, name: str = "lane", device: str = "GPU", broken: str = "", longest_s: float = 60.0
) -> Lane[str]:
    return Lane(name, device, setup, partial(InThisProcess, broken=broken), longest_s=60.0)


def test_a_job_that_fails_where_the_control_runs_is_tried_twice_and_no_lane_rests(setup: Setup) -> None:
    lane = a_lane(setup)
    jobs = Jobs([lane], "fails", "alice")
    jobs.passes(8)
    assert jobs.ran == {"fails": 2, "alice": 1}
    assert jobs.ended == {"fails": "The GPU is gone.\nAll of it.", "alice": "alice is done"}
    assert lane.broken_in_a_row == 0 and lane.rests_until < 0 and not lane.occupied


def test_where_the_control_fails_too_the_lane_rests_for_longer_each_time_and_the_job_has_more_tries(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(schedule.time, "monotonic", lambda: now[0])
    lane = a_lane(setup, broken="The control did not run.")
    jobs, rests = Jobs([lane], "fails"), []
    for tries in range(1, schedule.MAX_TRIES_ON_BROKEN_MACHINES + 1):
        jobs.passes(3)
        assert jobs.ran["fails"] == tries, "nothing runs on a lane that rests"
        rests.append(lane.rests_until - now[0])
        now[0] = lane.rests_until
    assert rests == [5.0, 10.0, 20.0, 40.0, 60.0]
    assert lane.last_fault == "The control did not run." and jobs.ended.keys() == {"fails"}


def test_a_job_that_hangs_is_ended_and_has_failed_and_others_go_on(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(schedule.time, "monotonic", lambda: now[0])
    lane = a_lane(setup)
    jobs = Jobs([lane], "hangs", "alice")
    jobs.passes(2)
    assert lane.job == "hangs" and jobs.ended == {}
    now[0] += 120
    jobs.passes(3)
    assert jobs.ended["hangs"].startswith("Grading it was ended after 2 minutes, which is longer than all its limits")
    assert jobs.ended["alice"] == "alice is done" and jobs.ran["hangs"] == 1 and lane.broken_in_a_row == 0


def test_lanes_of_one_device_take_turns(setup: Setup) -> None:
    lanes = [a_lane(setup, "first"), a_lane(setup, "second"), a_lane(setup, "third", device="another GPU")]
    jobs = Jobs(lanes, "hangs", "alice", "hangs")
    jobs.passes(4)
    assert [lane.job for lane in lanes] == ["hangs", None, "hangs"] and lanes[2].finished == 1
    jobs.close()


def test_a_result_that_cannot_be_stored_is_kept_until_it_can(setup: Setup) -> None:
    jobs = Jobs([a_lane(setup)], "alice")
    jobs.full = True
    with pytest.raises(MachineFault, match="full"):
        jobs.passes(1)
    with pytest.raises(MachineFault, match="full"):
        jobs.save()
    jobs.full = False
    jobs.save()
    assert jobs.ended == {"alice": "alice is done"}
