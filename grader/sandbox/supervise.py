"""Runs one program of unknown intent: confined, under limits, and nothing of it left afterwards.

Theory of operation. The grader forks; the child enters the run's control group, sets its resource limits and becomes
bwrap, which makes the namespaces and then the program. The grader drains both output streams in threads (so a flood
costs neither memory nor time), and waits on the process's descriptor, waking now and then to measure what no kernel
limit covers. At the program's end, or at a limit, everything it started is killed: inside bubblewrap the kernel does
that with the namespace; without it we kill the process group, the session, and what left the session, which is
handed to us because we are the subreaper of all we start.

Who trusts whom. The program is trusted with nothing. bwrap and the kernel are trusted. If the grader itself is
killed, bwrap dies with it (PR_SET_PDEATHSIG), its namespace with bwrap, and a watcher, a shell that waits for the
grader's end of a pipe to close, removes control groups and folders.

This is the one place that runs processes: compilers, submissions and the baseline all come through `run`.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import errno
import os
import resource
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from grader.errors import GraderFault, MachineFault, UsageError
from grader.process import Completed, Runner
from grader.sandbox import bubblewrap, cgroup, seccomp
from grader.sandbox.job import Job, Limits, Outcome

_PR_SET_CHILD_SUBREAPER = 36
_STARTED: set[int] = set()
"""Process ids that this grader started and waits for itself; any other child of ours is an orphan of a run."""

_SPAWNING = threading.Lock()
"""Held while a child is started and noted in _STARTED, and while orphans are looked for: runs may be parallel."""

_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
"""What a program sees of the grader's environment. Everything else, secrets first of all, stays outside."""

_MEASURE_EVERY_S = 0.1


def confinement() -> str:
    """How runs are confined on this machine, for records and people."""
    why = bubblewrap.problem()
    if why is None:
        groups = cgroup.usable()
        return "bubblewrap, seccomp" + (f", cgroups {groups}" if groups else "")
    return f"own session, time and size limits only: {why}"


def require() -> None:
    """Raises MachineFault unless programs can be fully confined here."""
    if (why := bubblewrap.problem()) is not None:
        raise MachineFault(f"--require-sandbox: {why}.")


def run(job: Job, limits: Limits) -> Outcome:
    """Run `job` to its end or its limit. Raises UsageError when the command cannot be started at all, and
    MachineFault when the machine has no process or memory left for it."""
    _become_subreaper()
    _start_watcher()
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= {"HOME": str(job.folder), "TMPDIR": "/tmp", "LC_ALL": "C.UTF-8", **job.environment}
    if shutil.which(job.command[0], path=environment.get("PATH")) is None:
        raise UsageError(f"{job.command[0]} cannot be run: there is no such program.")
    group = cgroup.make(limits.memory_bytes, limits.processes)
    try:
        if bubblewrap.problem() is not None:
            return _supervise(job, limits, list(job.command), environment, (), group)
        with _memory_file(seccomp.filter_program() or b"") as filter_fd, _memory_file(b"") as status_fd:
            has_filter = os.fstat(filter_fd).st_size > 0
            command = bubblewrap.command_line(job, environment, filter_fd if has_filter else None, status_fd)
            outcome = _supervise(job, limits, command, environment, (filter_fd, status_fd), group)
            if not outcome.broke and b"exit-code" not in os.pread(status_fd, 1 << 16, 0):
                raise GraderFault(f"The sandbox for {Path(job.command[0]).name} could not be set up: {outcome.stderr}")
            return outcome
    finally:
        if group is not None:
            group.remove()


@contextlib.contextmanager
def _memory_file(content: bytes) -> Iterator[int]:
    """A descriptor of a file in memory, at its beginning."""
    descriptor = os.memfd_create("grader")
    try:
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _supervise(
    job: Job,
    limits: Limits,
    command: list[str],
    environment: dict[str, str],
    descriptors: tuple[int, ...],
    group: cgroup.Group | None,
) -> Outcome:
    def confine() -> None:
        if group is not None:
            group.enter()
        for name, value in _resource_limits(limits):
            resource.setrlimit(name, (value, value))

    began = time.monotonic()
    try:
        with _SPAWNING:
            process = subprocess.Popen(
                command,
                cwd=job.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=confine,
                pass_fds=descriptors,
            )
            _STARTED.add(process.pid)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.ENOMEM):
            raise MachineFault(f"{job.command[0]} could not be started: {error.strerror}; try again later.") from error
        raise UsageError(f"{job.command[0]} cannot be run: {error.strerror}.") from error
    except subprocess.SubprocessError as error:
        raise MachineFault(f"{job.command[0]} could not be confined: {error}; see `grader doctor`.") from error

    assert process.stdout is not None and process.stderr is not None
    stdout = _Drain(process.stdout, limits.kept_output_bytes)
    stderr = _Drain(process.stderr, limits.kept_output_bytes)
    gauge = _Gauge(process.pid, limits, group, (job.folder, *job.writable))
    try:
        broke = _wait(process.pid, began + limits.wall_s, gauge)
        wall_s = time.monotonic() - began
        leftovers = 0 if broke else _kill_session(process.pid)
    finally:  # also on Ctrl-C: nothing of the run may live on
        _kill_session(process.pid, itself=True)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        _STARTED.discard(process.pid)
        orphans = 0 if descriptors else _kill_orphans()  # a namespace leaves none
    stdout.finish()
    stderr.finish()
    if group is not None and group.ran_out_of_memory():
        broke = broke or "memory"
    exit_code, signal_name = _ending(process.returncode)
    peak = (group.peak_memory_bytes() if group is not None else None) or max(gauge.peak, usage.ru_maxrss * 1024)
    return Outcome(
        exit_code=exit_code,
        signal=signal_name,
        broke=broke,
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_memory_bytes=peak,
        stdout=stdout.text,
        stderr=stderr.text,
        output_bytes=stdout.total + stderr.total,
        killed_leftovers=leftovers + orphans,
    )


def _resource_limits(limits: Limits) -> Iterator[tuple[int, int]]:
    yield resource.RLIMIT_CORE, 0
    ceiling = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = limits.open_files if ceiling == resource.RLIM_INFINITY else min(limits.open_files, ceiling)
    yield resource.RLIMIT_NOFILE, files
    if limits.file_bytes is not None:
        yield resource.RLIMIT_FSIZE, limits.file_bytes
    if limits.cpu_s is not None:
        yield resource.RLIMIT_CPU, max(1, round(limits.cpu_s))


def _ending(code: int) -> tuple[int | None, str | None]:
    """(exit code, signal name). bwrap and shells report a program that signal N ended as exit code 128 + N."""
    number = -code if code < 0 else code - 128 if 128 < code <= 128 + 31 else 0
    if number:
        return None, signal.Signals(number).name
    return code, None


def _wait(pid: int, deadline: float, gauge: _Gauge) -> str:
    """Wait for a child without reaping it; the name of the limit it broke, or ''."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "time"
            if poll.poll(min(left, _MEASURE_EVERY_S) * 1000):
                return ""
            if broke := gauge.measure():
                return broke
    finally:
        os.close(descriptor)


class _Gauge:
    """Measures what no limit of the kernel covers here: the tree's memory without a group, the folders' size."""

    def __init__(self, pid: int, limits: Limits, group: cgroup.Group | None, folders: Sequence[Path]) -> None:
        self._pid = pid
        self._limits = limits
        self._memory = limits.memory_bytes is not None and not (group is not None and group.bounds_memory)
        self._processes = limits.processes is not None and not (group is not None and group.bounds_processes)
        self._folders = folders
        self.peak = 0

    def measure(self) -> str:
        """The limit that is broken now, or ''."""
        if self._memory or self._processes:
            tree = _tree(self._pid)
            self.peak = max(self.peak, sum(_resident_bytes(pid) for pid in tree))
            if self._memory and self.peak > (self._limits.memory_bytes or 0):
                return "memory"
            if self._processes and len(tree) > (self._limits.processes or 0):
                return "process"
        if self._limits.folder_bytes is not None:
            size = sum(_folder_bytes(folder, self._limits.folder_bytes) for folder in self._folders)
            if size > self._limits.folder_bytes:
                return "folder"
        return ""


def _folder_bytes(folder: Path, enough: int) -> int:
    """Disk space taken below `folder`; stops counting past `enough`."""
    size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(root, name)).st_blocks * 512 + 512  # noqa: PTH118 (hot loop)
        if size > enough:
            break
    return size


def _tree(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for process in _processes():
        children.setdefault(process.parent, []).append(process.pid)
    found, waiting = [], [pid]
    while waiting:
        current = waiting.pop()
        found.append(current)
        waiting += children.get(current, [])
    return found


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def runner(wall_s: float, readable: Sequence[Path] = (), writable: Sequence[Path] = ()) -> Runner:
    """A `Runner` for build tools: each command gets `wall_s` seconds and keeps 1 MB of its messages.

    A command sees the system, its folder (writable), and `readable` and `writable` beside. One that runs out of
    time comes back with exit code 124, as from timeout(1), and says so in its output.
    """

    def run_tool(command: Sequence[str], folder: Path) -> Completed:
        job = Job(tuple(command), folder, readable=tuple(readable), writable=tuple(writable))
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
    ours, session = os.getpid(), os.getsid(0)
    with _SPAWNING:
        for _ in range(100):
            orphans = [p for p in _processes() if p.parent == ours and p.pid not in _STARTED and p.session != session]
            if not orphans:
                break
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


@cache
def _start_watcher() -> None:
    """Start the shell that cleans up if we are killed: it waits for our end of its pipe to close."""
    patterns = cgroup.folder_patterns(os.getpid())
    if not patterns:
        return
    ours, theirs = os.pipe()
    script = f"read -r _; sleep 0.2; rmdir {' '.join(patterns)} 2>/dev/null; exit 0"
    watcher = subprocess.Popen(
        ["sh", "-c", script], stdin=ours, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    os.close(ours)
    os.set_inheritable(theirs, False)
    _STARTED.add(watcher.pid)  # the caller is the first run: no other thread starts anything yet
    atexit.register(os.close, theirs)
