"""Compares two float32 files of an operator's output value by value: how many differ by too much, where, how much."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from grader.base.errors import GraderFault
from grader.base.workers import cores
from grader.operators import Location, Operator, Shape
from grader.operators.base import BYTES_PER_VALUE, tolerance_of

CHUNK_VALUES = 1 << 17
"""Two float32 chunks and their difference are 1.5 MiB: about what a core's cache holds."""
_SPAN_CHUNKS = 16
_MOST_THREADS = 4
"""Each thread only reads and compares, so a few of them use all the memory bandwidth."""


@dataclass(frozen=True)
class Wrong:
    """One wrong value. `got` may be NaN or infinite."""

    location: Location
    index: int
    got: float
    expected: float

    def __str__(self) -> str:
        return f"{self.location}: got {self.got:.6g}, expected {self.expected:.6g}"


@dataclass(frozen=True)
class TensorErrors:
    """Where the wrong values of one output tensor are: counts by unit, by row and by column."""

    tensor: str
    tolerance: float
    by_unit: NDArray[np.int64]
    by_row: NDArray[np.int64]
    by_column: NDArray[np.int64]
    nan_by_unit: NDArray[np.int64]
    zeros: int
    """Number of wrong values that are exactly 0."""

    @property
    def wrong(self) -> int:
        return int(self.by_unit.sum())


@dataclass(frozen=True)
class _Chunk:
    """`count` values of a tensor, in whole rows, beginning at value `first` of the file."""

    tensor: str
    first: int
    count: int


@dataclass(frozen=True)
class _Span:
    """The result of the first pass over some chunks: how many values are clearly right, their largest error, and the
    chunks that may hold wrong values. Not `complete` if the output ended early."""

    complete: bool
    clean: int = 0
    largest: float = -1.0
    doubtful: Sequence[_Chunk] = ()


class Expected(Protocol):
    """The right values of an output."""

    def fill(self, into: NDArray[np.float32], first: int, got: NDArray[np.float32]) -> None:
        """Fill `into` with the values from number `first` on; `got` are the values found there. Raises GraderFault if
        they cannot be read."""


@dataclass(frozen=True)
class FileValues:
    """The values of an open file."""

    descriptor: int

    def fill(self, into: NDArray[np.float32], first: int, got: NDArray[np.float32]) -> None:
        if not read_values(self.descriptor, into, BYTES_PER_VALUE * first):
            raise GraderFault("The expected output was changed: it ended early while it was being read.")


class Scan:
    """Reads both files in chunks of whole rows and records the wrong values."""

    def __init__(self, operator: Operator, shape: Shape, tolerance: float | Mapping[str, float]) -> None:
        self._operator, self._shape = operator, shape
        units = operator.units(shape)
        self._errors = {
            t.name: TensorErrors(
                t.name,
                tolerance_of(tolerance, t.name),
                np.zeros(units, np.int64),
                np.zeros(t.rows, np.int64),
                np.zeros(t.columns, np.int64),
                np.zeros(units, np.int64),
                0,
            )
            for t in operator.outputs(shape)
        }
        self._zeros = dict.fromkeys(self._errors, 0)
        self.nan = self.infinite = self.wrong = self.finite = 0
        self._max_finite = self._worst_error = -1.0
        self.first: Wrong | None = None
        self.worst: Wrong | None = None
        """The value with the largest finite error above the tolerance."""

    @property
    def max_finite_error(self) -> float | None:
        """The largest |got − expected| of the finite values; None if there are none."""
        return self._max_finite if self.finite else None

    @property
    def errors(self) -> tuple[TensorErrors, ...]:
        """Where the wrong values are, for each output tensor."""
        return tuple(replace(kept, zeros=self._zeros[kept.tensor]) for kept in self._errors.values())

    def compare(self, expected: Expected, got: int) -> bool:
        """Compare all values of an open file; False if `got` ended early.

        Several threads look for chunks that may hold wrong values. One thread then counts in these chunks, in order;
        either they are few, or the output is so wrong that time matters less.
        """
        chunks = list(self._chunks())
        spans = [chunks[first : first + _SPAN_CHUNKS] for first in range(0, len(chunks), _SPAN_CHUNKS)]
        with ThreadPoolExecutor(min(_MOST_THREADS, cores(), len(spans))) as pool:
            found = list(pool.map(lambda span: self._look(span, expected, got), spans))
        if not all(span.complete for span in found):
            return False
        self.finite = sum(span.clean for span in found)
        self._max_finite = max((span.largest for span in found), default=-1.0)
        buffers = self._buffers()
        for chunk in (chunk for span in found for chunk in span.doubtful):
            e, g, _ = (b[: chunk.count] for b in buffers)
            if not _read_both(expected, got, e, g, chunk.first):
                return False
            self._count(chunk, e, g)
        return True

    def _chunks(self) -> Iterator[_Chunk]:
        columns = {t.name: t.columns for t in self._operator.outputs(self._shape)}
        for run in self._operator.output_runs(self._shape):
            step = max(1, CHUNK_VALUES // columns[run.tensor]) * columns[run.tensor]
            end = run.first + run.size
            for first in range(run.first, end, step):
                yield _Chunk(run.tensor, first, min(step, end - first))

    def _buffers(self) -> list[NDArray[np.float32]]:
        widest = max(CHUNK_VALUES, *(t.columns for t in self._operator.outputs(self._shape)))
        return [np.empty(widest, dtype="<f4") for _ in range(3)]

    def _look(self, chunks: Sequence[_Chunk], expected: Expected, got: int) -> _Span:
        """Find those of `chunks` that need to be counted value by value. Runs in threads, so it must not change
        `self`."""
        clean, largest, doubtful = 0, -1.0, []
        buffers = self._buffers()
        for chunk in chunks:
            e, g, work = (b[: chunk.count] for b in buffers)
            if not _read_both(expected, got, e, g, chunk.first):
                return _Span(complete=False)
            with np.errstate(invalid="ignore", over="ignore"):
                np.subtract(g, e, out=work)
                np.abs(work, out=work)
                top = float(work.max())  # NaN if any value is
            # float32 rounds the difference by 6e-8 of itself, so a value clearly within the tolerance is right.
            if top <= self._errors[chunk.tensor].tolerance * (1 - 1e-6):
                clean, largest = clean + chunk.count, max(largest, top)
            else:
                doubtful.append(chunk)
        return _Span(True, clean, largest, doubtful)

    def _count(self, chunk: _Chunk, expected: NDArray[np.float32], got: NDArray[np.float32]) -> None:
        """Count the wrong values of a chunk, comparing in float64."""
        limit = self._errors[chunk.tensor].tolerance
        with np.errstate(invalid="ignore"):
            error = np.abs(got.astype(np.float64) - expected)
        wrong = ~(error <= limit)
        finite = np.isfinite(got)
        self.finite += int(finite.sum())
        nan = np.isnan(got)
        self.nan += int(nan.sum())
        self.infinite += len(got) - int(finite.sum()) - int(nan.sum())
        error[~finite] = -1.0
        at = int(error.argmax())
        self._max_finite = max(self._max_finite, float(error[at]))
        if not wrong.any():
            return

        def described(i: int) -> Wrong:
            index = chunk.first + i
            return Wrong(self._operator.locate(self._shape, index), index, float(got[i]), float(expected[i]))

        self.wrong += int(wrong.sum())
        if self.first is None:
            self.first = described(int(wrong.argmax()))
        if error[at] > max(limit, self._worst_error):
            self._worst_error = float(error[at])
            self.worst = described(at)
        self._spread(chunk, wrong, nan)
        self._zeros[chunk.tensor] += int((got[wrong] == 0).sum())

    def _spread(self, chunk: _Chunk, wrong: NDArray[np.bool_], nan: NDArray[np.bool_]) -> None:
        """Count a chunk's wrong values by unit, row and column."""
        kept = self._errors[chunk.tensor]
        columns = len(kept.by_column)
        grid = wrong.reshape(-1, columns)
        kept.by_column[:] += grid.sum(axis=0)
        per_row = grid.sum(axis=1)
        _, unit, row, _ = self._operator.position(self._shape, chunk.first)
        units, rows = np.divmod(unit * len(kept.by_row) + row + np.arange(len(per_row)), len(kept.by_row))
        np.add.at(kept.by_unit, units, per_row)
        np.add.at(kept.by_row, rows, per_row)
        if nan.any():
            np.add.at(kept.nan_by_unit, units, nan.reshape(-1, columns).sum(axis=1))


def _read_both(
    expected: Expected, got: int, into_expected: NDArray[np.float32], into_got: NDArray[np.float32], first: int
) -> bool:
    """Fill both arrays from value `first` on; False if `got` ends early."""
    if not read_values(got, into_got, BYTES_PER_VALUE * first):
        return False
    expected.fill(into_expected, first, into_got)
    return True


def read_values(descriptor: int, into: NDArray[np.float32], offset: int) -> bool:
    """Fill `into` from byte `offset` on; False if the file ends early."""
    view = into.data.cast("B")
    while view:
        count = os.preadv(descriptor, [view], offset)
        if count == 0:
            return False
        view, offset = view[count:], offset + count
    return True
