"""Triton's compiler for the emulator: it stops at PTX, which is compiled to a shared library when it is loaded.

The build step compiles libraries for the kernels that it knows, through the grader's cache. They are in the folder
GRADER_PYTHON_KERNELS, named after their PTX. The libraries of all other kernels are compiled here, during the run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from triton.backends.nvidia.compiler import CUDABackend, get_ptxas
from triton.runtime.errors import PTXASError

from grader import emulator
from grader.base.process import Completed
from grader.python import library
from grader.python.layout import TARGET_VARIABLE, kernel_name

TARGET = os.environ.get(TARGET_VARIABLE, "sm_80")
_MOST_SAID = 1000
ARCHITECTURE = int(TARGET.removeprefix("sm_").removesuffix("a"))


_ERROR = re.compile(r"line (\d+); error\s*: (.*)")
_FILE = re.compile(r'\.file\s+(\d+) "([^"]*)"')
_PLACE = re.compile(r"(?:\.loc|inlined_at)\s+(\d+) (\d+) ")
_PLACE_IN_COMMENT = re.compile(r"([\w.-]+\.py):(\d+):\d")


class Refused(Exception):
    """ptxas refused a kernel."""


def refusal(said: str, ptx: str) -> str:
    """ptxas's first error in a kernel, at the program's line, with the instruction that it means."""
    found = _ERROR.search(said)
    if found is None:
        return said.strip()[:_MOST_SAID]
    lines = ptx.splitlines()[: int(found[1])]
    error = f"error: ptxas refuses an instruction of this line: {found[2]}\n    {lines[-1].strip() if lines else ''}"
    files = {number: library.own_name(name) for number, name in _FILE.findall(ptx)}
    program, place, in_assembly = Path(sys.argv[0]).name, "", False
    for line in lines:
        if "inline asm" in line:  # within it, Triton 3.9 counts the lines of its text
            in_assembly = "begin" in line
        elif not in_assembly:
            places = [(files.get(file), number) for file, number in _PLACE.findall(line)]
            own = [number for name, number in places + _PLACE_IN_COMMENT.findall(line) if name == program]
            place = f"{program}:{own[-1]}: " if own else place  # the innermost call comes first
    return place + error


_make_cubin = CUDABackend.make_cubin


def make_cubin(self: CUDABackend, ptx: str, *rest: Any) -> Any:
    """Like Triton's, which prints the whole PTX of a kernel that ptxas refuses and names no line of the program."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            return _make_cubin(self, ptx, *rest)
        except PTXASError as error:
            raise Refused(refusal(str(error), ptx)) from None


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
            try:
                made = emulator.compile_kernel(
                    ptx.decode(),
                    target=TARGET,
                    ptxas=get_ptxas(ARCHITECTURE).path,
                    checks=frozenset(os.environ[library.CHECKS_VARIABLE].split(",")),
                    work=work,
                    written=written,
                    run=_run,
                    below=str(Path(sys.argv[0]).resolve().parent),
                )
            except emulator.CompileFailed as failed:
                raise Refused(refusal(failed.log, ptx.decode())) from None
            kept.parent.mkdir(exist_ok=True)
            made.rename(kept)
    return kept


def _run(command: Sequence[str], folder: Path) -> Completed:
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    return Completed(done.returncode, done.stdout)
