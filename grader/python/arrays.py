"""Arrays in device memory for programs without PyTorch: the attributes that Triton expects of a tensor, and copies from
and to numpy.

numpy has no bfloat16, so values of this type are returned as float32. Storing float32 as bfloat16 rounds to nearest,
ties to even.
"""

from __future__ import annotations

import bisect
import ctypes
import math
import operator
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import triton.language as tl

from grader.python import gpu, library, provenance
from grader.python.sealed import Final

_memory = gpu if os.environ.get("GRADER_PYTHON_ENGINE") == "cuda" else library
_NUMPY = {
    "fp16": np.float16, "bf16": np.uint16, "fp32": np.float32, "fp64": np.float64, "int1": np.bool_,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
}  # fmt: skip
"""For each of Triton's types, the numpy type of the same bits."""
_OTHER_NAMES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "bool": "int1"}


class Storage(metaclass=Final):
    """Device memory that is freed when no array uses it any more."""

    __slots__ = ("_address",)

    def __init__(self, size_bytes: int) -> None:
        self._address: int = _memory.allocate(size_bytes)
        if provenance.follower is not None:
            provenance.follower.launched(("allocate", size_bytes))
        if self._address:
            _LIVE.add(self._address, size_bytes)

    @property
    def address(self) -> int:
        return self._address

    def __del__(self) -> None:
        if _LIVE.remove(getattr(self, "_address", 0)):
            _memory.free(self._address)


class _Live:
    """The device memory of all arrays, numbered in the order of allocation."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._of: dict[int, tuple[int, int]] = {}
        self._made = 0

    def add(self, address: int, size_bytes: int) -> None:
        self._made += 1
        self._of[address] = self._made, size_bytes
        bisect.insort(self._begins, address)

    def remove(self, address: int) -> bool:
        """Whether memory began at this address."""
        if self._of.pop(address, None) is None:
            return False
        self._begins.remove(address)
        return True

    def place(self, address: int, size_bytes: int = 0) -> tuple[int, int]:
        """(number, offset in bytes) of memory; (0, 0) for a null pointer. Raises ValueError for memory of no array,
        unless the program has tensors of PyTorch."""
        at = bisect.bisect_right(self._begins, address) - 1
        if at >= 0:
            begin = self._begins[at]
            number, whole = self._of[begin]
            if address + size_bytes <= begin + whole:
                return number, address - begin
        if address and "torch" not in sys.modules:
            raise ValueError(f"{size_bytes} bytes at address {address:#x} are not in the memory of an array")
        return 0, 0

    def without_addresses(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The values; addresses of arrays, which differ from run to run, are replaced by places that the program
        does not know."""
        if values.dtype.kind not in "iu" or values.itemsize != 8 or not self._begins:
            return values
        begins = np.array(self._begins, np.uint64)
        numbers, sizes = np.array([self._of[begin] for begin in self._begins], np.uint64).T
        bits = np.ascontiguousarray(values).view(np.uint64)
        at = np.maximum(np.searchsorted(begins, bits, "right"), 1) - 1
        offsets = bits - begins[at]
        places = (numbers[at] << np.uint64(48) | offsets) ^ np.uint64(provenance.secret)
        return np.where((bits >= begins[at]) & (offsets < sizes[at]), places, bits)


_LIVE = _Live()


@dataclass(frozen=True, eq=False)
class Array(metaclass=Final):
    """A view of device memory: its element at (i, j, …) is `offset` + Σ index · stride elements into `storage`."""

    storage: Storage
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        for name in ("shape", "strides"):
            object.__setattr__(self, name, tuple(map(_whole, getattr(self, name))))
        object.__setattr__(self, "offset", _whole(self.offset))

    def data_ptr(self) -> int:
        return self.storage.address + self.offset * self.element_size()

    def element_size(self) -> int:
        return int(np.dtype(_NUMPY[str(self.dtype)]).itemsize)

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
        flat: np.ndarray[Any, Any] = np.empty(span, _NUMPY[str(self.dtype)])
        begin = _LIVE.place(self.data_ptr(), flat.nbytes)
        if provenance.follower is not None:
            provenance.follower.launched(("download", *begin, *self.shape, *self.strides))
        _memory.copy_to_host(flat.ctypes.data, self.data_ptr(), flat.nbytes)
        steps = tuple(stride * flat.itemsize for stride in self.strides)
        strided = np.lib.stride_tricks.as_strided(flat, self.shape, steps).copy()
        values = _from_bfloat16(strided) if str(self.dtype) == "bf16" else strided
        if provenance.follower is not None:
            provenance.follower.downloaded(values)
        return values

    def copy_(self, source: Array | np.ndarray[Any, Any]) -> Array:
        """Copy an array of the same shape into this array, which must be contiguous. Returns this array."""
        if type(source) is not Array:
            source = np.asarray(source)
        if tuple(source.shape) != self.shape or not self.is_contiguous():
            found = f"{tuple(source.shape)} into {self.shape} with strides {self.strides}"
            raise ValueError(f"cannot copy {found}: expected equal shapes and a contiguous target")
        size_bytes = self.numel() * self.element_size()
        to = _LIVE.place(self.data_ptr(), size_bytes)
        if isinstance(source, Array) and source.dtype == self.dtype and source.is_contiguous():
            if provenance.follower is not None:
                provenance.follower.launched(("copy", size_bytes, *to, *_LIVE.place(source.data_ptr(), size_bytes)))
            _memory.copy_on_device(self.data_ptr(), source.data_ptr(), size_bytes)
            return self
        values = source.numpy() if isinstance(source, Array) else source
        if str(self.dtype) == "bf16":
            bits = _to_bfloat16(values)
        else:  # a copy, since the program could change its own array after it was recorded
            bits = np.array(values, _NUMPY[str(self.dtype)], order="C", subok=False)
        if provenance.follower is not None:
            provenance.follower.launched(("upload", *to))
            provenance.follower.uploaded(_LIVE.without_addresses(bits), str(self.dtype))
        if size_bytes:
            assert bits.nbytes == size_bytes
            _memory.copy_to_device(self.data_ptr(), bits.ctypes.data, size_bytes)
        return self

    def zero_(self) -> Array:
        return self.copy_(np.zeros(self.shape, _host_type(self.dtype)))

    def to(self, dtype: Any) -> Array:
        """A copy of another type."""
        return empty(self.shape, dtype).copy_(self)


def empty(shape: Sequence[int], dtype: Any = tl.float32) -> Array:
    """An array with uninitialised elements."""
    named, shape = type_named(dtype), tuple(shape)
    storage = Storage(math.prod(map(_whole, shape)) * np.dtype(_NUMPY[str(named)]).itemsize)
    return Array(storage, named, shape, _row_major(shape))


def place(address: int) -> tuple[int, int]:
    """Where an argument of a kernel points to: (number of the memory, offset in bytes). See `_Live.place`."""
    return _LIVE.place(address)


def zeros(shape: Sequence[int], dtype: Any = tl.float32) -> Array:
    return empty(shape, dtype).zero_()


def from_numpy(values: np.ndarray[Any, Any], dtype: Any = None) -> Array:
    """A copy of a numpy array in device memory, of the same type or of `dtype`."""
    return empty(values.shape, str(values.dtype) if dtype is None else dtype).copy_(values)


def to_numpy(array: Array) -> np.ndarray[Any, Any]:
    return array.numpy()


def _whole(number: Any) -> int:
    """The value of an integer, as a plain int whatever its class says."""
    return ctypes.c_int64(operator.index(number)).value


def type_named(dtype: Any) -> Any:
    """Triton's type for `dtype`, which is a type of Triton or numpy, or a name such as "float16"."""
    name = str(np.dtype(dtype)) if isinstance(dtype, type) else str(dtype)
    name = _OTHER_NAMES.get(name, name)
    if name not in _NUMPY:
        raise TypeError(f"an array cannot have the type {name}: expected one of {', '.join(_NUMPY)}")
    return tl.dtype(name)


def _host_type(dtype: Any) -> type:
    return np.float32 if str(dtype) == "bf16" else _NUMPY[str(dtype)]


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _from_bfloat16(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _to_bfloat16(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded).astype(np.uint16)
