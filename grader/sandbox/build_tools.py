"""Runs compilers and make on students' sources: confined like students' programs, but with different limits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cudaemu.process import Completed, Runner, Stopped
from grader.sandbox import memory_share
from grader.sandbox.budget import Budget
from grader.sandbox.job import Job, Limits
from grader.sandbox.supervise import run

_CHOOSES_COMPILER = ("NVCC_CCBIN",)
"""nvcc's variable for the host compiler, for machines whose g++ is newer than nvcc supports."""

_MEMORY_BYTES = 16 << 30
"""Templates and macros can make a compiler use up all memory; honest CUDA homework takes at most about 2 GiB."""
_KEPT_BYTES, _LEAST_KEPT_BYTES = 1 << 20, 1 << 12
_TOOL_LIMITS = {"file_bytes": 2 << 30, "folder_bytes": 4 << 30}


def runner(
    limit: float | Budget, readable: Sequence[Path] = (), writable: Sequence[Path] = (), *, changes_modes: bool = False
) -> Runner:
    """Return a `Runner` for build tools. All commands draw from one budget: `limit`, or so many seconds of processor
    time. Of their messages about 1 MB is kept. `changes_modes`: see `Job`.

    A command sees the system, its own folder (writable), and the paths in `readable` and `writable`. A command that
    runs out of time returns exit code 124, like timeout(1), and its output says so.
    """
    budget = limit if isinstance(limit, Budget) else Budget(limit, "Compiling")
    room = [_KEPT_BYTES]

    def run_tool(command: Sequence[str], folder: Path) -> Completed:
        try:
            cpu_s, wall_s = budget.left_s()
        except Stopped as stopped:
            return Completed(124, f"\n{Path(command[0]).name} was not started: {stopped}\n", stopped=True)
        chosen = {name: os.environ[name] for name in _CHOOSES_COMPILER if name in os.environ}
        job = Job(tuple(command), folder, chosen, tuple(readable), tuple(writable), changes_modes=changes_modes)
        memory_bytes = memory_share.of_a_tool(_MEMORY_BYTES)
        limits = Limits(wall_s, cpu_s, memory_bytes, kept_output_bytes=_KEPT_BYTES, **_TOOL_LIMITS)
        outcome = run(job, limits)
        budget.spend(outcome.cpu_s)
        output = (outcome.stdout + outcome.stderr)[: max(room[0], _LEAST_KEPT_BYTES)]
        room[0] -= len(output)
        if outcome.timed_out:
            output += f"\n{Path(command[0]).name} was stopped: {budget.problem}\n"
            return Completed(124, output, outcome.wall_s, stopped=True)
        if outcome.broke:
            output += f"\n{Path(command[0]).name} was stopped at its {outcome.broke} limit.\n"
            return Completed(125, output, outcome.wall_s, stopped=True)
        code = outcome.exit_code if outcome.exit_code is not None else 128
        return Completed(code, output, outcome.wall_s)

    return run_tool


linker = partial(runner, changes_modes=True)
"""A `runner` for tools that link programs or libraries, and so change modes of files."""
