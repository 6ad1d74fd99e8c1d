"""Run CUDA programs without a GPU, by translating nvcc's PTX to C over vectors of 32 lanes. This package knows nothing
about grading, and imports nothing of the grader.

`compile_program` makes a stand-alone executable from .cu files. The executable needs no Python and reads these
variables:

    GRADER_TRACE=FILE, or fd:N            append JSON lines: kernels, copies, errors, findings
    GRADER_EMULATOR_THREADS=n             worker threads (default: all cores)
    GRADER_EMULATOR_KERNEL_SECONDS=s      a kernel that runs longer ends with cudaErrorLaunchTimeout and a report
    GRADER_EMULATOR_KERNEL_SECONDS=scpu   the same in processor time of the process
    GRADER_EMULATOR_SAMPLE=n              run n blocks of each launch, which count for all (counters.c)
    GRADER_EMULATOR_LEAKS=1               report allocations that were never freed
    GRADER_EMULATOR_CHECKS=memory,…       report the findings of these checks only
    GRADER_EMULATOR_CHANGE=n              try change n of a program with many (checking/repairs)
    GRADER_EMULATOR_SCHEDULE=reverse|random:SEED   another order of warps and blocks, to expose missing barriers

At build time, GRADER_EMULATOR_ISA=avx512|avx2|sse|neon limits which of the processor's instructions the executable uses
(isa.py).

`compile_kernel` makes a shared library from one kernel's PTX, for a process that has loaded `runtime_library`
(grader/plans/replay).

runtime/warp.h explains the theory of operation. What the builder needs of its surroundings is a `Host` (host.py).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cudaemu.build import (
        CompileFailed,
        EmulatedProgram,
        Unsupported,
        Workplace,
        compile_program,
        runtime_identity,
    )
    from cudaemu.errors import EmulatorFault, Unreadable
    from cudaemu.extras import Extras
    from cudaemu.host import Host, PlainHost
    from cudaemu.isa import host_compiler_folders, instruction_set
    from cudaemu.kernel_library import compile_kernel
    from cudaemu.native import runtime_library
    from cudaemu.translated import MissingFeature

DEFAULT_SANITIZERS = frozenset({"memory", "sync"})
"""The checks that every build includes."""

WATCHING = frozenset({"race", "init"})
"""The checks for which a program is built to watch its accesses."""

READERS = ("cudaemu.translation", "cudaemu.translate")
"""The modules that a host may import before readers are called."""

__all__ = [
    "DEFAULT_SANITIZERS",
    "READERS",
    "WATCHING",
    "CompileFailed",
    "EmulatedProgram",
    "EmulatorFault",
    "Extras",
    "Host",
    "MissingFeature",
    "PlainHost",
    "Unreadable",
    "Unsupported",
    "Workplace",
    "compile_kernel",
    "compile_program",
    "host_compiler_folders",
    "instruction_set",
    "runtime_identity",
    "runtime_library",
]

_PLACES = {
    "compile_kernel": "kernel_library",
    "host_compiler_folders": "isa",
    "instruction_set": "isa",
    "runtime_library": "native",
    "EmulatorFault": "errors",
    "Extras": "extras",
    "Host": "host",
    "PlainHost": "host",
    "Unreadable": "errors",
    "MissingFeature": "translated",
}


def __getattr__(name: str) -> Any:
    """Import an exported name on its first use, because grading on a GPU uses none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES.get(name, 'build')}"), name)
