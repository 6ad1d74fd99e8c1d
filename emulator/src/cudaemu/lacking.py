"""Features of PTX and of CUDA's libraries that the emulator lacks, in a student's words, with advice on alternatives.

Refusals and docs/emulator.md (tools/emulator_table.py) take their text from here. Functions of the runtime API that
return cudaErrorNotSupported are in runtime/absent.inc.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ON_A_GPU = "run this program on a GPU (--engine cuda)"


@dataclass(frozen=True, slots=True)
class Lacking:
    """The parts of a sentence: "`what` is not supported by the emulator; `advice`"."""

    what: str
    advice: str = ON_A_GPU


DYNAMIC_PARALLELISM = Lacking(
    "a kernel that launches a kernel (dynamic parallelism)", "launch both from the host, in a loop if necessary"
)
_HOPPER = "run on a Hopper GPU (--engine cuda)"
_BLACKWELL = "run on a Blackwell GPU (--engine cuda)"

# By the first words of the instruction; the longest match counts.
INSTRUCTIONS = {
    "tex.cube": Lacking("a cube map", "use a layered texture with six layers"),
    "tex.acube": Lacking("a cube map", "use a layered texture with six layers"),
    "tex.2dms": Lacking("a multisampled texture", "use a layered texture"),
    "sured": Lacking("a reduction on a surface", "use atomics on memory from cudaMalloc"),
    "suld.p": Lacking("a formatted surface read", "read the bytes with surf2Dread"),
    "sust.p": Lacking("a formatted surface write", "write the bytes with surf2Dwrite"),
    "istypep": Lacking("a test of a handle's type", "pass textures and surfaces in separate parameters"),
    "wgmma.mma_async.sp": Lacking("a product of a sparse matrix (wgmma)", f"use wgmma with both matrices dense, or {_HOPPER}"),
    "tcgen05": Lacking("Blackwell's matrix instructions (tcgen05)", f"use mma or wmma, or {_BLACKWELL}"),
    "cp.async.bulk": Lacking("this form of a bulk copy (TMA)", f"copy whole tiles without a mask, or {_HOPPER}"),
    "tensormap": Lacking("a tensor map (TMA)", f"use cp.async, or {_HOPPER}"),
    "multimem": Lacking("memory of several GPUs at one address (multimem)", "copy between the GPUs"),
    "clusterlaunchcontrol": Lacking("work stealing between clusters", f"use an atomic counter, or {_BLACKWELL}"),
}  # fmt: skip

# Functions that the linker does not find, by the beginning of their names.
FUNCTIONS = {
    "cudaGL": Lacking("OpenGL interoperability", "copy results to the host and draw them from there"),
    "cudaGraphicsGL": Lacking("OpenGL interoperability", "copy results to the host and draw them from there"),
    "cudaEGL": Lacking("EGL interoperability", "copy results to the host and draw them from there"),
    "cudaGraphicsEGL": Lacking("EGL interoperability", "copy results to the host and draw them from there"),
    "cudaVDPAU": Lacking("VDPAU interoperability", "copy results to the host and draw them from there"),
    "cudaGraphicsVDPAU": Lacking("VDPAU interoperability", "copy results to the host and draw them from there"),
    "cuMemAddress": Lacking("virtual memory management", "allocate with cudaMalloc or cudaMallocAsync"),
    "cuMemCreate": Lacking("virtual memory management", "allocate with cudaMalloc or cudaMallocAsync"),
    "cuMemMap": Lacking("virtual memory management", "allocate with cudaMalloc or cudaMallocAsync"),
    "cuModule": Lacking("device code loaded at run time", "compile the kernels into the program"),
    "cuLibrary": Lacking("device code loaded at run time", "compile the kernels into the program"),
    "cuda": Lacking("a function of the CUDA runtime", "replace it or run on a GPU (--engine cuda)"),
    "cu": Lacking("the driver API", "use the runtime API (cuda… functions)"),
}


def lacking_instruction(text: str) -> Lacking | None:
    """The missing feature behind an instruction such as "tex.cube.v4.f32.f32"; None if INSTRUCTIONS has none."""
    words = text.split(".")
    for n in range(len(words), 0, -1):
        if (found := INSTRUCTIONS.get(".".join(words[:n]).replace("__", "::"))) is not None:
            return found
    return None


def lacking_function(name: str) -> Lacking:
    """The missing feature behind a function, cu… or cuda…, that the linker does not find."""
    found = FUNCTIONS[max((prefix for prefix in FUNCTIONS if name.startswith(prefix)), key=len)]
    return Lacking(f"{name} ({found.what})", found.advice)


def lacking_in_kernels(name: str) -> Lacking | None:
    """The missing feature behind an undefined function that device code calls: a launch, or the runtime API on the
    device. None for any other function."""
    runtime = re.match(r"(?:__cudaCDP2|cuda)([A-Z]\w*)", name)
    if runtime is None:
        return None
    if re.match(r"(LaunchDevice|GetParameterBuffer)", runtime[1]):
        return DYNAMIC_PARALLELISM
    return Lacking(f"a call of cuda{runtime[1]} in a kernel", "call it on the host")
