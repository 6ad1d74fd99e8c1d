"""Runs compute-sanitizer on a program, confined like any run.

This works inside the sandbox, because compute-sanitizer uses libraries loaded into the program and the sandbox's
loopback (tested on an H200 with version 2025.3.1, 2026-11-21).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from grader import sandbox
from grader.base.errors import GraderFault
from grader.profiling.ncu import run_under_tool
from grader.programs.control import OWN_PROGRAM, compile_own
from grader.programs.engine.cuda import CudaEngine
from grader.sandbox import memory_share
from grader.sandbox.cache import cache_entry, kept, mark_used
from grader.sanitizers.log import parse_report
from grader.sanitizers.tool_report import Check, Report

_TOOLS: dict[Check, tuple[str, ...]] = {
    "memory": ("--tool", "memcheck"),
    "race": ("--tool", "racecheck", "--racecheck-report", "hazard"),
    "init": ("--tool", "initcheck"),
    "sync": ("--tool", "synccheck"),
}
_LOG_BYTES = 4 << 20
_MEMORY_BYTES = 64 << 30
_PRINTED = 200
"""The most findings that the tool prints; it counts all of them."""

_WALL_S = 120.0
_CANARY = Path(__file__).with_name("canary.cu")

LEAKS = ("--leak-check", "full")
"""Options with which memcheck reports memory that was never freed."""


def run_check(
    engine: CudaEngine,
    program: Path,
    arguments: Sequence[str],
    check: Check,
    *,
    readable: Sequence[Path],
    kernels: int,
    options: Sequence[str] = (),
    wall_s: float = _WALL_S,
) -> Report:
    """Run one tool, with extra `options`, on `program ARGUMENTS` for at most `wall_s` seconds. `{output}` among the
    arguments becomes a path that the program may write to. `kernels` is the number of launches in a run without a
    tool."""
    tool = engine.toolkit.tool("compute-sanitizer")
    if tool is None:
        return Report(check, not_run="compute-sanitizer is not installed: install the CUDA toolkit")
    if why := sandbox.tool_problem():
        return Report(check, not_run=why)
    if kernels == 0:
        return Report(check, not_run="the program launched no kernel")
    if not _finds_its_canary(engine, tool, check):
        return Report(check, not_run="the tool does not find the known fault of a test program on this machine")
    return parse_report(check, _run(engine, tool, check, program, arguments, readable, options, wall_s))


def _run(
    engine: CudaEngine,
    tool: Path,
    check: Check,
    program: Path,
    arguments: Sequence[str],
    readable: Sequence[Path],
    more: Sequence[str] = (),
    wall_s: float = _WALL_S,
) -> str:
    """Return the tool's stdout, to which the program cannot write (see `grader.profiling.ncu`)."""
    options = ("--target-processes", "all", "--show-backtrace", "device", "--print-limit", str(_PRINTED))
    limits = sandbox.Limits(
        wall_s=wall_s,
        memory_bytes=memory_share.of_a_program(_MEMORY_BYTES),
        file_bytes=1 << 30,
        folder_bytes=2 << 30,
        kept_output_bytes=_LOG_BYTES,
    )
    words = (str(tool), *_TOOLS[check], *options, *more)
    outcome = run_under_tool(engine, words, program, arguments, readable, limits)
    text = outcome.stdout
    if outcome.timed_out:
        text += f"\n========= the program was stopped after {wall_s:g} s"
    return text or outcome.stderr


def _finds_its_canary(engine: CudaEngine, tool: Path, check: Check) -> bool:
    """Whether the tool finds a known fault on this machine. A success is cached by tool, driver and GPU; after a
    failure the next call tries again."""
    key = hashlib.sha256(
        _CANARY.read_bytes() + f"{engine.identity()} {engine.gpu.driver} {engine.gpu.uuid} {tool.resolve()}".encode()
    ).hexdigest()[:16]
    remembered = cache_entry("native", f"sanitizer-{check}-{key}")
    if remembered.exists():
        mark_used(remembered)
        return True
    program = kept("native", f"sanitizer-canary-{key}", partial(_build_canary, engine))
    found = parse_report(check, _run(engine, tool, check, program, [check], ()))
    if found.errors > 0 and not found.not_run:
        remembered.touch()
        return True
    return False


def _build_canary(engine: CudaEngine, folder: Path) -> Path:
    made = compile_own(engine, _CANARY.read_text(encoding="utf-8"), folder, ("-O1", "-lineinfo"))
    if not made.ok:
        raise GraderFault(f"The sanitizer's canary does not compile: {made.log[:400]}")
    return folder / OWN_PROGRAM


def with_lines(flags: Sequence[str]) -> tuple[str, ...]:
    """Add the build flag that lets the tools name files and lines."""
    return (*flags, *(() if "-lineinfo" in flags or "-G" in flags else ("-lineinfo",)))
