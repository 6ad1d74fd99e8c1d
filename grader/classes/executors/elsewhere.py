"""A placeholder, on the submitting machine, for the engine of a cluster's jobs. It has a name, but compiles and runs
nothing: each job chooses the real engine on its own node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from grader.base.errors import GraderFault, UsageError


def _nothing(*given: object, **named: object) -> NoReturn:
    raise GraderFault("The submitting machine compiles and runs nothing; this is a bug of the grader.")


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

    compile = recording = replay = problem = launch = _nothing


def engine_of_jobs(name: str) -> Elsewhere:
    """The engine for the jobs; `auto` means the GPU that each job requests."""
    if name not in ("auto", "cuda", "emulator"):
        raise UsageError(f"There is no engine {name!r}: choose one of auto, cuda, emulator.")
    return Elsewhere("emulator" if name == "emulator" else "cuda")
