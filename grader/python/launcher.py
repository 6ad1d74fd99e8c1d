"""Launches a compiled kernel, converting the arguments of the program's call to the kernel's parameters."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from grader.python import gpu, library, provenance
from grader.python.arrays import Final, empty, place, zeros

_WARP = 32
_SCALARS: dict[str, Any] = {
    "i1": ctypes.c_int8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
    "u1": ctypes.c_uint8, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
    "fp32": ctypes.c_float, "f32": ctypes.c_float, "fp64": ctypes.c_double,
}  # fmt: skip


class Launcher(metaclass=Final):
    """Launches one compiled kernel. Each engine's subclass defines `_launch`."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._types = tuple(source.signature.values())
        self._metadata = metadata
        self._scratch = metadata.global_scratch_size, metadata.profile_scratch_size

    def __call__(
        self, x: int, y: int, z: int, stream: int, kernel: Any, packed: Any, metadata: Any,
        enter: Callable[[Any], None] | None, leave: Callable[[Any], None] | None, *values: Any,
    ) -> None:  # fmt: skip
        if enter is not None:
            enter(metadata)
        x, y, z = (ctypes.c_int64(number).value for number in (x, y, z))  # plain ints, whatever their class says
        if x * y * z > 0:
            self._launch(kernel, (x, y, z), stream, values)
        if leave is not None:
            leave(metadata)

    def _launch(self, kernel: Any, grid: tuple[int, int, int], stream: int, values: Sequence[Any]) -> None:
        raise NotImplementedError

    def _follow(self, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Note what a launch tells its kernel: its grid, its arguments, and by the kernel's hash its constants."""
        if (follower := provenance.follower) is None:
            return
        hash_ = getattr(self._metadata, "hash", "")
        numbers = (place(each.value or 0) if isinstance(each, ctypes.c_void_p) else (each.value,) for each in arguments)
        follower.launched((self._metadata.name, hash_, *grid, *itertools.chain.from_iterable(numbers)))

    @property
    def _threads(self) -> int:
        return int(self._metadata.num_warps) * _WARP

    def _scratch_bytes(self, grid: Sequence[int]) -> list[int]:
        x, y, z = grid
        return [x * y * z * getattr(self._metadata, "num_ctas", 1) * size for size in self._scratch]


class EmulatorLauncher(Launcher):
    """Waits for each kernel, since a program can read PyTorch's tensors on the CPU without any call that could wait."""

    def _launch(self, kernel: library.Kernel, grid: tuple[int, int, int], stream: int, values: Sequence[Any]) -> None:
        with _lent(_tensors(values)):
            scratch = [zeros((size,), "uint8") if size else None for size in self._scratch_bytes(grid)]
            arguments = [*_arguments(self._types, values), *map(_pointer, scratch)]
            self._follow(grid, arguments)
            library.launch(kernel, grid, self._threads, self._metadata.shared, stream, arguments)
            library.synchronize()


class GpuLauncher(Launcher):
    def _launch(self, kernel: gpu.Kernel, grid: tuple[int, int, int], stream: int, values: Sequence[Any]) -> None:
        scratch = [empty((size,), "uint8") if size else None for size in self._scratch_bytes(grid)]
        arguments = [*_arguments(self._types, values), *map(_pointer, scratch)]
        self._follow(grid, arguments)
        gpu.launch(
            kernel,
            grid,
            self._threads,
            self._metadata.shared,
            stream,
            arguments,
            cluster=getattr(self._metadata, "num_ctas", 1),
            cooperative=bool(self._metadata.launch_cooperative_grid),
        )


class NoLauncher(Launcher):
    def __call__(self, *values: Any) -> None:
        """Do nothing: Triton compiled the kernel before this call, which is all that the build step needs."""


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.data_ptr() if array is not None else 0)


def _arguments(types: Sequence[Any], values: Sequence[Any]) -> Iterator[Any]:
    """The values of the kernel's parameters as ctypes values. Constants are left out, and tuples are flattened."""
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
            raise TypeError(f"a kernel takes no argument of type {kind}: make tensor descriptors inside the kernel")


def _half(value: float) -> bytes:
    return struct.pack("<e", value)


def _bfloat16(value: float) -> int:
    bits = ctypes.c_uint32.from_buffer_copy(ctypes.c_float(value)).value
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _tensors(values: Sequence[Any]) -> Iterator[Any]:
    """The PyTorch tensors among the arguments, whose memory is unknown to the runtime."""
    for value in values:
        if isinstance(value, tuple):
            yield from _tensors(value)
        elif hasattr(value, "untyped_storage"):
            yield value


@contextlib.contextmanager
def _lent(tensors: Iterator[Any]) -> Iterator[None]:
    """For one launch, let kernels use the memory of the tensors' storages, but no other memory of the host."""
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
