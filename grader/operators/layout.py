"""The layout of tensors in a file: the place of every value.

A file holds the same few tensors for each unit. They lie unit after unit (Q0 K0 V0 Q1 K1 V1 …), tensor after tensor
(all Q, all K, …), or by their own strides. Tensors with strides can share a *block* of the file, for example Q, K and V
packed as [batch, row, 3, head, column]. The columns of a row are always adjacent.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.operators.number_types import F32_TYPE, NumberType

Dims = tuple[tuple[int, int], ...]
"""(count, stride) of each dimension, the outermost first."""


@dataclass(frozen=True)
class Strides:
    """A tensor's place in a block of the file, in values: where it begins, and the dimensions that number its units and
    the rows of a unit."""

    block: str
    first: int
    units: Dims
    rows: Dims


@dataclass(frozen=True)
class Tensor:
    """One matrix of one unit. Either all tensors of a file have `strides`, or none."""

    name: str
    rows: int
    columns: int
    type: NumberType = field(default=F32_TYPE, kw_only=True)
    strides: Strides | None = field(default=None, kw_only=True)
    is_vector: bool = field(default=False, kw_only=True)
    """Whether it has one dimension, its rows, and a column only here."""

    @property
    def size(self) -> int:
        return self.rows * self.columns


def vector(name: str, size: int, type: NumberType = F32_TYPE) -> Tensor:
    """A tensor of one dimension; an oracle gets it, and may return it, as (size, 1)."""
    return Tensor(name, size, 1, type=type, is_vector=True)


@dataclass(frozen=True)
class Stretch:
    """A part of a file that belongs to one tensor: `repeats` groups of `length` adjacent values. The groups begin
    `stride` bytes apart, the first one at byte `first`."""

    first: int
    length: int
    stride: int
    repeats: int
    value_bytes: int

    @property
    def size(self) -> int:
        """The number of values."""
        return self.length * self.repeats


@dataclass(frozen=True)
class Layout:
    """The place of one tensor in a file. `first` and all strides are in bytes."""

    tensor: Tensor
    type: NumberType
    first: int
    units: Dims
    rows: Dims

    @property
    def values(self) -> int:
        """The number of values in all units."""
        return prod(count for count, _ in self.units) * self.tensor.size

    def offset(self, unit: Any, row: Any = 0) -> Any:
        """The byte at which a row of a unit begins; for arrays of units and rows, an array."""
        return self.first + _distance(self.units, unit) + _distance(self.rows, row)

    def runs(self) -> Iterator[Stretch]:
        """All values of all units, in as few runs as possible."""
        sizes, length = list(self._by_stride), self.tensor.columns
        while sizes and sizes[-1][1] == length * self.type.bytes:
            length *= sizes.pop()[0]
        repeats, stride = sizes.pop() if sizes else (1, length * self.type.bytes)
        while sizes and sizes[-1][1] == repeats * stride:
            repeats *= sizes.pop()[0]
        for place in itertools.product(*(range(0, count * step, step) for count, step in sizes)):
            yield Stretch(self.first + sum(place), length, stride, repeats, self.type.bytes)

    def find(self, offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(unit, row, column) of the values that begin at these bytes; unit −1 for bytes of other tensors."""
        rest, zeros = offsets - self.first, np.zeros_like(offsets)
        inside = rest >= 0
        numbers: dict[tuple[int, int], NDArray[np.int64]] = {}
        for dimension in self._by_stride:
            count, stride = dimension
            numbers[dimension], rest = np.divmod(rest, stride)
            inside &= numbers[dimension] < count
        column = rest // self.type.bytes
        inside &= column < self.tensor.columns
        unit, row = (
            np.ravel_multi_index([numbers.get(each, zeros) for each in dims], [count for count, _ in dims], mode="clip")
            for dims in (self.units, self.rows)
        )
        return np.where(inside, unit, -1), row, column

    @cached_property
    def _by_stride(self) -> Dims:
        return tuple(sorted((d for d in (*self.units, *self.rows) if d[0] > 1), key=lambda d: -d[1]))

    def stored(self, file: NDArray[np.uint8], unit: int) -> NDArray[Any]:
        """One unit's stored values as a view of the bytes of the whole file: (dimensions of the rows …, columns)."""
        counts, strides = zip(*self.rows, (self.tensor.columns, self.type.bytes), strict=True)
        return np.ndarray(counts, self.type.storage, file, self.offset(unit), strides)

    def values_of(self, file: NDArray[np.uint8], unit: int) -> NDArray[Any]:
        """One unit's values, (rows, columns), from the bytes of the whole file."""
        return self.type.decode(self.stored(file, unit)).reshape(self.tensor.rows, self.tensor.columns)

    # ---- reading and writing ------------------------------------------------------------------------------------

    def read(self, descriptor: int, unit: int) -> NDArray[Any] | None:
        """One unit's values, (rows, columns); None if the file ends early."""
        stored = np.empty((self.tensor.rows, self.tensor.columns), self.type.storage)
        for first, count in self._adjacent(0, self.tensor.rows):
            if not read_exactly(descriptor, stored[first : first + count], self.offset(unit, first)):
                return None
        return self.type.decode(stored)

    def write(self, descriptor: int, unit: int, values: NDArray[Any], first_row: int = 0) -> None:
        """Write consecutive rows of one unit, from row `first_row` on."""
        stored = np.ascontiguousarray(self.type.encode(values)).reshape(-1, self.tensor.columns)
        for first, count in self._adjacent(first_row, len(stored)):
            data = stored[first - first_row : first - first_row + count]
            write_exactly(descriptor, data.view(np.uint8).data.cast("B"), self.offset(unit, first))

    def _adjacent(self, first: int, count: int) -> Iterator[tuple[int, int]]:
        """Divide `count` rows from `first` on into groups adjacent in the file: (first row, number of rows)."""
        together = 1
        for size, stride in reversed(self.rows):
            if size > 1 and stride != together * self.tensor.columns * self.type.bytes:
                break
            together *= size
        end = first + count
        while first < end:
            stop = min(end, first - first % together + together)
            yield first, stop - first
            first = stop


def lay_out(
    tensors: Sequence[Tensor], units: int, *, planar: bool, start: int = 0, computed: bool = False
) -> tuple[Layout, ...]:
    """The layouts of the tensors of a file whose header takes `start` bytes, with values of each tensor's own type or,
    if `computed`, of that in which it is computed. Tensors without strides lie tensor after tensor if `planar`, else
    unit after unit."""
    types = [F32_TYPE if computed and tensor.type.is_small_float else tensor.type for tensor in tensors]
    unit_bytes = sum(tensor.size * each.bytes for tensor, each in zip(tensors, types, strict=True))
    layouts, end, begins = [], start, dict[str, int]()
    for tensor, each in zip(tensors, types, strict=True):
        size, place = each.bytes, tensor.strides
        if place is not None:
            first = begins.setdefault(place.block, end) + size * place.first
            units_, rows = (
                tuple((count, size * stride) for count, stride in dims) for dims in (place.units, place.rows)
            )
        else:
            first, rows = end, ((tensor.rows, tensor.columns * size),)
            units_ = ((units, tensor.size * size if planar else unit_bytes),)
        layouts.append(Layout(tensor, each, first, units_, rows))
        end += tensor.size * size * (units if planar or place is not None else 1)
    return tuple(layouts)


def _distance(dims: Dims, number: Any) -> Any:
    """The distance of item `number` (an int or an array of ints) from item 0."""
    distance = 0
    for count, stride in reversed(dims):
        number, index = divmod(number, count)
        distance = distance + index * stride
    return distance


# ---- files ------------------------------------------------------------------------------------------------------


def read_exactly(descriptor: int, into: NDArray[Any], offset: int) -> bool:
    """Fill `into` with the file's bytes from `offset` on. Return False if the file ends first."""
    view = into.view(np.uint8).data.cast("B")  # memoryviews lack the types of ml-dtypes
    while view:
        count = os.preadv(descriptor, [view], offset)
        if count == 0:
            return False
        view, offset = view[count:], offset + count
    return True


def write_exactly(descriptor: int, data: memoryview, offset: int) -> None:
    """Write all of `data` at byte `offset`."""
    while data:
        written = os.pwrite(descriptor, data, offset)
        data, offset = data[written:], offset + written
