"""Tries each promise of the sandbox on this machine, by breaking it: what `grader doctor` prints.

Each promise is a small shell or Python script that is run as a submission would be: an attempt that must fail, or one
that must be stopped at a limit. What cannot be tried (no Python inside, say) is said to be not tried.
"""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.paths import course_root
from grader.sandbox import bubblewrap
from grader.sandbox.job import Job, Limits, Outcome
from grader.sandbox.supervise import confinement, run
from grader.scratch import scratch_folder


@dataclass(frozen=True)
class Promise:
    """What is promised, whether it held (None: could not be tried here), and how that was tried."""

    what: str
    held: bool | None
    how: str


_PYTHON = "/usr/bin/python3"
_QUICK = Limits(wall_s=10, memory_bytes=256 << 20, processes=64, file_bytes=1 << 20, folder_bytes=8 << 20)


def try_promises() -> list[Promise]:
    """Try them all; takes about two seconds."""
    with scratch_folder("promises") as folder, tempfile.NamedTemporaryFile(prefix="grader-private-") as private:
        private.write(b"private")
        private.flush()
        return list(_tried(folder, Path(private.name)))


def _tried(folder: Path, private: Path) -> Iterator[Promise]:
    contained = bubblewrap.problem() is None
    course = course_root()

    def says(what: str, script: str, how: str, needs_bubblewrap: bool = False) -> Promise:
        """The script succeeds where the promise is broken."""
        if needs_bubblewrap and not contained:
            return Promise(what, False, f"not without bubblewrap ({confinement()})")
        said = run(Job(("sh", "-c", f"if {script}\nthen echo BROKEN; else echo HELD; fi"), folder), _QUICK).stdout
        return Promise(what, "HELD" in said if said.endswith(("HELD\n", "BROKEN\n")) else None, how)

    def stops(what: str, script: str, limits: Limits, stopped: Callable[[Outcome], bool], how: str) -> Promise:
        outcome = run(Job(("sh", "-c", script), folder), limits)
        return Promise(what, stopped(outcome), f"{how}: {outcome.ending}")

    yield says("files of others cannot be read", f"cat {private}", f"cat of a file of mode 0600 in {private.parent}")
    yield says("the course is out of reach", f"ls {course}/assignment", f"ls {course}/assignment")
    yield says("accounts are not shown", "grep root: /etc/passwd", "grep root: /etc/passwd")
    yield says("the system cannot be changed", "touch /usr/bin/x || touch /etc/x", "touch in /usr/bin and /etc")
    yield says("the kernel's settings cannot be changed", "true >> /proc/sys/kernel/core_pattern", "opened for writing")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connect = _python(f"socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), 1)")
        yield says("no network", connect, "a connection to a listener of the grader's")
    yield says("no host of a virtual machine", _python("socket.socket(40, socket.SOCK_STREAM)"), "AF_VSOCK socket")
    yield says("no other process in sight", "[ $(ls /proc | grep -c '^[0-9]') -gt 8 ]", "counted /proc", True)
    yield says("no namespaces of its own", "unshare -U true", "unshare -U")
    gained = "grep -q -e 'NoNewPrivs:.0' -e 'CapEff:.*[1-9a-f]' /proc/self/status"
    yield says("no privileges", gained, "/proc/self/status", True)
    yield says("/tmp is private", f"ls {private.parent} | grep -q grader-private", f"ls {private.parent}", True)
    yield says("nothing of the environment", 'env | grep -q -e SECRET -e "^USER=" -e "^SSH"', "env")
    seconds = Limits(wall_s=0.3)
    yield stops("time is limited", "sleep 20", seconds, lambda o: o.timed_out, "sleep 20 under 0.3 s")
    yield stops(
        "memory is limited",
        _python("bytearray(600 << 20); time.sleep(0.5)"),
        _QUICK,
        lambda o: o.broke == "memory" or o.signal == "SIGKILL",
        "600 MB under 256 MB",
    )
    yield stops(
        "processes are limited",
        "for i in $(seq 400); do sleep 3 & done 2>/dev/null; [ $(jobs -r | wc -l) -gt 200 ]",
        _QUICK,
        lambda o: o.broke == "process" or o.exit_code != 0,
        "400 under 64",
    )
    yield stops(
        "file size is limited",
        "exec head -c 5000000 /dev/zero > big",
        _QUICK,
        lambda o: o.signal == "SIGXFSZ",
        "5 MB under 1 MB",
    )
    yield stops(
        "disk is limited",
        "for i in $(seq 40); do head -c 1000000 /dev/zero > f$i; done; sleep 1",
        _QUICK,
        lambda o: o.broke == "folder",
        "40 MB under 8 MB",
    )


def _python(statement: str) -> str:
    """A command that succeeds when the Python statement does; ends the script where there is no Python."""
    return f'{{ [ -x {_PYTHON} ] || exit 9; {_PYTHON} -c "import socket, time; {statement}" 2>/dev/null; }}'
