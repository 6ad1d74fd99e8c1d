"""The driver that Triton launches kernels with: everything between a compiled kernel and the emulator's runtime.

Triton asks a driver for its target, its device and streams, for a launcher for each kernel, and for ways to time one.
There is one device. Times on the emulator say nothing about a GPU, so timing runs a function once (Timing below).
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.backends.nvidia.driver import ty_to_cpp

from grader.python import library
from grader.python.arrays import Array, zeros
from grader.python.backend import ARCHITECTURE, library_of

_WARP = 32
_SHARED_OPTIN_BYTES = 163 << 10
_PROPERTIES = {  # of an A100, which has compute capability 8.0
    "max_shared_mem": _SHARED_OPTIN_BYTES,
    "max_num_regs": 65536,
    "multiprocessor_count": 108,
    "warpSize": _WARP,
    "sm_clock_rate": 1_410_000,
    "mem_clock_rate": 1_215_000,
    "mem_bus_width": 5120,
}
_SCALARS: dict[str, Any] = {
    "i1": ctypes.c_int8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
    "u1": ctypes.c_uint8, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
    "fp32": ctypes.c_float, "f32": ctypes.c_float, "fp64": ctypes.c_double,
}  # fmt: skip


Loaded = tuple[library.Kernel, library.Kernel, int, int, int]


class Utilities:
    """What Triton asks a driver's `utils` for."""

    def load_binary(
        self, name: str, binary: bytes, shared: int, device: int
    ) -> tuple[Any, library.Kernel, int, int, int]:
        """(module, function, registers, spills, most threads) of a kernel that backend.py compiled."""
        kernel = library.load(library_of(binary), name, shared)
        return kernel, kernel, 0, 0, 1024

    def unload_module(self, module: Any) -> None:
        """Kernels stay: other launches may be under way."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        return dict(_PROPERTIES)

    def set_printf_fifo_size(self, size_bytes: int) -> None:
        """device_print writes at once here."""


class Launcher:
    """Launches one compiled kernel."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._types = tuple(source.signature.values())
        self._threads = metadata.num_warps * _WARP
        self._shared = metadata.shared
        self._scratch = metadata.global_scratch_size, metadata.profile_scratch_size

    def __call__(
        self, x: int, y: int, z: int, stream: int, kernel: library.Kernel, packed: Any, metadata: Any,
        enter: Callable[[Any], None] | None, leave: Callable[[Any], None] | None, *values: Any,
    ) -> None:  # fmt: skip
        if enter is not None:
            enter(metadata)
        if x * y * z > 0:
            with _lent(_tensors(values)):
                arguments = [*_arguments(self._types, values)]
                scratch = [zeros((x * y * z * size,), "uint8") if size else None for size in self._scratch]
                arguments += [ctypes.c_void_p(array.data_ptr() if array else 0) for array in scratch]
                library.launch(kernel, (x, y, z), self._threads, self._shared, stream, arguments)
                library.synchronize()  # PyTorch's tensors on the CPU are read without asking us
        if leave is not None:
            leave(metadata)


def _arguments(types: Sequence[Any], values: Sequence[Any]) -> Iterator[Any]:
    """The arguments that the kernel has, as ctypes values: without constants, and tuples laid flat."""
    for kind, value in zip(types, values, strict=True):
        if isinstance(kind, tuple):
            yield from _arguments(kind, value)
        elif kind == "constexpr":
            continue
        elif kind.startswith("*"):
            address = value if isinstance(value, int) else 0 if value is None else value.data_ptr()
            yield ctypes.c_void_p(address)
        elif kind in _SCALARS:
            yield _SCALARS[kind](value)
        elif kind == "fp16":
            yield ctypes.c_uint16.from_buffer_copy(_half(value))
        elif kind == "bf16":
            yield ctypes.c_uint16(_bfloat16(value))
        else:
            raise TypeError(f"the emulator takes no argument of type {kind} (tensor descriptors need a Hopper GPU)")


def _half(value: float) -> bytes:

    return struct.pack("<e", value)


def _bfloat16(value: float) -> int:
    bits = ctypes.c_uint32.from_buffer_copy(ctypes.c_float(value)).value
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _tensors(values: Sequence[Any]) -> Iterator[Any]:
    """PyTorch's tensors among the arguments, whose memory the runtime does not know."""
    for value in values:
        if isinstance(value, tuple):
            yield from _tensors(value)
        elif hasattr(value, "untyped_storage"):
            yield value


@contextlib.contextmanager
def _lent(tensors: Iterator[Any]) -> Iterator[None]:
    """For one launch, let kernels use the tensors' storages, and nothing around them."""
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    storages.pop(0, None)
    for address, size_bytes in storages.items():
        library.share_host_memory(address, size_bytes)
    try:
        yield
    finally:
        for address in storages:
            with contextlib.suppress(library.CudaError):  # the launch's own error is the one to report
                library.unshare_host_memory(address)


class Event:
    """A point in a stream, as triton.testing uses it."""

    def __init__(self, enable_timing: bool = False) -> None:
        self._at = 0.0

    def record(self, stream: Any = None) -> None:
        library.synchronize()

    def elapsed_time(self, end: Event) -> float:
        return _NO_TIME_MS

    def synchronize(self) -> None:
        library.synchronize()


_NO_TIME_MS = 1e3
"""Every run takes this long for do_bench, so that it stops after a few."""


class DeviceInterface:
    """What triton.testing wants of torch.cuda."""

    Event = Event

    @staticmethod
    def synchronize() -> None:
        library.synchronize()

    @staticmethod
    def current_device() -> int:
        return 0


_warned: set[str] = set()


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        print(f"note: {text}", file=sys.stderr)


def try_once(kernel_call: Callable[[], Any], quantiles: Sequence[float] | None = None, **options: Any) -> Any:
    """Triton's benchmarker: run each configuration once, for its errors and the checks. All get the same time, so
    autotune takes the first."""
    _warn_once("autotune tries each configuration once here and takes the first: times on the emulator mean nothing")
    kernel_call()
    library.synchronize()
    return [_NO_TIME_MS] * len(quantiles) if quantiles else _NO_TIME_MS


class EmulatorDriver(DriverBase):  # type: ignore[misc]
    """Triton's driver for the emulated GPU."""

    launcher_cls = Launcher

    def __init__(self) -> None:
        super().__init__()
        self.utils = Utilities()

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        return str(ty_to_cpp(ty))

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", ARCHITECTURE, _WARP)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one."""

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return divmod(ARCHITECTURE, 10)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> type[DeviceInterface]:
        return DeviceInterface

    def get_benchmarker(self) -> Callable[..., Any]:
        return try_once

    def get_empty_cache_for_benchmark(self) -> Array:
        _warn_once("do_bench runs a function a few times here and reports no real time")
        return zeros((1,), "int32")

    def clear_cache(self, cache: Array) -> None:
        """No cache is emulated."""


class _Unloaded(Utilities):
    def load_binary(
        self, name: str, binary: bytes, shared: int, device: int
    ) -> tuple[Any, library.Kernel, int, int, int]:
        kernel = library.Kernel(name)
        return kernel, kernel, 0, 0, 1024


class _NoLauncher(Launcher):
    def __call__(self, *values: Any) -> None:
        """The kernel is compiled, which is all that is wanted."""


class CompilingDriver(EmulatorDriver):
    """Compiles kernels, for the emulator or for a GPU's architecture, and launches none."""

    launcher_cls = _NoLauncher

    def __init__(self, architecture: int) -> None:
        super().__init__()
        self.utils = _Unloaded()
        self._architecture = architecture or ARCHITECTURE

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self._architecture, _WARP)
