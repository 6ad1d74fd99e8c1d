"""What running a command gives back, for whoever runs one: builds, the emulator's compiler, the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Completed:
    """A command that has ended. `output` is stdout and stderr together, decoded with replacement."""

    exit_code: int
    output: str
    wall_s: float = 0.0


Runner = Callable[[Sequence[str], Path], Completed]
"""Runs a command line in a working directory until it ends. Builders take one, so that one place decides how
(and how confined) compilers run."""
