"""Measures what no limit of the kernel covers: the writable folders' size, and, where no control group could be made,
the memory and number of processes of the tree."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from grader.sandbox.cgroup import Group
from grader.sandbox.job import Limits
from grader.sandbox.process_tree import descendants, resident_bytes, threads

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
        self._folders = folders
        self.peak = 0

    def measure(self) -> str:
        """The limit that is broken now, or ''."""
        if self._memory or self._processes:
            tree = descendants(self._pid)
            self.peak = max(self.peak, sum(resident_bytes(pid) for pid in tree))
            if self._memory and self.peak > (self._limits.memory_bytes or 0):
                return "memory"
            if self._processes and sum(map(threads, tree)) > (self._limits.processes or 0):
                return "process"
        if self._limits.folder_bytes is not None and not _fits(self._folders, self._limits.folder_bytes):
            return "folder"
        return ""


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
