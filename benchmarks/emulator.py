"""The emulator's speed on flash-attention kernels: building them, running them, and a student's whole `grader check`.

    python benchmarks/emulator.py [KERNEL.cu ...] [--shape B,N,d] [--repeat 5] [--build KERNEL.cu ...] [--no-check]

Kernels are hw4 programs (INPUT OUTPUT); the default is the three model solutions. The kernels after --build, by default
the longest ones, are only built. The columns:

    nvcc          seconds of the one nvcc command
    + first       seconds of all the rest (ptxas, translation, gcc, link) with no template in the cache
    + again       the same with all templates in it, as for a program much like one built before
    1 thread      GFLOP/s of 4·B·N²·d over the kernels' time in the trace, memory and sync checks on as always,
                  everything on one core; best of the repeats
    n threads     the same on all cores
    sequential    GFLOP/s of the assignment's sequential C program, gcc -O3, on the same one core, over its computing time

Then the same for products of halves on tensor cores, C = A B of 512 × 512 (half_matmul.cu): 2·512³ over the kernel's time,
with mma.sync and through wmma, sums kept in f32 and in f16; and with wgmma, built for sm_90a.

The last line is the wall time of `grader check`, build included, on the public samples. Other work on the machine slows
everything down. The first line shows the load; trust the times only if it is below 0.5.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cudaemu import PlainHost, Workplace, compile_program
from cudaemu.process import Completed, run_plainly
from grader.programs.toolkit import find_toolkit

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "reference" / "hw4"
BACKWARD = ROOT / "reference" / "backward" / "tiled.cu"
FLAGS = ("-O3", "-std=c++17")


def write_input(path: Path, batches: int, rows: int, width: int) -> None:
    rng = random.Random(1)
    values = array("f", (rng.uniform(-3, 3) for _ in range(3 * rows * width)))
    with path.open("wb") as file:
        file.write(struct.pack("<3i", batches, rows, width))
        for _ in range(batches):
            values.tofile(file)


@contextlib.contextmanager
def only_core(core: int) -> Iterator[None]:
    """Child processes started inside run on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# ---- building ---------------------------------------------------------------------------------------------------------


@dataclass
class TimedRunner:
    """Runs commands and remembers how long nvcc took."""

    nvcc: Path
    nvcc_s: float = field(default=0.0, init=False)

    def __call__(self, command: Sequence[str], folder: Path) -> Completed:
        start = time.perf_counter()
        done = run_plainly(command, folder)
        if command[0] == str(self.nvcc) and "-c" in command and "--dryrun" not in command:
            self.nvcc_s += time.perf_counter() - start
        return done


def build(kernel: Path, folder: Path, nvcc: Path, target: str = "sm_80") -> tuple[Path, float, float]:
    """The program, seconds of nvcc, and seconds of everything else."""
    runner = TimedRunner(nvcc)
    work = folder / f"{kernel.stem}.work"
    start = time.perf_counter()
    output = folder / f"{kernel.stem}-{target}"
    program = compile_program(
        [kernel], output, Workplace(work), nvcc=nvcc, host=PlainHost(runner), flags=FLAGS, target=target
    ).path
    wall_s = time.perf_counter() - start
    shutil.rmtree(work)
    return program, runner.nvcc_s, wall_s - runner.nvcc_s


def forget_templates(cache: Path) -> None:
    for folder in (cache / "native").glob("templates-*"):
        shutil.rmtree(folder)


# ---- running ----------------------------------------------------------------------------------------------------------


def kernel_seconds(program: Path, folder: Path, threads: int, arguments: Sequence[str] = ("in", "out")) -> float:
    """Summed kernel time of one run."""
    trace = folder / "trace"
    trace.unlink(missing_ok=True)
    environment = {**os.environ, "GRADER_TRACE": str(trace), "GRADER_EMULATOR_THREADS": str(threads)}
    subprocess.run([program, *arguments], cwd=folder, env=environment, check=True, capture_output=True)
    lines = (json.loads(line) for line in trace.read_text().splitlines())
    return sum(float(t["end_ns"] - t["start_ns"]) for t in lines if t["kind"] == "kernel") / 1e9


def sequential_program(folder: Path) -> Path:
    """The assignment's sequential baseline, built as its own header says."""
    program = folder / "seq"
    source = REFERENCE / "seq_flash_attention.c"
    subprocess.run(["gcc", "-O3", "-std=c11", f"-I{REFERENCE.parent}", source, "-o", program, "-lm"], check=True)
    return program


def sequential_seconds(program: Path, folder: Path) -> float:
    """Computing time, by the fastest slice of two seconds."""
    subprocess.run([program, "in", "out", "times", "2"], cwd=folder, check=True)
    seconds, done, total = (folder / "times").read_text().split()
    return float(seconds) * int(total) / int(done)


def check_seconds(kernel: Path) -> float:
    """Wall time of `grader check` on the public samples, with nothing built before but the runtime."""
    command = [sys.executable, "-m", "grader", "check", str(kernel), "--assignment", "hw4", "--engine", "emulator"]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    wall_s = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"grader check {kernel} failed:\n{done.stdout}{done.stderr}")
    return wall_s


# ---- the report -------------------------------------------------------------------------------------------------------


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"


def report(
    kernels: Sequence[Path],
    build_only: Sequence[Path],
    shape: tuple[int, int, int],
    repeat: int,
    nvcc: Path,
    folder: Path,
) -> None:
    batches, rows, width = shape
    cores = sorted(os.sched_getaffinity(0))
    cache = Path(os.environ["GRADER_CACHE"])
    gflop = 4 * batches * rows * rows * width / 1e9
    write_input(folder / "in", batches, rows, width)
    build(kernels[0], folder, nvcc)  # so that the runtime is there
    with only_core(cores[0]):
        sequential = sequential_program(folder)
        baseline = gflop / min(sequential_seconds(sequential, folder) for _ in range(repeat))
    print(f"B={batches} N={rows} d={width}, best of {repeat}; sequential C: {baseline:.2f} GFLOP/s")
    threads = f"{len(cores)} threads"
    print(f"{'kernel':<20}{'nvcc s':>8}{'+ first s':>11}{'+ again s':>11}{'1 thread':>10}{threads:>11}{'scaling':>9}")
    for kernel in kernels:
        program, times = build_times(kernel, folder, nvcc, cache)
        with only_core(cores[0]):
            one = gflop / min(kernel_seconds(program, folder, 1) for _ in range(repeat))
        every = gflop / min(kernel_seconds(program, folder, len(cores)) for _ in range(repeat))
        print(f"{times}{one:>10.2f}{every:>11.2f}{every / one:>9.2f}", flush=True)
    for kernel in build_only:
        print(build_times(kernel, folder, nvcc, cache)[1], flush=True)


def report_tensor_cores(repeat: int, nvcc: Path, folder: Path, size: int = 512) -> None:
    kernel = ROOT / "benchmarks" / "half_matmul.cu"
    older, _, _ = build(kernel, folder, nvcc)
    hopper, _, _ = build(kernel, folder, nvcc, "sm_90a")
    cores = sorted(os.sched_getaffinity(0))
    gflop = 2 * size**3 / 1e9
    forms = [(older, how, sums) for how, sums in itertools.product(("mma", "wmma"), ("f32", "f16"))]
    for program, how, sums in (*forms, (hopper, "wgmma", "f32")):
        arguments = (how, sums, str(size))
        with only_core(cores[0]):
            one = gflop / min(kernel_seconds(program, folder, 1, arguments) for _ in range(repeat))
        every = gflop / min(kernel_seconds(program, folder, len(cores), arguments) for _ in range(repeat))
        print(f"{f'halves, {how}, {sums}':<50}{one:>10.2f}{every:>11.2f}{every / one:>9.2f}", flush=True)


def build_times(kernel: Path, folder: Path, nvcc: Path, cache: Path) -> tuple[Path, str]:
    """The program, and the first columns of its line."""
    forget_templates(cache)
    _, _, first_s = build(kernel, folder, nvcc)
    program, nvcc_s, again_s = build(kernel, folder, nvcc)
    name = f"{kernel.parent.name}/{kernel.stem}"
    return program, f"{name:<20}{nvcc_s:>8.1f}{first_s:>11.1f}{again_s:>11.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", type=Path)
    parser.add_argument("--shape", default="4,512,64", help="B,N,d")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--nvcc", type=Path, default=find_toolkit().nvcc)
    parser.add_argument("--build", nargs="*", type=Path, default=[REFERENCE / "tensor_cores.cu", BACKWARD])
    parser.add_argument("--check", type=Path, default=REFERENCE / "tiled.cu", help="the program of the last line")
    parser.add_argument("--no-check", action="store_true", help="leave the last line out")
    options = parser.parse_args()
    kernels = options.kernels or [REFERENCE / f"{name}.cu" for name in ("naive", "tiled", "flash2")]
    batches, rows, width = map(int, options.shape.split(","))
    print(f"{processor()}, {len(os.sched_getaffinity(0))} cores, 1-minute load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        os.environ["GRADER_CACHE"] = str(Path(name) / "cache")
        shape = (batches, rows, width)
        report(kernels, options.build, shape, options.repeat, options.nvcc, Path(name))
        report_tensor_cores(options.repeat, options.nvcc, Path(name))
        if not options.no_check:
            forget_templates(Path(os.environ["GRADER_CACHE"]))
            print(f"grader check {options.check.name}, public samples: {check_seconds(options.check):.1f} s")


if __name__ == "__main__":
    main()
