"""Compares an output file with the expected one, streaming: the size first, then every value.

The output was written by a program that may be hostile: it is opened without following a link, counts only as a
regular file with one name, is read no further than its right size, and must not change meanwhile.

Expected files hold the float64 oracle's result rounded to float32, at most 2^-24 of a value (for attention of
values up to 3: 2e-7) from the oracle; the tolerance is applied to |got − expected file| in float64.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grader.errors import GraderFault
from grader.operators import Location, Operator, Shape
from grader.operators.base import tolerance_of
from grader.workers import cores

CHUNK_VALUES = 1 << 17
"""Two float32 chunks and their difference are 1.5 MiB: about what a core's cache holds."""
_SPAN_CHUNKS = 16
_MOST_THREADS = 4
"""Each only reads and compares: a few keep the memory busy."""

Kind = Literal["passed", "missing", "not_a_file", "size", "changed", "values"]


@dataclass(frozen=True)
class Wrong:
    """One value that is not as expected. `got` may be NaN or infinite."""

    location: Location
    index: int
    got: float
    expected: float

    def __str__(self) -> str:
        return f"{self.location}: got {self.got:.6g}, expected {self.expected:.6g}"


@dataclass(frozen=True)
class TensorErrors:
    """How the wrong values of one output tensor are spread: counts by unit, by row and by column."""

    tensor: str
    tolerance: float
    by_unit: NDArray[np.int64]
    by_row: NDArray[np.int64]
    by_column: NDArray[np.int64]
    nan_by_unit: NDArray[np.int64]
    zeros: int
    """Of the wrong values, how many are exactly 0."""

    @property
    def wrong(self) -> int:
        return int(self.by_unit.sum())


@dataclass(frozen=True)
class Check:
    """The outcome. `reason` is the sentence a student reads; '' when passed."""

    kind: Kind
    reason: str
    expected_bytes: int
    found_bytes: int | None = None
    values: int = 0
    wrong: int = 0
    nan: int = 0
    infinite: int = 0
    max_error: float | None = None
    """Largest |got − expected|; None where nothing was compared or a NaN or infinity makes it meaningless."""
    max_finite_error: float | None = None
    """The same over the finite values; None where there is none."""
    first: Wrong | None = None
    worst: Wrong | None = None
    """The largest finite error that is too large."""
    errors: tuple[TensorErrors, ...] = field(default=(), repr=False, compare=False)

    @property
    def passed(self) -> bool:
        return self.kind == "passed"

    @property
    def wrong_share(self) -> float:
        return self.wrong / self.values if self.values else 0.0


def check_output(
    operator: Operator,
    shape: Shape,
    expected: Path,
    got: Path,
    tolerance: float | Mapping[str, float],
) -> Check:
    """Compares the file `got` with `expected`. `tolerance`: one number, or one for each output tensor by name.

    Raises GraderFault when the expected file is not there or has the wrong size: never the student's fault.
    """
    size = operator.output_bytes(shape)
    try:
        reference = expected.open("rb", buffering=0)
    except OSError as error:
        raise GraderFault(
            f"{expected}: the expected output cannot be read ({error.strerror}); generate the testcase again."
        ) from error
    with reference:
        kept = os.fstat(reference.fileno()).st_size
        if kept != size:
            raise GraderFault(
                f"{expected}: the expected output has {kept:,} bytes, {size:,} expected; generate the testcase again."
            )
        try:
            descriptor = open_untrusted(got)
        except OSError as error:
            return _unopened(error, size)
        try:
            return _check_open(operator, shape, reference.fileno(), descriptor, tolerance)
        finally:
            os.close(descriptor)


def open_untrusted(path: Path) -> int:
    """A descriptor of a file that a hostile program may have left: follows no link, waits for no pipe. A file whose
    permissions were taken away is read all the same, since root could: who grades must not change a grade."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        return os.open(path, flags)
    except PermissionError:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(place).st_mode):
                raise
            Path(f"/proc/self/fd/{place}").chmod(0o600)
        finally:
            os.close(place)
        return os.open(path, flags)


def _unopened(error: OSError, size: int) -> Check:
    if error.errno == errno.ENOENT:
        return Check("missing", f"The program wrote no output file; {size:,} bytes were expected.", size)
    if error.errno == errno.ELOOP:
        return Check("not_a_file", "The output is a symbolic link; a regular file was expected.", size)
    if error.errno in (errno.ENXIO, errno.EACCES, errno.ENOTDIR):
        return Check("not_a_file", f"The output cannot be read as a regular file ({error.strerror}).", size)
    raise GraderFault(f"The output file cannot be opened: {error.strerror}.") from error


def _check_open(
    operator: Operator,
    shape: Shape,
    expected: int,
    got: int,
    tolerance: float | Mapping[str, float],
) -> Check:
    size = operator.output_bytes(shape)
    before = os.fstat(got)
    if not stat.S_ISREG(before.st_mode):
        kind = "directory" if stat.S_ISDIR(before.st_mode) else "special file (a pipe, socket or device)"
        return Check("not_a_file", f"The output is a {kind}; a regular file was expected.", size)
    if before.st_nlink != 1:
        return Check(
            "not_a_file",
            "The output is a hard link to a file that has another name too; a file of its own was expected.",
            size,
        )
    if before.st_size != size:
        return Check("size", _size_reason(operator, shape, before.st_size), size, before.st_size)
    scan = _Scan(operator, shape, tolerance)
    complete = scan.all(expected, got)
    after = os.fstat(got)
    if not complete or _changes(after) != _changes(before):
        reason = (
            "The output file changed while it was being read: something of the program was still running after "
            "it had ended."
        )
        return Check("changed", reason, size, after.st_size)
    return scan.result(size, tolerance)


def _changes(facts: os.stat_result) -> tuple[int, int, int]:
    """What differs when a file was written to. Whoever may write to it may set the time of its last change
    (utimensat), but not the time of the last change of that."""
    return facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _size_reason(operator: Operator, shape: Shape, found: int) -> str:
    size = operator.output_bytes(shape)
    names = ", ".join(f"{n} = {v}" for n, v in zip(operator.dimension_names, shape, strict=True))
    text = f"The output file has {found:,} bytes, {size:,} expected for {names}"
    unit = operator.unit_output_bytes(shape)
    if found == 0:
        return f"{text}: it is empty."
    if found == size + operator.header_bytes:
        return f"{text}: {operator.header_bytes} too many, as if the input's header were written first."
    if found == 2 * size:
        return f"{text}: exactly twice as many, as if doubles were written or everything were written twice."
    if not operator.planar_output and found % unit == 0:
        units = found // unit
        what = operator.unit if units == 1 else operator.units_name
        return f"{text}: that is {units:,} whole {what} of {operator.units(shape):,}."
    if found < size:
        return f"{text}: {size - found:,} too few."
    return f"{text}: {found - size:,} too many."


@dataclass(frozen=True)
class _Chunk:
    """`count` values of a tensor, whole rows, from value `first` of the file on."""

    tensor: str
    first: int
    count: int


@dataclass(frozen=True)
class _Span:
    """What a look at some chunks found: how many values are clearly right and their largest error, and the chunks in
    which something may be wrong. Not `complete` when the output ended early."""

    complete: bool
    clean: int = 0
    largest: float = -1.0
    doubtful: Sequence[_Chunk] = ()


class _Scan:
    """Reads both files in chunks of whole rows and keeps what is wrong."""

    def __init__(self, operator: Operator, shape: Shape, tolerance: float | Mapping[str, float]) -> None:
        self.operator, self.shape = operator, shape
        units = operator.units(shape)
        self.errors = {
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
        self.zeros = dict.fromkeys(self.errors, 0)
        self.nan = self.infinite = self.wrong = self.finite = 0
        self.max_finite = -1.0
        self.first: tuple[int, float, float] | None = None
        self.worst: tuple[int, float, float] | None = None
        self.worst_error = -1.0

    def all(self, expected: int, got: int) -> bool:
        """Compares everything; False when `got` ended early. Several threads look for chunks with anything wrong in
        them; those are few, or time matters less, and are gone through in order."""
        chunks = list(self._chunks())
        spans = [chunks[first : first + _SPAN_CHUNKS] for first in range(0, len(chunks), _SPAN_CHUNKS)]
        with ThreadPoolExecutor(min(_MOST_THREADS, cores(), len(spans))) as pool:
            found = list(pool.map(lambda span: self._span(span, expected, got), spans))
        if not all(span.complete for span in found):
            return False
        self.finite = sum(span.clean for span in found)
        self.max_finite = max((span.largest for span in found), default=-1.0)
        buffers = self._buffers()
        for chunk in (chunk for span in found for chunk in span.doubtful):
            e, g, _ = (b[: chunk.count] for b in buffers)
            if not _read_both(expected, got, e, g, chunk.first):
                return False
            self._exactly(chunk.tensor, chunk.first, e, g, self.errors[chunk.tensor].tolerance)
        return True

    def _chunks(self) -> Iterator[_Chunk]:
        columns = {t.name: t.columns for t in self.operator.outputs(self.shape)}
        for run in self.operator.output_runs(self.shape):
            step = max(1, CHUNK_VALUES // columns[run.tensor]) * columns[run.tensor]
            end = run.first + run.size
            for first in range(run.first, end, step):
                yield _Chunk(run.tensor, first, min(step, end - first))

    def _buffers(self) -> list[NDArray[np.float32]]:
        widest = max(CHUNK_VALUES, *(t.columns for t in self.operator.outputs(self.shape)))
        return [np.empty(widest, dtype="<f4") for _ in range(3)]

    def _span(self, chunks: Sequence[_Chunk], expected: int, got: int) -> _Span:
        clean, largest, doubtful = 0, -1.0, []
        buffers = self._buffers()
        for chunk in chunks:
            e, g, work = (b[: chunk.count] for b in buffers)
            if not _read_both(expected, got, e, g, chunk.first):
                return _Span(complete=False)
            with np.errstate(invalid="ignore", over="ignore"):
                np.subtract(g, e, out=work)
                np.abs(work, out=work)
                top = float(work.max())  # NaN if any is
            # float32's rounding of the difference is 6e-8 of it, so what is clearly inside is inside.
            if top <= self.errors[chunk.tensor].tolerance * (1 - 1e-6):
                clean, largest = clean + chunk.count, max(largest, top)
            else:
                doubtful.append(chunk)
        return _Span(True, clean, largest, doubtful)

    def _exactly(
        self,
        tensor: str,
        first: int,
        expected: NDArray[np.float32],
        got: NDArray[np.float32],
        limit: float,
    ) -> None:
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
        self.max_finite = max(self.max_finite, float(error[at]))
        if not wrong.any():
            return
        self.wrong += int(wrong.sum())
        if self.first is None or first < self.first[0]:
            i = int(wrong.argmax())
            self.first = (first + i, float(got[i]), float(expected[i]))
        if error[at] > max(limit, self.worst_error):
            self.worst_error = float(error[at])
            self.worst = (first + at, float(got[at]), float(expected[at]))
        self._spread(tensor, first, wrong, nan, int((got[wrong] == 0).sum()))

    def _spread(self, tensor: str, first: int, wrong: NDArray[np.bool_], nan: NDArray[np.bool_], zeros: int) -> None:
        kept = self.errors[tensor]
        columns = len(kept.by_column)
        grid = wrong.reshape(-1, columns)
        kept.by_column[:] += grid.sum(axis=0)
        per_row = grid.sum(axis=1)
        _, unit, row, _ = self.operator.position(self.shape, first)
        units, rows = np.divmod(unit * len(kept.by_row) + row + np.arange(len(per_row)), len(kept.by_row))
        np.add.at(kept.by_unit, units, per_row)
        np.add.at(kept.by_row, rows, per_row)
        if nan.any():
            np.add.at(kept.nan_by_unit, units, nan.reshape(-1, columns).sum(axis=1))
        self.zeros[tensor] += zeros

    def result(self, size: int, tolerance: float | Mapping[str, float]) -> Check:
        values = size // 4
        largest = self.max_finite if self.finite else None
        meaningful = self.finite == values
        if self.wrong == 0:
            return Check("passed", "", size, size, values, max_error=largest, max_finite_error=largest)
        assert self.first is not None
        first, worst = self._wrong(self.first), self.worst and self._wrong(self.worst)
        errors = tuple(replace(e, zeros=self.zeros[e.tensor]) for e in self.errors.values())
        check = Check(
            "values",
            "",
            size,
            size,
            values,
            self.wrong,
            self.nan,
            self.infinite,
            largest if meaningful else None,
            largest,
            first,
            worst,
            errors,
        )
        return _with_reason(check, tolerance)

    def _wrong(self, found: tuple[int, float, float]) -> Wrong:
        index, got, expected = found
        return Wrong(self.operator.locate(self.shape, index), index, got, expected)


def _read_both(
    expected: int, got: int, into_expected: NDArray[np.float32], into_got: NDArray[np.float32], first: int
) -> bool:
    """Fills both from value `first` on; False where `got` ends before."""
    if not read_values(expected, into_expected, 4 * first):
        raise GraderFault("The expected output ended early while it was being read; it was changed.")
    return read_values(got, into_got, 4 * first)


def read_values(descriptor: int, into: NDArray[np.float32], offset: int) -> bool:
    """Fills `into` from byte `offset` on; False where the file ends before."""
    view = into.data.cast("B")
    while view:
        count = os.preadv(descriptor, [view], offset)
        if count == 0:
            return False
        view, offset = view[count:], offset + count
    return True


def share_in_words(part: int, whole: int) -> str:
    """A share that never says 0 % or 100 % of something that is neither."""
    percent = 100 * part / whole
    if part == whole:
        return "100 %"
    if percent > 99.9:
        return "over 99.9 %"
    if percent < 0.01:
        return "under 0.01 %"
    return f"{percent:.1f} %" if percent >= 10 else f"{percent:.2g} %"


def _with_reason(check: Check, tolerance: float | Mapping[str, float]) -> Check:
    if isinstance(tolerance, Mapping):
        each = [f"{value:.3g}" for value in tolerance.values()]
        named = [f"{value} for {name}" for name, value in zip(tolerance, each, strict=True)]
        limit = each[0] if len(set(each)) == 1 else f"the tolerance ({', '.join(named)})"
    else:
        limit = f"{tolerance:g}"
    parts = [
        f"{check.wrong:,} of {check.values:,} values ({share_in_words(check.wrong, check.values)}) differ by more "
        f"than {limit}"
    ]
    odd = [f"{n:,} {name}" for n, name in ((check.nan, "NaN"), (check.infinite, "infinite")) if n]
    if odd:
        parts[0] += f" ({' and '.join(odd)})"
    parts.append(f"first at {check.first}")
    if check.worst is not None and check.first is not None and check.worst.index != check.first.index:
        parts.append(f"worst at {check.worst}")
    return replace(check, reason="; ".join(parts) + ".")
