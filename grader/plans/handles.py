"""Tensors as host code has them: shape, type, strides and address, without values.

A tensor is an array of numpy at the made-up address of its memory: numpy knows all views, and never reads an element.
`tensor_names.py` has PyTorch's other names; what would need values raises NoValues while a plan is recorded. Under
`grader run`, `numpy()` and `repr()` give values.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.plans.dtypes import DTYPES, DType, dtype_of, encoded, float32
from grader.plans.element_copies import copy_elements
from grader.plans.recorder import NoValues, current
from grader.plans.tensor_names import Names

Lengths = tuple[int, ...]


class Memory:
    """Device memory that is freed when no tensor uses it any more. For numpy it is an array of bytes."""

    def __init__(self, size_bytes: int) -> None:
        self.address = current().allocate(size_bytes)
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (size_bytes,), "data": (self.address, False)
        }  # fmt: skip

    def __del__(self) -> None:
        if hasattr(self, "address"):
            current().free(self.address)


class Tensor(Names):
    """A view of device memory. `_elements` must never be read: only its shape, its strides and its address are real."""

    def __init__(self, elements: NDArray[Any]) -> None:
        self._elements = elements
        self.dtype = DTYPES[elements.dtype.name]
        self.shape: Lengths = elements.shape

    # ---- facts ------------------------------------------------------------------------------------------------------

    def data_ptr(self) -> int:
        return int(self._elements.__array_interface__["data"][0])

    def element_size(self) -> int:
        return self.dtype.itemsize

    itemsize = property(element_size)

    def numel(self) -> int:
        return math.prod(self.shape)

    nelement = numel

    def dim(self) -> int:
        return len(self.shape)

    ndim = property(dim)

    def size(self, dimension: int | None = None) -> Any:
        return self.shape if dimension is None else self.shape[dimension]

    def stride(self, dimension: int | None = None) -> Any:
        strides = tuple(stride // self.itemsize for stride in self._elements.strides)
        return strides if dimension is None else strides[dimension]

    @property
    def memory(self) -> Any:
        owner: Any = self._elements
        while isinstance(owner, np.ndarray):
            owner = owner.base
        return owner

    def storage_offset(self) -> int:
        return (self.data_ptr() - int(self.memory.address)) // self.dtype.itemsize

    def is_contiguous(self) -> bool:
        return bool(self._elements.flags.c_contiguous)

    def __len__(self) -> int:
        return self.shape[0]

    # ---- views ------------------------------------------------------------------------------------------------------

    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
        """Raises ValueError for a view that does not lie within the tensor's memory."""
        return strided(
            self.memory, self.dtype, size, stride, self.storage_offset() if storage_offset is None else storage_offset
        )

    def reshape(self, *shape: Any) -> Tensor:
        """In another shape of the same size, a view if that is possible, else a copy; one length may be -1."""
        try:
            return Tensor(self._elements.reshape(_lengths(shape), copy=False))
        except ValueError:
            return Tensor(self.contiguous()._elements.reshape(_lengths(shape), copy=False))

    def view(self, *shape: Any) -> Tensor:
        """With lengths, a view of that shape. With a type, the same bits as elements of that type. Raises ValueError if
        there is no such view."""
        if len(shape) == 1 and (isinstance(shape[0], str) or not isinstance(shape[0], int | Sequence)):
            return Tensor(self._elements.view(dtype_of(shape[0]).storage))
        try:
            return Tensor(self._elements.reshape(_lengths(shape), copy=False))
        except ValueError:
            if self.is_contiguous():
                raise
            raise ValueError(
                f"a tensor of shape {self.shape} and strides {self.stride()} has no view of shape {_lengths(shape)}: "
                "use reshape, which copies, or pass the strides to the kernel"
            ) from None

    def permute(self, *order: Any) -> Tensor:
        return Tensor(self._elements.transpose(_lengths(order)))

    def transpose(self, first: int, second: int) -> Tensor:
        return Tensor(self._elements.swapaxes(first, second))

    swapaxes = transpose

    def expand(self, *lengths: Any) -> Tensor:
        wanted = _lengths(lengths)
        shape = (1,) * (len(wanted) - self.dim()) + self.shape
        whole = [length if to == -1 else to for length, to in zip(shape, wanted, strict=True)]
        return Tensor(np.broadcast_to(self._elements, whole))

    def unsqueeze(self, dimension: int) -> Tensor:
        return Tensor(np.expand_dims(self._elements, dimension))

    def squeeze(self, dimension: int | None = None) -> Tensor:
        is_kept = dimension is not None and self.shape[dimension] != 1
        return self if is_kept else Tensor(self._elements.squeeze(dimension))

    def __getitem__(self, index: Any) -> Tensor:
        """A view, by integers, slices with positive steps, None and `...`."""
        parts = list(index) if isinstance(index, tuple) else [index]
        for place, part in enumerate(parts):
            if isinstance(part, slice):
                if part.step is not None and part.step < 1:
                    raise ValueError("a slice of a tensor needs a positive step")
            elif part is not None and part is not Ellipsis:
                parts[place] = int(operator.index(part))  # numpy takes True for a mask
        if Ellipsis not in parts:
            parts.append(Ellipsis)  # without it, numpy reads an element that all indices name
        return Tensor(self._elements[tuple(parts)])

    def __iter__(self) -> Iterator[Tensor]:
        return (self[number] for number in range(len(self)))

    # ---- writing --------------------------------------------------------------------------------------------------

    def fill_(self, value: float) -> Tensor:
        """Set all elements to a number."""
        if self.numel() and self.is_contiguous():
            current().fill(self.data_ptr(), encoded(value, self.dtype), self.numel())
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
                current().copy(self.data_ptr(), source.data_ptr(), self.numel() * self.itemsize)
            return self
        to = self
        if is_plain:  # bits, whatever they mean: not every GPU can load every type
            to, source = (each.view(f"uint{8 * self.itemsize}") for each in (self, source))
        if self.numel():
            copy_elements(to, source, zip(self.shape, self.stride(), source.stride(), strict=True), factor)
        return self

    def new_empty(self, *size: Any, dtype: Any = None) -> Tensor:
        return empty(_lengths(size), self.dtype if dtype is None else dtype)

    def new_like(self, dtype: Any = None) -> Tensor:
        """An unset tensor of the same shape, whose dimensions lie in memory in the same order, without gaps."""
        order = sorted(range(self.dim()), key=lambda each: -self._elements.strides[each])
        made = self.new_empty([self.shape[each] for each in order], dtype=dtype)
        return made.permute([order.index(each) for each in range(self.dim())])

    # ---- values, under `grader run` -------------------------------------------------------------------------------

    def numpy(self) -> NDArray[Any]:
        """A copy in host memory. Raises NoValues while a plan is recorded."""
        last = sum((length - 1) * stride for length, stride in zip(self.shape, self._elements.strides, strict=True))
        bits = current().download(self.data_ptr(), last + self.itemsize if self.numel() else 0)
        values = np.ndarray(self.shape, self.dtype.storage, bits, strides=self._elements.strides).copy()
        return values if values.dtype.isbuiltin == 1 else values.astype(np.float32)

    to_numpy = numpy

    def __repr__(self) -> str:
        try:
            return f"tensor({self.numpy()}, dtype={self.dtype})"
        except NoValues:
            return f"tensor(shape={self.shape}, strides={self.stride()}, dtype={self.dtype})"


def strided(memory: Memory, dtype: DType, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Tensor:
    """A tensor in this memory; `strides` and `offset` count elements. Raises ValueError if it lies outside."""
    steps = [step * dtype.itemsize for step in strides]
    return Tensor(np.ndarray(shape, dtype.storage, np.asarray(memory), offset * dtype.itemsize, steps))


def empty(shape: Sequence[int], dtype: Any = float32) -> Tensor:
    """A tensor whose elements are not set."""
    storage, lengths = dtype_of(dtype).storage, tuple(map(operator.index, shape))
    return Tensor(np.asarray(Memory(math.prod(lengths) * storage.itemsize)).view(storage).reshape(lengths, copy=False))


def constant(values: NDArray[Any], dtype: Any = None) -> Tensor:
    """A tensor with numbers that the host knows, of their own type or of `dtype`."""
    of = dtype_of(values.dtype if dtype is None else dtype)
    made = empty(values.shape, of)
    if made.numel():
        current().upload(made.data_ptr(), encoded(values, of))
    return made


def _lengths(given: Sequence[Any]) -> Lengths:
    whole = given[0] if len(given) == 1 and isinstance(given[0], Sequence) else given
    return tuple(map(operator.index, whole))
