"""The names of translated kernels, for the build step, which puts them into a package, and the process that loads them.

This module imports nothing of Triton's.
"""

from __future__ import annotations

import hashlib
import re

_FOLDER = re.compile(rb'(\.file\s+\d+\s+")[^"\n]*/')


def kernel_name(ptx: bytes) -> str:
    """The name of a kernel's shared library; the folder from which its source was compiled does not count."""
    moved = _FOLDER.sub(rb"\1", ptx)
    return f"{hashlib.sha256(moved).hexdigest()}.so"
