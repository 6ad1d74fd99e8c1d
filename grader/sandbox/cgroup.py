"""Limits on a whole process tree through control groups, version 1 or 2, where this user may create them.

They are needed for root, to whom RLIMIT_NPROC does not apply, and for memory, because RLIMIT_AS breaks CUDA. If the
grader is killed, the watcher outlives it briefly and removes the groups that are left (see `watcher`).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_COUNTER = itertools.count()


@dataclass(frozen=True)
class Group:
    """The control group of one run: one folder per hierarchy (version 2 has only one)."""

    folders: tuple[Path, ...]
    bounds_memory: bool
    bounds_processes: bool

    def enter(self) -> None:
        """Move the calling process into the group; called in the child before it executes anything."""
        for folder in self.folders:
            with (folder / "cgroup.procs").open("w") as file:
                file.write("0")

    def peak_memory_bytes(self) -> int | None:
        """The most memory that the group ever held, where the kernel reports it."""
        for folder in self.folders:
            for name in ("memory.peak", "memory.max_usage_in_bytes"):
                with contextlib.suppress(OSError, ValueError):
                    return int((folder / name).read_text())
        return None

    def cpu_s(self) -> float | None:
        """Seconds of processor time of every process that was ever in the group, where the kernel reports it
        (version 2)."""
        for folder in self.folders:
            with contextlib.suppress(OSError, ValueError, KeyError):
                facts = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
                return int(facts["usage_usec"]) / 1e6
        return None

    def ran_out_of_memory(self) -> bool:
        """True if the kernel killed a process of the group because of the group's memory limit."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                with contextlib.suppress(OSError, ValueError):
                    facts = dict(line.split() for line in (folder / name).read_text().splitlines())
                    if int(facts.get("oom_kill", "0")) > 0:
                        return True
        return False

    def remove(self) -> None:
        """Remove the empty group. Retries, because the kernel needs a moment to forget the last processes."""
        for folder in self.folders:
            for _ in range(2000):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.0005)


def make(memory_bytes: int | None, processes: int | None) -> Group | None:
    """Make a group with these limits; None if this user cannot make groups."""
    name = f".grader-{os.getpid()}-{next(_COUNTER)}"
    wanted = {"memory": memory_bytes, "pids": processes}
    folders: list[Path] = []
    bound = set()
    try:
        for parent, controllers in _places():
            folder = parent / name
            folder.mkdir()
            folders.append(folder)
            for controller in controllers:
                limit = wanted[controller]
                if limit is not None:
                    _set_limit(folder, controller, limit)
                    bound.add(controller)
    except OSError:
        for folder in folders:
            with contextlib.suppress(OSError):
                folder.rmdir()
        return None
    return Group(tuple(folders), "memory" in bound, "pids" in bound) if folders else None


def usable() -> str | None:
    """The usable version of control groups, in words; None if this user can use neither."""
    group = make(1 << 30, 64)
    if group is None:
        return None
    group.remove()
    return f"version {2 if len(_places()) == 1 and len(_places()[0][1]) == 2 else 1}"


def parents() -> tuple[Path, ...]:
    """The folders in which groups are made, for the cleanup."""
    return tuple(parent for parent, _ in _places())


def _set_limit(folder: Path, controller: str, limit: int) -> None:
    names = ("memory.max", "memory.limit_in_bytes") if controller == "memory" else ("pids.max",)
    name = next((name for name in names if (folder / name).exists()), None)
    if name is None:
        raise OSError(f"{folder} has no limit for {controller}")
    (folder / name).write_text(str(limit))
    if controller == "memory":
        for name in ("memory.swap.max", "memory.memsw.limit_in_bytes"):
            with contextlib.suppress(OSError):  # a kernel without swap accounting has no such limit
                (folder / name).write_text("0" if name == "memory.swap.max" else str(limit))


@cache
def _places() -> tuple[tuple[Path, tuple[str, ...]], ...]:
    """For each hierarchy, the folder of our own group and the controllers that it can pass to child groups."""
    places = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, names, path = line.split(":", 2)
            controllers = [name for name in names.split(",") if name in ("memory", "pids")]
            if number == "0":
                folder = _ROOT / path.lstrip("/")
                with contextlib.suppress(OSError):
                    given = (folder / "cgroup.subtree_control").read_text().split()
                    controllers = [name for name in ("memory", "pids") if name in given]
            else:
                folder = next(
                    (f for n in (names, *names.split(",")) if (f := _ROOT / n / path.lstrip("/")).is_dir()),
                    _ROOT / names,
                )
            if controllers and os.access(folder, os.W_OK):
                places.append((folder, tuple(controllers)))
    return tuple(places)
