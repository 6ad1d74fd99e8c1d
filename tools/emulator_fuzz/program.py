"""Whole programs: several kernels with their tests, and the folder in which they go to a CUDA machine."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from tools.emulator_fuzz import collectives, groups, parameters, scalars, sweep, vectors
from tools.emulator_fuzz.catalogue import HEADER, read_operations

KINDS = {"sweep": 1, "scalars": 4, "collectives": 3, "groups": 2, "vectors": 2, "parameters": 2}
"""The kinds of kernels, and the number of each kind in a program."""
HEADERS = (HEADER, HEADER.with_name("simulation.cuh"), HEADER.with_name("groups.cuh"))
_ALONE = {"collectives": collectives.kernel, "groups": groups.kernel, "vectors": vectors.kernel, "parameters": parameters.kernel}  # fmt: skip
MAKEFILE = """# Builds and runs every program; one that fails stops make unless it is called with -k.
NVCC ?= nvcc
ARCH ?= native
PROGRAMS := $(patsubst %.cu,%,$(wildcard fuzz_*.cu))
run: $(PROGRAMS:%=%.ok)
%.ok: %
\t./$<
\t@touch $@
fuzz_%: fuzz_%.cu $(wildcard *.cuh)
\t$(NVCC) -std=c++17 -O3 -w -arch=$(ARCH) -o $@ $<
.PRECIOUS: fuzz_%
.PHONY: run
"""


def program(seed: int, kinds: Mapping[str, int] = KINDS) -> str:
    """The program of a seed, which includes the HEADERS; their hash is in its first line. `kinds` as KINDS."""
    operations = read_operations()
    headers = hashlib.sha256(b"".join(h.read_bytes() for h in HEADERS)).hexdigest()[:12]
    parts = [
        f"// Program {seed} of tools/emulator_fuzz, for headers {headers}.",
        f'#include "{"groups" if "groups" in kinds else "simulation"}.cuh"',
        scalars.PRELUDE,
        collectives.PRELUDE,
    ]
    names: list[str] = []
    for kind, count in kinds.items():
        random = Random(f"{seed} {kind}")
        if kind == "scalars":
            helpers = [f"helper_{i}" for i in range(3)]
            parts += [scalars.helper(random, operations, name, helpers[:i]) for i, name in enumerate(helpers)]
            parts.append(scalars.changed(random, operations))
        for i in range(count):
            name = f"{kind}_{i}"
            if kind == "sweep":
                parts.append(sweep.kernel(random, sweep.part(operations, seed + i), name))
            elif kind == "scalars":
                parts.append(scalars.function(random, operations, name, helpers))
                parts.append(scalars.kernel(random, name))
            else:
                parts.append(_ALONE[kind](random, operations, name))
            names.append(name)
    tests = " + ".join(f"test_{name}()" for name in names)
    parts.append(f'int main() {{ int bad = {tests}; if (!bad) printf("ok\\n"); return bad != 0; }}\n')
    return "\n".join(parts)


def write_program(folder: Path, seed: int, kinds: Mapping[str, int] = KINDS) -> Path:
    """Writes the program of a seed and its headers; returns the .cu file."""
    folder.mkdir(parents=True, exist_ok=True)
    for header in HEADERS:
        shutil.copy(header, folder)
    source = folder / f"fuzz_{seed}.cu"
    source.write_text(program(seed, kinds))
    return source


def write_programs(folder: Path, seeds: Sequence[int], kinds: Mapping[str, int] = KINDS) -> None:
    for seed in seeds:
        write_program(folder, seed, kinds)
    (folder / "Makefile").write_text(MAKEFILE)
