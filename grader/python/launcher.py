"""Launches a compiled kernel, converting the arguments of the program's call to the kernel's parameters."""

from __future__ import annotations

import contextlib
import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from grader.python import gpu, library, provenance
from grader.python.arrays import empty, place, zeros
from grader.python.sealed import Final

_WARP = 32
_SCALARS: dict[str, tuple[str, Any]] = {
    "i1": ("int8", ctypes.c_int8), "i8": ("int8", ctypes.c_int8), "i16": ("int16", ctypes.c_int16),
    "i32": ("int32", ctypes.c_int32), "i64": ("int64", ctypes.c_int64),
    "u1": ("uint8", ctypes.c_uint8), "u8": ("uint8", ctypes.c_uint8), "u16": ("uint16", ctypes.c_uint16),
    "u32": ("uint32", ctypes.c_uint32), "u64": ("uint64", ctypes.c_uint64),
    "fp32": ("fp32", ctypes.c_float), "f32": ("fp32", ctypes.c_float), "fp64": ("fp64", ctypes.c_double),
}  # fmt: skip
"""For each type in a kernel's signature, its name and its type of ctypes."""


class _Shape(NamedTuple):
    threads: int
    shared_bytes: int
    cluster: int
    cooperative: int


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
        # plain ints, whatever their class says
        x, y, z, function = (ctypes.c_int64(number).value for number in (x, y, z, kernel))
        if x * y * z > 0:
            self._launch(function, (x, y, z), stream, values)
        if leave is not None:
            leave(metadata)

    def _launch(self, kernel: int, grid: tuple[int, int, int], stream: int, values: Sequence[Any]) -> None:
        raise NotImplementedError

    def _shape(self) -> _Shape:
        """Read once for each launch: a program could replace the metadata by an object with changing attributes."""
        given = self._metadata
        cooperative = getattr(given, "launch_cooperative_grid", False)
        numbers = given.num_warps * _WARP, given.shared, getattr(given, "num_ctas", 1), cooperative
        return _Shape(*(ctypes.c_int64(int(number)).value for number in numbers))

    def _scratch_bytes(self, grid: Sequence[int]) -> list[int]:
        x, y, z = grid
        return [x * y * z * getattr(self._metadata, "num_ctas", 1) * size for size in self._scratch]


class EmulatorLauncher(Launcher):
    """Waits for each kernel, since a program can read PyTorch's tensors on the CPU without any call that could wait."""

    def _launch(self, kernel: int, grid: tuple[int, int, int], stream: int, values: Sequence[Any]) -> None:
        shape = self._shape()
        with _lent(_tensors(values)):
            scratch = [zeros((size,), "uint8") if size else None for size in self._scratch_bytes(grid)]
            arguments = [*_arguments(self._types, values), *map(_pointer, scratch)]
            follow(library.identity(kernel), (*grid, *shape), arguments)
            library.launch(kernel, grid, shape.threads, shape.shared_bytes, stream, [value for _, value in arguments])
            library.synchronize()


class GpuLauncher(Launcher):
    def _launch(self, kernel: int, grid: tuple[int, int, int], stream: int, values: Sequence[Any]) -> None:
        shape = self._shape()
        scratch = [empty((size,), "uint8") if size else None for size in self._scratch_bytes(grid)]
        arguments = [*_arguments(self._types, values), *map(_pointer, scratch)]
        follow(gpu.identity(kernel), (*grid, *shape), arguments)
        gpu.launch(
            kernel,
            grid,
            shape.threads,
            shape.shared_bytes,
            stream,
            [value for _, value in arguments],
            cluster=shape.cluster,
            cooperative=bool(shape.cooperative),
        )


def follow(code: str, shape: tuple[int, ...], arguments: Sequence[tuple[str, Any]]) -> None:
    """Note what a launch tells its kernel: its grid and blocks, its arguments bit by bit, and its constants, by what
    stands for its code."""
    if (follower := provenance.follower) is None:
        return
    numbers: list[object] = [code, *shape]
    for kind, value in arguments:
        if isinstance(value, ctypes.c_void_p):
            numbers += place(value.value or 0)
        else:
            numbers.append((kind, int.from_bytes(bytes(value), "little")))
    follower.launched(numbers)


class NoLauncher(Launcher):
    def __call__(self, *values: Any) -> None:
        """Do nothing: Triton compiled the kernel before this call, which is all that the build step needs."""


def _pointer(array: Any) -> tuple[str, ctypes.c_void_p]:
    return "", ctypes.c_void_p(array.data_ptr() if array is not None else 0)


def _arguments(types: Sequence[Any], values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The values of the kernel's parameters as ctypes values, each with the name of its type. Constants are left out,
    and tuples are flattened."""
    for kind, value in zip(types, values, strict=True):
        if isinstance(kind, tuple):
            yield from _arguments(kind, value)
        elif kind == "constexpr":
            continue
        elif kind.startswith("*"):
            address = value if isinstance(value, int) else 0 if value is None else value.data_ptr()
            yield "", ctypes.c_void_p(address)
        elif kind in _SCALARS:
            name, scalar = _SCALARS[kind]
            yield name, scalar(value)
        elif kind == "fp16":
            yield kind, ctypes.c_uint16.from_buffer_copy(_half(value))
        elif kind == "bf16":
            yield kind, ctypes.c_uint16(_bfloat16(value))
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
