"""What ptxas -v says about each kernel."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache

_MAX_NAME = 64 << 10
_MAX_DEMANGLER_BYTES = 48 << 20


@dataclass(frozen=True)
class KernelInfo:
    """A kernel's resources per thread (registers, local_bytes, spill bytes) and per block (static_shared_bytes)."""

    name: str
    demangled: str
    registers: int
    static_shared_bytes: int
    local_bytes: int
    constant_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    barriers: int


def read_ptxas(text: str) -> list[KernelInfo]:
    """Kernels in the order ptxas compiled them."""
    result = []
    for part in re.split(r"ptxas info\s*: Compiling entry function ", text)[1:]:
        name_match = re.match(r"'([^']+)'", part)
        if not name_match:
            continue
        name = name_match[1]
        own = part.split("Function properties for " + name, 1)[-1]

        def number(pattern: str, own: str = own) -> int:
            found = re.search(pattern, own)
            return int(found[1]) if found else 0

        result.append(
            KernelInfo(
                name=name,
                demangled=demangle(name),
                registers=number(r"Used (\d{1,15}) registers"),
                static_shared_bytes=number(r"(\d{1,15}) bytes smem"),
                local_bytes=number(r"(\d{1,15}) bytes stack frame"),
                constant_bytes=sum(int(n) for n in re.findall(r"(\d{1,15}) bytes cmem", own)),
                spill_store_bytes=number(r"(\d{1,15}) bytes spill stores"),
                spill_load_bytes=number(r"(\d{1,15}) bytes spill loads"),
                barriers=number(r"used (\d{1,15}) barriers"),
            )
        )
    return result


@lru_cache(maxsize=4096)
def demangle(name: str) -> str:
    """A C++ name as people read it; the name itself where c++filt is missing, or would write too much: a name of 200
    characters can stand for one of many gigabytes, each part of it referring to those before."""
    tool = shutil.which("c++filt")
    if not tool or not name.startswith("_Z") or len(name) > _MAX_NAME:
        return name
    with subprocess.Popen([tool, name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=_bounded) as filt:
        assert filt.stdout is not None
        said = filt.stdout.read(_MAX_NAME + 1)
        filt.kill()
    return said.decode(errors="replace").strip() if 0 < len(said) <= _MAX_NAME else name


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_DEMANGLER_BYTES, _MAX_DEMANGLER_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
