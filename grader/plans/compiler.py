"""Triton's compiler as the recorder uses it: for the emulator it stops at PTX. What ptxas refuses is reported at the
submission's line."""

from __future__ import annotations

import contextlib
import io
import itertools
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args
from unittest.mock import patch

from triton.backends.nvidia import compiler as nvidia
from triton.backends.nvidia.compiler import CUDABackend
from triton.runtime.errors import PTXASError

from grader.plans.plan import PtxasWord
from grader.plans.recorder import ptx_of
from grader.plans.refusals import Refused, refusal

_make_cubin = CUDABackend.make_cubin


def make_cubin(self: CUDABackend, ptx: str, *rest: Any) -> Any:
    """Like Triton's, which prints the whole PTX of a kernel that ptxas refuses and names no line of the program. Notes
    how ptxas was called."""
    called: list[str] = []

    def run(command: Sequence[str], **options: Any) -> Any:
        called[:] = command
        return subprocess.run(command, **options)

    noting = SimpleNamespace(**{**vars(subprocess), "run": run})
    with contextlib.redirect_stdout(io.StringIO()), patch.object(nvidia, "subprocess", noting):
        try:
            made = _make_cubin(self, ptx, *rest)
        except PTXASError as error:
            raise Refused(refusal(str(error), ptx)) from None
    tool, *words = called
    options = [word for word in itertools.takewhile(lambda word: "--gpu-name" not in word, words) if word != "-v"]
    if others := [word for word in options if word not in get_args(PtxasWord)]:
        raise Refused(f"ptx_options are not possible here: remove {' '.join(others)}")
    ptx_of[made] = ptx.encode(), (Path(tool).name, *options)
    return made


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
