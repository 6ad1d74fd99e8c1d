"""The emulator's runtime as a shared library in this process, called through ctypes.

The library has the functions of the CUDA runtime that programs built from .cu files are linked with. Before a call, the
runtime is given the line of Python that makes the call, so that findings name this line.
"""

from __future__ import annotations

import ctypes
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from grader.base.errors import MachineFault

VARIABLE = "GRADER_TRITON_RUNTIME"
"""The path of the runtime's shared library."""
CHECKS_VARIABLE = "GRADER_TRITON_CHECKS"
_WATCHED = {"race": 1, "init": 2}  # SANITIZE_… of runtime/module.h
_DYNAMIC_SHARED = 8  # cudaFuncAttributeMaxDynamicSharedMemorySize
_TO_DEVICE, _TO_HOST, _ON_DEVICE = 1, 2, 3


class CudaError(RuntimeError):
    """A call of the CUDA runtime failed, or reported that an earlier kernel had failed."""


class _Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


class _Attributes(ctypes.Structure):
    """The first fields of cudaFuncAttributes."""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("shared_bytes", "constant_bytes", "local_bytes")),
        *((name, ctypes.c_int) for name in ("max_threads", "registers")),
        ("others", ctypes.c_byte * 256),
    )


_kernels: list[Any] = []
"""The memory at the address of each loaded kernel. The runtime identifies a kernel by an address, as it identifies
nvcc's kernels by the address of their host function."""


@cache
def _runtime() -> ctypes.CDLL:
    path = os.environ.get(VARIABLE)
    if not path:
        raise MachineFault(f"{VARIABLE} is not set: run the program with `grader run`.")
    library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    library.emu_register.restype = ctypes.c_void_p
    library.cudaGetErrorString.restype = ctypes.c_char_p
    wanted = os.environ.get(CHECKS_VARIABLE, "").split(",")
    watched = sum(bit for name, bit in _WATCHED.items() if name in wanted)
    ctypes.c_uint32.in_dll(library, "is_watching").value = bool(watched)  # set before any memory is allocated
    return library


def load(file: Path, name: str, shared_bytes: int) -> tuple[int, int, int]:
    """Load the kernel `name` from a shared library that backend.py built. Returns its address, registers and spills."""
    library, encoded = _runtime(), name.encode()
    token = ctypes.create_string_buffer(encoded)
    address = ctypes.c_void_p(ctypes.addressof(token))
    _kernels.append(token)
    module = ctypes.CDLL(str(file))
    handle = ctypes.c_void_p(library.emu_register(ctypes.byref(ctypes.c_byte.in_dll(module, "m0_module")), 0))
    nothing = (None,) * 5
    library.__getattr__("__cudaRegisterFunction")(handle, address, encoded, encoded, -1, *nothing)
    call("cudaFuncSetAttribute", address, _DYNAMIC_SHARED, shared_bytes)
    found = _Attributes()
    call("cudaFuncGetAttributes", ctypes.byref(found), address)
    return ctypes.addressof(token), found.registers, found.local_bytes // 4


def launch(
    kernel: int, grid: Sequence[int], threads: int, shared_bytes: int, stream: int, arguments: Sequence[object]
) -> None:
    """Launch the kernel at the address `kernel` with ctypes values as arguments."""
    pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))  # type: ignore[arg-type]
    function, shape, shared = ctypes.c_void_p(kernel), _Dim3(*grid), ctypes.c_size_t(shared_bytes)
    call("cudaLaunchKernel", function, shape, _Dim3(threads, 1, 1), pointers, shared, ctypes.c_void_p(stream))


def call(name: str, *arguments: object) -> None:
    """Call a function of the CUDA runtime, attributed to the program's current line. Raises CudaError if it fails."""
    library = _runtime()
    file, line = caller()
    library.emu_called_from(file.encode(), line)
    if code := getattr(library, name)(*arguments):
        raise CudaError(f"{name}: {library.cudaGetErrorString(code).decode()}")


def synchronize() -> None:
    """Wait for all kernels. Raises CudaError if one of them failed."""
    call("cudaDeviceSynchronize")


def allocate(size_bytes: int) -> int:
    """The address of new device memory."""
    address = ctypes.c_void_p()
    call("cudaMalloc", ctypes.byref(address), ctypes.c_size_t(size_bytes))
    return address.value or 0


def free(address: int) -> None:
    """Free device memory. Errors are ignored, since the memory may already be gone at the end of the program."""
    _runtime().cudaFree(ctypes.c_void_p(address))


def copy_to_device(address: int, host: int, size_bytes: int) -> None:
    _copy(address, host, size_bytes, _TO_DEVICE)


def copy_to_host(host: int, address: int, size_bytes: int) -> None:
    _copy(host, address, size_bytes, _TO_HOST)


def copy_on_device(to: int, address: int, size_bytes: int) -> None:
    _copy(to, address, size_bytes, _ON_DEVICE)


def _copy(to: int, from_: int, size_bytes: int, kind: int) -> None:
    call("cudaMemcpy", ctypes.c_void_p(to), ctypes.c_void_p(from_), ctypes.c_size_t(size_bytes), kind)


def share_host_memory(address: int, size_bytes: int) -> None:
    """Let kernels use memory of the host, such as that of a PyTorch tensor, until `unshare_host_memory`."""
    call("cudaHostRegister", ctypes.c_void_p(address), ctypes.c_size_t(size_bytes), 0)


def unshare_host_memory(address: int) -> None:
    call("cudaHostUnregister", ctypes.c_void_p(address))


# ---- lines of the program -----------------------------------------------------------------------------------------

_LIBRARIES = tuple(
    f"{folder}{os.sep}"
    for folder in {
        str(Path(__file__).parents[1]),
        *(sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
        *site.getsitepackages(),
    }
)


def program_line() -> tuple[str, int]:
    """The file and line of the innermost call in the program's own files; ("", 0) if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        if is_own(frame):
            return own_name(frame.f_code.co_filename), frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return "", 0


caller: Callable[[], tuple[str, int]] = program_line
"""Returns the program's line that makes the current call."""


def is_own(frame: FrameType) -> bool:
    """Whether the program's own code runs in this frame."""
    return not frame.f_code.co_filename.startswith(("<", *_LIBRARIES))


def own_name(file: str) -> str:
    """The name of one of the program's files, relative to the folder of the file that was started."""
    return file.removeprefix(f"{Path(sys.argv[0]).resolve().parent}{os.sep}")
