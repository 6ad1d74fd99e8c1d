"""Device memory on a GPU, through the CUDA driver, in the context that Triton uses. Same functions as `library`."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


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
