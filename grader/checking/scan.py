"""Compares an output file with the expected one, value by value: how many values differ by too much, where, and by how
much. Expected values have the types in which the tensors are computed; the others have the types of the tensors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from grader.base.errors import GraderFault
from grader.base.workers import cores
from grader.operators import Location, Operator, Shape
from grader.operators.layout import Stretch, read_exactly
from grader.operators.tolerance import Limit, Tolerance, errors_of, limit_of

CHUNK_VALUES = 1 << 17
"""Two float32 chunks and their difference are 1.5 MiB: about what a core's cache holds."""
_MOST_THREADS = 4
"""Each thread only reads and compares, so a few of them use all the memory bandwidth."""


@dataclass(frozen=True)
class Wrong:
    """A wrong value. `got` may be NaN or infinite."""

    location: Location
    index: int
    got: float | int
    expected: float | int

    def __str__(self) -> str:
        got, expected = apart(self.got, self.expected)
        return f"{self.location}: got {got}, expected {expected}"


def apart(got: Any, expected: Any) -> tuple[str, str]:
    """Two different numbers in words, with enough digits to tell them apart."""
    if not isinstance(got, float | np.floating):
        return str(got), str(expected)
    several = ((f"{got:.{digits}g}", f"{expected:.{digits}g}") for digits in (6, 9, 17))
    return next((words for words in several if words[0] != words[1]), (str(got), str(expected)))


@dataclass
class TensorErrors:
    """The errors of one output tensor: the wrong values, counted by unit, by row and by column, the largest finite
    error, and the sum of the squared ones."""

    tensor: str
    limit: Limit
    values: int
    by_unit: NDArray[np.int64]
    by_row: NDArray[np.int64]
    by_column: NDArray[np.int64]
    zeros: int = 0
    """Number of wrong values that are exactly 0."""
    largest: float = -1.0
    """−1 if no value is finite."""
    squares: float = 0.0

    @property
    def wrong(self) -> int:
        return int(self.by_unit.sum())

    @property
    def rms(self) -> float | None:
        """The root mean square; None if the limit does not restrict it."""
        return (self.squares / self.values) ** 0.5 if self.limit.rms is not None else None

    @property
    def sloppy(self) -> bool:
        return self.rms is not None and self.limit.rms is not None and not self.rms <= self.limit.rms


@dataclass(frozen=True)
class Chunk:
    """Some whole rows of tensor number `number`, by their places in the output file and in the expected file."""

    number: int
    got: Stretch
    expected: Stretch


class Expected(Protocol):
    """The right values of an output."""

    def read(self, chunk: Chunk, got: NDArray[Any]) -> NDArray[Any]:
        """The values of a chunk, (repeats, length); `got` are the values found there. Raises GraderFault if they cannot
        be read."""


@dataclass(frozen=True)
class FileValues:
    """The values of an open file of expected output."""

    descriptor: int

    def read(self, chunk: Chunk, got: NDArray[Any]) -> NDArray[Any]:
        return self.read_run(chunk.expected, got.dtype)

    def read_run(self, run: Stretch, storage: np.dtype[Any]) -> NDArray[Any]:
        try:
            return read_run(self.descriptor, run, storage)
        except EOFError as error:
            raise GraderFault("The expected output was changed: it ended early while it was being read.") from error


def read_run(descriptor: int, run: Stretch, storage: np.dtype[Any]) -> NDArray[Any]:
    """The stored values of a run, (repeats, length). Raises EOFError if the file ends early."""
    spread = np.empty(run.stride * (run.repeats - 1) + run.value_bytes * run.length, np.uint8)
    if not read_exactly(descriptor, spread, run.first):
        raise EOFError
    return np.ndarray((run.repeats, run.length), storage, spread, strides=(run.stride, run.value_bytes))


class Scan:
    """Reads both files in chunks of whole rows and records the wrong values."""

    def __init__(self, operator: Operator, shape: Shape, tolerance: Tolerance) -> None:
        self._operator, self._shape = operator, shape
        self._got, self._expected = operator.output_layouts(shape), operator.expected_layouts(shape)
        self.errors = [
            TensorErrors(
                each.tensor.name,
                limit_of(tolerance, each.tensor.name),
                each.values,
                by_unit=np.zeros(operator.units(shape), np.int64),
                by_row=np.zeros(each.tensor.rows, np.int64),
                by_column=np.zeros(each.tensor.columns, np.int64),
            )
            for each in self._got
        ]
        self.nan = self.infinite = self.wrong = 0
        self._worst_error = -1.0
        self.first: Wrong | None = None
        self.worst: Wrong | None = None
        """The value with the largest finite error above the tolerance."""

    def compare(self, expected: Expected, got: int) -> bool:
        """Compare all values of an open file; False if `got` ended early.

        Several threads look for chunks that may hold wrong values. One thread then counts the wrong values in these
        chunks, in order. Usually they are few; if not, the output is so wrong that time matters less.
        """
        chunks = list(self._chunks())
        try:
            with ThreadPoolExecutor(min(_MOST_THREADS, cores(), len(chunks))) as pool:
                seen = list(pool.map(lambda chunk: self._look(chunk, expected, got), chunks))
            for chunk, clean in zip(chunks, seen, strict=True):
                if clean is None:
                    self._count(chunk, *self._read(chunk, expected, got))
                else:
                    kept = self.errors[chunk.number]
                    kept.largest = max(kept.largest, clean[0])
                    kept.squares += clean[1]
        except EOFError:
            return False
        return True

    def _chunks(self) -> Iterator[Chunk]:
        for number, (got, expected) in enumerate(zip(self._got, self._expected, strict=True)):
            for runs in zip(got.runs(), expected.runs(), strict=True):
                yield from (Chunk(number, *pair) for pair in _cut(*runs, got.tensor.columns))

    def _read(self, chunk: Chunk, expected: Expected, got: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """(got, expected) of a chunk. Raises EOFError if the output ends early."""
        kind = self._got[chunk.number].type
        mine = kind.decode(read_run(got, chunk.got, kind.storage))
        return mine, expected.read(chunk, mine)

    def _look(self, chunk: Chunk, expected: Expected, got: int) -> tuple[float, float] | None:
        """The largest error of a chunk and the sum of its squared errors; None if it may hold wrong values, so that
        it must be counted value by value. Runs in threads, so it must not change `self`."""
        mine, right = self._read(chunk, expected, got)
        error, limit = errors_of(mine, right), self.errors[chunk.number].limit
        top = float(error.max())  # NaN if any value is
        # float32 rounds the difference by 6e-8 of itself, so a value clearly within the tolerance is right.
        if top and not np.all((top if limit.is_number else error) <= limit.allowed(right) * (1 - 1e-6)):
            return None
        if limit.rms is None:
            return top, 0.0
        rows = error.reshape(-1, self._got[chunk.number].tensor.columns)  # each summed in float32
        return top, float(np.einsum("ij,ij->i", rows, rows).sum(dtype=np.float64))

    def _count(self, chunk: Chunk, got: NDArray[Any], expected: NDArray[Any]) -> None:
        """Count the wrong values of a chunk, comparing in float64."""
        kept, length = self.errors[chunk.number], chunk.got.length
        got, expected = got.ravel(), expected.ravel()
        with np.errstate(invalid="ignore"):  # a signalling NaN
            error = errors_of(got.astype(np.float64) if got.dtype.kind == "f" else got, expected)
        wrong = ~(error <= kept.limit.allowed(expected))
        finite = np.isfinite(got)
        self.nan += int(np.isnan(got).sum())
        self.infinite += int(np.isinf(got).sum())
        kept.squares += float(error[finite] @ error[finite])
        error[~finite] = -1.0
        kept.largest = max(kept.largest, float(error.max()))
        if not wrong.any():
            return

        def described(i: int) -> Wrong:
            repeat, inside = divmod(i, length)
            run = chunk.expected
            place = run.first + repeat * run.stride + inside * run.value_bytes
            location = self._operator.locate(self._shape, place)
            return Wrong(location, place // run.value_bytes, got[i].item(), expected[i].item())

        self.wrong += int(wrong.sum())
        if self.first is None:
            self.first = described(int(wrong.argmax()))
        at = int(np.where(wrong, error, -1.0).argmax())
        if wrong[at] and error[at] > self._worst_error:
            self._worst_error = float(error[at])
            self.worst = described(at)
        self._spread(chunk, wrong)
        kept.zeros += int((got[wrong] == 0).sum())

    def _spread(self, chunk: Chunk, wrong: NDArray[np.bool_]) -> None:
        """Count a chunk's wrong values by unit, row and column."""
        kept, layout = self.errors[chunk.number], self._got[chunk.number]
        columns = len(kept.by_column)
        grid = wrong.reshape(-1, columns)
        kept.by_column[:] += grid.sum(axis=0)
        per_row = grid.sum(axis=1)
        run = chunk.got
        begins = run.first + run.stride * np.arange(run.repeats)[:, None]
        units, rows, _ = layout.find((begins + np.arange(0, run.length, columns) * layout.type.bytes).ravel())
        np.add.at(kept.by_unit, units, per_row)
        np.add.at(kept.by_row, rows, per_row)


def _cut(got: Stretch, expected: Stretch, columns: int) -> Iterator[tuple[Stretch, Stretch]]:
    """Divide two runs of the same values into chunks of whole rows, (got, expected)."""
    step, together = got.length, 1
    if got.length >= CHUNK_VALUES or got.repeats == 1:
        step = max(1, CHUNK_VALUES // columns) * columns
    else:
        together = max(1, CHUNK_VALUES // (expected.stride // expected.value_bytes))
    for repeat, first in itertools.product(range(0, got.repeats, together), range(0, got.length, step)):
        repeats, count = min(together, got.repeats - repeat), min(step, got.length - first)
        yield _part(got, repeat, repeats, first, count), _part(expected, repeat, repeats, first, count)


def _part(run: Stretch, repeat: int, repeats: int, first: int, count: int) -> Stretch:
    begin = run.first + repeat * run.stride + first * run.value_bytes
    return replace(run, first=begin, length=count, repeats=repeats)
