"""Read what ptxas -v reports about each kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.base.demangling import demangle


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
    """Return the kernels in the order in which ptxas compiled them."""
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
