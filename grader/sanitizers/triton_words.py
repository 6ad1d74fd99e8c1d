"""Translates findings and diagnoses into Triton's words: Triton calls a block a program, and has only one kind of
barrier."""

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
    ("cudaMemcpy: ", ""),
    ("bytes of cudaMalloc at ", "bytes of the array made at "),
    (" (cudaGetLastError after it)", ""),
    ("Is the cudaMemcpy back to the host (cudaMemcpyDeviceToHost) missing?", "Does to_numpy take that array?"),
    ("sizeof(float) bytes", "4 bytes"),
)
"""The grader's words for CUDA programs, each with the words for Triton."""


def in_triton(text: str) -> str:
    """Translate `text`, which is about a Python program, into Triton's words."""
    for cuda, triton in _WORDS:
        text = text.replace(cuda, triton)
    return text


def is_python(file: str | None) -> bool:
    return bool(file) and str(file).endswith(".py")
