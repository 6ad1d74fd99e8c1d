"""Wall time of whole programs on testcase files, beside the parts that no program can do without, each measured alone.

The parts are: a program that only starts CUDA, as a process; reading the file from the page cache into memory that is
there already, with one thread; and copying in and out between pinned and device memory.
"""

from __future__ import annotations

import math
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

STARTUP = "#include <cuda_runtime.h>\nint main() { return cudaFree(0) != cudaSuccess; }\n"
REPETITIONS = 9


@dataclass(frozen=True)
class ProgramTime:
    """All in milliseconds, medians; `least` and `most` of the wall times."""

    test: str
    program: str
    wall: float
    least: float
    most: float
    startup: float
    reading: float
    copy_in: float
    copy_out: float

    @property
    def ratio(self) -> float:
        """Wall time over the sum of the parts."""
        return self.wall / (self.startup + self.reading + self.copy_in + self.copy_out)


def wall_ms(command: Sequence[object]) -> list[float]:
    times = []
    for _ in range(REPETITIONS + 1):  # the first loads the program's and CUDA's files
        start = time.perf_counter()
        subprocess.run([str(part) for part in command], check=True)
        times.append(1e3 * (time.perf_counter() - start))
    return times[1:]


def write_input(path: Path, shape: tuple[int, int, int]) -> None:
    batches, rows, dim = shape
    random = np.random.default_rng(1)
    with path.open("wb") as file:
        np.array(shape, "<i4").tofile(file)
        for _ in range(batches):
            (random.random(3 * rows * dim, dtype=np.float32) * 6 - 3).tofile(file)


def reading_ms(path: Path) -> float:
    buffer = memoryview(bytearray(b"\1") * path.stat().st_size)  # written to, so that its pages are there
    times = []
    for _ in range(REPETITIONS):
        with path.open("rb", buffering=0) as file:
            start, done = time.perf_counter(), 0
            while done < len(buffer):
                done += file.readinto(buffer[done:]) or 0
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def copying_ms(to: torch.Tensor, source: torch.Tensor) -> float:
    times = []
    for _ in range(REPETITIONS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        to.copy_(source, non_blocking=True)
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def time_programs(
    tests: dict[str, tuple[int, int, int]],
    models: Sequence[str],
    build: Callable[[Path, Path], None],
    folder: Path,
) -> list[ProgramTime]:
    """Each model on each test. `build(source, target)` compiles; files go to `folder`."""
    (folder / "startup.cu").write_text(STARTUP)
    build(folder / "startup.cu", folder / "startup")
    sources = Path(__file__).resolve().parent.parent / "reference/hw4"
    for model in models:
        build(sources / f"{model}.cu", folder / model)
    lines = []
    for test, shape in tests.items():
        path = folder / f"{test}.in"
        write_input(path, shape)
        startup, reading = statistics.median(wall_ms([folder / "startup"])), reading_ms(path)
        count = math.prod(shape)
        host, device = torch.ones(3 * count, pin_memory=True), torch.empty(3 * count, device="cuda")
        copy_in, copy_out = copying_ms(device, host), copying_ms(host[:count], device[:count])
        del host, device
        for model in models:
            times = wall_ms([folder / model, path, folder / "output"])
            wall = statistics.median(times)
            lines.append(ProgramTime(test, model, wall, min(times), max(times), startup, reading, copy_in, copy_out))
        path.unlink()
    return lines


def print_programs(lines: Sequence[ProgramTime]) -> None:
    print("| test | program | wall ms | least–most | start-up | reading | copy in | copy out | wall / sum of parts |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for x in lines:
        print(
            f"| {x.test} | {x.program}.cu | {x.wall:.0f} | {x.least:.0f}–{x.most:.0f} | {x.startup:.0f} "
            f"| {x.reading:.0f} | {x.copy_in:.1f} | {x.copy_out:.1f} | {x.ratio:.2f} |"
        )
