"""Arrays in device memory for programs without PyTorch: the attributes that Triton expects of a tensor, and copies from
and to numpy.

numpy has no bfloat16, so values of this type are returned as float32. Storing float32 as bfloat16 rounds to nearest,
ties to even.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import triton.language as tl

from grader.python.device import current
from grader.python.value_sources import STORAGE

_OTHER_NAMES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "bool": "int1"}


class Storage:
    """Device memory that is freed when no array uses it any more."""

    def __init__(self, size_bytes: int) -> None:
        self.address = current().allocate(size_bytes)

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            current().free(self.address)


@dataclass(frozen=True, eq=False)
class Array:
    """A view of device memory: its element at (i, j, …) is `offset` + Σ index · stride elements into `storage`."""

    storage: Storage
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def data_ptr(self) -> int:
        return self.storage.address + self.offset * self.element_size()

    def element_size(self) -> int:
        return int(STORAGE[str(self.dtype)].itemsize)

    def numel(self) -> int:
        return math.prod(self.shape)

    def dim(self) -> int:
        return len(self.shape)

    def size(self, dimension: int | None = None) -> Any:
        return self.shape if dimension is None else self.shape[dimension]

    def stride(self, dimension: int | None = None) -> Any:
        return self.strides if dimension is None else self.strides[dimension]

    def is_contiguous(self) -> bool:
        return self.strides == _row_major(self.shape)

    def transpose(self, first: int, second: int) -> Array:
        order = list(range(self.dim()))
        order[first], order[second] = order[second], order[first]
        shape, strides = (tuple(of[i] for i in order) for of in (self.shape, self.strides))
        return Array(self.storage, self.dtype, shape, strides, self.offset)

    def reshape(self, *shape: int) -> Array:
        """A view in another shape of the same size. This array must be contiguous. One length may be -1 (inferred)."""
        known = math.prod(length for length in shape if length != -1)
        whole = tuple(self.numel() // known if length == -1 else length for length in shape)
        if math.prod(whole) != self.numel() or not self.is_contiguous():
            raise ValueError(f"an array of shape {self.shape} and strides {self.strides} cannot become {shape}")
        return Array(self.storage, self.dtype, whole, _row_major(whole), self.offset)

    def view(self, *shape: Any) -> Array:
        """With lengths, like reshape. With a type of the same size, the same bits as values of that type."""
        if len(shape) != 1 or isinstance(shape[0], int):
            return self.reshape(*shape)
        other = replace(self, dtype=type_named(shape[0]))
        if other.element_size() != self.element_size():
            raise ValueError(f"an array of type {self.dtype} cannot be viewed as {other.dtype}, of another size")
        return other

    def __getitem__(self, index: int) -> Array:
        """The elements whose first index is `index`."""
        if not -self.shape[0] <= index < self.shape[0]:
            raise IndexError(f"index {index} of an array whose first dimension is {self.shape[0]}")
        offset = self.offset + index % self.shape[0] * self.strides[0]
        return Array(self.storage, self.dtype, self.shape[1:], self.strides[1:], offset)

    def __len__(self) -> int:
        return self.shape[0]

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy in host memory."""
        if not self.numel():
            return np.empty(self.shape, _host_type(self.dtype))
        span = 1 + sum((length - 1) * stride for length, stride in zip(self.shape, self.strides, strict=True))
        flat: np.ndarray[Any, Any] = np.empty(span, STORAGE[str(self.dtype)])
        current().download(self.data_ptr(), flat, str(self.dtype), (self.shape, self.strides))
        steps = tuple(stride * flat.itemsize for stride in self.strides)
        strided = np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat, self.shape, steps))
        return _from_bfloat16(strided) if str(self.dtype) == "bf16" else strided

    def copy_(self, source: Array | np.ndarray[Any, Any]) -> Array:
        """Copy an array of the same shape into this array, which must be contiguous. Returns this array."""
        if not isinstance(source, Array):
            source = np.asarray(source)
        if tuple(source.shape) != self.shape or not self.is_contiguous():
            found = f"{tuple(source.shape)} into {self.shape} with strides {self.strides}"
            raise ValueError(f"cannot copy {found}: expected equal shapes and a contiguous target")
        if isinstance(source, Array) and source.dtype == self.dtype and source.is_contiguous():
            current().copy(self.data_ptr(), source.data_ptr(), self.numel() * self.element_size())
            return self
        values = source.numpy() if isinstance(source, Array) else source
        bits = _to_bfloat16(values) if str(self.dtype) == "bf16" else np.asarray(values, STORAGE[str(self.dtype)])
        current().upload(self.data_ptr(), np.ascontiguousarray(bits), str(self.dtype))
        return self

    def zero_(self) -> Array:
        return self.copy_(np.zeros(self.shape, _host_type(self.dtype)))

    def to(self, dtype: Any) -> Array:
        """A copy of another type."""
        return empty(self.shape, dtype).copy_(self)


def empty(shape: Sequence[int], dtype: Any = tl.float32) -> Array:
    """An array with uninitialised elements."""
    named, shape = type_named(dtype), tuple(map(operator.index, shape))
    storage = Storage(math.prod(shape) * STORAGE[str(named)].itemsize)
    return Array(storage, named, shape, _row_major(shape))


def zeros(shape: Sequence[int], dtype: Any = tl.float32) -> Array:
    return empty(shape, dtype).zero_()


def from_numpy(values: np.ndarray[Any, Any], dtype: Any = None) -> Array:
    """A copy of a numpy array in device memory, of the same type or of `dtype`."""
    return empty(values.shape, str(values.dtype) if dtype is None else dtype).copy_(values)


def to_numpy(array: Array) -> np.ndarray[Any, Any]:
    return array.numpy()


def type_named(dtype: Any) -> Any:
    """Triton's type for `dtype`, which is a type of Triton or numpy, or a name such as "float16"."""
    name = str(np.dtype(dtype)) if isinstance(dtype, type) else str(dtype)
    name = _OTHER_NAMES.get(name, name)
    if name not in STORAGE:
        raise TypeError(f"an array cannot have the type {name}: expected one of {', '.join(STORAGE)}")
    return tl.dtype(name)


def _host_type(dtype: Any) -> Any:
    return np.float32 if str(dtype) == "bf16" else STORAGE[str(dtype)]


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _from_bfloat16(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _to_bfloat16(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded).astype(np.uint16)
