"""How commands are run: compilers and other tools. A caller that confines them brings a Runner of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Completed:
    """A finished command. `output` is stdout and stderr together, with a replacement for bytes that are not UTF-8."""

    exit_code: int
    output: str
    wall_s: float = 0.0
    stopped: bool = False
    """Whether the command was ended at a limit of its runner, which says so in the output: no failure of its own."""


class Stopped(Exception):
    """A step used up the time or memory that all its commands and calls share. The message says so."""


Runner = Callable[[Sequence[str], Path], Completed]
"""Runs a command line in a working directory until it ends. Builders take a Runner, so that one place decides how
compilers run and how they are confined."""


def run_plainly(command: Sequence[str], folder: Path) -> Completed:
    """A Runner without limits."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return Completed(done.returncode, done.stdout.decode(errors="replace"))
