"""Triton's compiler for the emulator: it stops at PTX, which is compiled to a shared library when it is loaded.

The build step compiles libraries for the kernels that it knows, through the grader's cache. They are in the folder
GRADER_PYTHON_KERNELS, named after their PTX. The libraries of all other kernels are compiled here, during the run.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from triton.backends.nvidia.compiler import CUDABackend, get_ptxas

from grader import emulator
from grader.base.process import Completed
from grader.python import library
from grader.python.layout import TARGET_VARIABLE, kernel_name

TARGET = os.environ.get(TARGET_VARIABLE, "sm_80")
ARCHITECTURE = int(TARGET.removeprefix("sm_").removesuffix("a"))


class EmulatorBackend(CUDABackend):  # type: ignore[misc]
    """Triton's compiler for NVIDIA GPUs, up to PTX."""

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        self.binary_ext = "ptx"

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
        super().add_stages(stages, options, language)
        del stages["cubin"]

    def hash(self) -> str:
        """The key of Triton's cache. It needs only the target, since each build of a program has its own cache."""
        return f"emulator {TARGET}"


def library_of(ptx: bytes) -> Path:
    """The shared library of a kernel, compiled if the build step did not."""
    kept = Path(os.environ["GRADER_PYTHON_KERNELS"]) / kernel_name(ptx)
    if not kept.is_file():
        with tempfile.TemporaryDirectory() as folder:
            work, written = Path(folder) / "work", Path(folder) / "written"
            work.mkdir()
            written.mkdir()
            made = emulator.compile_kernel(
                ptx.decode(),
                target=TARGET,
                ptxas=get_ptxas(ARCHITECTURE).path,
                checks=frozenset(os.environ[library.CHECKS_VARIABLE].split(",")),
                work=work,
                written=written,
                run=_run,
                own_name=library.own_name,
            )
            kept.parent.mkdir(exist_ok=True)
            made.rename(kept)
    return kept


def _run(command: Sequence[str], folder: Path) -> Completed:
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    return Completed(done.returncode, done.stdout)
