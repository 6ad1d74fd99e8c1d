"""Measures what no limit of the kernel covers: the writable folders' size, and, where no control group could be made,
the memory, number of processes and processor time of the tree.

Processor time is also told by the kernel when a process is waited for, exactly, but not of children of one that ignores
SIGCHLD: nobody waits for those. So what lives is looked at meanwhile."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from grader.sandbox.cgroup import Group
from grader.sandbox.job import Limits
from grader.sandbox.process_tree import Process, descendants, proportional_bytes, threads_of_the_machine

_MEASURE_EVERY_S = 0.1
_LOOK_EVERY_S = 0.005
"""Where we count processes ourselves: three thousand threads are made in some 50 ms, so whether the machine has many
more than before is looked at in between."""
_MOST_ENTRIES = 20_000
_DEEPEST = 40
"""A run leaves one output file, a compiler some dozen. More names, or deeper ones, only make the grader slow."""


class Gauge:
    """Of one run: `pid` is the root of its tree. `peak` is the most memory seen, in bytes."""

    def __init__(self, pid: int, limits: Limits, group: Group | None, folders: Sequence[Path]) -> None:
        self._pid = pid
        self._limits = limits
        self._memory = limits.memory_bytes is not None and not (group is not None and group.bounds_memory)
        self._processes = limits.processes is not None and not (group is not None and group.bounds_processes)
        self._time = group is None or group.cpu_s() is None
        self._spent: dict[int, float] = {}
        self._folders = folders
        self._crowd = threads_of_the_machine() if self._processes else 0
        self._measured = time.monotonic()
        self.pause_s = _LOOK_EVERY_S if self._processes else _MEASURE_EVERY_S
        self.peak = 0

    @property
    def cpu_s(self) -> float:
        """Seconds of processor time seen so far, of all processes; 0 where the control group tells."""
        return sum(self._spent.values())

    @property
    def due(self) -> bool:
        """Whether it is time to measure: every 100 ms, and at once when the machine has got crowded."""
        if time.monotonic() - self._measured >= _MEASURE_EVERY_S:
            return True
        return self._processes and threads_of_the_machine() - self._crowd > (self._limits.processes or 0)

    def measure(self) -> str:
        """The limit that is broken now, or ''."""
        self._measured = time.monotonic()
        if self._memory or self._processes or self._time:
            tree = descendants(self._pid)
            self._spent |= {p.pid: max(p.cpu_s, self._spent.get(p.pid, 0.0)) for p in tree if self._time}
            self.peak = max(self.peak, self._bytes_of(tree))
            if self._memory and self.peak > (self._limits.memory_bytes or 0):
                return "memory"
            if self._processes and sum(process.threads for process in tree) > (self._limits.processes or 0):
                return "process"
        if self._limits.folder_bytes is not None and not _fits(self._folders, self._limits.folder_bytes):
            return "folder"
        return ""

    def _bytes_of(self, tree: Sequence[Process]) -> int:
        """Memory of all together. What children share with their parent counts once, if that matters."""
        most = sum(process.resident_bytes for process in tree)
        over = self._memory and len(tree) > 1 and most > (self._limits.memory_bytes or 0)
        return sum(map(proportional_bytes, tree)) if over else most


def _fits(folders: Sequence[Path], most_bytes: int) -> bool:
    """Whether all below `folders` takes at most `most_bytes` of disk, and is few and shallow enough to look at."""
    size = entries = 0
    waiting = [(str(folder), 0) for folder in folders]
    while waiting:
        folder, depth = waiting.pop()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            with os.scandir(folder) as names:
                for entry in names:
                    entries += 1
                    if entries > _MOST_ENTRIES or depth >= _DEEPEST:
                        return False
                    with contextlib.suppress(OSError):
                        size += entry.stat(follow_symlinks=False).st_blocks * 512 + 512
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append((entry.path, depth + 1))
            if size > most_bytes:
                return False
    return True
