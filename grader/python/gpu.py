"""Device memory and kernels on a GPU, through the CUDA driver, in the context that PyTorch would use too. `library` has
the same functions for the emulator.

Triton's own driver compiles C code against Python's headers and, before Triton 3.9, imports PyTorch, which takes longer
than most runs. This module needs neither.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_ANY_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
_MAX_THREADS, _LOCAL_BYTES, _REGISTERS = 0, 3, 4
_STATIC_SHARED_LIMIT = 48 << 10
_COOPERATIVE, _CLUSTER_DIMENSION = 2, 4  # CUlaunchAttributeID
_PORTABLE_CLUSTER = 8
_PRINTF_FIFO = 1  # CU_LIMIT_PRINTF_FIFO_SIZE
_ATTRIBUTES = {  # CUdevice_attribute
    "max_shared_mem": 97,
    "max_num_regs": 12,
    "multiprocessor_count": 16,
    "warpSize": 10,
    "sm_clock_rate": 13,
    "mem_clock_rate": 36,
    "mem_bus_width": 37,
}
_CAPABILITY = 75, 76


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16))


class _Launch(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


_DEBUGGING = re.compile(rb"\.(rela?\.)?(nv_)?debug_")
_NO_BITS, _IN_MEMORY = 8, 2  # SHT_NOBITS, SHF_ALLOC


@cache
def _driver() -> Any:
    driver = ctypes.CDLL("libcuda.so.1")
    context, device = ctypes.c_void_p(), ctypes.c_int()
    _check(driver, "cuInit", driver.cuInit(0))
    _check(driver, "cuDeviceGet", driver.cuDeviceGet(ctypes.byref(device), 0))
    _check(driver, "cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    _check(driver, "cuCtxSetCurrent", driver.cuCtxSetCurrent(context))
    return driver


def _check(driver: Any, name: str, code: int) -> None:
    if code:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"{name}: {(text.value or b'unknown error').decode()}")


def _call(name: str, *arguments: object) -> None:
    driver = _driver()
    _check(driver, name, getattr(driver, name)(*arguments))


def load(cubin: bytes, name: str, shared_bytes: int) -> tuple[int, int, int, int]:
    """Load the kernel `name` from machine code. Returns its handle, registers, spills and most threads."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    _call("cuModuleLoadData", ctypes.byref(module), cubin)
    _call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    if shared_bytes > _STATIC_SHARED_LIMIT:
        _call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, shared_bytes)
    registers, local_bytes, threads = (_attribute(function, each) for each in (_REGISTERS, _LOCAL_BYTES, _MAX_THREADS))
    assert function.value is not None
    return function.value, registers, local_bytes // 4, threads


def code_hash(cubin: bytes, folder: bytes) -> str:
    """A SHA-256 of machine code in an ELF file, the same in every run: without the folder of its source, which
    assertions name, and without the sections for debuggers, which hold the time at which the source was written."""
    begin, size, count, names = struct.unpack_from("<40xQ10xHHH", cubin)
    headers = [struct.unpack_from("<IIQQQQ", cubin, begin + number * size) for number in range(count)]
    texts = headers[names][4]
    code = hashlib.sha256()
    for name, kind, flags, _, offset, length in headers:
        if flags & _IN_MEMORY or not _DEBUGGING.match(cubin, texts + name):
            content = b"" if kind == _NO_BITS else cubin[offset : offset + length].replace(folder, b"")
            code.update(struct.pack("<IIQQQ", name, kind, flags, length, len(content)) + content)
    return code.hexdigest()


def _attribute(function: ctypes.c_void_p, number: int) -> int:
    value = ctypes.c_int()
    _call("cuFuncGetAttribute", ctypes.byref(value), number, function)
    return value.value


def launch(
    kernel: int,
    grid: Sequence[int],
    threads: int,
    shared_bytes: int,
    stream: int,
    arguments: Sequence[object],
    *,
    cluster: int = 1,
    cooperative: bool = False,
) -> None:
    """Launch the kernel with the handle `kernel`, with ctypes values as arguments, in clusters of `cluster` blocks."""
    function = ctypes.c_void_p(kernel)
    pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))  # type: ignore[arg-type]
    attributes = (_Attribute * 2)()
    count = 0
    if cooperative:
        attributes[count].id, attributes[count].value[0] = _COOPERATIVE, 1
        count += 1
    if cluster > 1:
        attributes[count].id, attributes[count].value[:3] = _CLUSTER_DIMENSION, [cluster, 1, 1]
        count += 1
    if cluster > _PORTABLE_CLUSTER:
        _call("cuFuncSetAttribute", function, _ANY_CLUSTER, 1)
    x, y, z = grid
    shape, block = (ctypes.c_uint * 3)(x * cluster, y, z), (ctypes.c_uint * 3)(threads, 1, 1)
    config = _Launch(shape, block, shared_bytes, ctypes.c_void_p(stream), attributes, count)
    _call("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)


def synchronize() -> None:
    _call("cuCtxSynchronize")


def properties() -> dict[str, int]:
    """The properties that Triton reads from a device."""
    return {name: _device_attribute(number) for name, number in _ATTRIBUTES.items()}


def capability() -> tuple[int, int]:
    major, minor = map(_device_attribute, _CAPABILITY)
    return major, minor


@cache
def _device_attribute(number: int) -> int:
    value = ctypes.c_int()
    _call("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
    return value.value


def allocate(size_bytes: int) -> int:
    address = ctypes.c_uint64()
    if size_bytes:
        _call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size_bytes))
    return address.value


def free(address: int) -> None:
    _driver().cuMemFree_v2(ctypes.c_uint64(address))


def copy_to_device(address: int, host: int, size_bytes: int) -> None:
    _call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(host), ctypes.c_size_t(size_bytes))


def copy_to_host(host: int, address: int, size_bytes: int) -> None:
    _call("cuMemcpyDtoH_v2", ctypes.c_void_p(host), ctypes.c_uint64(address), ctypes.c_size_t(size_bytes))


def copy_on_device(to: int, address: int, size_bytes: int) -> None:
    _call("cuMemcpyDtoD_v2", ctypes.c_uint64(to), ctypes.c_uint64(address), ctypes.c_size_t(size_bytes))


def clear(address: int, size_bytes: int) -> None:
    _call("cuMemsetD8_v2", ctypes.c_uint64(address), ctypes.c_ubyte(0), ctypes.c_size_t(size_bytes))


def set_printf_bytes(size_bytes: int) -> None:
    """Set the size of the buffer for output that kernels print."""
    _call("cuCtxSetLimit", _PRINTF_FIFO, ctypes.c_size_t(size_bytes))


class Event:
    """A point in the default stream, with the methods that triton.testing calls."""

    def __init__(self, enable_timing: bool = False) -> None:
        self._event = ctypes.c_void_p()
        _call("cuEventCreate", ctypes.byref(self._event), 0)

    def record(self, stream: Any = None) -> None:
        _call("cuEventRecord", self._event, None)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to `end`."""
        duration = ctypes.c_float()
        _call("cuEventElapsedTime", ctypes.byref(duration), self._event, end._event)
        return duration.value

    def synchronize(self) -> None:
        _call("cuEventSynchronize", self._event)
