"""A class on a real Slurm of two nodes (cluster.sh), with the emulator as engine. Run by `make test-slurm`, as root,
with Debian's slurmctld, slurmd, slurm-client and munge. Jobs are cancelled by scancel and killed by kill."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grader.base.paths import cache_folder
from grader.judge.tokens import make_token
from grader.records.record import Record
from grader.store import check_store, open_store

HERE = Path(__file__).parent
CHECKOUT = HERE.parent.parent
SLEEPY = "#include <unistd.h>\nint main() { sleep(%d); }\n"
UNTIL = "#include <unistd.h>\n#include <ctime>\n// %s\nint main() { while (time(0) < %d) usleep(100000); }\n"
"""Sleeps until a moment, so that a job is long enough to be disturbed and, submitted again, is short."""
EVERYTHING = pytest.mark.skipif(
    os.environ.get("GRADER_TEST_EVERYTHING") != "1", reason="takes a minute or two; GRADER_TEST_EVERYTHING=1 runs it"
)
DISTURBED_S = 40
"""How long the disturbed jobs would have gone on: by then all of them run and have been killed."""
ZEROS = """
#include <cstdio>
#include <cstdlib>
__global__ void zero(float *o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) o[i] = 0; }
int main(int, char **argv) {
    int shape[3]; FILE *in = fopen(argv[1], "rb"); if (!in || fread(shape, 4, 3, in) != 3) return 1;
    int n = shape[0] * shape[1] * shape[2]; float *d; cudaMalloc(&d, 4 * n);
    zero<<<(n + 255) / 256, 256>>>(d, n);
    float *h = (float *)malloc(4 * n); cudaMemcpy(h, d, 4 * n, cudaMemcpyDeviceToHost);
    FILE *out = fopen(argv[2], "wb"); fwrite(h, 4, n, out); fclose(out);
}
"""


@dataclass(frozen=True)
class Cluster:
    """A running Slurm and a course that grades on it."""

    folder: Path
    course: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "GRADER_ROOT": str(self.course),
            "GRADER_CACHE": os.environ.get("SLURM_TEST_CACHE", str(self.folder / "cache")),
            "PYTHONPATH": str(CHECKOUT),
        }

    def slurm(self, *command: str) -> str:
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=30, check=True)
        return done.stdout

    def running(self) -> dict[str, str]:
        """Nodes of running array tasks by job name such as 5_3."""
        return dict(line.split() for line in self.slurm("squeue", "-h", "-t", "R", "-o", "%F_%K %N").splitlines())

    def grade(self, hand_ins: Path, store: Path, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "grader", "grade", str(hand_ins), "--class", "--tests", "s01"]
        command += ["--engine", "emulator", "--store", str(store), *options]
        return subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=store.parent
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = Path(f"/tmp/grader-slurm-{os.getpid()}")
    course = folder / "course"
    for name in ("assignment", "reference", "testcases"):
        shutil.copytree(CHECKOUT / name, course / name)
    rules = {"partition": "both", "gres": "gpu:1", "cpus": 1, "time_minutes": 10, "folder": str(folder / "shared")}
    for name in ("hw4", "half"):
        with (course / f"assignment/{name}/assignment.yaml").open("a") as file:
            file.write(f"\ncluster: {json.dumps(rules)}\n")
    (folder / "cache").mkdir()
    (folder / "cache/native").symlink_to(cache_folder() / "native")
    try:
        subprocess.run([HERE / "cluster.sh", "start", folder], check=True, timeout=100)
        yield Cluster(folder, course)
    finally:
        subprocess.run([HERE / "cluster.sh", "stop", folder], check=True, timeout=100)
    shutil.rmtree(folder)


def a_class(folder: Path, assignment: str = "hw4", **sources: str) -> Path:
    for student, source in sources.items():
        (folder / student).mkdir(parents=True)
        (folder / student / f"{assignment}.cu").write_text(source)
    return folder


def records(store: Path, assignment: str = "hw4") -> dict[str, Record]:
    with open_store(store) as opened:
        assert check_store(opened) == []
        return {attempt.student.id: attempt.record for attempt in opened.attempts(assignment)}


def verdicts(store: Path, assignment: str = "hw4") -> dict[str, str]:
    return {student: record.tests[0].verdict.value for student, record in records(store, assignment).items()}


def finished(grader: subprocess.Popen[str]) -> str:
    output, _ = grader.communicate(timeout=600)
    assert grader.returncode == 0, output
    return output


def test_slurm_gives_the_same_scores_as_this_machine_and_uses_both_nodes(cluster: Cluster, tmp_path: Path) -> None:
    folder = a_class(tmp_path / "class", zeros=ZEROS, silent="int main() { }", broken="int main( {", sleepy=SLEEPY % 3)
    (folder / "nothing").mkdir()
    finished(cluster.grade(folder, tmp_path / "here.sqlite"))
    finished(cluster.grade(folder, tmp_path / "slurm.sqlite", "--cluster", "slurm"))
    assert verdicts(tmp_path / "slurm.sqlite") == verdicts(tmp_path / "here.sqlite") == {
        "zeros": "wrong_answer", "silent": "no_output", "broken": "compile_error", "sleepy": "no_output",
        "nothing": "compile_error",
    }  # fmt: skip
    scores = [
        {student: record.scores for student, record in records(tmp_path / name).items()}
        for name in ("here.sqlite", "slurm.sqlite")
    ]
    assert scores[0] == scores[1]


@EVERYTHING
def test_a_class_in_half_precision_is_graded_on_slurm(cluster: Cluster, tmp_path: Path) -> None:
    naive = (CHECKOUT / "reference/half/naive.cu").read_text()
    folder = a_class(tmp_path / "class", "half", naive=naive, doubled=naive.replace("+ p * load(", "+ 2 * p * load("))
    finished(cluster.grade(folder, tmp_path / "r.sqlite", "--cluster", "slurm", "--assignment", "half"))
    assert verdicts(tmp_path / "r.sqlite", "half") == {"naive": "passed", "doubled": "wrong_answer"}


def test_jobs_that_are_cancelled_killed_or_lose_their_node_are_noticed_in_a_minute_and_end_graded(
    cluster: Cluster, tmp_path: Path
) -> None:
    end = time.time() + DISTURBED_S
    folder = a_class(tmp_path / "class", **{f"s{number}": UNTIL % (number, end) for number in range(4)})
    grader = cluster.grade(folder, tmp_path / "r.sqlite", "--cluster", "slurm")
    running = _wait_for_running(cluster, grader, 4)
    assert set(running.values()) == {"node1", "node2"}
    on_one = sorted(job for job, node in running.items() if node == "node1")
    on_two = sorted(job for job, node in running.items() if node == "node2")
    done_at = time.monotonic()
    cluster.slurm("scancel", on_one[0])
    _kill_step(on_one[1])
    _kill_node(cluster, "node2", on_two)
    noticed: dict[str, float] = {}
    assert grader.stdout is not None
    lines = []
    for line in grader.stdout:
        lines.append(line)
        for job in running:
            if f"job {job}:" in line and "tried again" in line:
                noticed.setdefault(job, time.monotonic() - done_at)
        if len(noticed) == 4:
            _start_node(cluster, "node2")
            break
    output = "".join(lines) + grader.communicate(timeout=600)[0]
    assert grader.returncode == 0, output
    assert set(noticed) == set(running), output
    print("noticed after", ", ".join(f"{seconds:.0f} s (job {job})" for job, seconds in sorted(noticed.items())))
    assert max(noticed.values()) < 60, output
    assert set(verdicts(tmp_path / "r.sqlite").values()) == {"no_output"}
    with open_store(tmp_path / "r.sqlite") as store:
        assert len(list(store.attempts("hw4"))) == 4


def test_after_a_killed_submitting_side_the_next_run_takes_in_what_its_jobs_made(
    cluster: Cluster, tmp_path: Path
) -> None:
    folder = a_class(tmp_path / "class", quick="int main() { return 7; }", slow=SLEEPY % 50)
    earlier, still_running = _results(cluster), cluster.running().keys()  # of another test
    grader = cluster.grade(folder, tmp_path / "r.sqlite", "--cluster", "slurm")
    assert grader.stdout is not None
    while _results(cluster) <= earlier or cluster.running().keys() <= still_running:
        assert grader.poll() is None
        time.sleep(0.2)
    of_the_killed = cluster.running().keys() - still_running
    grader.kill()
    grader.communicate()
    (folder / "slow/hw4.cu").write_text("int main() { return 8; }")
    output = finished(cluster.grade(folder, tmp_path / "r.sqlite", "--cluster", "slurm"))
    assert "interrupted run" in output
    assert verdicts(tmp_path / "r.sqlite") == {"quick": "no_output", "slow": "no_output"}
    left = of_the_killed & cluster.running().keys()  # the second run's own job may still be ending
    assert of_the_killed and not left, "the slow job of the killed run was cancelled"


@dataclass
class LiveJudge:
    """`grader serve --cluster slurm`."""

    cluster: Cluster
    store: Path
    token: str
    port: int = 0
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "grader", "serve", "--cluster", "slurm", "--engine", "emulator", "--jobs", "2"]
        command += ["--store", str(self.store), "--port", str(self.port)]
        environment = self.cluster.environment
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, text=True, cwd=CHECKOUT)
        while True:
            assert self.process.poll() is None
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.2)

    def ask(self, place: str, source: str | None = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/octet-stream"}
        url = f"http://127.0.0.1:{self.port}/api/v1/submissions{place}"
        request = urllib.request.Request(url, source.encode() if source else None, headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def settled(self, id: str) -> dict[str, Any]:
        while (status := self.ask(f"/{id}"))["state"] in ("waiting", "running"):
            time.sleep(0.3)
        return status


@EVERYTHING
def test_the_judge_grades_on_slurm_and_a_lost_job_or_a_killed_judge_gives_no_second_result(
    cluster: Cluster, tmp_path: Path
) -> None:
    with open_store(tmp_path / "j.sqlite", create=True) as store:
        store.add_student("alice")
        judge = LiveJudge(cluster, tmp_path / "j.sqlite", make_token(store, "alice"))
    judge.start()
    try:
        end = time.time() + DISTURBED_S / 2
        lost = judge.ask("", UNTIL % ("lost", end))["id"]
        cluster.slurm("scancel", _job(cluster))
        assert {test["verdict"] for test in judge.settled(lost)["tests"]} == {"no_output"}
        slow = judge.ask("", SLEEPY % 5)["id"]
        _job(cluster)
        judge.process.kill()  # type: ignore[union-attr]
        judge.process.wait()  # type: ignore[union-attr]
        judge.start()
        assert judge.settled(slow)["state"] == "done"
    finally:
        judge.process.terminate()  # type: ignore[union-attr]
        judge.process.wait()  # type: ignore[union-attr]
    with open_store(tmp_path / "j.sqlite") as store:
        assert check_store(store) == []
        assert store.counts()["records"] == 2
    assert not cluster.slurm("squeue", "-h", "-t", "R").strip()


def _job(cluster: Cluster) -> str:
    """The only job, once it runs."""
    while not (running := cluster.slurm("squeue", "-h", "-t", "R", "-o", "%i").split()):
        time.sleep(0.2)
    return running[0]


def _results(cluster: Cluster) -> set[Path]:
    return set(cluster.folder.glob("shared/*/result-*.json"))


def _wait_for_running(cluster: Cluster, grader: subprocess.Popen[str], count: int) -> dict[str, str]:
    """Jobs by id once `count` of them run their submission's program."""
    while True:
        assert grader.poll() is None, grader.communicate()[0]
        running = cluster.running()
        if len(running) == count and len(_programs()) >= count:
            return running
        time.sleep(0.3)


def _programs() -> list[int]:
    """Processes that are a hand-in's program."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes().split(b"\0")[0].endswith(b"/program"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def _steps(job: str) -> list[int]:
    """Processes of an array task that were started by its step: the grader in it."""
    array, _, task = job.partition("_")
    wanted = {f"SLURM_ARRAY_JOB_ID={array}", f"SLURM_ARRAY_TASK_ID={task}"}
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                variables = set((entry / "environ").read_bytes().decode(errors="replace").split("\0"))
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if wanted <= variables and b"submitit" in command:
                found.append(int(entry.name))
    return found


def _kill_step(job: str) -> None:
    steps = _steps(job)
    assert steps, f"job {job} has no process"
    for pid in steps:
        _kill(pid)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it went with its parent
        os.kill(pid, signal.SIGKILL)


def _kill_node(cluster: Cluster, node: str, jobs: list[str]) -> None:
    """What a machine's crash is to Slurm: its slurmd and all of its jobs' processes are gone at once."""
    os.kill(int((cluster.folder / f"slurmd-{node}.pid").read_text()), signal.SIGKILL)
    for job in jobs:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes().decode(errors="replace")
                except OSError:
                    continue
                if command.startswith(f"slurmstepd: [{_real_id(cluster, job)}."):
                    _kill(int(entry.name))
        for pid in _steps(job):
            _kill(pid)


def _real_id(cluster: Cluster, job: str) -> str:
    listing = cluster.slurm("scontrol", "show", "job", "-o", job)
    return listing.split("JobId=")[1].split()[0]


def _start_node(cluster: Cluster, node: str) -> None:
    subprocess.run([HERE / "cluster.sh", "node", cluster.folder, node], check=True, timeout=30)
