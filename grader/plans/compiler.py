"""Triton's compiler as the recorder uses it: for the emulator it stops at PTX. What ptxas refuses is reported at the
submission's line."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from triton.backends.nvidia.compiler import CUDABackend
from triton.runtime.errors import PTXASError

from grader.plans.refusals import refusal


class Refused(Exception):
    """ptxas refused a kernel."""


_make_cubin = CUDABackend.make_cubin


def make_cubin(self: CUDABackend, ptx: str, *rest: Any) -> Any:
    """Like Triton's, which prints the whole PTX of a kernel that ptxas refuses and names no line of the program."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            return _make_cubin(self, ptx, *rest)
        except PTXASError as error:
            raise Refused(refusal(str(error), ptx)) from None


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
