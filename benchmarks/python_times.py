"""GPU times of Triton programs as the grader measures them, next to a plain process without the grader.

    python benchmarks/python_times.py                        model solutions, one large test each
    python benchmarks/python_times.py softmax --tests t09,t10

A plain process calls the same `solve` with PyTorch's tensors and Triton's own driver, under PyTorch's profiler, on the
testcase's input; of three such processes the median counts. Needs an idle GPU, PyTorch with its Triton, a C compiler and
Python's headers. Exits 1 if two times differ by more than 1 %.
"""

from __future__ import annotations

import argparse
import json
import runpy
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from grader.course.assignment import load_assignment
from grader.operators import load_operator
from grader.plans.contract import arguments_of

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = {"softmax": ("online.py", "t10"), "matmul": ("grouped.py", "t09"), "half": ("flash.py", "t26")}
"""By assignment: a model solution, and the test that is timed."""
PROCESSES, ALLOWED = 3, 0.01


def plain_ms(assignment: str, program: Path, given: Path) -> float:
    """Milliseconds of all kernels of a process of its own."""
    command = [sys.executable, __file__, "--plain", assignment, str(program), str(given)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def run_here(assignment: str, program: str, given: str) -> float:
    """Call `solve` in this process; milliseconds of all its kernels."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    operator = load_operator(load_assignment(assignment).operator)
    arguments = arguments_of(operator, operator.read_header(Path(given)))
    buffers = [
        torch.from_numpy(np.fromfile(given, np.uint8, part.size_bytes, offset=part.first)).cuda()
        if part.file == "input"
        else torch.empty(part.size_bytes, dtype=torch.uint8, device="cuda")
        for part in arguments.buffers
    ]
    tensors = {
        each.name: buffers[each.buffer]
        .view(getattr(torch, each.dtype))
        .as_strided(each.shape, each.strides, each.offset)
        for each in arguments.tensors
    }
    solve = runpy.run_path(program)["solve"]
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        solve(**tensors, **arguments.numbers)
        torch.cuda.synchronize()
    kernels = [event for event in profiled.events() if not event.name.startswith("Mem")]
    return float(sum(event.device_time for event in kernels)) / 1e3


def graded_ms(assignment: str, program: Path, tests: str) -> dict[str, float]:
    """Milliseconds by testcase, from the record of `grader grade`."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.json"
        words = ["grade", program, "--assignment", assignment, "--engine", "cuda", "--tests", tests, "--json", record]
        subprocess.run([sys.executable, "-m", "grader", *map(str, words)], check=True, stdout=subprocess.DEVNULL)
        return {test["name"]: test["gpu_ms"] for test in json.loads(record.read_text())["tests"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("assignments", nargs="*", default=sorted(PROGRAMS), help=", ".join(sorted(PROGRAMS)))
    parser.add_argument("--tests", help="instead of the one of each assignment")
    parser.add_argument("--plain", nargs=3, metavar=("ASSIGNMENT", "PROGRAM", "INPUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plain:
        print(run_here(*options.plain))
        return 0
    worst = 0.0
    for assignment in options.assignments:
        name, usual = PROGRAMS[assignment]
        program, tests = ROOT / "reference" / assignment / name, options.tests or usual
        generate = [sys.executable, "-m", "grader", "testcases", "generate", tests, "--assignment", assignment]
        subprocess.run(generate, check=True, stdout=subprocess.DEVNULL)
        for test, graded in graded_ms(assignment, program, tests).items():
            given = ROOT / "testcases" / assignment / f"{test}.in"
            times = [plain_ms(assignment, program, given) for _ in range(PROCESSES)]
            apart = graded / statistics.median(times) - 1
            worst = max(worst, abs(apart))
            each = ", ".join(f"{time:.4f}" for time in times)
            print(
                f"{assignment}/{program.name} {test}: graded {graded:.4f} ms, plain {each} ms: {apart:+.2%}", flush=True
            )
    return 0 if worst <= ALLOWED else 1


if __name__ == "__main__":
    sys.exit(main())
