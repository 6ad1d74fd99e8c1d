"""Tries each promise of the sandbox on this machine, by breaking it: what `grader doctor` prints.

Each promise is a small shell or Python script that is run as a submission would be: an attempt that must fail, or one
that must be stopped at a limit. What cannot be tried (no Python inside, say) is said to be not tried.
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
    """What is promised, whether it held (None: could not be tried here), and how that was tried."""

    what: str
    held: bool | None
    how: str


_PYTHON = "/usr/bin/python3"
_QUICK = Limits(wall_s=10, memory_bytes=256 << 20, processes=64, file_bytes=1 << 20, folder_bytes=8 << 20)


def _python(statement: str) -> str:
    """A command that succeeds when the Python statement does; ends the script where there is no Python."""
    return f'{{ [ -x {_PYTHON} ] || exit 9; {_PYTHON} -c "import socket, time; {statement}" 2>/dev/null; }}'


@dataclass(frozen=True)
class _Attempt:
    """A shell script that succeeds where the promise is broken. `how` says what it does."""

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
    """A shell script that goes beyond a limit. `stopped` tells by its end whether it was kept from that."""

    what: str
    script: str
    how: str
    stopped: Callable[[Outcome], bool]
    limits: Limits = _QUICK

    def tried(self, folder: Path) -> Promise:
        outcome = run(Job(("sh", "-c", self.script), folder), self.limits)
        return Promise(self.what, self.stopped(outcome), f"{self.how}: {outcome.ending}")


def try_promises(course: Path | None) -> list[Promise]:
    """Try them all; takes about two seconds. `course`: the folder that holds the course's files, if there is one."""
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
    """What must not succeed. `private`: a file of the grader's in the folder of temporary files; `port`: one of this
    machine's that something listens on."""
    look = f"ls {course}/assignment"
    connect = _python(f"socket.create_connection(('127.0.0.1', {port}), 1)")
    gained = "grep -q -e 'NoNewPrivs:.0' -e 'CapEff:.*[1-9a-f]' /proc/self/status"
    return (
        _Attempt("files of others cannot be read", f"cat {private}", f"cat of a file of mode 0600 in {private.parent}"),
        *((_Attempt("the course is out of reach", look, look),) if course is not None else ()),
        _Attempt("accounts are not shown", "grep root: /etc/passwd", "grep root: /etc/passwd"),
        _Attempt("the system cannot be changed", "touch /usr/bin/x || touch /etc/x", "touch in /usr/bin and /etc"),
        _Attempt(
            "the kernel's settings cannot be changed", "true >> /proc/sys/kernel/core_pattern", "opened for writing"
        ),
        _Attempt("no network", connect, "a connection to a listener of the grader's"),
        _Attempt("no host of a virtual machine", _python("socket.socket(40, socket.SOCK_STREAM)"), "AF_VSOCK socket"),
        _Attempt("no other process in sight", "[ $(ls /proc | grep -c '^[0-9]') -gt 8 ]", "counted /proc", True),
        _Attempt("no namespaces of its own", "unshare -U true", "unshare -U"),
        _Attempt("no privileges", gained, "/proc/self/status", True),
        _Attempt("/tmp is private", f"ls {private.parent} | grep -q grader-private", f"ls {private.parent}", True),
        _Attempt("nothing of the environment", 'env | grep -q -e SECRET -e "^USER=" -e "^SSH"', "env"),
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
