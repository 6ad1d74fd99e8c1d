"""Runs the seeded bugs under the emulator and, on a CUDA machine, under compute-sanitizer; writes which tool found
which bug.

    python -m tools.sanitizer_table [--write docs/sanitizers.md]

Only the part between the page's two markers is written.

The bugs are the programs of emulator/tests/seeded, each with the line that is wrong marked. On a CUDA machine each runs
under all four tools (memcheck with its leak check, racecheck, initcheck, synccheck). Ends with exit code 1 when the
emulator misses one, or reports anything about a correct program.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from tabulate import tabulate

from emulator.tests.programs import target_of
from emulator.tests.seeded_bugs import SEEDED, SeededBug, correct_programs, run, seeded_bugs
from grader.base.errors import MachineFault
from grader.programs.engine.cuda import CudaEngine, find_gpu
from grader.programs.toolkit import find_toolkit
from grader.sanitizers import CHECKS, LEAKS, Check, Report, run_check
from tools.emulator_table import with_part

WALL_S = 15.0
"""For one program under one tool: some of them never end."""

WORKERS = 8
"""Programs at a time on the GPU. Nothing is timed."""

NOT_RUN = "not run"

BEGIN = "<!-- python -m tools.sanitizer_table --write docs/sanitizers.md writes from here -->"


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
        findings = done.findings(bug.check)
    lines = {line for d in findings for line in (d["line"], d["facts"].get("other_line")) if line is not None}
    return Found(frozenset(lines), bool(findings))


def reported_about_correct_programs() -> list[str]:
    """Every message of the emulator about the correct programs."""
    messages = []
    for source, name in correct_programs():
        with tempfile.TemporaryDirectory() as folder:
            messages += [f"{name}: {d['is']}" for d in run(source, name, Path(folder)).findings()]
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
    lines |= {f.first.other.line for f in report.findings if f.first.other is not None}
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


def table(
    bugs: Sequence[SeededBug], emulator: dict[str, Found], gpu: dict[str, dict[Check, Report]], where: str
) -> str:
    """The generated part of the page."""
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
    text = tabulate(rows, headers, tablefmt="github", disable_numparse=True)
    return f"Found at the right line, of {len(bugs)}: {', '.join(counts)}; {where}.\n\n{text}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="write the table into this page instead of printing it")
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
    text = table(bugs, emulator, gpu, where)
    if options.write:
        options.write.write_text(with_part(options.write.read_text(encoding="utf-8"), BEGIN, text), encoding="utf-8")
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
