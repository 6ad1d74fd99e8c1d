"""Compares the emulator's matrix instructions bit for bit with a GPU's, on random and adversarial vectors.

    python -m tools.tensor_bits [--gpu] [--architecture 90] [--vectors 10000000] [--forms wgmma] [--save FILE]

With --gpu the results of this machine's GPU (sm_90a) are what is expected, without it those of a second, slower
description of the published rule (rules.h), for any architecture. Prints a line for each form and kind of numbers, the
first difference of each with all its inputs, and for a form that differs the rule that fits best. Ends with 1 when
anything differs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cudaemu.isa import LANGUAGE, RUNTIME, host_compiler, instruction_set
from grader.programs.toolkit import find_toolkit

HERE = Path(__file__).parent
GPU_CODE = "arch=compute_90a,code=sm_90a"


def build(folder: Path, *, gpu: bool) -> Path:
    """The comparing program, built in a folder. Raises CalledProcessError."""
    flags = [*instruction_set().flags, "-O2", f"-I{HERE}"]
    objects = []
    for source in (RUNTIME / "tensor.c", RUNTIME / "tensor_sums.c", HERE / "emulated.c"):
        objects.append(folder / f"{source.stem}.o")
        _run(host_compiler(), *LANGUAGE, *flags, "-w", f"-I{RUNTIME}", "-c", source, "-o", objects[-1])
    program, compare = folder / "tensor_bits", folder / "compare.o"
    define = ["-DWITH_A_GPU"] if gpu else []
    _run(host_compiler("c++"), "-std=c++17", *flags, *define, "-pthread", "-c", HERE / "compare.cpp", "-o", compare)
    if gpu:
        nvcc = find_toolkit().nvcc
        flags = ["-std=c++17", "-O2", "-gencode", GPU_CODE, "-Xcompiler", "-pthread"]
        _run(nvcc, *flags, HERE / "gpu.cu", compare, *objects, "-o", program)
    else:
        _run(host_compiler("c++"), "-pthread", compare, *objects, "-lm", "-o", program)
    return program


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.tensor_bits", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--gpu", action="store_true", help="compare with this machine's GPU")
    parser.add_argument("--architecture", default="90", choices=("80", "89", "90"), help="of the emulated GPU")
    parser.add_argument("--vectors", type=int, default=10_000_000, help="elements of D for each form")
    parser.add_argument("--forms", default="", metavar="PREFIX", help="only forms whose name begins with this")
    parser.add_argument("--save", type=Path, metavar="FILE", help="for a few instructions of each kind")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder), gpu=options.gpu)
        save = [str(options.save)] if options.save else []
        return subprocess.run([program, options.architecture, str(options.vectors), options.forms, *save]).returncode


if __name__ == "__main__":
    sys.exit(main())
