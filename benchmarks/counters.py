"""The emulator's counters beside Nsight Compute's, kernel by kernel.

    python benchmarks/counters.py emulate emulator.json     needs no GPU
    python benchmarks/counters.py measure ncu.json          needs a CUDA machine with ncu
    python benchmarks/counters.py table emulator.json ncu.json [--all]

Programs: the three model solutions on B=2, N=256, d=64, and benchmarks/counters/*.cu. Both sides compile for sm_90 with
the same flags. Counters are sums over all launches of a kernel. The table is Markdown; with --all it has every metric
that both sides know, else those that must agree.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from cudaemu import Extras, PlainHost, Workplace, compile_program
from emulator import write_input
from grader.course.metrics import COUNTED, METRICS
from grader.findings import short_kernel
from grader.profiling.counters import counted_launches
from grader.profiling.ncu import Launch, parse_csv
from grader.programs.toolkit import find_toolkit
from grader.programs.trace import read_trace

ROOT = Path(__file__).resolve().parent.parent
TARGET = "sm_90"
FLAGS = ("-O3", "-std=c++17")
SHAPE = (2, 256, 64)
ATTENTION = tuple(ROOT / "reference" / "hw4" / f"{name}.cu" for name in ("naive", "tiled", "flash2"))
SYNTHETIC = tuple(sorted((ROOT / "benchmarks" / "counters").glob("*.cu")))

SUMS = tuple(name for name in COUNTED if METRICS[name].ncu.endswith(".sum"))
PROMISED = (
    "shared_load_wavefronts",
    "shared_store_wavefronts",
    "shared_load_bank_conflicts",
    "shared_store_bank_conflicts",
    "gld_requests",
    "gld_transactions",
    "gst_transactions",
    "async_copy_sectors",
    "inst_executed",
)
NCU_NAMES = {
    name: METRICS[name].in_ncu for name in SUMS if METRICS[name].in_ncu
} | {
    "async_copy_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts.sum",
    "async_copy_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts.sum",
    "barriers": "smsp__inst_executed_op_barrier.sum",
}  # fmt: skip
"""The last three are not in NVIDIA's comparison of nvprof and ncu; a name that this ncu does not know is left out."""

Counters = dict[str, dict[str, dict[str, float]]]
"""Program → kernel → metric."""


def added_up(launches: Iterable[Launch], names: dict[str, str]) -> dict[str, dict[str, float]]:
    kernels: dict[str, dict[str, float]] = {}
    for launch in launches:
        sums = kernels.setdefault(short_kernel(launch.kernel), {})
        for name, key in names.items():
            if key in launch.values:
                sums[name] = sums.get(name, 0.0) + launch.values[key]
    return kernels


def arguments_of(source: Path, folder: Path) -> list[str]:
    if source not in ATTENTION:
        return []
    if not (folder / "in").exists():
        write_input(folder / "in", *SHAPE)
    return [str(folder / "in"), str(folder / "out")]


def emulate(folder: Path) -> Counters:
    result: Counters = {}
    for source in (*ATTENTION, *SYNTHETIC):
        program = compile_program(
            [source],
            folder / source.stem,
            Workplace(folder / f"{source.stem}.work"),
            nvcc=find_toolkit().nvcc,
            host=PlainHost(),
            flags=FLAGS,
            target=TARGET,
            extras=Extras(count=True),
        ).path
        trace = folder / f"{source.stem}.trace"
        environment = {**os.environ, "GRADER_TRACE": str(trace)}
        subprocess.run([program, *arguments_of(source, folder)], env=environment, check=True, capture_output=True)
        launches = counted_launches(read_trace(trace))
        result[source.stem] = added_up(launches, {name: METRICS[name].ncu for name in SUMS})
    return result


def measure(folder: Path) -> Counters:
    toolkit = find_toolkit()
    ncu = toolkit.tool("ncu")
    if ncu is None:
        sys.exit("counters.py: ncu is not installed: put Nsight Compute's ncu on PATH.")
    names = dict(NCU_NAMES)
    result: Counters = {}
    for source in (*ATTENTION, *SYNTHETIC):
        program = folder / source.stem
        subprocess.run([toolkit.nvcc, *FLAGS, f"-arch={TARGET}", source, "-o", program], check=True)
        launches = measured([str(ncu)], [str(program), *arguments_of(source, folder)], names)
        result[source.stem] = added_up(launches, names)
    return result


def measured(ncu: list[str], command: Sequence[str], names: dict[str, str]) -> tuple[Launch, ...]:
    """All launches of a program. Removes names that this ncu does not know from `names`."""
    while True:
        options = ["--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
        metrics = ["--metrics", ",".join(names.values())]
        done = subprocess.run([*ncu, *options, *metrics, *command], capture_output=True, text=True, check=False)
        launches = parse_csv(done.stdout)
        if launches:
            return launches
        unknown = set(re.findall(r"\b(?:smsp|l1tex|sm)__\w+(?:\.\w+)*", done.stdout + done.stderr))
        unknown = {name for name, key in names.items() if key in unknown}
        if not unknown or len(unknown) == len(names):
            sys.exit(f"counters.py: ncu measured nothing: {(done.stdout + done.stderr)[-2000:]}")
        print(f"this ncu does not know {', '.join(names[name] for name in unknown)}", file=sys.stderr)
        for name in unknown:
            del names[name]


def table(here: Counters, there: Counters, metrics: Sequence[str]) -> str:
    """Rows where either side counted something; the difference is the emulator's against ncu's."""
    lines = ["| program | kernel | metric | emulator | ncu | difference |", "|---|---|---|---:|---:|---:|"]
    for program, kernels in there.items():
        for kernel, measured_values in kernels.items():
            counted_values = here.get(program, {}).get(kernel, {})
            for name in metrics:
                if name not in measured_values or name not in counted_values:
                    continue
                ours, theirs = counted_values[name], measured_values[name]
                if ours or theirs:
                    difference = f"{ours / theirs - 1:+.2%}" if theirs else "n/a"
                    lines.append(f"| {program} | {kernel} | {name} | {ours:,.0f} | {theirs:,.0f} | {difference} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    for part in ("emulate", "measure"):
        parts.add_parser(part).add_argument("out", type=Path)
    comparison = parts.add_parser("table")
    comparison.add_argument("emulator", type=Path)
    comparison.add_argument("ncu", type=Path)
    comparison.add_argument("--all", action="store_true")
    options = parser.parse_args()
    if options.part == "table":
        here, there = (json.loads(path.read_text()) for path in (options.emulator, options.ncu))
        print(table(here, there, SUMS if options.all else PROMISED))
        return
    with tempfile.TemporaryDirectory() as name:
        counters = (emulate if options.part == "emulate" else measure)(Path(name))
    options.out.write_text(json.dumps(counters, indent=1) + "\n")


if __name__ == "__main__":
    main()
