"""Launches a compiled kernel, converting the arguments of the program's call to the kernel's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from grader.plans.dtypes import dtype_of, encoded, uint8
from grader.plans.handles import empty
from grader.plans.recorder import current

_WARP = 32
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

    def __call__(self, x: int, y: int, z: int, *call: Any) -> None:
        _stream, kernel, _packed, metadata, enter, leave, *values = call
        if enter is not None:
            enter(metadata)
        given = self._metadata
        clusters = getattr(given, "num_ctas", 1)
        # Memory in which kernels keep tensor descriptors. It is cleared, since the emulator checks what is read.
        needed = (x * y * z * clusters * each for each in (given.global_scratch_size, given.profile_scratch_size))
        scratch = [empty((size,), uint8).zero_() if size else None for size in needed]
        if x * y * z > 0:
            current().launch(
                kernel,
                (x, y, z),
                [*_arguments(self._types, values), *map(_address, scratch)],
                threads=given.num_warps * _WARP,
                shared_bytes=given.shared,
                cluster=clusters,
                cooperative=bool(getattr(given, "launch_cooperative_grid", False)),
            )
        if leave is not None:
            leave(metadata)


def _address(pointer: Any) -> int:
    return pointer if isinstance(pointer, int) else 0 if pointer is None else int(pointer.data_ptr())


def _arguments(types: Sequence[Any], values: Sequence[Any]) -> Iterator[int | bytes]:
    """The kernel's parameters: addresses, and the bytes of numbers. Constants are left out, and tuples are
    flattened."""
    for kind, value in zip(types, values, strict=True):
        if isinstance(kind, tuple):
            yield from _arguments(kind, value)
        elif kind.startswith("*"):
            yield _address(value)
        elif kind.startswith("tensordesc"):
            raise NoArgument(_DESCRIPTOR)
        elif kind != "constexpr":
            yield encoded(value, dtype_of(kind))
