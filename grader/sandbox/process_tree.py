"""Other processes, as /proc shows them: who descends from whom, and ending them."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    session: int
    zombie: bool


def processes() -> list[Process]:
    """Every process of this machine that can be seen."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            # pid (name, which may hold anything) state ppid pgrp session …: proc(5)
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            found.append(Process(int(entry.name), int(fields[1]), int(fields[3]), fields[0] == "Z"))
    return found


def descendants(pid: int) -> set[int]:
    """`pid` and all that it started; of its session also those whose parents have ended."""
    children: dict[int, list[int]] = {}
    waiting = [pid]
    for process in processes():
        children.setdefault(process.parent, []).append(process.pid)
        if process.session == pid:
            waiting.append(process.pid)
    found: set[int] = set()
    while waiting:
        current = waiting.pop()
        if current not in found:
            found.add(current)
            waiting += children.get(current, [])
    return found


def threads(pid: int) -> int:
    """How many threads a process has; 0 when it is gone."""
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208
    return 0


def cpu_s(pid: int) -> float:
    """Seconds of processor time of a process itself, without its children; 0 when it is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def resident_bytes(pid: int) -> int:
    """Memory that a process has in use; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def proportional_bytes(pid: int) -> int:
    """As `resident_bytes`, with what several processes share divided among them; much slower to find out."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return resident_bytes(pid)


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
