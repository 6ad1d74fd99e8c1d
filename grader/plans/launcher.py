"""Launches a compiled kernel, converting the arguments of the program's call to the kernel's parameters."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from grader.plans.dtypes import uint8
from grader.plans.handles import Tensor, empty
from grader.plans.recorder import Argument, Shape, current

_WARP = 32
_SCALARS: dict[str, tuple[str, Any]] = {
    "i1": ("int8", ctypes.c_int8), "i8": ("int8", ctypes.c_int8), "i16": ("int16", ctypes.c_int16),
    "i32": ("int32", ctypes.c_int32), "i64": ("int64", ctypes.c_int64),
    "u1": ("uint8", ctypes.c_uint8), "u8": ("uint8", ctypes.c_uint8), "u16": ("uint16", ctypes.c_uint16),
    "u32": ("uint32", ctypes.c_uint32), "u64": ("uint64", ctypes.c_uint64),
    "fp32": ("fp32", ctypes.c_float), "f32": ("fp32", ctypes.c_float), "fp64": ("fp64", ctypes.c_double),
}  # fmt: skip
"""For each type in a kernel's signature, its name and its type of ctypes."""


_DESCRIPTOR = (
    "a kernel takes no tensor descriptor that was made on the host: pass the tensor and its sizes, and make the "
    "descriptor in the kernel: tl.make_tensor_descriptor(x, shape=[rows, columns], strides=[columns, 1], "
    "block_shape=[1, BLOCK])"
)


class NoArgument(TypeError):
    """A launch passes what no kernel of a plan can get."""


class Launcher:
    """Launches one compiled kernel."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._types = tuple(source.signature.values())
        self._metadata = metadata
        self._scratch_bytes = metadata.global_scratch_size, metadata.profile_scratch_size

    def __call__(
        self, x: int, y: int, z: int, stream: int, kernel: Any, packed: Any, metadata: Any,
        enter: Callable[[Any], None] | None, leave: Callable[[Any], None] | None, *values: Any,
    ) -> None:  # fmt: skip
        if enter is not None:
            enter(metadata)
        if x * y * z > 0:
            self._launch(kernel, (x, y, z), values)
        if leave is not None:
            leave(metadata)

    def _launch(self, kernel: int, grid: tuple[int, int, int], values: Sequence[Any]) -> None:
        given = self._metadata
        clusters = getattr(given, "num_ctas", 1)
        cooperative = bool(getattr(given, "launch_cooperative_grid", False))
        scratch = [self._new_scratch(math.prod(grid) * clusters * size) for size in self._scratch_bytes]
        arguments = [*_arguments(self._types, values), *map(_pointer, scratch)]
        shape = Shape(given.num_warps * _WARP, given.shared, clusters, cooperative)
        current().launch(kernel, grid, shape, arguments)

    @staticmethod
    def _new_scratch(size_bytes: int) -> Tensor | None:
        """Memory in which a kernel keeps tensor descriptors. It is cleared, since the emulator checks what is read."""
        return empty((size_bytes,), uint8).zero_() if size_bytes else None


def _pointer(tensor: Tensor | None) -> Argument:
    return "", tensor.data_ptr() if tensor is not None else 0


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
            raise NoArgument(
                _DESCRIPTOR if kind.startswith("tensordesc") else f"a kernel takes no argument of type {kind}"
            )


def _bfloat16(value: float) -> int:
    bits = ctypes.c_uint32.from_buffer_copy(ctypes.c_float(value)).value
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
