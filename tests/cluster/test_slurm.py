"""What is concluded from what Slurm says, from signs of life and from results; Slurm itself is not asked here (see
tests/slurm for a real one)."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.verdict import Verdict
from grader.classes.batch.work import GradeTask
from grader.classes.executors import job as task
from grader.classes.executors import job_states as queue
from grader.classes.executors import slurm
from grader.classes.executors.elsewhere import engine_of_jobs
from grader.classes.executors.executor import Died, Task
from grader.classes.executors.job_files import RunFiles
from grader.classes.executors.job_states import JobState
from grader.grading.session import Grading
from grader.judge.stage_task import Judged
from grader.programs.submission import Submission
from grader.records.record import Record
from grader.store import HandIn, open_store
from tests.support.records import made_record, made_test

GRADED = GradeTask(Submission("alice", Path("hw4.cu"), (), (), (), "", (), "0"), None, frozenset({"s01"}))
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
        monkeypatch.setattr(slurm, "cancel", self.cancelled.extend)
        self.jobs = slurm.SlurmJobs("hw4", slurm.Cluster(), RunFiles(folder))
        self.task = self.jobs.executor("slurm 0", setup)
        self.task.task, self.task.job, self.task.answer = GRADED, "12_0", None
        self.jobs.running.append(self.task)
        self.files = RunFiles(folder)

    def beat(self, ago_s: float) -> None:
        path = self.files.beat(0)
        path.touch()
        os.utime(path, (time.time() - ago_s,) * 2)

    def look(self, state: JobState | None) -> None:
        self.jobs._look_for_lost({"12_0": state} if state else {})


@pytest.fixture
def scene(setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(setup, tmp_path, monkeypatch)


def test_a_job_that_waits_or_gives_signs_of_life_is_left_alone(scene: Scene) -> None:
    scene.look(JobState("PENDING"))
    scene.beat(ago_s=10)
    scene.look(JobState("RUNNING", "node1"))
    assert (scene.task.answer, scene.cancelled) == (None, [])


def test_a_running_job_without_a_sign_of_life_is_cancelled_and_lost(scene: Scene) -> None:
    scene.beat(ago_s=60)
    scene.look(JobState("RUNNING", "node1"))
    assert scene.cancelled == ["12_0"] and scene.jobs.running == []
    assert isinstance(scene.task.answer, MachineFault)
    assert "job 12_0: no heartbeat for 60 s on node1" in str(scene.task.answer)


def test_a_job_that_had_begun_and_waits_again_lost_its_node(scene: Scene) -> None:
    scene.beat(ago_s=3)
    scene.look(JobState("PENDING", "", "BeginTime"))
    assert scene.cancelled == ["12_0"] and "back into its queue (BeginTime)" in str(scene.task.answer)


def test_a_job_that_ended_without_a_result_is_lost_after_a_grace_for_slow_folders(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(slurm.time, "monotonic", lambda: now[0])
    scene.look(JobState("CANCELLED", "node1"))
    assert scene.task.answer is None
    now[0] += slurm.GRACE_S
    scene.look(JobState("CANCELLED", "node1"))
    assert "ended without a result: it was cancelled on node1" in str(scene.task.answer)


@dataclass(frozen=True)
class Stage:
    """A task that returns what the judge's tasks return."""

    def __call__(self, grading: Grading) -> Judged:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("task", "result"),
    [
        (GRADED, made_record("alice")),
        (Stage(), Judged("0", "hw4.cu", (("hw4.cu", bytes(range(256))),), made_record("alice"))),
        (Stage(), Judged("0", "hw4.cu", (), None)),
    ],
)
def test_results_are_read_once_they_are_whole_as_they_were_written(tmp_path: Path, task: Task, result: object) -> None:
    files = RunFiles(tmp_path)
    assert files.read_result(3, task) is None
    files.write_result(3, result)
    assert files.read_result(3, task) == result
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_was_given_together_is_one_array_and_faults_results_and_nonsense_are_answers(
    setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays: list[int] = []

    class Submitit:
        @contextlib.contextmanager
        def batch(self):
            arrays.append(0)
            yield

        def submit(self, function, folder, number, setup, task):
            arrays[-1] += 1
            return SimpleNamespace(job_id=f"{len(arrays)}_{number}")

    monkeypatch.setattr(slurm.SlurmJobs, "_submitit", lambda jobs: Submitit())
    monkeypatch.setattr(slurm, "states", lambda jobs: {job: JobState("RUNNING", "node1") for job in jobs})
    monkeypatch.setattr(slurm, "POLL_S", 0.0)
    jobs = slurm.SlurmJobs("hw4", slurm.Cluster(), RunFiles(tmp_path))
    places = [jobs.executor("", setup) for _ in range(3)]
    for place in places:
        assert place.done() and place.result() == "open"
        place.submit(GRADED)
    assert not any(place.done() for place in places)
    assert arrays == [3] and RunFiles(tmp_path).noted_jobs() == ["1"]
    jobs.files.write_result(0, made_record("alice"))
    jobs.files.write_fault(1, "The GPU is gone.")
    jobs.files.result(2).write_text("{}")
    assert [place.done() for place in places] == [True] * 3
    assert places[0].result() == made_record("alice")
    assert isinstance(places[1].result(), MachineFault) and str(places[1].result()) == "job 1_1: The GPU is gone."
    assert isinstance(places[2].result(), GraderFault) and "is damaged" in str(places[2].result())
    places[1].submit(GRADED)
    assert not places[1].done() and arrays == [3, 1] and places[1].number == 3, "another try has files of its own"


def test_jobs_that_slurm_refuses_wait_on(setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(jobs: slurm.SlurmJobs) -> None:
        raise RuntimeError("sbatch: error: invalid partition specified")

    monkeypatch.setattr(slurm.SlurmJobs, "_submitit", refuse)
    jobs = slurm.SlurmJobs("hw4", slurm.Cluster(), RunFiles(tmp_path))
    place = jobs.executor("", setup)
    place.submit(GRADED)
    with pytest.raises(MachineFault, match=r"Slurm refused the jobs: .*invalid partition"):
        place.done()
    assert jobs.waiting == [place] and not place.done(), "it asks again later"
    place.cancel()
    assert jobs.waiting == [] and isinstance(place.result(), Died)


@dataclass(frozen=True)
class Failing:
    """Stands for grading a hand-in that fails."""

    def __call__(self, grading: Grading) -> Record:
        return made_record("alice", tests=[made_test("s01", Verdict.RUNTIME_ERROR)])


@pytest.fixture
def job(setup, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """A job whose hand-in fails; nothing is built or run."""
    before = {number: signal.getsignal(number) for number in task.ENDING}
    yield partial(task.do_task, str(tmp_path), 0, replace(setup, engine=engine_of_jobs("emulator")), Failing())
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", task.ENDING)
def test_a_hand_in_that_fails_because_slurm_ends_its_job_has_no_result(
    job: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(task.time, "sleep", lambda seconds: os.kill(os.getpid(), number))
    with pytest.raises(task.Ended, match=number.name):
        job()
    files = RunFiles(tmp_path)
    assert files.read_result(0, Failing()) is None and files.read_fault(0) is None


def test_a_hand_in_that_fails_by_itself_has_its_result(
    job: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(task.time, "sleep", waited.append)
    assert job() == "done"
    record = RunFiles(tmp_path).read_result(0, Failing())
    assert record is not None and record.tests[0].verdict is Verdict.RUNTIME_ERROR
    assert waited == [task.SETTLE_S], "a signal that came a moment later would have been seen"


def test_what_a_killed_run_left_is_cancelled_and_its_records_are_stored_or_of_the_judge_removed(
    setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[str] = []
    monkeypatch.setattr(slurm, "cancel", cancelled.extend)
    monkeypatch.setattr(slurm, "slurm_executor", lambda: None)
    for name in ("of a class", "of a judge"):
        left = RunFiles(tmp_path / name / "left")
        left.folder.mkdir(parents=True)
        left.note_job("7")
        left.write_result(0, made_record("alice"))
    with open_store(tmp_path / "class.sqlite", create=True) as store:
        record = made_record("alice")
        store.add_submission(HandIn("hw4", "alice", record.submission.sha256, "hw4.cu"))
        _, said = slurm.open_jobs(setup.assignment, tmp_path / "of a class", store)
        assert said == ["Results collected from the interrupted run left: 1."]
        assert [attempt.record for attempt in store.attempts("hw4")] == [record]
        assert slurm.open_jobs(setup.assignment, tmp_path / "of a class", store)[1] != said, "only once"
    slurm.open_jobs(setup.assignment, tmp_path / "of a judge", None)
    assert cancelled == ["7", "7"] and not (tmp_path / "of a judge/left").exists()


def test_on_a_cluster_auto_means_the_gpu_that_each_job_asks_for() -> None:
    assert (engine_of_jobs("auto").name, engine_of_jobs("emulator").name) == ("cuda", "emulator")
    with pytest.raises(UsageError, match="no engine 'tpu'"):
        engine_of_jobs("tpu")
