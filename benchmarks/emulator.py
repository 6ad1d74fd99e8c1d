"""The emulator's speed on flash-attention kernels, in GFLOP/s of 4·B·N²·d, one thread and all threads.

    python benchmarks/emulator.py [KERNEL.cu ...] [--shape B,N,d] [--repeat 5]

Kernels are hw4 programs (INPUT OUTPUT); the default is the three model solutions. The time is that of the kernels in the
trace, best of the repeats, with memory and sync checks on as always. Build time is nvcc, translation and gcc together.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import struct
import subprocess
import tempfile
import time
from array import array
from collections.abc import Sequence
from pathlib import Path

from grader.emulator import compile_program
from grader.process import Completed

ROOT = Path(__file__).resolve().parent.parent


def run(command: Sequence[str], folder: Path) -> Completed:
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return Completed(done.returncode, done.stdout)


def write_input(path: Path, batches: int, rows: int, width: int) -> None:
    rng = random.Random(1)
    values = array("f", (rng.uniform(-3, 3) for _ in range(3 * rows * width)))
    with path.open("wb") as file:
        file.write(struct.pack("<3i", batches, rows, width))
        for _ in range(batches):
            values.tofile(file)


def kernel_seconds(program: Path, folder: Path, threads: int) -> float:
    """Summed kernel time of one run."""
    trace = folder / "trace"
    trace.unlink(missing_ok=True)
    environment = {**os.environ, "GRADER_TRACE": str(trace), "GRADER_EMULATOR_THREADS": str(threads)}
    subprocess.run([program, "in", "out"], cwd=folder, env=environment, check=True, capture_output=True)
    lines = (json.loads(line) for line in trace.read_text().splitlines())
    return sum(t["end_ns"] - t["start_ns"] for t in lines if t["kind"] == "kernel") / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", type=Path)
    parser.add_argument("--shape", default="4,512,64", help="B,N,d")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--nvcc", type=Path, default=Path("nvcc"))
    options = parser.parse_args()
    kernels = options.kernels or [ROOT / "reference" / "hw4" / f"{name}.cu" for name in ("naive", "tiled", "flash2")]
    batches, rows, width = map(int, options.shape.split(","))
    flops = 4 * batches * rows * rows * width
    cores = len(os.sched_getaffinity(0))
    print(
        f"B={batches} N={rows} d={width}, best of {options.repeat}; 1-minute load {os.getloadavg()[0]:.1f} on {cores} cores"
    )
    print(f"{'kernel':<12}{'build s':>9}{'1 thread':>12}{f'{cores} threads':>12}{'scaling':>9}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_input(folder / "in", batches, rows, width)
        for kernel in kernels:
            start = time.perf_counter()
            program = compile_program(
                [kernel],
                folder / kernel.stem,
                work=folder / f"{kernel.stem}.work",
                nvcc=options.nvcc,
                run=run,
                flags=["-O3", "-std=c++17"],
            ).path
            build_s = time.perf_counter() - start
            one = flops / min(kernel_seconds(program, folder, 1) for _ in range(options.repeat)) / 1e9
            every = flops / min(kernel_seconds(program, folder, cores) for _ in range(options.repeat)) / 1e9
            print(f"{kernel.stem:<12}{build_s:>9.1f}{one:>12.2f}{every:>12.2f}{every / one:>9.2f}")


if __name__ == "__main__":
    main()
