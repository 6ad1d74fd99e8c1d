"""Does the least that every CUDA program does, through the driver's own library: run as a program, it ends with exit
code 0 where the GPU can be used.

A process of its own, since a context of the grader's would stay on the GPU, and since a driver that fails may never
answer. The names are those of cuda.h; functions whose name ends in _v2 are what its macros call.
"""

from __future__ import annotations

import ctypes
import sys

_PATTERN = 0x5A
_BYTES = 1 << 20


def problem() -> str:
    """What failed, as a phrase; '' when nothing did."""
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
    return "" if back.raw == bytes([_PATTERN]) * _BYTES else "what was written did not come back"


if __name__ == "__main__":
    sys.exit(problem() or 0)
