"""Runs one untrusted program: confined, under limits, and without leaving processes or files behind.

Theory of operation. A child enters the run's control group, sets its resource limits and becomes bwrap, which makes the
namespaces and then starts the program. The grader drains both output streams in threads (so a flood costs neither
memory nor time), and waits on the process's descriptor. It wakes regularly to measure what no kernel limit covers. When
the program ends or reaches a limit, everything it started is killed. With bubblewrap, the kernel kills the processes of
the namespace, and is done when process 1 of the namespace can be reaped; the grader waits for that before it reads any
output. Without bubblewrap (see `landlock`) the grader kills the session, which no process can leave.

Who trusts whom. The program is not trusted. bwrap and the kernel are trusted. If the grader itself is killed, bwrap
dies with it (PR_SET_PDEATHSIG), the namespace dies with bwrap, and the watcher removes what is left.

This is the one place that runs processes: compilers, submissions and the baseline all run through `run`.
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
_CANNOT_EXECUTE = 126  # as a shell says it
_OPEN_FILES = 1024

_PASSED_ON = ("LANG", "TZ")
"""The only variables of the grader's environment that a program sees unchanged. The others may contain secrets."""
_PASSED_IN_PART = ("PATH", "LD_LIBRARY_PATH")
"""Variables with lists of folders; only folders that the program can see are passed on."""

_CONFINED = 'while [ "${1##*/}" = cgroup.procs ]; do echo 0 > "$1" || exit; shift; done; exec "$@"'
"""Enters control groups, then becomes a command. Python copies its page tables to run code of its own in a child, which
takes 5 ms, or 100 for a grader of 300 MB; a shell and prlimit take 2."""

_INIT_PID = re.compile(rb'"child-pid": (\d+)')


def confinement() -> str:
    """The confinement of runs on this machine, as a phrase for records and people."""
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
    """`killed` processes were still alive at the end of a run. `cpu_s` is the processor time of the processes that the
    grader reaped, except the process that it started itself."""

    killed: int
    cpu_s: float


@dataclass(frozen=True)
class _Way:
    """A way to run a job on this machine: the command to start, its environment and descriptors, and its control group
    and Landlock rules (or None). `end_all` takes the id of the started process and kills everything that it
    started."""

    command: Sequence[str]
    environment: Mapping[str, str]
    descriptors: Sequence[int]
    group: cgroup.Group | None
    rules: landlock.Rules | None
    end_all: Callable[[int], _Ended]


def require() -> None:
    """Raise MachineFault unless programs can be fully confined on this machine."""
    if (why := bubblewrap.problem()) is not None:
        raise MachineFault(f"--require-sandbox: {why}; without this option programs run with weaker confinement.")


def tool_problem() -> str:
    """The reason why this machine cannot confine a tool that starts CUDA programs, such as Nsight Compute; '' if it
    can."""
    if bubblewrap.problem() is None or not (why := landlock.tool_problem()):
        return ""
    return f"{why}: install bubblewrap (apt install bubblewrap), or run the grader as an ordinary user"


def run(job: Job, limits: Limits) -> Outcome:
    """Run `job` until it ends or reaches a limit. Raises UsageError if the command cannot be started at all, and
    MachineFault if the machine has no process or memory left for it."""
    if linked := next((path for path in (job.folder, *job.writable) if path.is_symlink()), None):
        raise GraderFault(f"{linked} is a link: the sandbox does not open its target for writing.")
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
    """Run the job in a bubblewrap container."""
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
            """Kill bwrap and process 1 of its namespace, and wait until the kernel has killed everything in it."""
            process_tree.kill(pid)
            cpu_s = 0.0
            if found := _INIT_PID.search(os.pread(status_fd, 1 << 16, 0)):
                init = int(found.group(1))
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # bwrap has ended, so init is our child
                process_tree.kill(init)
                cpu_s = _reap(init)
            return _Ended(0, cpu_s)

        way = _Way(command, environment, (*job.descriptors, *ours), group, None, end_all)
        outcome = _supervise(job, limits, way)
        if not outcome.broke and b"exit-code" not in os.pread(status_fd, 1 << 16, 0):
            raise GraderFault(f"The sandbox for {Path(job.command[0]).name} could not be set up: {outcome.stderr}")
        return outcome


def _run_restricted(job: Job, limits: Limits, environment: dict[str, str], group: cgroup.Group | None) -> Outcome:
    """Run the job under Landlock, seccomp and resource limits."""

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
    """A descriptor of an in-memory file with this content, rewound."""
    descriptor = os.memfd_create("grader")
    try:
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _supervise(job: Job, limits: Limits, way: _Way) -> Outcome:
    """Run `job` until it ends or reaches a limit, and kill everything that it started."""
    began, memory_kills = time.monotonic(), process_tree.memory_kills_of_the_machine()
    try:
        process, printed = _started(job, limits, way)
    except _NoProgram as refused:
        return Outcome(_CANNOT_EXECUTE, None, "", 0.0, 0.0, 0, "", f"{refused}\n")
    assert process.stderr is not None
    stdout = Drain(printed, limits.kept_output_bytes)
    stderr = Drain(process.stderr, limits.kept_output_bytes)
    gauge = Gauge(process.pid, limits, way.group, (job.folder, *job.writable))
    broke, ended, wall_s = "", _Ended(0, 0.0), 0.0
    try:
        broke = _wait(process.pid, began + limits.wall_s, gauge)
        wall_s = time.monotonic() - began
        broke = broke or gauge.measure_folders()  # a program can fill its folder before the first measurement
    finally:  # also on Ctrl-C: no process of the run may survive
        ended = way.end_all(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    stdout.finish()
    stderr.finish()
    group = way.group
    exit_code, signal_name = _ending(process.returncode)
    if group is not None and group.ran_out_of_memory():
        broke = "memory"  # even if a parent then waited for its killed child until the time limit
    elif not broke and signal_name == "SIGKILL" and process_tree.memory_kills_of_the_machine() > memory_kills:
        broke = "memory"  # the machine, or a container around the grader, ran out of memory
    return Outcome(
        exit_code=exit_code,
        signal=signal_name,
        broke=broke,
        wall_s=wall_s,
        cpu_s=max(_cpu_s(usage) + ended.cpu_s, gauge.cpu_s),
        peak_memory_bytes=(group.peak_memory_bytes() if group is not None else None)
        or max(gauge.peak, usage.ru_maxrss * 1024),
        stdout=stdout.text,
        stderr=stderr.text,
        killed_leftovers=0 if broke else ended.killed,
    )


class _NoProgram(Exception):
    """The kernel does not execute the file: it may be a submission's, with a header that is not a program's."""


def _started(job: Job, limits: Limits, way: _Way) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """Start the confined process; return it and our end of its stdout. Raises the errors that `run` names."""
    if not job.starts_programs:
        process = _start(job, limits, way, subprocess.PIPE)
        assert process.stdout is not None
        return process, process.stdout
    ours, theirs = socket.socketpair()
    with theirs:
        process = _start(job, limits, way, theirs.fileno())
    return process, os.fdopen(ours.detach(), "rb", buffering=0)


def _start(job: Job, limits: Limits, way: _Way, stdout: int) -> subprocess.Popen[bytes]:
    resource_limits = _resource_limits(limits, way.group)

    def confine() -> None:
        if way.group is not None:
            way.group.enter()
        for name, value in resource_limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
        if way.rules is not None:
            way.rules.apply()

    command, prlimit = way.command, shutil.which("prlimit")
    if quick := way.rules is None and prlimit is not None:
        groups = [f"{folder}/cgroup.procs" for folder in way.group.folders] if way.group is not None else []
        limited = [f"--{name.lower()}={value}:{value}" for name, value in resource_limits.items()]
        command = ["/bin/sh", "-c", _CONFINED, "sh", *groups, prlimit, *limited, *command]
    try:
        process = subprocess.Popen(
            command,
            cwd=job.folder,
            env=way.environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=None if quick else confine,
            pass_fds=way.descriptors,
        )
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.ENOMEM):
            raise MachineFault(f"{job.command[0]} could not be started: {error.strerror}; try again later.") from error
        raise _NoProgram(f"{Path(job.command[0]).name} cannot be run: {error.strerror}") from error
    except subprocess.SubprocessError as error:
        raise MachineFault(f"{job.command[0]} could not be confined: {error}; see `grader doctor`.") from error
    if way.rules is not None:
        watcher.claim_session(process.pid)
    return process


def _resource_limits(limits: Limits, group: cgroup.Group | None) -> dict[str, int]:
    ceiling = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    found = {"CORE": 0, "NOFILE": _OPEN_FILES if ceiling == resource.RLIM_INFINITY else min(_OPEN_FILES, ceiling)}
    if limits.file_bytes is not None:
        found["FSIZE"] = limits.file_bytes
    if limits.processes is not None and not (group is not None and group.bounds_processes):
        ceiling = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        # The kernel counts all threads of the user, not only those of this run.
        wanted = process_tree.threads_of(os.getuid()) + limits.processes
        found["NPROC"] = wanted if ceiling == resource.RLIM_INFINITY else min(wanted, ceiling)
    return found


def _ending(code: int) -> tuple[int | None, str | None]:
    """Return (exit code, signal name). bwrap and shells report a program killed by signal N as exit code 128 + N."""
    number = -code if code < 0 else code - 128 if 128 < code <= 128 + signal.SIGRTMAX else 0
    return (None, _signal_name(number)) if number else (code, None)


def _signal_name(number: int) -> str:
    """The name of a signal, such as SIGSEGV. Real-time signals, which have no names (signal(7)), become SIGRTMIN+3, and
    others "signal 33"."""
    try:
        return signal.Signals(number).name
    except ValueError:
        first = int(signal.SIGRTMIN)
        return f"SIGRTMIN+{number - first}" if first <= number else f"signal {number}"


def _wait(pid: int, deadline: float, gauge: Gauge) -> str:
    """Wait for a child without reaping it. Return the name of the limit that it broke, or ''."""
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
    """Kill and reap the processes of `session` that became our children when their parents died. Repeats, because
    the children of each that is killed become ours."""
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
    """Wait for a child. Return its processor time in seconds, including that of the children that it waited for."""
    with contextlib.suppress(ChildProcessError):
        return _cpu_s(os.wait4(pid, 0)[2])
    return 0.0


def _cpu_s(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


@cache
def _become_subreaper() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run_attached(command: Sequence[str], environment: Mapping[str, str], called: str) -> int:
    """Run one of the user's own commands, unconfined, in their terminal and folder. Return its exit code, or
    128 + N if signal N killed it. `called` is its argv[0]."""
    process = subprocess.Popen([called, *command[1:]], executable=command[0], env=os.environ | environment)
    while True:
        try:
            code = process.wait()
            return code if code >= 0 else 128 - code
        except KeyboardInterrupt:  # the program got the same Ctrl-C; it decides what to do
            continue
