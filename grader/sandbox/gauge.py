"""Measures what no kernel limit covers: the size of the writable folders, and, where no control group could be made,
the memory, number of processes and processor time of the process tree.

Two kinds of files escape these measurements: files without a name, which are in no folder, and in-memory files that are
not mapped, which count in no process's resident memory. Once the machine's free disk space has shrunk, or its shared
memory has grown, by more than the limit, the gauge looks for such files in the open descriptors of the tree.

The kernel also reports the exact processor time of a process when its parent waits for it. But if the parent ignores
SIGCHLD, nothing waits for its children, so the gauge reads the processor time of processes while they live."""

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
    Tree,
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
"""The interval at which the gauge wakes if no control group limits the number of processes. A program can start three
thousand threads in about 50 ms, so between full measurements the gauge also compares the machine's thread count with
that at the start."""
_MOST_ENTRIES = 20_000
_DEEPEST = 40
"""The limits on entries and depth in the writable folders, which keep a scan short. A run leaves one output file, and a
compiler leaves about a dozen files."""


class Gauge:
    """Measures one run, whose process tree has the root `pid`. `peak` is the most memory seen, in bytes."""

    def __init__(self, pid: int, limits: Limits, group: Group | None, folders: Sequence[Path]) -> None:
        self._tree = Tree(pid)
        self._limits = limits
        self._group = group
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
        """Seconds of processor time of all processes seen so far, or of the control group where it reports them."""
        grouped = self._group.cpu_s() if self._group is not None and not self._time else None
        return sum(self._spent.values()) if grouped is None else grouped

    @property
    def due(self) -> bool:
        """Whether it is time to measure: every 100 ms, and immediately when the number of threads has jumped."""
        if time.monotonic() - self._measured >= _MEASURE_EVERY_S:
            return True
        return self._processes and threads_of_the_machine() - self._crowd > (self._limits.processes or 0)

    def measure(self) -> str:
        """Measure, and return the name of the limit that is exceeded now, or ''."""
        self._measured = time.monotonic()
        if self._memory or self._processes or self._time or self._limits.cpu_s is not None:
            tree = self._tree.list()
            if self._processes and sum(process.threads for process in tree) > (self._limits.processes or 0):
                return "process"  # at once: root starts thousands while their memory is added up
            self._spent |= {p.pid: max(p.cpu_s, self._spent.get(p.pid, 0.0)) for p in tree if self._time}
            self.peak = max(self.peak, self._bytes_of(tree) + self._unmapped_bytes(tree))
            if self._memory and self.peak > (self._limits.memory_bytes or 0):
                return "memory"
            if self._limits.cpu_s is not None and self.cpu_s > self._limits.cpu_s:
                return "time"
        return self.measure_folders()

    def measure_folders(self) -> str:
        """Return 'folder' if the writable folders hold too much, else ''. After the root process has ended, this is the
        only limit left to check, because the rest of its tree is killed then."""
        most = self._limits.folder_bytes
        if most is not None and (not _fits(self._folders, most) or self._nameless_bytes(most) > most):
            return "folder"
        return ""

    def _unmapped_bytes(self, tree: Sequence[Process]) -> int:
        """Bytes of in-memory files that no process of the tree has mapped. A tree that hides its descriptors is charged
        with the whole growth of the machine's shared memory."""
        grown = shared_memory_of_the_machine() - self._shared if self._memory else 0
        if grown <= (self._limits.memory_bytes or 0):
            return 0
        if any(hides_descriptors(process.pid) for process in tree):
            return grown
        held = {(f.st_dev, f.st_ino): f.st_blocks * 512 for process in tree for f in nameless_files(process.pid)}
        return max(0, sum(held.values()) - sum(shared_bytes(process) for process in tree))

    def _nameless_bytes(self, most: int) -> int:
        """Bytes of disk in open files of the tree that no longer have a name, or never had one; 0 unless the free space
        of a device shrank by more than `most`."""
        lost = [
            device for device, free in _free_bytes(self._folders).items() if self._free.get(device, 0) - free > most
        ]
        if not lost:
            return 0
        held = {
            (facts.st_dev, facts.st_ino): facts.st_blocks * 512
            for process in self._tree.list()
            for facts in nameless_files(process.pid)
            if facts.st_dev in lost
        }
        return sum(held.values())

    def _bytes_of(self, tree: Sequence[Process]) -> int:
        """Memory of all processes together. If the sum exceeds the limit, it is taken again with shared memory counted
        only once."""
        most = sum(process.resident_bytes for process in tree)
        tables = sum(map(page_table_bytes, tree)) if self._memory else 0
        over = self._memory and len(tree) > 1 and most > (self._limits.memory_bytes or 0)
        return tables + (sum(map(proportional_bytes, tree)) if over else most)


def _free_bytes(folders: Sequence[Path]) -> dict[int, int]:
    """Free bytes of each device that holds one of the folders."""
    found = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            facts = os.statvfs(folder)
            found[folder.stat().st_dev] = facts.f_bfree * facts.f_frsize
    return found


def _fits(folders: Sequence[Path], most_bytes: int) -> bool:
    """True if everything below `folders` takes at most `most_bytes` of disk, and has neither too many entries nor too
    many levels to scan."""
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
    """The entries of a folder. If the program removed the folder's permissions, they are restored first, so that the
    result is the same as for root. A link that was put in the folder's place is not followed."""
    if not os.access(folder, os.R_OK | os.X_OK):
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.chmod(f"/proc/self/fd/{descriptor}", 0o700)  # noqa: PTH101 (a path could be swapped meanwhile)
        finally:
            os.close(descriptor)
    return os.scandir(folder)
