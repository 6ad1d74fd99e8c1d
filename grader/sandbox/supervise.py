"""Runs one program of unknown intent: confined, under limits, and nothing of it left afterwards.

Theory of operation. The grader forks; the child enters the run's control group, sets its resource limits and becomes
bwrap, which makes the namespaces and then the program. The grader drains both output streams in threads (so a flood
costs neither memory nor time), and waits on the process's descriptor, waking now and then to measure what no kernel
limit covers. At the program's end, or at a limit, everything it started is killed: inside bubblewrap the kernel does
that with the namespace, and is done when process 1 of the namespace can be reaped, for which we wait before anyone
looks at the output. Without bubblewrap (see `landlock`) we kill the session, which nothing can leave.

Who trusts whom. The program is trusted with nothing. bwrap and the kernel are trusted. If the grader itself is
killed, bwrap dies with it (PR_SET_PDEATHSIG), its namespace with bwrap, and the watcher removes what is left.

This is the one place that runs processes: compilers, submissions and the baseline all come through `run`.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.sandbox import bubblewrap, cgroup, landlock, process_tree, seccomp, watcher
from grader.sandbox.gauge import Gauge
from grader.sandbox.job import Job, Limits, Outcome
from grader.sandbox.private import hidden_in_system, visible_folders
from grader.sandbox.streams import Drain

_PR_SET_CHILD_SUBREAPER = 36
_OPEN_FILES = 1024

_PASSED_ON = ("LANG", "TZ")
"""What a program sees of the grader's environment. Everything else, secrets first of all, stays outside."""
_PASSED_IN_PART = ("PATH", "LD_LIBRARY_PATH")
"""Of these, the folders that it can see."""

_INIT_PID = re.compile(rb'"child-pid": (\d+)')


def confinement() -> str:
    """How runs are confined on this machine, for records and people."""
    groups = cgroup.usable()
    suffix = f", cgroups {groups}" if groups else ""
    why = bubblewrap.problem()
    if why is None:
        return f"bubblewrap, seccomp{suffix}"
    if landlock.version():
        return f"Landlock {landlock.version()}, seccomp, resource limits{suffix}; no bubblewrap: {why}"
    return f"seccomp and resource limits only{suffix}; no Landlock in this kernel, no bubblewrap: {why}"


@dataclass(frozen=True)
class _Ended:
    """How many processes were still alive at the end of a run and were killed, and the seconds of processor time of
    those that were waited for, not counting the one that was started."""

    killed: int
    cpu_s: float


@dataclass(frozen=True)
class _Way:
    """How a job is run on this machine: the command that is started, with this environment and these descriptors, in
    this control group and under these rules, where there are any. `end_all` takes the process's id, and kills all
    that it started."""

    command: Sequence[str]
    environment: Mapping[str, str]
    descriptors: Sequence[int]
    group: cgroup.Group | None
    rules: landlock.Rules | None
    end_all: Callable[[int], _Ended]


def require() -> None:
    """Raises MachineFault unless programs can be fully confined here."""
    if (why := bubblewrap.problem()) is not None:
        raise MachineFault(f"--require-sandbox: {why}; leave the option out to make do with less.")


def tool_problem() -> str:
    """Why a tool that starts CUDA programs, as Nsight Compute does, cannot be run confined here; '' where it can."""
    if bubblewrap.problem() is None or not (why := landlock.tool_problem()):
        return ""
    return f"{why}: install bubblewrap (apt install bubblewrap), or run the grader as an ordinary user"


def run(job: Job, limits: Limits) -> Outcome:
    """Run `job` to its end or its limit. Raises UsageError when the command cannot be started at all, and
    MachineFault when the machine has no process or memory left for it."""
    if linked := next((path for path in (job.folder, *job.writable) if path.is_symlink()), None):
        raise GraderFault(f"{linked} is a link: what it leads to is not opened for writing.")
    _become_subreaper()
    watcher.claim_place(job.folder.parent)
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    for name in _PASSED_IN_PART:
        if folders := visible_folders(os.environ.get(name, ""), job.readable):
            environment[name] = folders
    environment |= {"HOME": str(job.folder), "TMPDIR": "/tmp", "LC_ALL": "C.UTF-8", **job.environment}
    if shutil.which(job.command[0], path=environment.get("PATH")) is None:
        raise UsageError(f"{job.command[0]} cannot be run: there is no such program.")
    group = cgroup.make(limits.memory_bytes, limits.processes)
    try:
        if bubblewrap.problem() is None:
            return _run_contained(job, limits, environment, group)
        return _run_restricted(job, limits, environment | {"TMPDIR": str(job.folder)}, group)
    finally:
        if group is not None:
            group.remove()


def _run_contained(job: Job, limits: Limits, environment: dict[str, str], group: cgroup.Group | None) -> Outcome:
    """In a bubblewrap container."""
    with contextlib.ExitStack() as files:
        code = seccomp.filter_program(processes=job.starts_processes)
        filter_fd = files.enter_context(_memory_file(code)) if code else None
        status_fd = files.enter_context(_memory_file(b""))
        accounts = {name: files.enter_context(_memory_file(text)) for name, text in bubblewrap.ACCOUNTS.items()}
        command = bubblewrap.command_line(
            job,
            environment,
            seccomp_fd=filter_fd,
            status_fd=status_fd,
            accounts=accounts,
            hidden=hidden_in_system(),
        )
        ours = (status_fd, *accounts.values(), *((filter_fd,) if filter_fd is not None else ()))

        def end_all(pid: int) -> _Ended:
            """Kill bwrap and process 1 of its namespace, and wait until the kernel has ended everything in it."""
            process_tree.kill(pid)
            cpu_s = 0.0
            if found := _INIT_PID.search(os.pread(status_fd, 1 << 16, 0)):
                init = int(found.group(1))
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # then init is our child
                process_tree.kill(init)
                cpu_s = _reap(init)
            return _Ended(0, cpu_s)

        way = _Way(command, environment, (*job.descriptors, *ours), group, None, end_all)
        outcome = _supervise(job, limits, way)
        if not outcome.broke and b"exit-code" not in os.pread(status_fd, 1 << 16, 0):
            raise GraderFault(f"The sandbox for {Path(job.command[0]).name} could not be set up: {outcome.stderr}")
        return outcome


def _run_restricted(job: Job, limits: Limits, environment: dict[str, str], group: cgroup.Group | None) -> Outcome:
    """Under Landlock, seccomp and resource limits."""

    def end_all(pid: int) -> _Ended:
        killed = process_tree.kill_session(pid, itself=True)
        orphans = _kill_orphans(pid)
        watcher.session_ended(pid)
        return _Ended(killed + orphans.killed, orphans.cpu_s)

    rules = landlock.rules(job)
    try:
        return _supervise(job, limits, _Way(job.command, environment, job.descriptors, group, rules, end_all))
    finally:
        rules.close()


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


def _supervise(job: Job, limits: Limits, way: _Way) -> Outcome:
    """Run `job` to its end or its limit, and end all that it started."""
    began = time.monotonic()
    process, printed = _started(job, limits, way)
    assert process.stderr is not None
    stdout = Drain(printed, limits.kept_output_bytes)
    stderr = Drain(process.stderr, limits.kept_output_bytes)
    gauge = Gauge(process.pid, limits, way.group, (job.folder, *job.writable))
    broke, ended, wall_s = "", _Ended(0, 0.0), 0.0
    try:
        broke = _wait(process.pid, began + limits.wall_s, gauge)
        wall_s = time.monotonic() - began
        broke = broke or gauge.measure_folders()  # what it left may be too much although it was quick
    finally:  # also on Ctrl-C: nothing of the run may live on
        ended = way.end_all(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    stdout.finish()
    stderr.finish()
    group = way.group
    if group is not None and group.ran_out_of_memory():
        broke = "memory"  # whatever came of it later: a child killed for its memory may be waited for in vain
    exit_code, signal_name = _ending(process.returncode)
    return Outcome(
        exit_code=exit_code,
        signal=signal_name,
        broke=broke,
        wall_s=wall_s,
        cpu_s=max(_cpu_s(usage) + ended.cpu_s, gauge.cpu_s, (group.cpu_s() if group is not None else None) or 0.0),
        peak_memory_bytes=(group.peak_memory_bytes() if group is not None else None)
        or max(gauge.peak, usage.ru_maxrss * 1024),
        stdout=stdout.text,
        stderr=stderr.text,
        killed_leftovers=0 if broke else ended.killed,
    )


def _started(job: Job, limits: Limits, way: _Way) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """The process, confined, and our end of its stdout; see `run` for what is raised."""
    if not job.starts_programs:
        process = _start(job, limits, way, subprocess.PIPE)
        assert process.stdout is not None
        return process, process.stdout
    ours, theirs = socket.socketpair()
    with theirs:
        process = _start(job, limits, way, theirs.fileno())
    return process, os.fdopen(ours.detach(), "rb", buffering=0)


def _start(job: Job, limits: Limits, way: _Way, stdout: int) -> subprocess.Popen[bytes]:
    resource_limits = list(_resource_limits(limits, way.group))

    def confine() -> None:
        if way.group is not None:
            way.group.enter()
        for name, value in resource_limits:
            resource.setrlimit(name, (value, value))
        if way.rules is not None:
            way.rules.apply()

    try:
        process = subprocess.Popen(
            way.command,
            cwd=job.folder,
            env=way.environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=confine,
            pass_fds=way.descriptors,
        )
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.ENOMEM):
            raise MachineFault(f"{job.command[0]} could not be started: {error.strerror}; try again later.") from error
        raise UsageError(f"{job.command[0]} cannot be run: {error.strerror}.") from error
    except subprocess.SubprocessError as error:
        raise MachineFault(f"{job.command[0]} could not be confined: {error}; see `grader doctor`.") from error
    if way.rules is not None:
        watcher.claim_session(process.pid)
    return process


def _resource_limits(limits: Limits, group: cgroup.Group | None) -> Iterator[tuple[int, int]]:
    yield resource.RLIMIT_CORE, 0
    ceiling = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    yield resource.RLIMIT_NOFILE, _OPEN_FILES if ceiling == resource.RLIM_INFINITY else min(_OPEN_FILES, ceiling)
    if limits.file_bytes is not None:
        yield resource.RLIMIT_FSIZE, limits.file_bytes
    if limits.processes is not None and not (group is not None and group.bounds_processes):
        ceiling = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        # The kernel counts a user's threads across all runs.
        wanted = process_tree.threads_of(os.getuid()) + limits.processes
        yield resource.RLIMIT_NPROC, wanted if ceiling == resource.RLIM_INFINITY else min(wanted, ceiling)


def _ending(code: int) -> tuple[int | None, str | None]:
    """(exit code, signal name). bwrap and shells report a program that signal N ended as exit code 128 + N."""
    number = -code if code < 0 else code - 128 if 128 < code <= 128 + signal.SIGRTMAX else 0
    return (None, _signal_name(number)) if number else (code, None)


def _signal_name(number: int) -> str:
    """SIGSEGV; of signals without a name of their own (signal(7)), SIGRTMIN+3, or the number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        first = int(signal.SIGRTMIN)
        return f"SIGRTMIN+{number - first}" if first <= number else f"signal {number}"


def _wait(pid: int, deadline: float, gauge: Gauge) -> str:
    """Wait for a child without reaping it; the name of the limit it broke, or ''."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "time"
            if poll.poll(min(left, gauge.pause_s) * 1000):
                return ""
            if gauge.due and (broke := gauge.measure()):
                return broke
    finally:
        os.close(descriptor)


def _kill_orphans(session: int) -> _Ended:
    """Kill and reap processes of `session` that were handed to us when their parent died. Repeats, since killing one
    can hand us its children."""
    killed, cpu_s = 0, 0.0
    for _ in range(100):
        ours = os.getpid()
        orphans = [p for p in process_tree.processes() if p.parent == ours and p.session == session != p.pid]
        if not orphans:
            break
        for orphan in orphans:
            killed += 0 if orphan.zombie else process_tree.kill(orphan.pid)
            cpu_s += _reap(orphan.pid)
    return _Ended(killed, cpu_s)


def _reap(pid: int) -> float:
    """Wait for a child; seconds of processor time that it and all that it waited for took."""
    with contextlib.suppress(ChildProcessError):
        return _cpu_s(os.wait4(pid, 0)[2])
    return 0.0


def _cpu_s(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


@cache
def _become_subreaper() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run_attached(command: Sequence[str], environment: Mapping[str, str], called: str) -> int:
    """Run a command of the user's own, unconfined, on their terminal and in their folder; its exit code, 128 + N
    when signal N ended it. `called` is what it sees as its own name."""
    process = subprocess.Popen([called, *command[1:]], executable=command[0], env=os.environ | environment)
    while True:
        try:
            code = process.wait()
            return code if code >= 0 else 128 - code
        except KeyboardInterrupt:  # the program got the same Ctrl-C; it decides what to do
            continue
