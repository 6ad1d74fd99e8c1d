"""Runs Nsight Compute on a built program and reads its measurements.

ncu runs in the same confinement as a program without ncu, except that ncu's folders can be read too. ncu can read a
GPU's counters there (tested on an H200, 2026-11-21; ncu 2025.3.1, driver 580), because it uses a library loaded into
the program and the sandbox's loopback, not ptrace.

ncu writes to its stdout, a socket. The program has no descriptor of it, cannot open it through /proc, and prints
elsewhere. (A program could find the name of a log file in /proc/PID/cmdline, and replace the file by a link.) A program
that reaches into ncu's memory can still forge its counters. So code that uses these numbers for points must check them
against what the launch allows (`grader.profiling.kernel_profile` does).

As in timed runs, clocks are not fixed (--clock-control none) and caches are not flushed (--cache-control none).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from grader import sandbox
from grader.base.errors import MachineFault
from grader.base.names import spelled_out
from grader.base.sizes import MAX_NAME, Count, Name
from grader.course.assignment import Limits
from grader.course.metrics import DURATION
from grader.programs.demangling import demangle
from grader.programs.engine.cuda import CudaEngine
from grader.programs.trace.reader import MAX_TEXT
from grader.sandbox import memory_share
from grader.sandbox.room import Unreadable, confined
from grader.sandbox.scratch import scratch_folder

WALL_S = 240.0
"""The limit of a whole run under ncu, which repeats each profiled launch several times."""

_LOG_BYTES = 32 << 20
"""The log has about 2 KB per profiled launch."""
_SPARE_BYTES = 256 << 20
_COPY_BYTES = 8 << 30
"""Memory for ncu: it saves the program's data and restores it between passes."""
_MAX_LAUNCHES, _MAX_VALUES, _MAX_NAME = 20_000, 500, 64 << 10
OUTPUT = "{output}"
_TOOLS = Path("/opt/nvidia")
"""NVIDIA's packages install Nsight Compute here; the toolkit's bin/ncu is a script that calls it."""
_NO_PERMISSION = "ERR_NVGPUCTRPERM"
_KNOWN = re.compile(rf"==ERROR== (?:{_NO_PERMISSION}|Profiling is not supported on device \d{{1,3}})")


@dataclass(frozen=True)
class Launch:
    """One profiled launch. `values` are ncu's values by ncu's names, in base units (bytes, nanoseconds, per second)."""

    kernel: Annotated[str, Field(max_length=_MAX_NAME)]
    grid: tuple[Count, Count, Count]
    block: tuple[Count, Count, Count]
    values: Annotated[dict[Name, float], Field(max_length=_MAX_VALUES)]

    @property
    def duration_ns(self) -> float:
        return self.values.get(DURATION, 0.0)


class NotProfiled(MachineFault):
    """No counters can be measured. The message says why and how to fix it; the caller says what works without them."""


def run_ncu(
    engine: CudaEngine,
    program: Path,
    input_file: Path,
    *,
    metrics: Sequence[str],
    invocations: Sequence[int] | None,
    output_bytes: int,
    limits: Limits,
) -> tuple[tuple[Launch, ...], float]:
    """Return (profiled launches in order, wall seconds). `invocations` says which launches of each kernel to profile,
    counted from 1; None means all. Raises NotProfiled if no counters can be measured."""
    ncu = engine.toolkit.tool("ncu")
    if ncu is None:
        raise NotProfiled(
            "Nsight Compute (ncu) is not installed: install the CUDA toolkit's nsight-compute, or put ncu on PATH."
        )
    if why := sandbox.tool_problem():
        raise NotProfiled(f"Nsight Compute was not run: {why}.")
    source = input_file.resolve()
    outcome = run_under_tool(
        engine,
        ncu_options(ncu, metrics, invocations),
        program,
        (str(source), OUTPUT),
        (source,),
        sandbox.Limits(
            wall_s=WALL_S,
            memory_bytes=memory_share.of_a_program(limits.memory_bytes + _COPY_BYTES),
            processes=limits.processes,
            file_bytes=output_bytes + _SPARE_BYTES,
            folder_bytes=2 * (output_bytes + _SPARE_BYTES),
            kept_output_bytes=_LOG_BYTES,
        ),
    )
    launches = parse_csv(outcome.stdout)
    if not launches:
        raise NotProfiled(_why_nothing(outcome.stdout + _known_words(outcome.stderr), outcome.timed_out))
    return launches, outcome.wall_s


def run_under_tool(
    engine: CudaEngine,
    tool: Sequence[str],
    program: Path,
    arguments: Sequence[str],
    readable: Sequence[Path],
    limits: sandbox.Limits,
) -> sandbox.Outcome:
    """Run `program ARGUMENTS` under a tool from NVIDIA, given as its path and options. OUTPUT among the arguments
    becomes a path that the program may write to."""
    with scratch_folder("tool") as scratch:
        folder = scratch / "run" / "work"
        folder.mkdir(parents=True)
        given = [str(folder / "output") if word == OUTPUT else word for word in arguments]
        launch = engine.launch(program, given, "", traced=False)
        job = sandbox.Job(
            command=(*tool, *sandbox.apart(launch.command)),
            folder=folder,
            environment=launch.environment,
            readable=(program, engine.toolkit.root, *_nvidia_tools(Path(tool[0])), *readable, *launch.readable),
            devices=launch.devices,
            changes_modes=True,  # what NVIDIA's tools do to their files is not known
            starts_programs=True,
        )
        return sandbox.run(job, limits)


def ncu_options(ncu: Path, metrics: Sequence[str], invocations: Sequence[int] | None) -> tuple[str, ...]:
    """The command line up to the program. ncu writes raw numbers of all processes to stdout, as CSV, and neither fixes
    clocks nor flushes caches. It identifies kernels by their mangled names. `invocations` is as in `run_ncu`."""
    options = [str(ncu), "--csv", "--page", "raw", "--print-units", "base"]
    options += ["--clock-control", "none", "--cache-control", "none", "--target-processes", "all"]
    options += ["--kernel-name-base", "mangled", "--print-kernel-base", "mangled", "--metrics", ",".join(metrics)]
    if invocations is not None:
        options += ["--kernel-id", f":::{'|'.join(map(str, invocations))}"]
    return tuple(options)


def _nvidia_tools(tool: Path) -> tuple[Path, ...]:
    """The folders of a tool from NVIDIA that the sandbox has to make readable."""
    return tuple(folder for folder in (tool.resolve().parent, _TOOLS) if folder.is_dir())


def parse_csv(text: str) -> tuple[Launch, ...]:
    """Parse the output of `ncu --csv --page raw`: a line of names, a line of units, and a line per launch. ncu's
    messages (==PROF==), other text around these lines, and truncated lines are skipped. Empty if it cannot be read
    within the room's limits."""
    try:
        return tuple(replace(launch, kernel=_readable(launch.kernel)) for launch in _parsed(text))
    except Unreadable:
        return ()


@confined(cpu_s=30, memory_bytes=2 << 30, answer_bytes=128 << 20)
def _parsed(text: str) -> Annotated[tuple[Launch, ...], Field(max_length=_MAX_LAUNCHES)]:
    """With the mangled names of kernels."""
    rows = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
    if len(rows) < 3 or rows[0][:1] != ["ID"]:
        return ()
    names = rows[0]
    launches = []
    for row in rows[2:]:
        if len(row) != len(names) or not row[0].isdigit():
            continue
        cells = dict(zip(names, row, strict=True))
        numbers = ((name, _number(cell)) for name, cell in list(cells.items())[:_MAX_VALUES])
        values = {name: number for name, number in numbers if number is not None and len(name) <= MAX_NAME}
        grid, block = _triple(cells.get("Grid Size", "")), _triple(cells.get("Block Size", ""))
        launches.append(Launch(cells.get("Kernel Name", "?")[:_MAX_NAME], grid, block, values))
    return tuple(launches[:_MAX_LAUNCHES])


def _readable(name: str) -> str:
    """Demangle a name in the same way as the trace's reader, so that equal names are the same kernel. (ncu's own
    demangler writes `<unnamed>` and `(bool)0` where the C++ library writes `(anonymous namespace)` and `false`.)"""
    return spelled_out(demangle(name)[:MAX_TEXT])


def _number(cell: str) -> float | None:
    """Parse a number, which in some locales has thousands separators."""
    try:
        number = float(cell.replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _triple(cell: str) -> tuple[int, int, int]:
    x, y, z = [*map(int, re.findall("[0-9]{1,10}", cell)), 1, 1, 1][:3]
    return x, y, z


def _known_words(stderr: str) -> str:
    """The known sentences of ncu in stderr. All other text is dropped, since the program prints there too."""
    return "".join(f"\n{found}" for found in dict.fromkeys(_KNOWN.findall(stderr)))


def _why_nothing(said: str, timed_out: bool) -> str:
    if _NO_PERMISSION in said:
        return (
            "The driver lets only administrators read performance counters: put `options nvidia "
            "NVreg_RestrictProfilingToAdminUsers=0` into a file in /etc/modprobe.d and reboot, or run the grader as "
            "root (https://developer.nvidia.com/ERR_NVGPUCTRPERM)."
        )
    if timed_out:
        return f"Profiling took longer than {WALL_S:g} s: profile a smaller test, or fewer launches with --launches."
    errors = [line.strip() for line in said.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
    words = " ".join(line.split("==")[2].strip() for line in errors if "unmodified GPU clocks" not in line)
    if "not supported" in words:
        return (
            f"This Nsight Compute does not support this GPU: {words[:300]} Install ncu from an older or newer toolkit."
        )
    return f"Nsight Compute measured no kernel: {words[:400] or said.strip()[-300:] or 'it did not say why'}"
