"""The last stage of Triton's compiler for us: PTX to a shared library, in place of ptxas's cubin.

The library is kept in Triton's own cache with everything else that Triton made of a kernel.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from triton.backends.nvidia.compiler import CUDABackend, get_ptxas

from grader.base.process import Completed
from grader.emulator import DEFAULT_SANITIZERS
from grader.emulator.build import Unsupported, module_sources, runtime_identity
from grader.emulator.isa import host_compiler, instruction_set
from grader.emulator.native import compile_c, template_objects
from grader.emulator.ptx import PtxSyntaxError, parse
from grader.emulator.ptxas import KernelInfo, read_ptxas
from grader.emulator.translate import Finding, translate_module
from grader.python import library

CHECKS_VARIABLE = "GRADER_TRITON_CHECKS"
ARCHITECTURE = 80
COUNT = "count"


class EmulatorBackend(CUDABackend):  # type: ignore[misc]
    """Triton's compiler for NVIDIA GPUs up to PTX; the emulator's from there on."""

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        self.binary_ext = "so"

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
        super().add_stages(stages, options, language)
        del stages["cubin"]
        stages[self.binary_ext] = self._make_library

    def hash(self) -> str:
        return f"{super().hash()}-{_identity()}-{','.join(sorted(checks()))}"

    def _make_library(self, ptx: str, metadata: dict[str, Any]) -> bytes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            info = _resources(ptx, folder)
            return compile_library(ptx, info.registers, checks(), folder).read_bytes()


def checks() -> frozenset[str]:
    """The checks that kernels are compiled with, and "count" for counters."""
    return DEFAULT_SANITIZERS | frozenset(filter(None, os.environ.get(CHECKS_VARIABLE, "").split(",")))


@cache
def _identity() -> str:
    return hashlib.sha256(f"{runtime_identity()} {Path(__file__).read_text()}".encode()).hexdigest()[:16]


def compile_library(ptx: str, registers: int, checks: frozenset[str], folder: Path) -> Path:
    """Translate one kernel's PTX and compile it to a shared library in `folder`. Raises Unsupported."""
    try:
        module = parse(ptx)
    except PtxSyntaxError as error:
        raise Unsupported([Finding(f"the PTX that Triton made ({error})", None, None, "run it on a GPU")]) from error
    for number, file in module.files.items():
        module.files[number] = library.own_name(file)
    names = {name: registers for name in module.functions}
    translation, findings = translate_module(
        module,
        prefix="m0",
        lanes=instruction_set().lanes,
        registers=lambda: names,
        sanitize=checks - {COUNT},
        count=COUNT in checks,
    )
    if findings:
        raise Unsupported(findings)
    kept, compilations = template_objects(translation.templates, translation.header, _run, folder)
    objects = [*kept, *(make() for make in compilations)]
    for text, name, level in module_sources(translation, "m0", "", False):
        objects.append(compile_c(text, folder / f"{name}.c", level, _run, folder))
    made = folder / "kernel.so"
    done = _run([host_compiler(), "-shared", *map(str, dict.fromkeys(objects)), "-o", str(made)], folder)
    if done.exit_code != 0:
        raise RuntimeError(f"The emulator's code for a kernel does not link:\n{done.output}")
    return made


def _resources(ptx: str, folder: Path) -> KernelInfo:
    """What ptxas reports about the kernel."""
    source = folder / "kernel.ptx"
    source.write_text(ptx, encoding="utf-8")
    arch = f"-arch=sm_{ARCHITECTURE}"
    done = _run([get_ptxas(ARCHITECTURE).path, "-v", arch, str(source), "-o", os.devnull], folder)
    if done.exit_code != 0:
        raise RuntimeError(f"ptxas refuses what Triton made of this kernel:\n{done.output}")
    return read_ptxas(done.output)[0]


def _run(command: Sequence[str], folder: Path) -> Completed:
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    return Completed(done.returncode, done.stdout)
