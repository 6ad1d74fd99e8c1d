"""Names shared by the build step, which makes a package, and the process that runs the package. Does not import Triton.

A package is a zip file: source/ has the program's files, cache/ is Triton's cache, kernels/ has the emulator's shared
libraries, the file `main` names the main file, and `names` lists the functions that it defines.
"""

from __future__ import annotations

import hashlib
import re

ENGINE_VARIABLE = "GRADER_PYTHON_ENGINE"
CACHE_VARIABLE = "GRADER_PYTHON_CACHE"
TARGET_VARIABLE = "GRADER_PYTHON_TARGET"
TRACE_VARIABLE = "GRADER_TRACE"
"""`grader.programs.trace.PATH_VARIABLE`."""
RECORD_VARIABLE, SEED_VARIABLE = "GRADER_PYTHON_RECORD", "GRADER_PYTHON_SEED"
"""A descriptor to which all that is copied and launched is written, and the seed of that run's random numbers."""
MOST_RECORDED_BYTES, OF_LAUNCHES_BYTES = 320 << 20, 64 << 20
"""Limit on such a record, and the part of it that is not for arrays."""
SOURCE, CACHE, KERNELS, MAIN, NAMES = "source", "cache", "kernels", "main", "names"
_DEBUG = re.compile(rb"^\s*\.section\s+\.debug", re.MULTILINE)
_FOLDER = re.compile(rb'(\.file\s+\d+\s+")[^"\n]*/')


def kernel_name(ptx: bytes) -> str:
    """The name of a kernel's shared library. It does not depend on the folder of the kernel's source."""
    moved = _FOLDER.sub(rb"\1", ptx)
    return f"{hashlib.sha256(moved).hexdigest()}.so"


def code_name(ptx: bytes) -> str:
    """Stands for a kernel's instructions, without the lines that they come from and their file's folder, which is
    another in every run."""
    return kernel_name(_DEBUG.split(ptx, maxsplit=1)[0])
