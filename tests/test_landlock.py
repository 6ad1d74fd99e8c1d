"""Where bubblewrap cannot run: Landlock, seccomp and resource limits do what they can, and it is said."""

import os
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from grader.base.errors import MachineFault
from grader.programs.engine import plan_program
from grader.sandbox import Job, Limits, Outcome, bubblewrap, confinement, landlock, require, run, tool_problem
from tests.support.machine import running


@pytest.fixture(autouse=True)
def _without_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    if landlock.version() == 0:
        pytest.fail("this kernel has no Landlock: these tests need Linux 5.13 or newer with it switched on")
    monkeypatch.setattr(bubblewrap, "problem", lambda: "left out for this test")


def shell(script: str, folder: Path, limits: Limits | None = None, readable: tuple[Path, ...] = ()) -> Outcome:
    return run(Job(("sh", "-c", script), folder, readable=readable), limits or Limits(wall_s=20))


def test_the_record_says_so_and_require_refuses() -> None:
    assert confinement().startswith("Landlock")
    assert "left out for this test" in confinement()
    with pytest.raises(MachineFault, match="--require-sandbox: left out for this test"):
        require()


def test_a_file_that_the_kernel_does_not_execute_ends_like_a_failed_program(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF, or not")
    program.chmod(0o755)
    outcome = run(Job((str(program),), tmp_path), Limits(wall_s=20))
    assert (outcome.exit_code, outcome.stderr) == (126, "program cannot be run: Exec format error\n")


def test_only_what_the_job_names_can_be_read_and_only_its_folder_written(tmp_path: Path) -> None:
    for name in ("mine", "given", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "given/input").write_text("the input")
    (tmp_path / "other/secret").write_text("the secret")
    reads = "cat ../given/input; cat ../other/secret; ls ../other"
    script = f"{reads}; touch ../given/x /tmp/x-redteam; touch here"
    outcome = shell(script, tmp_path / "mine", readable=(tmp_path / "given",))
    assert outcome.stdout == "the input"
    assert outcome.stderr.count("Permission denied") == 4
    assert (tmp_path / "mine/here").exists()
    assert not (tmp_path / "given/x").exists()


def test_a_recorder_finds_the_grader_in_a_folder_that_it_cannot_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, work = tmp_path / "checkout" / "grader", tmp_path / "work"
    package.mkdir(parents=True)
    work.mkdir()
    (package / "__init__.py").write_text("")
    (package / "own.py").write_text("def main(): print('found')")
    monkeypatch.setattr(plan_program, "PACKAGES", (package,))
    job = Job(plan_program._python("own"), work, readable=plan_program.python_paths())
    assert run(job, Limits(wall_s=60)).stdout == "found\n"


@pytest.mark.parametrize(
    "attempt",
    [
        "setsid true",
        "unshare -U true",
        "cat /etc/shadow",
        "kill -0 1",
        "bash -c 'echo > /dev/tcp/127.0.0.1/1'",
        "prlimit --pid $PPID --core=0",
        "renice 19 -p $PPID >/dev/null",
        "ionice -c 3 -p $PPID",
        "taskset -p 1 $PPID >/dev/null",
        "chrt -o -p 0 $PPID",
    ],
)
def test_what_reaches_out_fails(attempt: str, tmp_path: Path) -> None:
    assert shell(f"{attempt} 2>/dev/null && echo REACHED", tmp_path).stdout == ""


def test_limits_of_the_program_itself_can_be_set(tmp_path: Path) -> None:
    assert shell("ulimit -c 0 && ulimit -S -n 64 && ulimit -n", tmp_path).stdout == "64\n"


def test_a_service_that_listens_on_a_file_is_not_reached(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(str(tmp_path / "service"))
        service.listen()
        script = "import socket; socket.socket(socket.AF_UNIX).connect('service'); print('REACHED')"
        job = Job(("/usr/bin/env", "python3", "-c", script), tmp_path, readable=(Path(sys.base_prefix),))
        outcome = run(job, Limits(wall_s=20))
    assert outcome.stdout == ""
    assert "PermissionError" in outcome.stderr


def test_no_capability_is_left_and_the_graders_environment_stays_closed(tmp_path: Path) -> None:
    said = shell(f"grep Cap /proc/self/status; head -c 9 /proc/{os.getpid()}/environ || echo closed", tmp_path).stdout
    assert [line.split()[1] for line in said.splitlines()[:-1]] == ["0" * 16] * 5
    assert said.splitlines()[-1] == "closed"


def test_what_needs_not_change_modes_cannot_change_those_of_others_files(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "other").write_text("")
    script = ("sh", "-c", "chmod 0 ../other; touch -d 2001-01-01 ../other; chmod 0 . ; true")
    before = (tmp_path / "other").stat()
    run(Job(script, tmp_path / "mine"), Limits(wall_s=20))
    after = (tmp_path / "other").stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


def test_daemons_and_what_hangs_are_ended_with_the_run(tmp_path: Path) -> None:
    began = time.monotonic()
    assert shell("(sleep 63.25 &); true", tmp_path).exit_code == 0
    assert shell("trap '' TERM; sleep 63.25 & wait", tmp_path, Limits(wall_s=0.3)).timed_out
    assert time.monotonic() - began < 15
    assert not running("sleep 63.25")


def test_a_program_may_name_its_threads_and_no_other_processs(tmp_path: Path) -> None:
    name = "import sys; open(f'/proc/{sys.argv[1]}/task/{sys.argv[1]}/comm', 'w').write('mine')"
    script = f"exec /usr/bin/python3 -c \"import os, sys; sys.argv.append(str(os.getpid())); {name}; print('named')\""
    assert shell(script, tmp_path).stdout == "named\n"
    other = f"/usr/bin/python3 -c \"{name}; print('named')\" {os.getpid()}"
    assert "Permission denied" in shell(other, tmp_path).stderr


def test_a_tool_may_start_cuda_programs_where_root_could_not_change_the_kernels_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = "/bin/sh -c 'echo named >/proc/self/task/$$/comm && cat /proc/self/comm'; true"
    job = Job(("sh", "-c", child), tmp_path, starts_programs=True)
    monkeypatch.setattr(landlock, "_is_writable", lambda path: True)
    if os.geteuid() == 0:
        assert "as root without bubblewrap" in tool_problem()
        assert "Permission denied" in run(job, Limits(wall_s=20)).stderr
    monkeypatch.setattr(landlock, "_is_writable", lambda path: False)
    assert tool_problem() == ""
    assert "Permission denied" not in run(job, Limits(wall_s=20)).stderr
    mine = f"echo 7 >/proc/{os.getpid()}/mem"
    assert "Permission denied" in run(replace(job, command=("sh", "-c", mine)), Limits(wall_s=20)).stderr
