"""Launches a compiled kernel, converting the arguments of the program's call to the kernel's parameters."""

from __future__ import annotations

import contextlib
import ctypes
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from grader.python import library
from grader.python.arrays import empty, zeros
from grader.python.device import Argument, Shape, current

_WARP = 32
_SCALARS: dict[str, tuple[str, Any]] = {
    "i1": ("int8", ctypes.c_int8), "i8": ("int8", ctypes.c_int8), "i16": ("int16", ctypes.c_int16),
    "i32": ("int32", ctypes.c_int32), "i64": ("int64", ctypes.c_int64),
    "u1": ("uint8", ctypes.c_uint8), "u8": ("uint8", ctypes.c_uint8), "u16": ("uint16", ctypes.c_uint16),
    "u32": ("uint32", ctypes.c_uint32), "u64": ("uint64", ctypes.c_uint64),
    "fp32": ("fp32", ctypes.c_float), "f32": ("fp32", ctypes.c_float), "fp64": ("fp64", ctypes.c_double),
}  # fmt: skip
"""For each type in a kernel's signature, its name and its type of ctypes."""


class Launcher:
    """Launches one compiled kernel. Its scratch memory comes from `new_scratch`."""

    new_scratch = staticmethod(empty)

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
        if x * y * z > 0:
            self._launch(kernel, (x, y, z), stream, values)
        if leave is not None:
            leave(metadata)

    def _launch(self, kernel: int, grid: tuple[int, int, int], stream: int, values: Sequence[Any]) -> None:
        given = self._metadata
        clusters = getattr(given, "num_ctas", 1)
        shape = Shape(
            given.num_warps * _WARP, given.shared, clusters, int(getattr(given, "launch_cooperative_grid", False))
        )
        sizes = [math.prod(grid) * clusters * size for size in self._scratch]
        scratch = [self.new_scratch((size,), "uint8") if size else None for size in sizes]
        arguments = [*_arguments(self._types, values), *map(_pointer, scratch)]
        current().launch(kernel, grid, shape, arguments, stream)


class EmulatorLauncher(Launcher):
    new_scratch = staticmethod(zeros)

    def _launch(self, kernel: int, grid: tuple[int, int, int], stream: int, values: Sequence[Any]) -> None:
        with _lent(_tensors(values)):
            super()._launch(kernel, grid, stream, values)


class NoLauncher(Launcher):
    def __call__(self, *values: Any) -> None:
        """Do nothing: Triton compiled the kernel before this call, which is all that the build step needs."""


def _pointer(array: Any) -> Argument:
    return "", array.data_ptr() if array is not None else 0


def _arguments(types: Sequence[Any], values: Sequence[Any]) -> Iterator[Argument]:
    """The bits of the kernel's parameters. Constants are left out, and tuples are flattened."""
    for kind, value in zip(types, values, strict=True):
        if isinstance(kind, tuple):
            yield from _arguments(kind, value)
        elif kind == "constexpr":
            continue
        elif kind.startswith("*"):
            yield "", value if isinstance(value, int) else 0 if value is None else value.data_ptr()
        elif kind in _SCALARS:
            name, scalar = _SCALARS[kind]
            yield name, int.from_bytes(bytes(scalar(value)), "little")
        elif kind == "fp16":
            yield kind, int.from_bytes(struct.pack("<e", value), "little")
        elif kind == "bf16":
            yield kind, _bfloat16(value)
        else:
            raise TypeError(f"a kernel takes no argument of type {kind}: make tensor descriptors inside the kernel")


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
