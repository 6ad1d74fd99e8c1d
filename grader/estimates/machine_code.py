"""Makes a GPU's machine code of the PTX that a program carries, and reads it in the room."""

from __future__ import annotations

import hashlib
import mmap
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from grader import sandbox
from grader.base.errors import MachineFault
from grader.estimates.gpus import Gpu
from grader.estimates.sass import Kernel, read_sass
from grader.programs.toolkit import Toolkit
from grader.sandbox.cache import kept

PTX_MARK = b"GRADER PTX:"
"""What precedes a unit's PTX and its size in a program that counts (grader/emulator/build.py)."""
MAX_UNITS, MAX_PTX_BYTES = 64, 64 << 20
_LIMIT_S = 120
_TARGET = re.compile(rb"^\.target sm_\d+a?", re.MULTILINE)


class NoMachineCode(Exception):
    """There is no machine code of the program for this GPU; the message says why."""


@dataclass(frozen=True)
class Code:
    """A kernel's machine code: its control flow, the operation in each line of its PTX, registers per thread."""

    kernel: Kernel
    ptx: Mapping[int, str]
    registers: int


def disassembler(toolkit: Toolkit) -> Path:
    """nvdisasm. Raises MachineFault with what to install."""
    found = toolkit.tool("nvdisasm")
    if found is None:
        raise MachineFault(
            "Predicted times need nvdisasm, which reads machine code. Install it with `make setup`, or with "
            "`pip install nvidia-cuda-nvdisasm==13.2.78` in the grader's environment."
        )
    return found


def machine_code(program: Path, gpu: Gpu, toolkit: Toolkit) -> Path:
    """The cache's folder with, for each unit, its PTX (0.ptx), ptxas's messages (0.log) and nvdisasm's text (0.sass).
    Raises NoMachineCode, MachineFault."""
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        units = list(_carried(content))
    if not units:
        raise NoMachineCode("it is not a CUDA program that nvcc compiled (Python programs cannot be estimated)")
    nvdisasm, ptxas = disassembler(toolkit), toolkit.tool("ptxas")
    digest = hashlib.sha256(f"2 {toolkit.identity} {nvdisasm} {gpu.target}".encode())
    for unit in units:
        digest.update(unit)

    def make(folder: Path) -> Path:
        made = folder / "made"
        made.mkdir()
        run = sandbox.runner(_LIMIT_S, readable=(toolkit.root, nvdisasm.parent), writable=(made,))
        for number, unit in enumerate(units):
            text = unit if b"a\n" in _TARGET.findall(unit) else _TARGET.sub(f".target {gpu.target}".encode(), unit)
            (made / f"{number}.ptx").write_bytes(text)
            assemble = f"{ptxas} -lineinfo -v -arch={gpu.target} {number}.ptx -o {number}.cubin 2> {number}.log"
            done = run(["sh", "-c", f"{assemble} && {nvdisasm} -c -hex -gp {number}.cubin > {number}.sass"], made)
            if done.exit_code != 0:
                raise NoMachineCode(f"ptxas does not compile it for {gpu.target}: {done.output.strip()[:300]}")
            (made / f"{number}.cubin").unlink()
        return made

    return kept("machine-code", digest.hexdigest()[:32], make)


def read_code(ptx: IO[bytes], log: IO[bytes], sass: IO[bytes]) -> dict[str, Code]:
    """A unit's kernels by the names that the linker knows. To be called in the room."""
    registers = {}
    for part in re.split(r"Compiling entry function ", log.read().decode(errors="replace"))[1:]:
        name, used = re.match(r"'([^']+)'", part), re.search(r"Used (\d{1,9}) registers", part)
        if name and used:
            registers[name[1]] = int(used[1])
    operations = {}
    for number, line in enumerate(ptx.read().decode(errors="replace").split("\n"), 1):
        if found := re.match(r"\s*(?:@!?%?\w+\s+)?([a-z][\w.:]*)", line):
            operations[number] = found[1].replace(".volatile", "").replace(".nc", "")
    kernels = read_sass(sass.read().decode(errors="replace"))
    return {name: Code(kernel, operations, registers[name]) for name, kernel in kernels.items() if name in registers}


def _carried(program: mmap.mmap) -> Iterator[bytes]:
    """The PTX of each unit. The program's own data may look like one; none begins inside another."""
    at, left = program.find(PTX_MARK), MAX_PTX_BYTES
    for _ in range(MAX_UNITS):
        if at < 0:
            return
        begin = at + len(PTX_MARK) + 8
        size = int.from_bytes(program[begin - 8 : begin], "little")
        if 0 < size <= len(program) - begin:
            left -= size
            if left < 0:
                raise NoMachineCode(f"it carries more than {MAX_PTX_BYTES >> 20} MiB of PTX")
            yield program[begin : begin + size]
            begin += size
        at = program.find(PTX_MARK, begin)
