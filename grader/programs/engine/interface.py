"""What an engine is: it compiles a submission and says how the program is run. It runs nothing itself."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from grader.base.process import Runner
from grader.base.verdict import Fault


@dataclass(frozen=True)
class Compiled:
    """The result of compiling. `fault` is None when it succeeded; `log` is for the student and uses their file
    names."""

    fault: Fault | None
    log: str

    @property
    def ok(self) -> bool:
        return self.fault is None


@dataclass(frozen=True)
class Launch:
    """How to start a built program: the command, what it needs in its environment, files it reads beside its
    own, and device nodes it opens.

    `file_sizes_limited`: whether a limit on the size of a file can be set; it would also bind files in memory.
    `limit_variable` is an environment variable that takes the time limit in seconds, where the engine can say more
    than that a program was stopped. `traced` says whether the program will write a trace; if not, `untraced_reason`
    says why, for people.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()
    file_sizes_limited: bool = True
    limit_variable: str = ""
    traced: bool = True
    untraced_reason: str = ""


class Engine(Hashable, Protocol):
    """A place where CUDA programs run."""

    @property
    def name(self) -> str:
        """`cuda` or `emulator`."""

    @property
    def device(self) -> str:
        """What it runs on, for people and records: a GPU's name, or the emulated architecture."""

    @property
    def facts(self) -> Mapping[str, str]:
        """What a record needs to be reproduced: driver, compute capability, compiler."""

    @property
    def measures_time(self) -> bool:
        """Whether its times say anything about a GPU."""

    def identity(self) -> str:
        """All that a build depends on except source and flags; part of the build cache's key."""

    @property
    def build_paths(self) -> tuple[Path, ...]:
        """Files and folders that compiling reads, in addition to the sources and the system."""

    def compile(
        self, sources: Sequence[str], flags: Sequence[str], *, folder: Path, output: Path, run: Runner
    ) -> Compiled:
        """Compile `sources` (relative to `folder`) into the program `output`."""

    def problem(self) -> str:
        """Why no program can run there now, as a phrase; '' where the grader's own, run like a submission, can."""

    def launch(self, program: Path, arguments: Sequence[str], trace: str) -> Launch:
        """How to run `program` so that it writes its trace to `trace` (see `grader.programs.trace.PATH_VARIABLE`)."""
