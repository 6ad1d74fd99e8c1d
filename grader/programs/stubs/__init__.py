"""Headers of cuBLAS, cuRAND and the CUDA samples, for files that include them and use little or nothing of them.

Real homework often includes cublas_v2.h, or helper_cuda.h from the samples, out of habit; a build must not
fail for that where the library is not installed. The library headers declare the common types and functions,
and nothing defines them: a program that calls one does not link. Other libraries have no headers here: a program
that includes one does not compile, and is told which library its assignment forbids. helper_cuda.h, helper_functions.h,
helper_image.h, helper_string.h and helper_timer.h are working replacements.

The folder goes last in the search order (-isystem), so that headers of the toolkit and of the program's -I folders win.
Of cuRAND's device library, which is headers alone, the package nvidia-curand has the real ones
(`Toolkit.added_headers`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from grader.programs.toolkit import Toolkit

STUB_HEADERS = Path(__file__).with_name("include")
"""The folder to search last for headers."""


def header_flags(toolkit: Toolkit) -> Iterator[str]:
    """nvcc's flags for headers that the toolkit lacks."""
    return (f"-isystem={folder}" for folder in (*toolkit.added_headers, STUB_HEADERS))
