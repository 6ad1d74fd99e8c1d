"""The engines that run CUDA programs, on a GPU (`cuda`) or on the CPU (`emulator`). Only this module chooses an
engine."""

from __future__ import annotations

import cudaemu
from grader.base.errors import UsageError
from grader.programs.engine.cuda import CudaEngine, find_gpus, no_gpu_reason
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.engine.interface import Compiled, Engine, Launch, Recording
from grader.programs.toolkit import find_toolkit

ENGINES = ("auto", "cuda", "emulator")


def select_engine(name: str, emulator_target: str) -> Engine:
    """The engine called `name`; `auto` takes the GPU if there is a usable one. Raises UsageError for an unknown
    name and for `cuda` without a GPU, MachineFault without a compiler."""
    return select_engines(name, emulator_target)[0]


def select_engines(name: str, emulator_target: str) -> tuple[Engine, ...]:
    """Like `select_engine`, but with one engine for each GPU that may be used. The emulator is a single engine."""
    if name not in ENGINES:
        raise UsageError(f"Unknown engine {name!r}: choose one of {', '.join(ENGINES)}.")
    toolkit = find_toolkit()
    if name != "emulator":
        gpus = find_gpus()
        if gpus:
            return tuple(CudaEngine(toolkit, gpu) for gpu in gpus)
        if name == "cuda":
            raise UsageError(
                f"--engine cuda needs an NVIDIA GPU, and none was found: {no_gpu_reason()}; "
                "use --engine emulator, or see `grader doctor`."
            )
    cudaemu.instruction_set()  # refuses an impossible GRADER_EMULATOR_ISA before grading begins
    return (EmulatorEngine(toolkit, emulator_target),)
