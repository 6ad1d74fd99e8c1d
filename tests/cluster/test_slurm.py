"""What is concluded from what Slurm says, from signs of life and from results; Slurm itself is not asked here (see
tests/slurm for a real one)."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.base.errors import MachineFault, UsageError
from grader.base.verdict import Verdict
from grader.classes.batch import Policy
from grader.classes.batch.desk import Desk
from grader.classes.batch.view import View
from grader.classes.cluster import job_states as queue
from grader.classes.cluster import single, slurm, task
from grader.classes.cluster.cluster_engine import engine_of_jobs
from grader.classes.cluster.job_files import Order, RunFiles
from grader.classes.cluster.job_states import JobState
from grader.grading.session import Grading
from grader.programs.submission import Submission
from tests.support.records import made_record, made_test

ONE = "JobId=12 ArrayJobId=12 ArrayTaskId=3 JobState=RUNNING Reason=None NodeList=node1"
REST = "JobId=12 ArrayJobId=12 ArrayTaskId=0-1,4-6:2%2 JobState=PENDING Reason=Resources NodeList="


def answer(monkeypatch: pytest.MonkeyPatch, output: str = "", error: str = "") -> None:
    done = subprocess.CompletedProcess([], 1 if error else 0, output, error)
    monkeypatch.setattr(queue.subprocess, "run", lambda *_, **__: done)


def test_running_and_waiting_tasks_of_an_array_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, f"{ONE}\n{REST}\n")
    found = queue.states(["12_0", "12_3", "12_6", "12_5"])
    assert found == {
        "12_3": JobState("RUNNING", "node1", "None"),
        "12_0": JobState("PENDING", "", "Resources"),
        "12_6": JobState("PENDING", "", "Resources"),
    }


def test_a_job_that_is_no_array_is_known_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "JobId=13 JobState=CANCELLED Reason=None NodeList=node2\n")
    assert queue.states(["13"])["13"].state == "CANCELLED"


def test_jobs_that_slurm_forgot_are_in_no_state_and_other_errors_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, error="slurm_load_jobs error: Invalid job id specified")
    assert queue.states(["12_0"]) == {}
    answer(monkeypatch, error="Unable to contact slurm controller")
    with pytest.raises(MachineFault, match="Unable to contact"):
        queue.states(["12_0"])


class Scene:
    """One task with Slurm, and what became of it."""

    def __init__(self, setup, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cancelled: list[str] = []
        self.submitted: list[int] = []
        self.said: list[str] = []
        view = View()
        monkeypatch.setattr(view, "say", self.said.append)
        monkeypatch.setattr(slurm, "cancel", self.cancelled.extend)
        desk = Desk(setup, None, Policy(), {}, view)  # type: ignore[arg-type]
        rules = slurm.Cluster(retries=2)
        self.cluster = slurm.SlurmRun(desk, rules, RunFiles(folder), Grading(**vars(setup), baseline=None))
        monkeypatch.setattr(self.cluster, "submit", lambda tasks: self.submitted.extend(t.number for t in tasks))
        submission = Submission("alice", folder, (), (), (), "", (), "0")
        self.task = slurm.SlurmTask(0, "alice", submission, 1, setup.cases, job="12_0")
        self.files = RunFiles(folder)

    def beat(self, ago_s: float) -> None:
        path = self.files.beat(0, len(self.task.lost))
        path.touch()
        os.utime(path, (time.time() - ago_s,) * 2)

    def look(self, state: JobState | None) -> None:
        self.cluster._look_for_lost({0: self.task}, {"12_0": state} if state else {})


@pytest.fixture
def scene(setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(setup, tmp_path, monkeypatch)


def test_a_job_that_waits_or_gives_signs_of_life_is_left_alone(scene: Scene) -> None:
    scene.look(JobState("PENDING"))
    scene.beat(ago_s=10)
    scene.look(JobState("RUNNING", "node1"))
    assert (scene.submitted, scene.cancelled) == ([], [])


def test_a_running_job_without_a_sign_of_life_is_cancelled_and_submitted_again(scene: Scene) -> None:
    scene.beat(ago_s=60)
    scene.look(JobState("RUNNING", "node1"))
    assert (scene.submitted, scene.cancelled) == ([0], ["12_0"])
    assert "no heartbeat for 60 s on node1" in scene.said[0]


def test_a_job_that_had_begun_and_waits_again_lost_its_node(scene: Scene) -> None:
    scene.beat(ago_s=3)
    scene.look(JobState("PENDING", "", "BeginTime"))
    assert (scene.submitted, scene.cancelled) == ([0], ["12_0"])
    scene.look(JobState("PENDING", "", "None"))
    assert scene.submitted == [0], "the heartbeat of the earlier try says nothing of the new one"


def test_a_job_that_ended_without_a_result_is_lost_after_a_grace_for_slow_folders(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(slurm.time, "monotonic", lambda: now[0])
    scene.look(JobState("CANCELLED", "node1"))
    assert scene.submitted == []
    now[0] += slurm.GRACE_S
    scene.look(JobState("CANCELLED", "node1"))
    assert scene.submitted == [0]
    assert "ended without a result: it was cancelled on node1" in scene.said[0]


def test_results_and_faults_are_read_once_they_are_whole(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    assert files.read_result(3) is None
    files.write_result(3, made_record("alice"))
    assert files.read_result(3) == made_record("alice")
    files.write_fault(4, "The GPU is gone.")
    assert files.take_fault(4) == "The GPU is gone."
    assert files.take_fault(4) is None
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.fixture
def job(setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunFiles]:
    """A job that is to grade order 0, whose hand-in fails; nothing is built or run."""
    files = RunFiles(tmp_path)
    files.write_order(0, Order(setup, "emulator", Submission("alice", tmp_path, (), (), (), "", (), "0")))
    record = made_record("alice", tests=[made_test("s01", Verdict.RUNTIME_ERROR)])
    monkeypatch.setattr(task, "BuildTask", lambda submission: lambda grading: None)
    monkeypatch.setattr(task, "GradeTask", lambda submission, built, tests: lambda grading: record)
    before = {number: signal.getsignal(number) for number in task.ENDING}
    yield files
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", task.ENDING)
def test_a_hand_in_that_fails_because_slurm_ends_its_job_has_no_result(
    job: RunFiles, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(task.time, "sleep", lambda seconds: os.kill(os.getpid(), number))
    with pytest.raises(task.Ended, match=number.name):
        task.grade_one(str(job.folder), 0, 0)
    assert job.read_result(0) is None and job.take_fault(0) is None


def test_a_hand_in_that_fails_by_itself_has_its_result(job: RunFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(task.time, "sleep", waited.append)
    assert task.grade_one(str(job.folder), 0, 0) == "graded"
    record = job.read_result(0)
    assert record is not None and record.tests[0].verdict is Verdict.RUNTIME_ERROR
    assert waited == [task.SETTLE_S], "a signal that came a moment later would have been seen"


def test_a_lane_of_the_judge_gets_one_record_and_cancels_what_a_killed_one_left(
    setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, cancelled = RunFiles(tmp_path / "left"), list[str]()
    left.folder.mkdir()
    left.note_job("7")
    monkeypatch.setattr(single, "cancel", cancelled.extend)

    def submit(run: slurm.SlurmRun, tasks: list[slurm.SlurmTask]) -> None:
        order = run.files.read_order(0)
        run.files.write_result(0, made_record(order.submission.id))

    monkeypatch.setattr(slurm.SlurmRun, "submit", submit)
    submission = Submission("alice", tmp_path, (), (), (), "", (), "0")
    grading = Grading(**vars(setup), baseline=None)
    record = single.grade_alone(grading, submission, tmp_path, View())
    assert record == made_record("alice")
    assert (cancelled, list(tmp_path.iterdir())) == (["7"], [])


def test_on_a_cluster_auto_means_the_gpu_that_each_job_asks_for() -> None:
    assert (engine_of_jobs("auto").name, engine_of_jobs("emulator").name) == ("cuda", "emulator")
    with pytest.raises(UsageError, match="no engine 'tpu'"):
        engine_of_jobs("tpu")
