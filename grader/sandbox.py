"""Runs one program of unknown intent: in its own folder, under limits, and nothing of it left afterwards.

Theory of operation. The program starts in a session of its own with resource limits set before it executes. Its
output is read as it comes, and only so much of it kept, so a flood costs neither memory nor time. At its end, or
at the wall-clock limit, everything it started is killed: its process group, every process of its session, and
those that left the session, which the kernel hands to us because we are the subreaper of all we start.

This is the one place that runs processes: compilers, submissions and the baseline all come through `run`.
What it confines is said by `CONFINEMENT`, and a record repeats it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from grader.errors import MachineFault, UsageError
from grader.process import Completed, Runner

CONFINEMENT = "own session and folder, time and size limits"

_PR_SET_CHILD_SUBREAPER = 36
_STARTED: set[int] = set()
"""Process ids that this grader started and waits for itself; any other child of ours is an orphan of a run."""

PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
"""What a program sees of the grader's environment. Everything else, secrets first of all, stays outside."""


@dataclass(frozen=True)
class Limits:
    """What one run may take; None is no limit."""

    wall_s: float
    file_bytes: int | None = None
    kept_output_bytes: int = 64 * 1024
    open_files: int = 1024


@dataclass(frozen=True)
class Job:
    """A command, the folder it runs in, and what it gets beside the passed-on environment."""

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `exit_code` is None when a signal ended it; `signal` then names it (SIGSEGV)."""

    exit_code: int | None
    signal: str | None
    timed_out: bool
    wall_s: float
    cpu_s: float
    peak_memory_bytes: int
    stdout: str
    stderr: str
    output_bytes: int
    killed_leftovers: int = 0

    @property
    def ending(self) -> str:
        """For people: 'exit code 3', 'SIGSEGV', 'stopped at its time limit'."""
        if self.timed_out:
            return "stopped at its time limit"
        return self.signal or f"exit code {self.exit_code}"


def run(job: Job, limits: Limits) -> Outcome:
    """Run `job` to its end or its limit. Raises UsageError when the command cannot be started at all, and
    MachineFault when the machine has no process or memory left for it."""
    _become_subreaper()
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environment |= {"HOME": str(job.folder), "TMPDIR": str(job.folder), **job.environment}

    def confine() -> None:
        if limits.file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_bytes, limits.file_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        ceiling = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        files = limits.open_files if ceiling == resource.RLIM_INFINITY else min(limits.open_files, ceiling)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    began = time.monotonic()
    try:
        process = subprocess.Popen(
            job.command,
            cwd=job.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=confine,
        )
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.ENOMEM):
            raise MachineFault(f"{job.command[0]} could not be started: {error.strerror}; try again later.") from error
        raise UsageError(f"{job.command[0]} cannot be run: {error.strerror}.") from error

    _STARTED.add(process.pid)
    assert process.stdout is not None and process.stderr is not None
    stdout = _Drain(process.stdout, limits.kept_output_bytes)
    stderr = _Drain(process.stderr, limits.kept_output_bytes)
    try:
        timed_out = not _ended_within(process.pid, limits.wall_s)
        wall_s = time.monotonic() - began
        leftovers = 0 if timed_out else _kill_session(process.pid)
    finally:  # also on Ctrl-C: nothing of the run may live on
        _kill_session(process.pid, itself=True)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        _STARTED.discard(process.pid)
        orphans = _kill_orphans()
    stdout.finish()
    stderr.finish()
    code = process.returncode
    return Outcome(
        exit_code=code if code >= 0 else None,
        signal=signal.Signals(-code).name if code < 0 else None,
        timed_out=timed_out,
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_memory_bytes=usage.ru_maxrss * 1024,
        stdout=stdout.text,
        stderr=stderr.text,
        output_bytes=stdout.total + stderr.total,
        killed_leftovers=leftovers + orphans,
    )


def runner(wall_s: float, environment: Mapping[str, str] | None = None) -> Runner:
    """A `Runner` for build tools: each command gets `wall_s` seconds and keeps 1 MB of its messages.

    A command that runs out of time comes back with exit code 124, as from timeout(1), and says so in its output.
    """

    def run_tool(command: Sequence[str], folder: Path) -> Completed:
        job = Job(tuple(command), folder, environment or {})
        outcome = run(job, Limits(wall_s=wall_s, kept_output_bytes=1 << 20))
        output = outcome.stdout + outcome.stderr
        if outcome.timed_out:
            output += f"\n{Path(command[0]).name} was stopped after {wall_s:g} s.\n"
            return Completed(124, output, outcome.wall_s)
        code = outcome.exit_code if outcome.exit_code is not None else 128
        return Completed(code, output, outcome.wall_s)

    return run_tool


class _Drain:
    """Reads a stream to its end in the background and keeps its first `keep` bytes."""

    def __init__(self, stream: IO[bytes], keep: int) -> None:
        self._stream = stream
        self._keep = keep
        self._kept = bytearray()
        self.total = 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._stream.fileno(), 1 << 16):
                self.total += len(chunk)
                room = self._keep - len(self._kept)
                if room > 0:
                    self._kept += chunk[:room]

    def finish(self) -> None:
        """Wait for the end of the stream; every writer is dead by now, so it is near."""
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._stream.close()

    @property
    def text(self) -> str:
        return self._kept.decode("utf-8", errors="replace")


def _ended_within(pid: int, seconds: float) -> bool:
    """Wait for a child without reaping it; whether it ended in time."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)


def _kill_session(pid: int, itself: bool = False) -> int:
    """Kill the process group and session of `pid` (a session leader); how many other processes were alive."""
    killed = 0
    for member in _processes():
        if member.session == pid and member.pid != pid and not member.zombie:
            killed += _kill(member.pid)
    if itself:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        _kill(pid)
    return killed


def _kill_orphans() -> int:
    """Kill and reap processes that were handed to us when their parent died: daemons of a run. Repeats, since
    killing one can hand us its children."""
    killed = 0
    for _ in range(100):
        ours = os.getpid()
        orphans = [p for p in _processes() if p.parent == ours and p.pid not in _STARTED and p.session != os.getsid(0)]
        if not orphans:
            return killed
        for orphan in orphans:
            killed += 0 if orphan.zombie else _kill(orphan.pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(orphan.pid, 0)
    return killed


def _kill(pid: int) -> int:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return 0
    return 1


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    session: int
    zombie: bool


def _processes() -> list[_Process]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            # pid (name, which may hold anything) state ppid pgrp session …: proc(5)
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            found.append(_Process(int(entry.name), int(fields[1]), int(fields[3]), fields[0] == "Z"))
    return found


def _become_subreaper() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run_attached(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command of the user's own, unconfined, on their terminal and in their folder; its exit code, 128 + N
    when signal N ended it."""
    process = subprocess.Popen(command, env=os.environ | environment)
    while True:
        try:
            code = process.wait()
            return code if code >= 0 else 128 - code
        except KeyboardInterrupt:  # the program got the same Ctrl-C; it decides what to do
            continue
