"""Runs the seeded bugs under the emulator and, on a CUDA machine, under compute-sanitizer; writes which tool found
which bug.

    python -m tools.sanitizer_table [--write docs/sanitizers.md]

The bugs are the programs of tests/emulator/seeded, each with the line that is wrong marked. On a CUDA machine each runs
under all four tools (memcheck with its leak check, racecheck, initcheck, synccheck). Ends with exit code 1 when the
emulator misses one, or reports anything about a correct program.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from tabulate import tabulate

from grader.base.errors import MachineFault
from grader.programs.engine.cuda import CudaEngine, find_gpu
from grader.programs.toolkit import find_toolkit
from grader.sanitizers import CHECKS, LEAKS, Check, Report, run_check
from tests.emulator.programs import target_of
from tests.emulator.seeded_bugs import SEEDED, SeededBug, correct_programs, run, seeded_bugs

WALL_S = 15.0
"""For one program under one tool: some of them never end."""

WORKERS = 8
"""Programs at a time on the GPU. Nothing is timed."""

NOT_RUN = "not run"

_PREAMBLE = """# What the sanitizers find

`grader check hw4.cu --sanitize memory,race,init,sync` looks for faults of four kinds. On the emulator they are part of
the emulator; on a GPU they are compute-sanitizer's memcheck, racecheck, initcheck and synccheck. This page compares
them on the {bugs} seeded bugs of `tests/emulator/seeded`, small programs with one bug each. Written by
`python -m tools.sanitizer_table`; {where}.

A cell lists the lines that a tool names, of the same kind as the bug; "(host)" is a bug in host code, for which "found"
without a line will do. "elsewhere" means that the tool reports something of the kind, but at no line that is wrong.
The programs of files hopper_* are built for sm_90a. Each has a twin without the bug, about which the emulator reports
nothing and whose result is right on both.

## What the emulator looks at

- memory (always on): every access to global, shared and local memory against the allocation, the block's shared memory
  or the thread's local arrays; alignment; memory freed before; host pointers in kernels and device pointers on the
  host; copies longer than the allocation. With `--sanitize memory`, memory that was never freed gets a note, which
  does not fail the check.
- race: two accesses to one byte of shared or global memory, one of them a write, that no barrier, and no fence with an
  atomic or volatile access after it, puts in order; within a warp, as a warning, that no `__syncwarp()` or other warp
  function separates. Writing the value that is there already is no race, nor is a plain look beside `atomicCAS`, `Min`,
  `Max`, `And` or `Or`. An asynchronous copy (cp.async) is a write that lasts until its thread has waited for it: before
  that, any access to its bytes is reported, and by init where races are not looked for. A completed phase of a barrier
  object (cuda::barrier, cuda::pipeline, mbarrier) puts in order all that was before it and what a warp does after it
  has waited. On Hopper: a bulk copy is a write, or a read of its source, from its issue until it has been waited for; a
  wgmma reads its operands until its group has been waited for; ordinary stores before such a read need a
  fence.proxy.async; blocks of a cluster need a barrier of the cluster, or a barrier object, between accesses to one's
  shared memory; a kernel that overlaps with the one before it (griddepcontrol) needs a wait before it touches what that
  one uses.
- init: reads of bytes that were never written since cudaMalloc, or by no thread of the block in shared memory; copies
  to the host of 16 bytes or more that nothing wrote.
- memory, on Hopper also: a block of a cluster that may have ended when another uses its shared memory; a wgmma whose
  descriptor has another swizzle than the tensor map (with race or init).
- sync (always on): barriers that not all threads of a warp reach, warp functions and `__syncwarp()` with masks that do
  not name the caller or name lanes that never come, deadlock, also at barrier objects, kernels that run for too long.
  Lanes that wait in a loop for other lanes of their warp, at a lock or for a flag, let these go on, as on GPUs since
  compute capability 7.0; only not in a function that was not inlined, and the report of such a loop then says so. On
  Hopper: bytes that expect_tx counts wrongly; blocks that end while a copy is under way; registers of a wgmma that are
  used before its group has been waited for; a missing wgmma.fence; setmaxnreg that waits for registers that no warp
  gives back.

The sample looked at is the smallest that crashed, else the smallest that failed, else the smallest that is worth it;
its name is printed. Without `--sanitize`, on the emulator, `check` and `grade` look by themselves where a test failed
and its own run does not show the line, and `check` looks for races where all passed; the report then begins with the
likeliest cause. A look that fails changes nothing, and what it finds is a hint: the verdict is the output's.

Reports name the variable or the allocation, with the line that allocated it where addr2line (binutils) is installed,
and the offset in it.

With race or init on a kernel runs on one core, so that reports are the same each time, and much slower: reference
tiled.cu at B=1, N=256, d=64 took 0.4 s instead of 2.3 ms (one core, 2026-11-21). A word that kernels touch takes 40
bytes more with race, and a byte one bit more with init. Without them nothing is kept.

Not found: out of bounds from one array into another inside of one allocation or of one block's shared memory; a race
that an unrelated barrier, or an unrelated fence and atomic, hides.
"""


@dataclass(frozen=True)
class Found:
    """The findings of one tool for one program, of the bug's kind. `ran` is the reason why it did not run, '' if it
    ran."""

    lines: frozenset[int] = frozenset()
    anything: bool = False
    ran: str = ""

    def right(self, bug: SeededBug) -> bool:
        return self.anything and (bool(self.lines & bug.lines) or (bug.host and not self.lines))

    def text(self, bug: SeededBug) -> str:
        if self.ran:
            return self.ran
        if not self.anything:
            return "nothing"
        lines = ", ".join(map(str, sorted(self.lines)))
        if self.right(bug):
            return lines or "found"
        return f"elsewhere: {lines or 'no line'}"


def emulated(bug: SeededBug) -> Found:
    """Run the program on the emulator with all checks on."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(bug.source, bug.name, Path(folder), leaks=bug.name == "leak")
        diagnostics = done.diagnostics(bug.check)
    lines = {d["line"] for d in diagnostics if d["line"] is not None}
    lines |= _numbers(r"at line (\d+)", (d["message"] for d in diagnostics))
    return Found(frozenset(lines), bool(diagnostics))


def reported_about_correct_programs() -> list[str]:
    """Every message of the emulator about the correct programs."""
    messages = []
    for source, name in correct_programs():
        with tempfile.TemporaryDirectory() as folder:
            messages += [f"{name}: {d['message']}" for d in run(source, name, Path(folder)).diagnostics()]
    return messages


# ---- compute-sanitizer ----------------------------------------------------------------------------------------------


def compile_for(engine: CudaEngine, source: Path, folder: Path) -> Path:
    """The program for this GPU. Raises MachineFault with nvcc's output."""
    major, minor = engine.gpu.compute_capability
    chip = f"{major}{minor}a" if target_of(source) == f"sm_{major}{minor}a" else f"{major}{minor}"
    code = f"arch=compute_{chip},code=sm_{chip}"
    program = folder / source.stem
    options = ("-O3", "-std=c++17", "-lineinfo", "-gencode", code)
    command: list[str | Path] = [engine.toolkit.nvcc, *options, source, "-o", program]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise MachineFault(f"{source.name} does not compile: {done.stdout[-2000:]}")
    return program


def under_compute_sanitizer(engine: CudaEngine, bugs: Sequence[SeededBug]) -> dict[str, dict[Check, Report]]:
    """Each program under each tool, by the program's name."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        sources = sorted({bug.source for bug in bugs})
        programs = dict(zip(sources, pool.map(lambda s: compile_for(engine, s, Path(folder)), sources), strict=True))

        def report(bug: SeededBug, check: Check) -> Report:
            options = LEAKS if check == "memory" else ()
            return run_check(
                engine, programs[bug.source], [bug.name], check, readable=(), kernels=1, options=options, wall_s=WALL_S
            )

        first = {
            check: report(bugs[0], check) for check in CHECKS
        }  # each tool tries its canary once, not all at a time
        rest = {bug.name: {c: pool.submit(report, bug, c) for c in CHECKS} for bug in bugs[1:]}
        return {bugs[0].name: first} | {n: {c: f.result() for c, f in each.items()} for n, each in rest.items()}


def of_report(report: Report) -> Found:
    """What a tool's report names."""
    lines = {f.first.line for f in report.findings if f.first.line is not None}
    lines |= _numbers(r"\.cu:(\d+)\)", (f.first.message for f in report.findings))
    if report.findings or not report.not_run:
        return Found(frozenset(lines), report.errors > 0 or bool(report.findings))
    return Found(ran=f"{NOT_RUN}: {report.not_run}")


def on_the_gpu(bug: SeededBug, reports: dict[Check, Report]) -> tuple[str, Found]:
    """The tool for the bug's kind, else the first that names its line; and what it found."""
    own: Check = next((c for c in CHECKS if c == bug.check), "memory")
    found = of_report(reports[own])
    if not found.right(bug):
        for check in CHECKS:
            other = of_report(reports[check])
            if check != own and other.lines & bug.lines:
                return check, other
    return own, found


# ---- the page -------------------------------------------------------------------------------------------------------


def page(bugs: Sequence[SeededBug], emulator: dict[str, Found], gpu: dict[str, dict[Check, Report]], where: str) -> str:
    rows = []
    right = {"the emulator": 0, "compute-sanitizer": 0}
    for bug in bugs:
        lines = ", ".join(map(str, sorted(bug.lines))) + (" (host)" if bug.host else "")
        mine = emulator[bug.name]
        right["the emulator"] += mine.right(bug)
        theirs = NOT_RUN
        if gpu:
            check, found = on_the_gpu(bug, gpu[bug.name])
            right["compute-sanitizer"] += found.right(bug)
            theirs = found.text(bug) + (f" ({check})" if check != bug.check and found.right(bug) else "")
        rows.append((bug.source.stem, bug.name, bug.check, lines, mine.text(bug), theirs))
    headers = ("file", "program", "kind", "wrong line", "emulator", "compute-sanitizer")
    counts = [f"{tool} {number}" for tool, number in right.items() if gpu or tool == "the emulator"]
    text = _PREAMBLE.format(bugs=len(bugs), where=where)
    table = tabulate(rows, headers, tablefmt="github", disable_numparse=True)
    return f"{text}\n## Who found what\n\nFound at the right line, of {len(bugs)}: {', '.join(counts)}.\n\n{table}\n"


def _numbers(pattern: str, texts: Iterable[str]) -> set[int]:
    return {int(number) for text in texts for number in re.findall(pattern, text)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="write the page here instead of printing it")
    options = parser.parse_args()
    bugs = seeded_bugs()
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # one program of each file first: it is compiled once
        list(pool.map(emulated, {bug.source: bug for bug in bugs}.values()))
    emulator = {bug.name: emulated(bug) for bug in bugs}
    gpu: dict[str, dict[Check, Report]] = {}
    where = "the compute-sanitizer column was not run: this machine has no GPU"
    if (device := find_gpu()) is not None:
        engine = CudaEngine(find_toolkit(), device)
        gpu = under_compute_sanitizer(engine, bugs)
        where = f"compute-sanitizer of CUDA {engine.toolkit.version} on one {device.name}, driver {device.driver}"
        where += f", {date.today()}"
    text = page(bugs, emulator, gpu, where)
    if options.write:
        options.write.write_text(text)
        print(f"{options.write} written: {len(bugs)} bugs of {len(list(SEEDED.glob('*.cu'))) - 1} files")
    else:
        print(text)
    missed = [bug.name for bug in bugs if not emulator[bug.name].right(bug)]
    noise = reported_about_correct_programs()
    for line in [f"missed: {name}" for name in missed] + [f"wrongly reported: {message}" for message in noise]:
        print(line, file=sys.stderr)
    return 1 if missed or noise else 0


if __name__ == "__main__":
    sys.exit(main())
