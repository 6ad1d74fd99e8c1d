"""The memory that one run may take: what the assignment allows, but no more than its share of this machine.

A limit above the machine's memory limits nothing: the kernel then kills a process of its choice, perhaps the grader.
When several processes grade a class at once, they inherit the variable GRADER_AT_ONCE. Its value "lanes+helpers" is the
number of graded programs and the number of builds that run at once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

AT_ONCE = "GRADER_AT_ONCE"
_LEAST_SPARE_BYTES = 2 << 30
_SPARE_PART = 8
"""One part in this many of the machine's memory stays free for the system and the grader."""
_LEAST_BYTES = 1 << 30
_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def announced(lanes: int, helpers: int) -> Iterator[None]:
    """Announce, while the block runs, that `lanes` programs and `helpers` builds run at once. Processes that are
    started in the block inherit the announcement."""
    before = os.environ.get(AT_ONCE)
    os.environ[AT_ONCE] = f"{lanes}+{helpers}"
    try:
        yield
    finally:
        if before is None:
            del os.environ[AT_ONCE]
        else:
            os.environ[AT_ONCE] = before


def of_a_program(wanted_bytes: int) -> int:
    """The memory limit of a graded program that asks for `wanted_bytes`."""
    lanes, helpers = _at_once()
    return _share(wanted_bytes, lanes * (2 if helpers else 1))


def of_a_tool(wanted_bytes: int) -> int:
    """The memory limit of a compiler that asks for `wanted_bytes`; a build can run two compilers at once."""
    return _share(wanted_bytes, 2 * max(1, _at_once()[1]) * 2)


def _share(wanted_bytes: int, parts: int) -> int:
    there = bytes_there()
    spare = max(_LEAST_SPARE_BYTES, there // _SPARE_PART)
    return min(wanted_bytes, max(_LEAST_BYTES, (there - spare) // parts))


def _at_once() -> tuple[int, int]:
    lanes, _, helpers = os.environ.get(AT_ONCE, "").partition("+")
    return (int(lanes), int(helpers)) if lanes.isdigit() and helpers.isdigit() and int(lanes) else (1, 0)


def bytes_there() -> int:
    """The machine's memory, or the memory limit of this process's control group if that is lower."""
    found = [_kib(_PROC / "meminfo")]
    with contextlib.suppress(OSError):
        for line in (_PROC / "self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            where = {"memory": ("memory", "memory.limit_in_bytes"), "": ("", "memory.max")}.get(names)
            if where is not None:
                for folder in (_CGROUPS / where[0] / path.lstrip("/"), _CGROUPS / where[0]):
                    with contextlib.suppress(OSError, ValueError):
                        found.append(int((folder / where[1]).read_text()))
    return min(found)


def _kib(path: Path) -> int:
    return next(int(line.split()[1]) * 1024 for line in path.read_text().splitlines() if line.startswith("MemTotal:"))
