"""A placeholder, on the submitting machine, for the engine of a cluster's jobs. It has a name, but compiles and runs
nothing: each job chooses the real engine on its own node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.base.errors import GraderFault, UsageError
from grader.base.process import Runner
from grader.programs.engine import Compiled, Launch, Recording


@dataclass(frozen=True)
class Elsewhere:
    """A placeholder for the engine `name` on a node that Slurm chooses."""

    name: str
    device: str = "a node of the cluster"

    @property
    def measures_time(self) -> bool:
        return self.name == "cuda"

    @property
    def facts(self) -> Mapping[str, str]:
        return {}

    def identity(self) -> str:
        return f"{self.name} elsewhere"

    @property
    def build_paths(self) -> tuple[Path, ...]:
        return ()

    def compile(
        self, sources: Sequence[str], flags: Sequence[str], *, folder: Path, output: Path, run: Runner
    ) -> Compiled:
        raise GraderFault("The submitting machine compiles nothing; this is a bug of the grader.")

    def recording(self) -> Recording:
        raise GraderFault("The submitting machine compiles nothing; this is a bug of the grader.")

    def replay(self) -> tuple[str, ...]:
        raise GraderFault("The submitting machine runs nothing; this is a bug of the grader.")

    def problem(self) -> str:
        raise GraderFault("The submitting machine runs nothing; this is a bug of the grader.")

    def launch(self, program: Path, arguments: Sequence[str], trace: str) -> Launch:
        raise GraderFault("The submitting machine runs nothing; this is a bug of the grader.")


def engine_of_jobs(name: str) -> Elsewhere:
    """The engine for the jobs; `auto` means the GPU that each job requests."""
    if name not in ("auto", "cuda", "emulator"):
        raise UsageError(f"There is no engine {name!r}: choose one of auto, cuda, emulator.")
    return Elsewhere("emulator" if name == "emulator" else "cuda")
