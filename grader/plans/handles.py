"""Tensors as host code has them: shape, type, strides and address, without values.

Views share memory. `tensor_names.py` has PyTorch's other names; what would need values raises NoValues while a plan is
recorded. Under `grader run`, `numpy()` and `repr()` give values.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.plans.dtypes import DType, decoded, dtype_of, encoded, float32, uint8, uint16, uint32, uint64
from grader.plans.element_copies import copy_elements
from grader.plans.recorder import NoValues, current
from grader.plans.tensor_names import Names

Lengths = tuple[int, ...]
_BITS = {1: uint8, 2: uint16, 4: uint32, 8: uint64}


class Memory:
    """Device memory that is freed when no tensor uses it any more."""

    def __init__(self, size_bytes: int, address: int | None = None) -> None:
        self.size_bytes = size_bytes
        self._is_own = address is None
        self.address = current().allocate(size_bytes) if address is None else address

    def __del__(self) -> None:
        if getattr(self, "_is_own", False) and getattr(self, "address", 0):
            current().free(self.address)


class Tensor(Names):
    """A view of device memory: its element at (i, j, …) is `offset` + Σ index · stride elements into `memory`."""

    def __init__(self, memory: Memory, dtype: DType, shape: Lengths, strides: Lengths, offset: int = 0) -> None:
        self.memory, self.dtype, self.shape, self._strides, self.offset = memory, dtype, shape, strides, offset

    # ---- facts ------------------------------------------------------------------------------------------------------

    def data_ptr(self) -> int:
        return self.memory.address + self.offset * self.dtype.itemsize

    def element_size(self) -> int:
        return self.dtype.itemsize

    itemsize = property(element_size)

    def numel(self) -> int:
        return math.prod(self.shape)

    def dim(self) -> int:
        return len(self.shape)

    ndim = property(dim)

    def size(self, dimension: int | None = None) -> Any:
        return self.shape if dimension is None else self.shape[dimension]

    def stride(self, dimension: int | None = None) -> Any:
        return self._strides if dimension is None else self._strides[dimension]

    def storage_offset(self) -> int:
        return self.offset

    def is_contiguous(self) -> bool:
        dimensions = zip(self.shape, self._strides, row_major(self.shape), strict=True)
        return not self.numel() or all(length == 1 or stride == dense for length, stride, dense in dimensions)

    def __len__(self) -> int:
        return self.shape[0]

    # ---- views ------------------------------------------------------------------------------------------------------

    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
        shape: Lengths = tuple(map(operator.index, size))
        strides: Lengths = tuple(map(operator.index, stride))
        offset = self.offset if storage_offset is None else storage_offset
        span = offset + 1 + sum((length - 1) * step for length, step in zip(shape, strides, strict=True))
        if min((offset, *strides), default=0) < 0 or (
            0 not in shape and span * self.dtype.itemsize > self.memory.size_bytes
        ):
            raise ValueError(f"no view of shape {shape} and strides {strides} lies within the tensor's memory")
        return self._view(shape, strides, offset)

    def reshape(self, *shape: Any) -> Tensor:
        """In another shape of the same size, a view if that is possible, else a copy; one length may be -1."""
        made = self._in_shape(_lengths(shape))
        return self.contiguous().reshape(*shape) if made is None else made

    def view(self, *shape: Any) -> Tensor:
        """With lengths, a view of that shape. With a type, the same bits as elements of that type. Raises ValueError if
        there is no such view."""
        if len(shape) != 1 or (isinstance(shape[0], int | Sequence) and not isinstance(shape[0], str)):
            made = self._in_shape(_lengths(shape))
            if made is None:
                raise ValueError(
                    f"a tensor of shape {self.shape} and strides {self._strides} has no view of shape "
                    f"{_lengths(shape)}: use reshape, which copies, or pass the strides to the kernel"
                )
            return made
        dtype = dtype_of(shape[0])
        ratio, rest = divmod(self.dtype.itemsize, dtype.itemsize)
        if ratio == 1 and not rest:
            return Tensor(self.memory, dtype, self.shape, self._strides, self.offset)
        if rest or self._strides[-1:] != (1,):
            raise ValueError(f"a tensor of type {self.dtype} and strides {self._strides} has no view as {dtype}")
        strides = (*(step * ratio for step in self._strides[:-1]), 1)
        return Tensor(self.memory, dtype, (*self.shape[:-1], self.shape[-1] * ratio), strides, self.offset * ratio)

    def _in_shape(self, wanted: Lengths) -> Tensor | None:
        known = math.prod([length for length in wanted if length != -1])
        whole: Lengths = tuple(self.numel() // max(known, 1) if length == -1 else length for length in wanted)
        if math.prod(whole) != self.numel():
            raise ValueError(f"a tensor of shape {self.shape} cannot become {wanted}: the sizes differ")
        strides = _strides_in(self.shape, self._strides, whole)
        return None if strides is None else self._view(whole, strides, self.offset)

    def permute(self, *order: Any) -> Tensor:
        dimensions = [each % self.dim() for each in _lengths(order)]
        if sorted(dimensions) != list(range(self.dim())):
            raise ValueError(f"{tuple(order)} is no order of the {self.dim()} dimensions")
        shape, strides = (tuple(of[each] for each in dimensions) for of in (self.shape, self._strides))
        return self._view(shape, strides, self.offset)

    def transpose(self, first: int, second: int) -> Tensor:
        order = list(range(self.dim()))
        order[first], order[second] = order[second], order[first]
        return self.permute(*order)

    def expand(self, *lengths: Any) -> Tensor:
        wanted = _lengths(lengths)
        added = len(wanted) - self.dim()
        shape, strides = (1,) * added + self.shape, (0,) * added + self._strides
        whole: Lengths = tuple(length if to == -1 else to for length, to in zip(shape, wanted, strict=True))
        if any(length not in (1, to) for length, to in zip(shape, whole, strict=True)):
            raise ValueError(f"a tensor of shape {self.shape} cannot be expanded to {wanted}")
        steps = tuple(step if length == to else 0 for length, to, step in zip(shape, whole, strides, strict=True))
        return self._view(whole, steps, self.offset)

    def unsqueeze(self, dimension: int) -> Tensor:
        at = dimension % (self.dim() + 1)
        shape, strides = list(self.shape), list(self._strides)
        strides.insert(at, shape[at] * strides[at] if at < len(shape) else 1)
        shape.insert(at, 1)
        return self._view(tuple(shape), tuple(strides), self.offset)

    def squeeze(self, dimension: int | None = None) -> Tensor:
        chosen = range(self.dim()) if dimension is None else (dimension % self.dim(),)
        kept = [each for each in range(self.dim()) if each not in chosen or self.shape[each] != 1]
        shape, strides = (tuple(of[each] for each in kept) for of in (self.shape, self._strides))
        return self._view(shape, strides, self.offset)

    def __getitem__(self, index: Any) -> Tensor:
        """A view, by integers, slices with positive steps, None and `...`."""
        parts = list(index) if isinstance(index, tuple) else [index]
        if Ellipsis in parts:
            at = parts.index(Ellipsis)
            given = sum(part is not None and part is not Ellipsis for part in parts)
            parts[at : at + 1] = [slice(None)] * (self.dim() - given)
        shape, strides, offset, dimension = list[int](), list[int](), self.offset, 0
        for part in parts:
            if part is None:
                shape.append(1)
                strides.append(0)
                continue
            if dimension >= self.dim():
                raise IndexError(f"too many indices for a tensor with {self.dim()} dimensions")
            length, step = self.shape[dimension], self._strides[dimension]
            if isinstance(part, slice):
                first, end, by = part.indices(length)
                if by < 1:
                    raise ValueError("a slice of a tensor needs a positive step")
                shape.append(max(0, -(-(end - first) // by)))
                strides.append(step * by)
            else:
                first = operator.index(part)
                if not -length <= first < length:
                    raise IndexError(f"index {first} is out of range for a dimension of length {length}")
                first %= length
            offset += min(first, length) * step
            dimension += 1
        return self._view(
            (*shape, *self.shape[dimension:]),
            (*strides, *self._strides[dimension:]),
            offset if all(shape) else self.offset,
        )

    def __iter__(self) -> Iterator[Tensor]:
        return (self[number] for number in range(len(self)))

    def _view(self, shape: Lengths, strides: Lengths, offset: int) -> Tensor:
        return Tensor(self.memory, self.dtype, shape, strides, offset)

    # ---- writing --------------------------------------------------------------------------------------------------

    def fill_(self, value: float) -> Tensor:
        """Set all elements to a number."""
        if self.numel() and self.is_contiguous():
            current().fill(self.data_ptr(), encoded(np.array([value]), self.dtype), self.numel())
        elif self.numel():
            self.copy_(empty((1,), self.dtype).fill_(value).expand(self.shape))
        return self

    def zero_(self) -> Tensor:
        return self.fill_(0)

    def copy_(self, source: Tensor, factor: float | None = None) -> Tensor:
        """Copy a tensor, converted to this type and repeated where it lacks dimensions; times `factor`."""
        if source.shape != self.shape:
            source = source.expand(self.shape)
        is_plain = source.dtype == self.dtype and factor is None
        if is_plain and self.is_contiguous() and source.is_contiguous():
            if self.numel():
                current().copy(self.data_ptr(), source.data_ptr(), self.numel() * self.dtype.itemsize)
            return self
        to = self
        if is_plain:  # bits, whatever they mean: not every GPU can load every type
            to, source = (each.view(_BITS[self.dtype.itemsize]) for each in (self, source))
        if self.numel():
            copy_elements(to, source, zip(self.shape, self._strides, source.stride(), strict=True), factor)
        return self

    def new_empty(self, *size: Any, dtype: Any = None) -> Tensor:
        return empty(_lengths(size), self.dtype if dtype is None else dtype)

    def new_like(self, dtype: Any = None) -> Tensor:
        """An unset tensor of the same shape, whose dimensions lie in memory in the same order, without gaps."""
        order = sorted(range(self.dim()), key=lambda each: -self._strides[each])
        made = self.new_empty([self.shape[each] for each in order], dtype=dtype)
        return made.permute([order.index(each) for each in range(self.dim())])

    # ---- values, under `grader run` -------------------------------------------------------------------------------

    def numpy(self) -> NDArray[Any]:
        """A copy in host memory. Raises NoValues while a plan is recorded."""
        span = 1 + sum((length - 1) * stride for length, stride in zip(self.shape, self._strides, strict=True))
        if not self.numel():
            return np.empty(self.shape, np.float32)
        flat = np.frombuffer(current().download(self.data_ptr(), span * self.dtype.itemsize), self.dtype.storage)
        steps = tuple(stride * flat.itemsize for stride in self._strides)
        return decoded(np.array(np.lib.stride_tricks.as_strided(flat, self.shape, steps)), self.dtype)

    to_numpy = numpy

    def __repr__(self) -> str:
        try:
            return f"tensor({self.numpy()}, dtype={self.dtype})"
        except NoValues:
            return f"tensor(shape={self.shape}, strides={self._strides}, dtype={self.dtype})"


def empty(shape: Sequence[int], dtype: Any = float32) -> Tensor:
    """A tensor whose elements are not set."""
    of, lengths = dtype_of(dtype), tuple(map(operator.index, shape))
    return Tensor(Memory(math.prod(lengths) * of.itemsize), of, lengths, row_major(lengths))


def constant(values: NDArray[Any], dtype: Any = None) -> Tensor:
    """A tensor with numbers that the host knows, of their own type or of `dtype`."""
    of = dtype_of(values.dtype if dtype is None else dtype)
    made = empty(values.shape, of)
    if made.numel():
        current().upload(made.data_ptr(), encoded(values, of))
    return made


def row_major(shape: Sequence[int]) -> Lengths:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _lengths(given: Sequence[Any]) -> Lengths:
    whole = given[0] if len(given) == 1 and isinstance(given[0], Sequence) else given
    return tuple(map(operator.index, whole))


def _strides_in(shape: Lengths, strides: Lengths, wanted: Lengths) -> Lengths | None:
    """The strides of a view of another shape; None if there is no such view."""
    if not math.prod(shape):
        return row_major(wanted)
    chunks: list[list[int]] = []  # [elements, innermost stride] of dimensions that lie one in the other
    for length, stride in zip(shape, strides, strict=True):
        if length == 1:
            continue
        if chunks and chunks[-1][1] == length * stride:
            chunks[-1] = [chunks[-1][0] * length, stride]
        else:
            chunks.append([length, stride])
    made: list[int] = []
    left, step = 1, 1
    for length in reversed(wanted):
        if length == 1:
            made.append(step)
            continue
        if left == 1:
            left, step = chunks.pop()
        if left % length:
            return None
        made.append(step)
        left, step = left // length, step * length
    return tuple(reversed(made))
