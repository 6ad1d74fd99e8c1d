"""The interface of an engine. It compiles a submission and describes how to start the program; it runs nothing
itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cudaemu.process import Runner
from grader.base.verdict import Fault
from grader.sandbox.budget import Budget


@dataclass(frozen=True)
class Compiled:
    """The result of compiling. `fault` is None if it succeeded. `log` is for students and uses their file names.
    `lacking`: the engine lacks what the program uses, which `log` names; no compiler refused it. `package` has what a
    Python submission recorded; then `log` says what autotune chose."""

    fault: Fault | None
    log: str
    lacking: bool = False
    package: bytes = b""

    @property
    def ok(self) -> bool:
        return self.fault is None


@dataclass(frozen=True)
class Launch:
    """Everything needed to start a built program: the command, its environment variables, the files that it reads in
    addition to its own, and the device nodes that it opens.

    `file_sizes_limited`: whether the size of files may be limited; not if the engine keeps large files in memory, since
    such a limit applies to these too. `limit_variable` is the environment variable for the time limit in seconds, for
    an engine that reports where a program was when it was stopped. `traced`: whether the program will write a trace; if
    not, `untraced_reason` explains it to people.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()
    file_sizes_limited: bool = True
    limit_variable: str = ""
    traced: bool = True
    untraced_reason: str = ""


@dataclass(frozen=True)
class Recording:
    """How an engine records: what Triton compiles for (sm_80 for the emulator, cuda:90 for a GPU), and, on a GPU, the
    replayer that tries kernels. `loadable` makes what the replayer loads from the PTX that Triton wrote and the words
    of `Code.ptxas`; it also gets the submission's folder and one for compilers, which draw from the budget. It raises
    `Refused` for a kernel that does not compile, and Stopped."""

    target: str
    loadable: Callable[[bytes, Sequence[str], Path, Path, Budget], bytes]
    replayer: Launch = Launch(command=())


class Engine(Hashable, Protocol):
    """A place where CUDA programs run."""

    @property
    def name(self) -> str:
        """`cuda` or `emulator`."""

    @property
    def device(self) -> str:
        """The name of the device, for people and records: the GPU's name, or the emulated architecture."""

    @property
    def facts(self) -> Mapping[str, str]:
        """The facts that are needed to reproduce a record: driver, compute capability, compiler."""

    @property
    def measures_time(self) -> bool:
        """Whether the engine's times are times of a GPU."""

    def identity(self) -> str:
        """Everything that a build depends on, except sources and flags; part of the build cache's key."""

    @property
    def build_paths(self) -> tuple[Path, ...]:
        """Files and folders that compiling reads, in addition to the sources and the system."""

    def compile(
        self, sources: Sequence[str], flags: Sequence[str], *, folder: Path, output: Path, run: Runner
    ) -> Compiled:
        """Compile `sources` (relative to `folder`) into the program `output`."""

    def recording(self) -> Recording:
        """How a Python submission is recorded for the engine."""

    def replay(self) -> tuple[str, ...]:
        """The command that replays a package on INPUT and OUTPUT, or with --serve."""

    def problem(self) -> str:
        """The reason why no program can run on the engine now, as a phrase; '' if the grader's own test program
        runs."""

    def launch(self, program: Path, arguments: Sequence[str], trace: str) -> Launch:
        """How to start `program` so that it writes its trace to `trace` (see `grader.programs.trace.PATH_VARIABLE`)."""
