"""Triton's compiler as the recorder uses it: for the emulator it stops at PTX. What ptxas refuses is reported at the
submission's line."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

from triton.backends.nvidia.compiler import CUDABackend
from triton.runtime.errors import PTXASError

from grader.plans.lines import own_name

_MOST_SAID = 1000
_ERROR = re.compile(r"line (\d+); error\s*: (.*)")
_FILE = re.compile(r'\.file\s+(\d+) "([^"]*)"')
_PLACE = re.compile(r"(?:\.loc|inlined_at)\s+(\d+) (\d+) ")
_PLACE_IN_COMMENT = re.compile(r"([\w.-]+\.py):(\d+):\d")


class Refused(Exception):
    """ptxas refused a kernel."""


def refusal(said: str, ptx: str, main: str) -> str:
    """ptxas's first error in a kernel, at the line of the submission's file `main`, with the instruction that it
    means."""
    found = _ERROR.search(said)
    if found is None:
        return said.strip()[:_MOST_SAID]
    lines = ptx.splitlines()[: int(found[1])]
    error = f"error: ptxas refuses an instruction of this line: {found[2]}\n    {lines[-1].strip() if lines else ''}"
    files = {number: name.rpartition("/")[2] for number, name in _FILE.findall(ptx)}
    place, in_assembly = "", False
    for line in lines:
        if "inline asm" in line:  # within it, Triton 3.9 counts the lines of its text
            in_assembly = "begin" in line
        elif not in_assembly:
            places = [(files.get(file), number) for file, number in _PLACE.findall(line)]
            own = [number for name, number in places + _PLACE_IN_COMMENT.findall(line) if name == main]
            place = f"{main}:{own[-1]}: " if own else place  # the innermost call comes first
    return place + error


_make_cubin = CUDABackend.make_cubin
main = ""
"""The name of the submission's file."""


def make_cubin(self: CUDABackend, ptx: str, *rest: Any) -> Any:
    """Like Triton's, which prints the whole PTX of a kernel that ptxas refuses and names no line of the program."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            return _make_cubin(self, ptx, *rest)
        except PTXASError as error:
            raise Refused(refusal(str(error), ptx, own_name(main))) from None


class PtxBackend(CUDABackend):  # type: ignore[misc]
    """Triton's compiler for NVIDIA GPUs, up to PTX."""

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        self.binary_ext = "ptx"

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
        super().add_stages(stages, options, language)
        del stages["cubin"]

    def hash(self) -> str:
        """The key of Triton's cache. It needs only the target, since each recording has a cache of its own."""
        return f"ptx {self.target}"
