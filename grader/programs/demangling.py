"""Demangles the names of C++ functions, as the C++ library does. A submission chooses these names."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated

from pydantic import Field

from grader.sandbox.room import Unreadable, confined

_MAX_NAME = 64 << 10
_demangle: Callable[..., int | None] | None = None
with contextlib.suppress(OSError, AttributeError):
    _loaded = ctypes.CDLL("libstdc++.so.6").__cxa_demangle  # before the room closes
    _loaded.restype = ctypes.c_void_p
    _demangle = _loaded


@lru_cache(maxsize=4096)
def demangle(name: str) -> str:
    """The readable form of a C++ name. Returns the name itself if this machine has no C++ library, or if the name
    exceeds the room's limits: each part of a mangled name can refer to earlier parts, so 200 characters can stand for
    many gigabytes."""
    if _demangle is None or not name.startswith("_Z") or len(name) > _MAX_NAME:
        return name
    try:
        return _demangled(name) or name
    except Unreadable:
        return name


@confined(cpu_s=1, answer_bytes=2 * _MAX_NAME)
def _demangled(name: str) -> Annotated[str, Field(max_length=_MAX_NAME)]:
    assert _demangle is not None
    room = ctypes.c_size_t()
    said = _demangle(name.encode(), None, ctypes.byref(room), None)
    return ctypes.string_at(said).decode(errors="replace") if said and room.value <= _MAX_NAME else ""
