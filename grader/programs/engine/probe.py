"""Tests a GPU with the steps that every CUDA program takes: it makes a context, allocates memory, fills it and copies
it back. Run as a program, this module exits with code 0 if all steps succeed.

It runs in a separate process, since the grader's own CUDA context would stay on the GPU and a failing driver may never
return. The names are those of cuda.h, whose macros map them to the functions with the suffix _v2.
"""

from __future__ import annotations

import ctypes
import sys

_PATTERN = 0x5A
_BYTES = 1 << 20


def problem() -> str:
    """The step that failed, as a phrase; '' if all succeeded."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"libcuda.so.1 cannot be loaded: {error}"
    context, address, back = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.create_string_buffer(_BYTES)
    steps = (
        ("cuInit", (0,)),
        ("cuDevicePrimaryCtxRetain", (ctypes.byref(context), 0)),
        ("cuCtxSetCurrent", (context,)),
        ("cuMemAlloc_v2", (ctypes.byref(address), ctypes.c_size_t(_BYTES))),
        ("cuMemsetD8_v2", (address, ctypes.c_ubyte(_PATTERN), ctypes.c_size_t(_BYTES))),
        ("cuMemcpyDtoH_v2", (back, address, ctypes.c_size_t(_BYTES))),
    )
    for name, arguments in steps:
        if (code := getattr(cuda, name)(*arguments)) != 0:
            return f"{name} failed with error {code}"
    return "" if back.raw == bytes([_PATTERN]) * _BYTES else "the bytes read back differ from those written"


if __name__ == "__main__":
    sys.exit(problem() or 0)
