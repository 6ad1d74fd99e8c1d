"""Where CUDA programs run: on a GPU (`cuda`) or on the CPU (`emulator`). Chosen here and nowhere else."""

from __future__ import annotations

from grader.engine.base import Compiled, Engine, Launch
from grader.engine.cuda import CudaEngine, find_gpu
from grader.engine.emulator import EmulatorEngine
from grader.errors import UsageError
from grader.toolkit import find_toolkit

__all__ = ["Compiled", "Engine", "Launch", "select_engine"]

ENGINES = ("auto", "cuda", "emulator")


def select_engine(name: str, emulator_target: str) -> Engine:
    """The engine called `name`; `auto` takes the GPU when a usable one is there. Raises UsageError for an unknown
    name and for `cuda` without a GPU, MachineFault without a compiler."""
    if name not in ENGINES:
        raise UsageError(f"There is no engine {name!r}: choose one of {', '.join(ENGINES)}.")
    toolkit = find_toolkit()
    if name != "emulator":
        gpu = find_gpu()
        if gpu is not None:
            return CudaEngine(toolkit, gpu)
        if name == "cuda":
            raise UsageError(
                "--engine cuda needs an NVIDIA GPU and its driver, and none was found: "
                "use --engine emulator, or see `grader doctor`."
            )
    return EmulatorEngine(toolkit, emulator_target)
