"""The values that go into the sandbox and come out of it: a job, its limits and its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    """Limits of one run; None is unlimited.

    `memory_bytes` and `processes` apply to the whole process tree, `file_bytes` to each file, and `folder_bytes` to
    everything in the writable folders together, `cpu_s` to the processor time of the whole tree.
    """

    wall_s: float
    cpu_s: float | None = None
    memory_bytes: int | None = None
    processes: int | None = 512
    file_bytes: int | None = None
    folder_bytes: int | None = None
    kept_output_bytes: int = 64 * 1024


@dataclass(frozen=True)
class Job:
    """A command, the folder it runs in and may write to, and what it sees in addition to the system.

    `readable` and `writable` are files or folders that have the same paths inside the sandbox; `devices` are device
    nodes. `environment` is added to the few variables that are passed on; `descriptors` stay open in the program.
    `changes_modes`: it changes modes of files, as a linker does; other commands may not where no mount namespace
    protects the user's other files. Without `starts_processes` it may start only threads. `starts_programs`: it is a
    tool that starts the CUDA program, as NVIDIA's tools do (see `supervise.tool_problem`). Its stdout, to which it
    writes its log, is then a socket, because no other process can open a socket through /proc.
    """

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()
    descriptors: tuple[int, ...] = ()
    changes_modes: bool = False
    starts_processes: bool = True
    starts_programs: bool = False


def apart(command: Sequence[str]) -> tuple[str, ...]:
    """Wrap the command of a program that a tool starts, so that the program prints to stderr and cannot write into the
    tool's log."""
    return ("/bin/sh", "-c", 'exec "$0" "$@" >&2', *command)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. `exit_code` is None when a signal ended it; `signal` then names it (SIGSEGV).

    `broke` names the limit that stopped it: "time", "memory", "process", "folder", or "" for none. `cpu_s` is the
    processor time of all its processes. `killed_leftovers` counts the processes that were still alive when it ended and
    had to be killed; it stays 0 under bubblewrap, where the kernel ends them before they can be counted.
    """

    exit_code: int | None
    signal: str | None
    broke: str
    wall_s: float
    cpu_s: float
    peak_memory_bytes: int
    stdout: str
    stderr: str
    killed_leftovers: int = 0

    @property
    def timed_out(self) -> bool:
        return self.broke == "time"

    @property
    def ending(self) -> str:
        """The end of the run, as a phrase: 'exit code 3', 'SIGSEGV', 'stopped at its time limit'."""
        if self.broke:
            return f"stopped at its {self.broke} limit"
        return self.signal or f"exit code {self.exit_code}"
