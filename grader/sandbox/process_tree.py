"""Other processes, as /proc shows them: who descends from whom, and ending them."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = resource.getpagesize()


@dataclass(frozen=True)
class Process:
    """One process. `cpu_s` is its own processor time, without its children's, `resident_bytes` memory in use."""

    pid: int
    parent: int
    session: int
    zombie: bool
    threads: int
    cpu_s: float
    resident_bytes: int


def processes() -> list[Process]:
    """Every process of this machine that can be seen."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 (this is done ten times a second; pathlib takes five times as long)
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                found.append(_process(int(name)))
    return found


def _process(pid: int) -> Process:
    descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        line = os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
    # pid (name, which may hold anything) state ppid pgrp session …: proc(5), which counts from 1, and from "pid"
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


def descendants(pid: int) -> list[Process]:
    """`pid` and all that it started; of its session also those whose parents have ended."""
    everyone = processes()
    children: dict[int, list[Process]] = {}
    for process in everyone:
        children.setdefault(process.parent, []).append(process)
    waiting = [process for process in everyone if pid in (process.pid, process.session)]
    found: dict[int, Process] = {}
    while waiting:
        current = waiting.pop()
        if current.pid not in found:
            found[current.pid] = current
            waiting += children.get(current.pid, [])
    return list(found.values())


def threads_of(user: int) -> int:
    """How many threads all processes of a user have."""
    count = 0
    for process in processes():
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{process.pid}").st_uid == user:  # noqa: PTH116
                count += process.threads
    return count


def proportional_bytes(process: Process) -> int:
    """As `resident_bytes`, with what several processes share divided among them; much slower to find out."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return process.resident_bytes


def nameless_files(pid: int) -> Iterator[os.stat_result]:
    """The regular files without a name that a process has open, in memory (memfd_create) among them. None where its
    descriptors may not be seen."""
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with contextlib.suppress(OSError):
                facts = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
                if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0:
                    yield facts


def shared_bytes(process: Process) -> int:
    """Of `resident_bytes`, what lies in files in memory."""
    return _kib(Path(f"/proc/{process.pid}/status"), "RssShmem:")


def page_table_bytes(process: Process) -> int:
    """Memory of its page tables, which `resident_bytes` leaves out: a page of zeros mapped at every 2 MiB of address
    space is resident nowhere and takes 4 KiB of table each time."""
    return _kib(Path(f"/proc/{process.pid}/status"), "VmPTE:")


def hides_descriptors(pid: int) -> bool:
    """Whether a process has made itself invisible to others of its user (PR_SET_DUMPABLE, prctl(2))."""
    try:
        os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def shared_memory_of_the_machine() -> int:
    """Bytes in files in memory, of everyone."""
    return _kib(Path("/proc/meminfo"), "Shmem:")


def _kib(path: Path, name: str) -> int:
    """A value that /proc gives in KiB, in bytes; 0 when missing."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return next((int(x.split()[1]) * 1024 for x in path.read_text().splitlines() if x.startswith(name)), 0)
    return 0


def threads_of_the_machine() -> int:
    """Processes and threads of everyone: proc_loadavg(5). Costs some 10 µs, where counting a tree's takes ms."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    return 0


def kill(pid: int) -> int:
    """Kill one process; 1 when there was one, else 0."""
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return 0
    return 1


def kill_session(leader: int, itself: bool = False) -> int:
    """Kill the session that `leader` leads, and `itself`; how many others were alive."""
    killed = 0
    for member in processes():
        if member.session == leader and member.pid != leader and not member.zombie:
            killed += kill(member.pid)
    if itself:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        kill(leader)
    return killed
