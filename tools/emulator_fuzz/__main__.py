"""Differential fuzzing of the emulator: random CUDA programs that check their own results.

    python -m tools.emulator_fuzz --seeds 0..20 [--flags=-O3] [--watch]
                                  [--schedules lockstep,reverse,random:7] [--isas avx512,avx2,sse]
                                  [--kinds groups,vectors,parameters] [--kernels 10]
    python -m tools.emulator_fuzz --seeds 0..20 --write FOLDER      # for a CUDA machine: there, make -k -C FOLDER

A program has a few kernels of each kind (program.py), or --kernels of each of --kinds. It prints its first differences
and ends with exit code 1 when a bit differs between device and host; with --isas that is asked of each instruction set.
All that it does is well-defined, on a GPU too, so a difference is a mistake of the translator (or of a model in
operations.cuh), and so is anything a sanitizer reports. Programs are functions of their seed; eight seeds in a row test
every operation by itself. Ends with 1 if a program differed, could not be built, or had a finding. Not for
--flags="-Xcicc -O0": nvcc 13 then writes PTX that never sets its stack pointer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from cudaemu import CompileFailed, EmulatorFault, Extras, PlainHost, Unsupported, Workplace, compile_program
from cudaemu.isa import VARIABLE
from cudaemu.process import Completed, Runner, run_plainly
from grader.programs.toolkit import find_toolkit
from tools.emulator_fuzz.program import KINDS, write_program, write_programs

TIMEOUT_S = 120


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.emulator_fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--seeds", type=_seeds, default=range(1), metavar="FIRST..LAST", help="which programs, both ends included"
    )
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="only write the programs, for another machine")
    parser.add_argument("--flags", default="-O3", help="nvcc's flags, separated by spaces")
    parser.add_argument("--watch", action="store_true", help="look for races and uninitialised reads")
    parser.add_argument(
        "--schedules", default="lockstep", help="orders of warps, separated by commas: lockstep, reverse, random:SEED"
    )
    parser.add_argument("--isas", default="", help=f"values of {VARIABLE}, separated by commas")
    parser.add_argument("--kinds", default="", help=f"kinds of kernels, separated by commas: {', '.join(KINDS)}")
    parser.add_argument("--kernels", type=int, help="of each kind, instead of one to four")
    parser.add_argument("--count", action="store_true", help="build with counters, as for profiles")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep sources, intermediate files and executables here"
    )
    options = parser.parse_args(arguments)
    kinds = {kind: options.kernels or KINDS[kind] for kind in options.kinds.split(",") if kind} or KINDS
    if options.write:
        write_programs(options.write, options.seeds, kinds)
        print(f"{len(options.seeds)} programs and a Makefile in {options.write}: make -k -j4 run, there")
        return 0
    bad = 0
    for seed in options.seeds:
        with tempfile.TemporaryDirectory() as scratch:
            folder = (options.keep or Path(scratch)) / f"fuzz_{seed}"
            start = time.monotonic()
            problems = check(write_program(folder, seed, kinds), options)
        print(f"seed {seed}: {'ok' if not problems else 'WRONG'} ({time.monotonic() - start:.1f} s)", flush=True)
        for line in problems:
            print(f"  {line}", flush=True)
        bad += bool(problems)
    print(f"{len(options.seeds)} programs, {bad} wrong")
    return 1 if bad else 0


def check(source: Path, options: argparse.Namespace) -> list[str]:
    """Builds and runs a program for each instruction set; returns a line for each problem."""
    problems: list[str] = []
    run = _Compilers()
    for isa in options.isas.split(","):
        if isa:
            os.environ[VARIABLE] = isa
        written = source.parent / f"written_{isa}"
        problems += [f"[{isa}] {line}" if isa else line for line in _check(source, written, options, run)]
    return problems


def _check(source: Path, written: Path, options: argparse.Namespace, run: Runner) -> list[str]:
    folder = source.parent
    try:
        made = compile_program(
            [source], folder / "program", Workplace(folder / "work", written=written), nvcc=find_toolkit().nvcc, host=PlainHost(run), flags=("-std=c++17", *options.flags.split()),
            extras=Extras(watch=options.watch, count=options.count),
        )  # fmt: skip
    except (Unsupported, CompileFailed, EmulatorFault, AssertionError) as error:  # the last: the translator gave up
        return [f"{type(error).__name__}: {str(error)[:2000]}", *getattr(error, "log", "").splitlines()[:10]]
    problems: list[str] = []
    for schedule in options.schedules.split(","):
        problems += [f"[{schedule}] {line}" for line in _execute(made.path, folder / "trace.jsonl", schedule)]
    return problems


def _execute(program: Path, trace: Path, schedule: str) -> list[str]:
    """Runs an executable; returns its output if it failed, and the findings."""
    trace.unlink(missing_ok=True)
    environment = {**os.environ, "GRADER_TRACE": str(trace), "GRADER_EMULATOR_SCHEDULE": schedule}
    try:
        done = subprocess.run(
            [program], env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return [f"ran for more than {TIMEOUT_S} s"]
    problems = (done.stdout + done.stderr).splitlines()[:20] if done.returncode != 0 else []
    problems += [f"exit code {done.returncode}"] if done.returncode != 0 else []
    lines = [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else []
    return problems + [f"reported: line {d['line']}: {d['message']}" for d in lines if d["kind"] == "diagnostic"]


class _Compilers:
    """Runs commands; nvcc and ptxas once, since their results are the same for every instruction set."""

    def __init__(self) -> None:
        self.done: dict[tuple[str, ...], Completed] = {}

    def __call__(self, command: Sequence[str], folder: Path) -> Completed:
        known = self.done.get(tuple(command))
        if known:
            return known
        completed = run_plainly(command, folder)
        if Path(command[0]).name in ("nvcc", "ptxas"):
            self.done[tuple(command)] = completed
        return completed


def _seeds(text: str) -> range:
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


if __name__ == "__main__":
    sys.exit(main())
