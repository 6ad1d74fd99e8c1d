"""What is run, what it may see and take, and how it ended: the values that go into and come out of the sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    """Limits of one run; None is unlimited.

    `memory_bytes` and `processes` are of the whole process tree, `file_bytes` of any one file, `folder_bytes` of
    all that lies in the writable folders.
    """

    wall_s: float
    memory_bytes: int | None = None
    processes: int | None = 512
    file_bytes: int | None = None
    folder_bytes: int | None = None
    kept_output_bytes: int = 64 * 1024


@dataclass(frozen=True)
class Job:
    """A command, the folder it runs in and may write to, and what it sees in addition to the system.

    `readable` and `writable` are files or folders that keep their paths inside; `devices` are device nodes.
    `environment` is added to the little that is passed on; `descriptors` stay open in the program. `changes_modes`: it
    has to, as a linker has; what need not is kept from it where no mount namespace protects others' files.
    Without `starts_processes` it may start threads only. `starts_programs`: it is a tool that starts the CUDA program,
    as NVIDIA's are (see `supervise.tool_problem`). Its stdout, where it writes its log, is then a socket: no other
    process can open that through /proc.
    """

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()
    descriptors: tuple[int, ...] = ()
    changes_modes: bool = True
    starts_processes: bool = True
    starts_programs: bool = False


def apart(command: Sequence[str]) -> tuple[str, ...]:
    """The command line with which a tool starts a program that is not to write into the tool's log: what the program
    prints goes to stderr."""
    return ("/bin/sh", "-c", 'exec "$0" "$@" >&2', *command)


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `exit_code` is None when a signal ended it; `signal` then names it (SIGSEGV).

    `broke` names the limit that stopped it: "time", "memory", "process", "folder", or "" for none. `cpu_s` is of all
    its processes that had ended by themselves. `killed_leftovers` counts processes that were still alive at its end,
    where they can be counted (inside bubblewrap the kernel ends them before they could be).
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
        """For people: 'exit code 3', 'SIGSEGV', 'stopped at its time limit'."""
        if self.broke:
            return f"stopped at its {self.broke} limit"
        return self.signal or f"exit code {self.exit_code}"
