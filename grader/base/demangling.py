"""Demangles the names of C++ functions. A submission chooses these names, so c++filt runs under limits."""

from __future__ import annotations

import resource
import shutil
import subprocess
from functools import lru_cache

_MAX_NAME = 64 << 10
_MAX_DEMANGLER_BYTES = 48 << 20


@lru_cache(maxsize=4096)
def demangle(name: str) -> str:
    """The readable form of a C++ name, as `abi::__cxa_demangle` would return it. Returns the name itself if c++filt is
    missing or exceeds its limits: each part of a mangled name can refer to earlier parts, so 200 characters can stand
    for many gigabytes."""
    tool = shutil.which("c++filt")
    if not tool or not name.startswith("_Z") or len(name) > _MAX_NAME:
        return name
    with subprocess.Popen(
        [tool, "-i", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=_bounded
    ) as filt:
        assert filt.stdout is not None
        said = filt.stdout.read(_MAX_NAME + 1)
        filt.kill()
    return said.decode(errors="replace").strip() if 0 < len(said) <= _MAX_NAME else name


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_DEMANGLER_BYTES, _MAX_DEMANGLER_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
