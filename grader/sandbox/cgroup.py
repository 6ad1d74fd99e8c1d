"""Limits on a process tree as a whole, by control groups of version 1 or 2, where this user may make them.

Needed for root, whom RLIMIT_NPROC does not bind, and for memory, since RLIMIT_AS breaks CUDA. A group that is left
when the grader is killed is removed by the watcher (see `watcher`), which outlives it for that moment.
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
    """A control group of one run: one folder per hierarchy (one only in version 2)."""

    folders: tuple[Path, ...]
    bounds_memory: bool
    bounds_processes: bool

    def enter(self) -> None:
        """Move the calling process in; called in the child before it executes anything."""
        for folder in self.folders:
            with (folder / "cgroup.procs").open("w") as file:
                file.write("0")

    def processes(self) -> int:
        """How many processes are in it."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                return len((folder / "cgroup.procs").read_text().split())
        return 0

    def peak_memory_bytes(self) -> int | None:
        """Most memory the group ever held, where the kernel tells."""
        for folder in self.folders:
            for name in ("memory.peak", "memory.max_usage_in_bytes"):
                with contextlib.suppress(OSError, ValueError):
                    return int((folder / name).read_text())
        return None

    def cpu_s(self) -> float | None:
        """Seconds of processor time of all that ever was in it, where the kernel tells (version 2)."""
        for folder in self.folders:
            with contextlib.suppress(OSError, ValueError, KeyError):
                facts = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
                return int(facts["usage_usec"]) / 1e6
        return None

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed a process of the group for the group's memory limit."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                with contextlib.suppress(OSError, ValueError):
                    facts = dict(line.split() for line in (folder / name).read_text().splitlines())
                    if int(facts.get("oom_kill", "0")) > 0:
                        return True
        return False

    def remove(self) -> None:
        """Remove the empty group; its last processes may take the kernel a moment to forget."""
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
    """A group with these limits, or None where no group can be made."""
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
    """Which version can be used here, for people; None when none can."""
    group = make(1 << 30, 64)
    if group is None:
        return None
    group.remove()
    return f"version {2 if len(_places()) == 1 and len(_places()[0][1]) == 2 else 1}"


def parents() -> tuple[Path, ...]:
    """The folders in which groups are made, for cleaning up."""
    return tuple(parent for parent, _ in _places())


def _set_limit(folder: Path, controller: str, limit: int) -> None:
    names = {
        "memory": ("memory.max", "memory.limit_in_bytes"),
        "pids": ("pids.max", "pids.max"),
    }[controller]
    for name in names:
        if (folder / name).exists():
            (folder / name).write_text(str(limit))
            break
    else:
        raise OSError(f"{folder} has no limit for {controller}")
    if controller == "memory":
        for name in ("memory.swap.max", "memory.memsw.limit_in_bytes"):
            with contextlib.suppress(OSError):  # no swap accounting in this kernel: then there is nothing to bound
                (folder / name).write_text("0" if name == "memory.swap.max" else str(limit))


@cache
def _places() -> tuple[tuple[Path, tuple[str, ...]], ...]:
    """(our own group's folder, the controllers it can give its children) per hierarchy."""
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
