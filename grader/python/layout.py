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
_BODY_ENDS = b"\n}\n"
_FOR_DEBUGGERS = re.compile(rb'(\s|//[^\n]*\n|\.file\s+\d+\s+"[^"\n]*"|\.section\s+\.debug_\w+\s*\{[^{}]*\})*')
_FOLDER = re.compile(rb'(\.file\s+\d+\s+")[^"\n]*/')


def kernel_name(ptx: bytes) -> str:
    """The name of a kernel's shared library. It does not depend on the folder of the kernel's source."""
    moved = _FOLDER.sub(rb"\1", ptx)
    return f"{hashlib.sha256(moved).hexdigest()}.so"


def code_hash(ptx: bytes, folder: bytes) -> str:
    """A SHA-256 of a kernel's instructions, the same in every run: without the folder of its source, another in every
    run, and without what follows the last function for debuggers."""
    code, ends, rest = ptx.rpartition(_BODY_ENDS)
    if not _FOR_DEBUGGERS.fullmatch(rest):
        code, ends = ptx, b""
    return hashlib.sha256((code + ends).replace(folder, b"")).hexdigest()
