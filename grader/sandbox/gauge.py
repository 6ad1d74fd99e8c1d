"""Measures what no limit of the kernel covers: the writable folders' size, and, where no control group could be made,
the memory, number of processes and processor time of the tree.

Files without a name lie in no folder, and files in memory that are not mapped are in no process's resident memory. Both
are looked for in the open descriptors of the tree, once the machine as a whole has lost more than the limit.

The kernel also reports processor time when a process is waited for, exactly, but not of children of one that ignores
SIGCHLD: nobody waits for those. So what lives is looked at meanwhile."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from grader.sandbox.cgroup import Group
from grader.sandbox.job import Limits
from grader.sandbox.process_tree import (
    Process,
    descendants,
    hides_descriptors,
    nameless_files,
    page_table_bytes,
    proportional_bytes,
    shared_bytes,
    shared_memory_of_the_machine,
    threads_of_the_machine,
)

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
        self._free = _free_bytes(folders) if limits.folder_bytes is not None else {}
        self._shared = shared_memory_of_the_machine() if self._memory else 0
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
            self.peak = max(self.peak, self._bytes_of(tree) + self._unmapped_bytes(tree))
            if self._memory and self.peak > (self._limits.memory_bytes or 0):
                return "memory"
            if self._processes and sum(process.threads for process in tree) > (self._limits.processes or 0):
                return "process"
        return self.measure_folders()

    def measure_folders(self) -> str:
        """'folder' where the writable folders hold too much, or ''. All that can be wrong once the root has ended: what
        else is left of the tree is ended too."""
        most = self._limits.folder_bytes
        if most is not None and (not _fits(self._folders, most) or self._nameless_bytes(most) > most):
            return "folder"
        return ""

    def _unmapped_bytes(self, tree: Sequence[Process]) -> int:
        """Of files in memory, what no process of the tree has mapped. A tree that hides what it has open answers for
        all that the machine's grew by."""
        grown = shared_memory_of_the_machine() - self._shared if self._memory else 0
        if grown <= (self._limits.memory_bytes or 0):
            return 0
        if any(hides_descriptors(process.pid) for process in tree):
            return grown
        held = {(f.st_dev, f.st_ino): f.st_blocks * 512 for process in tree for f in nameless_files(process.pid)}
        return max(0, sum(held.values()) - sum(shared_bytes(process) for process in tree))

    def _nameless_bytes(self, most: int) -> int:
        """Disk that files take which the tree has open and which have no name any more, or never had; 0 unless more
        than `most` is gone from a device."""
        lost = [
            device for device, free in _free_bytes(self._folders).items() if self._free.get(device, 0) - free > most
        ]
        if not lost:
            return 0
        held = {
            (facts.st_dev, facts.st_ino): facts.st_blocks * 512
            for process in descendants(self._pid)
            for facts in nameless_files(process.pid)
            if facts.st_dev in lost
        }
        return sum(held.values())

    def _bytes_of(self, tree: Sequence[Process]) -> int:
        """Memory of all together. What children share with their parent counts once, if that matters."""
        most = sum(process.resident_bytes for process in tree)
        tables = sum(map(page_table_bytes, tree)) if self._memory else 0
        over = self._memory and len(tree) > 1 and most > (self._limits.memory_bytes or 0)
        return tables + (sum(map(proportional_bytes, tree)) if over else most)


def _free_bytes(folders: Sequence[Path]) -> dict[int, int]:
    """What is free on each device that one of the folders is on."""
    found = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            facts = os.statvfs(folder)
            found[folder.stat().st_dev] = facts.f_bfree * facts.f_frsize
    return found


def _fits(folders: Sequence[Path], most_bytes: int) -> bool:
    """Whether all below `folders` takes at most `most_bytes` of disk, and is few and shallow enough to look at."""
    size = entries = 0
    waiting = [(str(folder), 0) for folder in folders]
    while waiting:
        folder, depth = waiting.pop()
        with contextlib.suppress(OSError), _scanned(folder) as names:
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


def _scanned(folder: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    """The entries of a folder, also of one whose permissions the program has taken away: they are given back, as root
    would not need to. A link that was put in the folder's place is not followed."""
    if not os.access(folder, os.R_OK | os.X_OK):
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.chmod(f"/proc/self/fd/{descriptor}", 0o700)  # noqa: PTH101 (a path may be exchanged meanwhile)
        finally:
            os.close(descriptor)
    return os.scandir(folder)
