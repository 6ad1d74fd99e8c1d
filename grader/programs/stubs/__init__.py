"""Stub headers of cuBLAS, cuRAND and the CUDA samples, for programs that include them but hardly use them.

Real homework often includes cublas_v2.h, or helper_cuda.h from the samples, out of habit. A build must not fail only
because the library is not installed. The library headers declare the common types and functions but do not define them,
so a program that calls one does not link. Other libraries have no stubs: a program that includes one does not compile,
and the message names the library that the assignment forbids. helper_cuda.h, helper_functions.h, helper_image.h,
helper_string.h and helper_timer.h are working replacements.

The folder comes last in the search order (-isystem), so that headers of the toolkit and of the program's -I folders
take precedence. cuRAND's device library consists of headers only; the package nvidia-curand has the real ones
(`Toolkit.added_headers`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from grader.programs.toolkit import Toolkit

STUB_HEADERS = Path(__file__).with_name("include")
"""The folder that the compiler searches last for headers."""


def header_flags(toolkit: Toolkit) -> Iterator[str]:
    """nvcc's flags for the folders of headers that the toolkit lacks."""
    return (f"-isystem={folder}" for folder in (*toolkit.added_headers, STUB_HEADERS))
