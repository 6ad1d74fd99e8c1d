"""Compares an output file with the expected one, value by value: how many values differ by too much, where, and by how
much. Expected values have the types in which the tensors are computed; the others have the types of the tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
_SPAN_CHUNKS = 16
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
    for digits in (6, 9):
        if (words := (f"{got:.{digits}g}", f"{expected:.{digits}g}"))[0] != words[1]:
            return words
    return f"{got:.17g}", f"{expected:.17g}"


@dataclass(frozen=True)
class TensorErrors:
    """The wrong values of one output tensor, counted by unit, by row and by column."""

    tensor: str
    limit: Limit
    by_unit: NDArray[np.int64]
    by_row: NDArray[np.int64]
    by_column: NDArray[np.int64]
    zeros: int
    """Number of wrong values that are exactly 0."""

    @property
    def wrong(self) -> int:
        return int(self.by_unit.sum())


@dataclass(frozen=True)
class TensorPrecision:
    """The errors of one output tensor whose values are all finite: the largest and their root mean square."""

    tensor: str
    limit: Limit
    largest: float
    rms: float | None
    """None if the limit does not restrict it."""

    @property
    def sloppy(self) -> bool:
        return self.rms is not None and self.limit.rms is not None and not self.rms <= self.limit.rms


@dataclass(frozen=True)
class Chunk:
    """Some whole rows of tensor number `number`, by their places in the output file and in the expected file."""

    number: int
    got: Stretch
    expected: Stretch


@dataclass(frozen=True)
class _Span:
    """The result of the first pass over some chunks: how many values are clearly right, for each tensor their largest
    error and the sum of squared errors, and the chunks that may hold wrong values. `complete` is false if the output
    ended early."""

    complete: bool
    clean: int = 0
    largest: Sequence[float] = ()
    squares: Sequence[float] = ()
    doubtful: Sequence[Chunk] = ()


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
        values = read_run(self.descriptor, run, storage)
        if values is None:
            raise GraderFault("The expected output was changed: it ended early while it was being read.")
        return values


def read_run(descriptor: int, run: Stretch, storage: np.dtype[Any]) -> NDArray[Any] | None:
    """The stored values of a run, (repeats, length); None if the file ends early."""
    spread = np.empty(run.stride * (run.repeats - 1) + run.value_bytes * run.length, np.uint8)
    if not read_exactly(descriptor, spread, run.first):
        return None
    return np.ndarray((run.repeats, run.length), storage, spread, strides=(run.stride, run.value_bytes))


class Scan:
    """Reads both files in chunks of whole rows and records the wrong values."""

    def __init__(self, operator: Operator, shape: Shape, tolerance: Tolerance) -> None:
        self._operator, self._shape = operator, shape
        self._got, self._expected = operator.output_layouts(shape), operator.expected_layouts(shape)
        units = operator.units(shape)
        self._errors = [
            TensorErrors(
                t.name,
                limit_of(tolerance, t.name),
                np.zeros(units, np.int64),
                np.zeros(t.rows, np.int64),
                np.zeros(t.columns, np.int64),
                0,
            )
            for t in operator.outputs(shape)
        ]
        count = len(self._errors)
        self._zeros, self._largest, self._squares = [0] * count, [-1.0] * count, [0.0] * count
        self.nan = self.infinite = self.wrong = self.finite = 0
        self._worst_error = -1.0
        self.first: Wrong | None = None
        self.worst: Wrong | None = None
        """The value with the largest finite error above the tolerance."""

    @property
    def max_finite_error(self) -> float | None:
        """The largest |got − expected| of the finite values; None if there are none."""
        return max(self._largest) if self.finite else None

    @property
    def errors(self) -> tuple[TensorErrors, ...]:
        """The counts of wrong values, for each output tensor."""
        return tuple(replace(kept, zeros=zeros) for kept, zeros in zip(self._errors, self._zeros, strict=True))

    @property
    def precision(self) -> tuple[TensorPrecision, ...]:
        """The errors of each output tensor; empty if some values are not finite."""
        if self.nan or self.infinite:
            return ()
        return tuple(
            TensorPrecision(
                kept.tensor,
                kept.limit,
                max(0.0, largest),
                (squares / layout.values) ** 0.5 if kept.limit.rms is not None else None,
            )
            for kept, largest, squares, layout in zip(
                self._errors, self._largest, self._squares, self._got, strict=True
            )
        )

    def compare(self, expected: Expected, got: int) -> bool:
        """Compare all values of an open file; False if `got` ended early.

        Several threads look for chunks that may hold wrong values. One thread then counts the wrong values in these
        chunks, in order. Usually they are few; if not, the output is so wrong that time matters less.
        """
        chunks = list(self._chunks())
        spans = [chunks[first : first + _SPAN_CHUNKS] for first in range(0, len(chunks), _SPAN_CHUNKS)]
        with ThreadPoolExecutor(min(_MOST_THREADS, cores(), len(spans))) as pool:
            found = list(pool.map(lambda span: self._look(span, expected, got), spans))
        if not all(span.complete for span in found):
            return False
        self.finite = sum(span.clean for span in found)
        for span in found:
            self._largest = [max(pair) for pair in zip(self._largest, span.largest, strict=True)]
            self._squares = [sum(pair) for pair in zip(self._squares, span.squares, strict=True)]
        for chunk in (chunk for span in found for chunk in span.doubtful):
            pair = self._read(chunk, expected, got)
            if pair is None:
                return False
            self._count(chunk, *pair)
        return True

    def _chunks(self) -> Iterator[Chunk]:
        for number, (got, expected) in enumerate(zip(self._got, self._expected, strict=True)):
            for runs in zip(got.runs(), expected.runs(), strict=True):
                yield from (Chunk(number, *pair) for pair in _cut(*runs, got.tensor.columns))

    def _read(self, chunk: Chunk, expected: Expected, got: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """(got, expected) of a chunk; None if the output ends early."""
        kind = self._got[chunk.number].type
        stored = read_run(got, chunk.got, kind.storage)
        if stored is None:
            return None
        mine = kind.decode(stored)
        return mine, expected.read(chunk, mine)

    def _look(self, chunks: Sequence[Chunk], expected: Expected, got: int) -> _Span:
        """Find the `chunks` that need to be counted value by value. Runs in threads, so it must not change `self`."""
        largest, squares = [-1.0] * len(self._errors), [0.0] * len(self._errors)
        clean, doubtful = 0, []
        for chunk in chunks:
            pair = self._read(chunk, expected, got)
            if pair is None:
                return _Span(complete=False)
            error = errors_of(*pair)
            top = float(error.max())  # NaN if any value is
            limit, number = self._errors[chunk.number].limit, chunk.number
            # float32 rounds the difference by 6e-8 of itself, so a value clearly within the tolerance is right.
            if top == 0 or np.all((top if limit.is_number else error) <= limit.allowed(pair[1]) * (1 - 1e-6)):
                clean, largest[number] = clean + chunk.got.size, max(largest[number], top)
                if limit.rms is not None:
                    rows = error.reshape(-1, self._got[number].tensor.columns)  # each summed in float32
                    squares[number] += float(np.einsum("ij,ij->i", rows, rows).sum(dtype=np.float64))
            else:
                doubtful.append(chunk)
        return _Span(True, clean, largest, squares, doubtful)

    def _count(self, chunk: Chunk, got: NDArray[Any], expected: NDArray[Any]) -> None:
        """Count the wrong values of a chunk, comparing in float64."""
        number, length = chunk.number, chunk.got.length
        got, expected = got.ravel(), expected.ravel()
        with np.errstate(invalid="ignore"):  # a signalling NaN
            error = errors_of(got.astype(np.float64) if got.dtype.kind == "f" else got, expected)
        wrong = ~(error <= self._errors[number].limit.allowed(expected))
        finite = np.isfinite(got)
        self.finite += int(finite.sum())
        nan = np.isnan(got)
        self.nan += int(nan.sum())
        self.infinite += len(got) - int(finite.sum()) - int(nan.sum())
        self._squares[number] += float(error[finite] @ error[finite])
        error[~finite] = -1.0
        at = int(error.argmax())
        self._largest[number] = max(self._largest[number], float(error[at]))
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
        self._zeros[number] += int((got[wrong] == 0).sum())

    def _spread(self, chunk: Chunk, wrong: NDArray[np.bool_]) -> None:
        """Count a chunk's wrong values by unit, row and column."""
        kept, layout = self._errors[chunk.number], self._got[chunk.number]
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
    pair = got, expected
    if got.length >= CHUNK_VALUES or got.repeats == 1:
        step = max(1, CHUNK_VALUES // columns) * columns
        for repeat in range(got.repeats):
            for first in range(0, got.length, step):
                count = min(step, got.length - first)
                yield _part(pair, repeat, 1, first, count)
        return
    apart = expected.stride // expected.value_bytes
    together = max(1, CHUNK_VALUES // apart)
    for repeat in range(0, got.repeats, together):
        yield _part(pair, repeat, min(together, got.repeats - repeat), 0, got.length)


def _part(pair: tuple[Stretch, Stretch], repeat: int, repeats: int, first: int, count: int) -> tuple[Stretch, Stretch]:
    got, expected = (
        Stretch(run.first + repeat * run.stride + first * run.value_bytes, count, run.stride, repeats, run.value_bytes)
        for run in pair
    )
    return got, expected
