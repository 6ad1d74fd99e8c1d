"""Tries to break each promise of the sandbox on this machine; `grader doctor` prints the results.

Each promise is tested by a small shell or Python script that runs like a submission. It either attempts something that
must fail, or exceeds a limit at which it must be stopped. A promise that cannot be tested (for example, because
the sandbox has no Python) is reported as untested.
"""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grader.sandbox import bubblewrap
from grader.sandbox.job import Job, Limits, Outcome
from grader.sandbox.scratch import scratch_folder
from grader.sandbox.supervise import run


@dataclass(frozen=True)
class Promise:
    """A promise of the sandbox, whether it held (None if it could not be tested here), and how it was tested."""

    what: str
    held: bool | None
    how: str


_PYTHON = "/usr/bin/python3"
_QUICK = Limits(wall_s=10, memory_bytes=256 << 20, processes=64, file_bytes=1 << 20, folder_bytes=8 << 20)


def _python(statement: str) -> str:
    """A shell command that succeeds if the Python statement does, and ends the script if there is no Python."""
    return f'{{ [ -x {_PYTHON} ] || exit 9; {_PYTHON} -c "import socket, time; {statement}" 2>/dev/null; }}'


@dataclass(frozen=True)
class _Attempt:
    """A shell script that succeeds if the promise is broken. `how` describes what it does."""

    what: str
    script: str
    how: str
    needs_bubblewrap: bool = False

    def tried(self, folder: Path) -> Promise:
        if self.needs_bubblewrap and bubblewrap.problem() is not None:
            return Promise(self.what, False, "it needs bubblewrap")
        script = f"if {self.script}\nthen echo BROKEN; else echo HELD; fi"
        said = run(Job(("sh", "-c", script), folder), _QUICK).stdout
        return Promise(self.what, "HELD" in said if said.endswith(("HELD\n", "BROKEN\n")) else None, self.how)


@dataclass(frozen=True)
class _Excess:
    """A shell script that exceeds a limit. `stopped` decides from its outcome whether the sandbox stopped it."""

    what: str
    script: str
    how: str
    stopped: Callable[[Outcome], bool]
    limits: Limits = _QUICK

    def tried(self, folder: Path) -> Promise:
        outcome = run(Job(("sh", "-c", self.script), folder), self.limits)
        return Promise(self.what, self.stopped(outcome), f"{self.how}: {outcome.ending}")


def try_promises(course: Path | None) -> list[Promise]:
    """Test all promises, in about two seconds. `course` is the folder with the course's files, if there is one."""
    with (
        scratch_folder("promises") as folder,
        tempfile.NamedTemporaryFile(prefix="grader-private-") as private,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        private.write(b"private")
        private.flush()
        attempts = _attempts(course, Path(private.name), listener.getsockname()[1])
        return [*(each.tried(folder) for each in attempts), *(each.tried(folder) for each in _EXCESSES)]


def _attempts(course: Path | None, private: Path, port: int) -> tuple[_Attempt, ...]:
    """The attempts that must fail. `private` is a file of the grader in the folder for temporary files, and `port` a
    port on which the grader listens."""
    look = f"ls {course}/assignment"
    connect = _python(f"socket.create_connection(('127.0.0.1', {port}), 1)")
    gained = "grep -q -e 'NoNewPrivs:.0' -e 'CapEff:.*[1-9a-f]' /proc/self/status"
    return (
        _Attempt("files of others cannot be read", f"cat {private}", f"cat of a file of mode 0600 in {private.parent}"),
        *((_Attempt("the course is out of reach", look, look),) if course is not None else ()),
        _Attempt("accounts are not shown", "grep root: /etc/passwd", "grep root: /etc/passwd"),
        _Attempt("the system cannot be changed", "touch /usr/bin/x || touch /etc/x", "touch in /usr/bin and /etc"),
        _Attempt(
            "the kernel's settings cannot be changed", "true >> /proc/sys/kernel/core_pattern", "open core_pattern"
        ),
        _Attempt("no network", connect, "connect to a port of the grader"),
        _Attempt("no socket to a virtual machine's host", _python("socket.socket(40, socket.SOCK_STREAM)"), "AF_VSOCK"),
        _Attempt("no other process visible", "[ $(ls /proc | grep -c '^[0-9]') -gt 8 ]", "count /proc", True),
        _Attempt("no new namespaces", "unshare -U true", "unshare -U"),
        _Attempt("no privileges", gained, "/proc/self/status", True),
        _Attempt("/tmp is private", f"ls {private.parent} | grep -q grader-private", f"ls {private.parent}", True),
        _Attempt("the environment is not passed on", 'env | grep -q -e SECRET -e "^USER=" -e "^SSH"', "env"),
    )


_EXCESSES = (
    _Excess("time is limited", "sleep 20", "sleep 20 under 0.3 s", lambda o: o.timed_out, Limits(wall_s=0.3)),
    _Excess(
        "memory is limited",
        _python("bytearray(600 << 20); time.sleep(0.5)"),
        "600 MB under 256 MB",
        lambda o: o.broke == "memory" or o.signal == "SIGKILL",
    ),
    _Excess(
        "processes are limited",
        "for i in $(seq 400); do sleep 3 & done 2>/dev/null; [ $(jobs -r | wc -l) -gt 200 ]",
        "400 under 64",
        lambda o: o.broke == "process" or o.exit_code != 0,
    ),
    _Excess(
        "file size is limited",
        "exec head -c 5000000 /dev/zero > big",
        "5 MB under 1 MB",
        lambda o: o.signal == "SIGXFSZ",
    ),
    _Excess(
        "disk is limited",
        "for i in $(seq 40); do head -c 1000000 /dev/zero > f$i; done; sleep 1",
        "40 MB under 8 MB",
        lambda o: o.broke == "folder",
    ),
)
