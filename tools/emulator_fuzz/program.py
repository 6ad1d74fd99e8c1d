"""Whole programs: several kernels with their tests, and the folder in which they go to a CUDA machine."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tools.emulator_fuzz import collectives, scalars, sweep
from tools.emulator_fuzz.catalogue import HEADER, read_operations

SCALAR_KERNELS = 4
COLLECTIVE_KERNELS = 3
STATEMENTS = 14
HEADERS = (HEADER, HEADER.with_name("simulation.cuh"))
MAKEFILE = """# Builds and runs every program; one that fails stops make unless it is called with -k.
NVCC ?= nvcc
ARCH ?= native
PROGRAMS := $(patsubst %.cu,%,$(wildcard fuzz_*.cu))
run: $(PROGRAMS:%=%.ok)
%.ok: %
\t./$<
\t@touch $@
fuzz_%: fuzz_%.cu operations.cuh simulation.cuh
\t$(NVCC) -std=c++17 -O3 -w -arch=$(ARCH) -o $@ $<
.PRECIOUS: fuzz_%
.PHONY: run
"""


def program(seed: int, scalar_kernels: int = SCALAR_KERNELS, collective_kernels: int = COLLECTIVE_KERNELS) -> str:
    """The program of a seed, which includes the HEADERS; their hash is in its first line."""
    random = Random(seed)
    operations = read_operations()
    helpers = [f"helper_{i}" for i in range(3)]
    headers = hashlib.sha256(b"".join(h.read_bytes() for h in HEADERS)).hexdigest()[:12]
    parts = [
        f"// Program {seed} of tools/emulator_fuzz, for headers {headers}.",
        '#include "simulation.cuh"',
        scalars.PRELUDE,
        collectives.PRELUDE,
    ]
    parts += [scalars.helper(random, operations, name, helpers[:i]) for i, name in enumerate(helpers)]
    parts.append(scalars.changed(random, operations))
    names = ["sweep"]
    parts.append(sweep.kernel(random, sweep.part(operations, seed), "sweep"))
    for i in range(scalar_kernels):
        names.append(f"scalar_{i}")
        parts.append(scalars.function(random, operations, names[-1], helpers, STATEMENTS))
        parts.append(scalars.kernel(random, names[-1]))
    for i in range(collective_kernels):
        names.append(f"collective_{i}")
        parts.append(collectives.kernel(random, operations, names[-1], STATEMENTS))
    tests = " + ".join(f"test_{name}()" for name in names)
    parts.append(f'int main() {{ int bad = {tests}; if (!bad) printf("ok\\n"); return bad != 0; }}\n')
    return "\n".join(parts)


def write_program(folder: Path, seed: int, **kernels: int) -> Path:
    """Writes the program of a seed and its headers; returns the .cu file. `kernels` as for `program`."""
    folder.mkdir(parents=True, exist_ok=True)
    for header in HEADERS:
        shutil.copy(header, folder)
    source = folder / f"fuzz_{seed}.cu"
    source.write_text(program(seed, **kernels))
    return source


def write_programs(folder: Path, seeds: Sequence[int]) -> None:
    for seed in seeds:
        write_program(folder, seed)
    (folder / "Makefile").write_text(MAKEFILE)
