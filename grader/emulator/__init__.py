"""Runs CUDA programs without a GPU: nvcc's PTX translated to C over vectors of 32 lanes. Knows nothing of grading.

`compile_program` makes a stand-alone executable of .cu files. It needs no Python to run and obeys

    GRADER_TRACE=FILE, or fd:N            append JSON lines: kernels, copies, errors, findings
    GRADER_EMULATOR_THREADS=n             worker threads (default: all cores)
    GRADER_EMULATOR_KERNEL_SECONDS=s      a kernel that runs longer ends with cudaErrorLaunchTimeout and a report
    GRADER_EMULATOR_LEAKS=1               note allocations that were never freed
    GRADER_EMULATOR_SCHEDULE=reverse|random:SEED   another order of warps and blocks, to bring out missing barriers

GRADER_EMULATOR_ISA=avx512|avx2|sse|neon compiles it for fewer instructions than this processor has (isa.py).

runtime/warp.h holds the theory of operation. May import `sandbox` and `base`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grader.emulator.build import (
        CompileFailed,
        EmulatedProgram,
        Unsupported,
        compile_program,
        runtime_identity,
    )
    from grader.emulator.isa import host_compiler_folders, instruction_set
    from grader.emulator.ptxas import KernelInfo
    from grader.emulator.translate import Finding

DEFAULT_SANITIZERS = frozenset({"memory", "sync"})
"""What is always checked."""

__all__ = [
    "DEFAULT_SANITIZERS",
    "CompileFailed",
    "EmulatedProgram",
    "Finding",
    "KernelInfo",
    "Unsupported",
    "compile_program",
    "host_compiler_folders",
    "instruction_set",
    "runtime_identity",
]

_PLACES = {"host_compiler_folders": "isa", "instruction_set": "isa", "KernelInfo": "ptxas", "Finding": "translate"}


def __getattr__(name: str) -> Any:
    """Import what is exported when it is first asked for: where there is a GPU, nobody asks."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES.get(name, 'build')}"), name)
