"""Where CUDA programs run: on a GPU (`cuda`) or on the CPU (`emulator`). Chosen here and nowhere else."""

from __future__ import annotations

import grader.emulator
from grader.base.errors import UsageError
from grader.programs.engine.cuda import CudaEngine, find_gpus, no_gpu_reason
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.engine.interface import Compiled, Engine, Launch
from grader.programs.toolkit import find_toolkit

ENGINES = ("auto", "cuda", "emulator")


def select_engine(name: str, emulator_target: str) -> Engine:
    """The engine called `name`; `auto` takes the GPU when a usable one is there. Raises UsageError for an unknown
    name and for `cuda` without a GPU, MachineFault without a compiler."""
    return select_engines(name, emulator_target)[0]


def select_engines(name: str, emulator_target: str) -> tuple[Engine, ...]:
    """As `select_engine`, one engine for every GPU that may be used; the emulator is one engine."""
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
    grader.emulator.instruction_set()  # a GRADER_EMULATOR_ISA that cannot be is refused before anything is graded
    return (EmulatorEngine(toolkit, emulator_target),)
