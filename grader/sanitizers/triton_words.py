"""Findings in the words of Triton: its programs are blocks, and have one barrier."""

from __future__ import annotations

_WORDS = (
    (", where all threads of the block reach it", ", or launch two kernels"),
    ("__syncthreads()", "tl.debug_barrier()"),
    ("__syncwarp()", "tl.debug_barrier()"),
    (" (with __threadfence() if other data depend on them)", " (tl.atomic_add)"),
    ("atomicAdd", "tl.atomic_add"),
    ("split the kernel in two", "launch two kernels"),
    ("Let each block write", "Let each program write"),
    ("blocks run in any order", "programs run in any order"),
    ("no block waits for another", "no program waits for another"),
    ("another block", "another program"),
)
"""What the emulator says of CUDA programs, and what it means in Triton."""


def in_triton(text: str) -> str:
    """`text`, a finding in a Python file, in the words of Triton."""
    for cuda, triton in _WORDS:
        text = text.replace(cuda, triton)
    return text


def is_python(file: str | None) -> bool:
    return bool(file) and str(file).endswith(".py")
