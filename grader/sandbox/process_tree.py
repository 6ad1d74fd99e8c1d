"""Reads other processes from /proc: finds descendants, measures and kills them."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = resource.getpagesize()


@dataclass(frozen=True)
class Process:
    """One process. `cpu_s` is its processor time without its children's, `resident_bytes` its memory in use."""

    pid: int
    parent: int
    session: int
    zombie: bool
    threads: int
    cpu_s: float
    resident_bytes: int


def processes() -> list[Process]:
    """List every process of this machine that we can see."""
    return _read(_pids())


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 (pathlib takes five times as long)


def _read(pids: Iterable[int]) -> list[Process]:
    found = []
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            found.append(_process(pid))
    return found


def _process(pid: int) -> Process:
    descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        line = os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
    # proc(5): pid (name) state ppid pgrp session …, where the name may contain anything. The manual's first field is
    # the pid, so index 0 here is its field 3.
    fields = line.rpartition(b")")[2].split()
    return Process(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        zombie=fields[0] == b"Z",
        threads=int(fields[17]),
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
        resident_bytes=int(fields[21]) * _PAGE_BYTES,
    )


class Tree:
    """The processes that descend from `pid`, itself included, and the members of its session whose parents have ended.

    They are listed ten times a second, on machines with hundreds of other processes. So each other process is read only
    once: it stays another, since an orphan goes to a process that it descends from, and nobody joins a session later.
    A number that vanishes from /proc is forgotten; a program cannot start as many processes between two listings as
    would bring it up again.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._others: set[int] = set()

    def list(self) -> list[Process]:
        pids = set(_pids())
        self._others &= pids
        unknown = _read(sorted(pids - self._others))
        children: dict[int, list[Process]] = {}
        for process in unknown:
            children.setdefault(process.parent, []).append(process)
        found: dict[int, Process] = {}
        waiting = [process for process in unknown if self._pid in (process.pid, process.session)]
        while waiting:
            current = waiting.pop()
            if current.pid not in found:
                found[current.pid] = current
                waiting += children.get(current.pid, [])
        # What descends from another is another; where a parent could not be read, its children are read again.
        waiting = [child for parent in (0, *self._others) for child in children.get(parent, [])]
        while waiting:
            current = waiting.pop()
            if current.pid not in found and current.pid not in self._others:
                self._others.add(current.pid)
                waiting += children.get(current.pid, [])
        return list(found.values())


def threads_of(user: int) -> int:
    """The number of threads in all processes of a user."""
    count = 0
    for process in processes():
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{process.pid}").st_uid == user:  # noqa: PTH116
                count += process.threads
    return count


def proportional_bytes(process: Process) -> int:
    """Like `resident_bytes`, but memory that several processes share is divided among them; much slower to read."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return process.resident_bytes


def nameless_files(pid: int) -> Iterator[os.stat_result]:
    """The nameless regular files that a process has open, including those in memory (memfd_create). Yields nothing if
    we may not see its descriptors."""
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with contextlib.suppress(OSError):
                facts = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
                if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0:
                    yield facts


def shared_bytes(process: Process) -> int:
    """The part of `resident_bytes` that belongs to in-memory files."""
    return _kib(Path(f"/proc/{process.pid}/status"), "RssShmem:")


def page_table_bytes(process: Process) -> int:
    """Memory of the process's page tables, which `resident_bytes` leaves out. A program can grow them without resident
    memory: the zero page, mapped once in every 2 MiB of address space, takes 4 KiB of table each time."""
    return _kib(Path(f"/proc/{process.pid}/status"), "VmPTE:")


def hides_descriptors(pid: int) -> bool:
    """True if a process hides its descriptors from other processes of its user (PR_SET_DUMPABLE, prctl(2))."""
    try:
        os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def shared_memory_of_the_machine() -> int:
    """Bytes of in-memory files of all users."""
    return _kib(Path("/proc/meminfo"), "Shmem:")


def memory_kills_of_the_machine() -> int:
    """The number of processes that the kernel has killed for lack of memory since it started, of all users and in all
    control groups (`oom_kill` in /proc/vmstat, Linux 4.13); 0 if the kernel does not report it."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/vmstat").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return 0


def _kib(path: Path, name: str) -> int:
    """Read a value that /proc states in KiB, and return it in bytes; 0 if it is missing."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return next((int(x.split()[1]) * 1024 for x in path.read_text().splitlines() if x.startswith(name)), 0)
    return 0


def threads_of_the_machine() -> int:
    """The number of processes and threads of all users: proc_loadavg(5). This takes about 10 µs, while counting those
    of one tree takes milliseconds."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    return 0


def kill(pid: int) -> int:
    """Kill one process; return 1 if there was one, else 0."""
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return 0
    return 1


def kill_session(leader: int, itself: bool = False) -> int:
    """Kill all processes of the session of `leader`, and with `itself` the leader too. Return how many others were
    alive."""
    killed = 0
    for member in processes():
        if member.session == leader and member.pid != leader and not member.zombie:
            killed += kill(member.pid)
    if itself:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        kill(leader)
    return killed
