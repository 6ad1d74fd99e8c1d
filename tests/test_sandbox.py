"""Running a program: its end is told as it was, and nothing of it is left."""

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from grader.base.errors import GraderFault, UsageError
from grader.sandbox import Job, Limits, Outcome, apart, bubblewrap, budget, process_tree, run, runner
from grader.sandbox.streams import Receiver
from tests.support.machine import running


def shell(script: str, folder: Path, limits: Limits | None = None, **environment: str) -> Outcome:
    return run(Job(("sh", "-c", script), folder, environment), limits or Limits(wall_s=20))


def test_exit_code_and_both_streams_are_told(tmp_path: Path) -> None:
    outcome = shell("echo out; echo err >&2; exit 3", tmp_path)
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (3, "out\n", "err\n")
    assert outcome.ending == "exit code 3"


def test_a_signal_is_named(tmp_path: Path) -> None:
    outcome = shell("kill -SEGV $$", tmp_path)
    assert (outcome.exit_code, outcome.signal, outcome.ending) == (None, "SIGSEGV", "SIGSEGV")


@pytest.mark.parametrize(("kills", "broke"), [((5, 5), ""), ((5, 6), "memory")])
def test_a_kill_is_the_memorys_only_if_the_kernel_killed_for_memory_meanwhile(
    kills: tuple[int, int], broke: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_tree, "memory_kills_of_the_machine", iter(kills).__next__)
    outcome = shell("kill -KILL $$", tmp_path)
    assert (outcome.signal, outcome.broke) == ("SIGKILL", broke)


def test_at_the_limit_the_whole_tree_is_killed(tmp_path: Path) -> None:
    began = time.monotonic()
    outcome = shell("sleep 61.25 & wait", tmp_path, Limits(wall_s=0.5))
    assert outcome.timed_out
    assert time.monotonic() - began < 10
    assert not running("sleep 61.25")


def test_a_limit_of_processor_time_counts_no_waiting(tmp_path: Path) -> None:
    waits = shell("sleep 1.5", tmp_path, Limits(wall_s=60, cpu_s=0.5))
    assert (waits.exit_code, waits.broke) == (0, "")
    works = shell("while :; do :; done & wait", tmp_path, Limits(wall_s=600, cpu_s=0.5))
    assert works.timed_out


def test_a_daemon_does_not_outlive_the_run(tmp_path: Path) -> None:
    outcome = shell("setsid sh -c 'echo $$ > daemon; exec sleep 62.25' & while [ ! -s daemon ]; do :; done", tmp_path)
    assert (tmp_path / "daemon").exists()
    assert not running("sleep 62.25")
    assert outcome.exit_code == 0


def test_of_a_flood_of_output_the_beginning_is_kept(tmp_path: Path) -> None:
    outcome = shell("head -c 5000000 /dev/zero", tmp_path, Limits(wall_s=20, kept_output_bytes=1000))
    assert len(outcome.stdout) == 1000


def test_a_file_cannot_grow_past_its_limit(tmp_path: Path) -> None:
    outcome = shell("exec head -c 5000000 /dev/zero > big", tmp_path, Limits(wall_s=20, file_bytes=4096))
    assert outcome.signal == "SIGXFSZ"
    assert (tmp_path / "big").stat().st_size == 4096


def test_secrets_in_the_graders_environment_stay_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_SECRET", "do not tell")
    outcome = shell("env", tmp_path, GIVEN="yes")
    assert "do not tell" not in outcome.stdout
    assert "GIVEN=yes" in outcome.stdout


def test_there_is_no_input_to_wait_for(tmp_path: Path) -> None:
    assert shell('read line; echo "$line."', tmp_path).stdout == ".\n"


def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no-such-program cannot be run"):
        run(Job(("no-such-program",), tmp_path), Limits(wall_s=5))


def test_bubblewrap_may_be_in_a_folder_that_only_the_graders_path_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bubblewrap.problem() is not None:
        pytest.skip("bubblewrap does not run here")
    (tmp_path / "bin").mkdir()
    ours = tmp_path / "bin/bwrap"
    ours.write_text(f'#!/bin/sh\necho called > {tmp_path}/log\nexec {shutil.which("bwrap")} "$@"\n')
    ours.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert run(Job(("/bin/sh", "-c", "exit 3"), tmp_path), Limits(wall_s=20)).exit_code == 3
    assert (tmp_path / "log").read_text() == "called\n"


def test_all_commands_of_a_build_share_its_processor_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "WALL_PER_CPU", 200)  # this machine may be busy
    tool = runner(0.5)
    assert tool(["true"], tmp_path).exit_code == 0
    ended = tool(["sh", "-c", "while :; do :; done"], tmp_path)
    over = "Compiling took more than 0.5 s of processor time."
    assert (ended.exit_code, ended.stopped, ended.output) == (124, True, f"\nsh was stopped: {over}\n")
    late = tool(["true"], tmp_path)
    assert (late.exit_code, late.stopped, late.output) == (124, True, f"\ntrue was not started: {over}\n")


def test_a_tool_that_waits_ends_at_a_far_limit_of_wall_time(tmp_path: Path) -> None:
    done = runner(0.3)(["sleep", "60"], tmp_path)
    assert (done.exit_code, done.output) == (124, "\nsleep was stopped: Compiling took more than 2.4 s.\n")


def test_a_sandbox_that_cannot_be_set_up_is_the_graders_fault_and_never_the_programs(tmp_path: Path) -> None:
    with pytest.raises(GraderFault, match=r"could not be set up.*not-there"):
        run(Job(("true",), tmp_path, readable=(tmp_path / "not-there",)), Limits(wall_s=5))


def test_even_for_root_the_kernels_settings_cannot_be_opened_for_writing(tmp_path: Path) -> None:
    outcome = shell("true >> /proc/sys/kernel/core_pattern && echo OPENED", tmp_path)
    assert outcome.stdout == ""
    assert "core_pattern" in outcome.stderr


def test_no_memory_can_be_filled_beside_the_device_files(tmp_path: Path) -> None:
    """A file there would be in memory, without a limit of its own, and in no process's resident memory."""
    assert shell("echo x > /dev/file && echo WRITTEN", tmp_path).stdout == ""


def test_accounts_and_folders_of_the_machine_are_not_shown(tmp_path: Path) -> None:
    outcome = shell("cat /etc/passwd; ls /opt /home /root /srv /work", tmp_path)
    assert "root:" not in outcome.stdout
    assert outcome.stderr.count("cannot access") == 5


def test_a_socket_that_leaves_the_namespaces_is_refused(tmp_path: Path) -> None:
    script = (
        "import socket\n"
        "for family in (40, 38, 17):  # AF_VSOCK, AF_ALG, AF_PACKET\n"
        "    try: socket.socket(family, socket.SOCK_SEQPACKET)\n"
        "    except OSError as error: print(error.errno)\n"
    )
    outcome = run(Job(("/usr/bin/python3", "-c", script), tmp_path), Limits(wall_s=20))
    assert outcome.stdout.split() == ["97"] * 3  # EAFNOSUPPORT


def test_a_private_folder_inside_the_system_is_covered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_CACHE", "/usr/share/doc")
    assert shell("ls -A /usr/share/doc", tmp_path).stdout == ""


def test_too_many_files_and_too_deep_ones_end_a_run(tmp_path: Path) -> None:
    bounded = Limits(wall_s=60, folder_bytes=1 << 30)
    deep = "i=0; while [ $i -lt 60 ]; do mkdir d && cd d; i=$((i+1)); done"
    assert shell(deep, tmp_path, bounded).broke == "folder"


def test_what_was_written_to_the_trace_cannot_be_read_back_or_changed(tmp_path: Path) -> None:
    receiver = Receiver(1 << 20)
    fd = receiver.descriptor
    script = (
        f"import os\nos.write({fd}, b'first ')\n"
        f"def again(): return os.read(os.open('/proc/self/fd/{fd}', os.O_RDONLY), 9)\n"
        f"for attempt in (again, lambda: os.ftruncate({fd}, 0), lambda: os.pread({fd}, 9, 0)):\n"
        f"    try: attempt(); os.write({fd}, b'CHANGED')\n"
        f"    except OSError: os.write({fd}, b'refused ')\n"
    )
    receiver.start()
    run(Job(("/usr/bin/python3", "-c", script), tmp_path, descriptors=(fd,)), Limits(wall_s=20))
    assert receiver.finish().read() == b"first refused refused refused "
    receiver.close()


BURN = "import time\nwhile time.process_time() < 0.3: pass\n"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(BURN, id="the program"),
        pytest.param(
            f"import os\nif os.fork() == 0:\n exec({BURN!r})\nelse: os.wait()", id="a child that is waited for"
        ),
        pytest.param(
            "import os, signal, time\n"
            "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
            f"if os.fork() == 0:\n exec({BURN!r})\n os._exit(0)\n"
            "try: os.wait()\nexcept ChildProcessError: pass",
            id="a child that nobody waits for",
        ),
        pytest.param(
            "from threading import Thread\n"
            f"thread = Thread(target=exec, args=({BURN!r},))\nthread.start()\nthread.join()",
            id="a thread",
        ),
        pytest.param("while True: pass", id="until the time limit"),
    ],
)
def test_processor_time_is_counted_whoever_spends_it(script: str, tmp_path: Path) -> None:
    endless = script == "while True: pass"
    outcome = run(Job(("/usr/bin/python3", "-c", script), tmp_path), Limits(wall_s=2 if endless else 30))
    assert (0.1 if endless else 0.2) < outcome.cpu_s < 3  # other programs may be running


def test_a_program_that_waits_spends_no_processor_time(tmp_path: Path) -> None:
    assert shell("sleep 0.5", tmp_path).cpu_s < 0.2


def test_nvcc_is_told_which_host_compiler_to_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVCC_CCBIN", "g++-14")
    monkeypatch.setenv("GRADER_SECRET", "not for compilers")
    said = runner(10)(["sh", "-c", "echo $NVCC_CCBIN $GRADER_SECRET"], tmp_path)
    assert said.output.strip() == "g++-14"


def test_a_program_that_a_tool_starts_cannot_write_into_the_tools_log(tmp_path: Path) -> None:
    forge = "echo forged; for fd in /proc/*/fd/1 /proc/$PPID/fd/*; do echo forged > $fd; done; echo tried >&2"
    tool = ("sh", "-c", 'echo the log; "$@" 2>/dev/null; echo its end', "sh", *apart(("/bin/sh", "-c", forge)))
    outcome = run(Job(tool, tmp_path, starts_programs=True), Limits(wall_s=10))
    assert outcome.stdout == "the log\nits end\n"


@pytest.mark.parametrize(
    "way", ["os.fork()", "subprocess.run(['/bin/true'])", "os.posix_spawn('/bin/true', ['true'], {})"]
)
def test_a_program_that_may_start_threads_only_starts_no_process(way: str, tmp_path: Path) -> None:
    script = (
        "import os, subprocess, threading\n"
        "thread = threading.Thread(target=print, args=('a thread ran',))\nthread.start()\nthread.join()\n"
        f"try: {way}\nexcept OSError as error: print(type(error).__name__)\nelse: print('started')"
    )
    job = Job(("/usr/bin/python3", "-c", script), tmp_path, starts_processes=False)
    assert run(job, Limits(wall_s=20)).stdout.split("\n")[:2] == ["a thread ran", "PermissionError"]
    assert "started" in run(replace(job, starts_processes=True), Limits(wall_s=20)).stdout
