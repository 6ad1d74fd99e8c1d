"""Compares an output file with the expected one: the size first, then every value, in chunks.

The program that wrote the output may be hostile. So the grader follows no symbolic link, accepts only a regular file
without further hard links, reads no more than the expected size, and rejects a file that changes while it is read.

Expected files hold the float64 oracle's result, rounded to float32, or to the tensor's type if that is larger or no
float. The relative rounding error is at most 2^-24 (2e-7
absolute for attention with values up to 3). The tolerance limits |got − expected| in float64, and for some assignments
also its root mean square.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from grader.base.errors import GraderFault
from grader.checking.property_check import Found, Given, violated
from grader.checking.scan import Expected, FileValues, Scan, TensorErrors, Wrong
from grader.operators import Location, Operator, Shape
from grader.operators.tolerance import Tolerance
from grader.sandbox.quarantine import open_output

Kind = Literal["passed", "missing", "not_a_file", "size", "changed", "values", "precision"]
"""`values`: some values are wrong. `precision`: every value is within its limit, but the root mean square of the errors
is not."""


@dataclass(frozen=True)
class Check:
    """The outcome of a comparison. `reason` is the sentence that a student reads; '' if the output passed."""

    kind: Kind
    reason: str
    expected_bytes: int
    found_bytes: int | None = None
    values: int = 0
    wrong: int = 0
    nan: int = 0
    infinite: int = 0
    first: Wrong | None = None
    worst: Wrong | None = None
    """The value with the largest finite error above the tolerance."""
    errors: tuple[TensorErrors, ...] = field(default=(), repr=False, compare=False)
    """The errors of each output tensor."""
    violated: Location | None = None
    """Where the operator's own `check` finds the output wrong."""

    @property
    def passed(self) -> bool:
        return self.kind == "passed"

    @property
    def max_finite_error(self) -> float | None:
        """Largest |got − expected| of the finite values; None if there are none."""
        return max((each.largest for each in self.errors if each.largest >= 0), default=None)

    @property
    def max_error(self) -> float | None:
        """Largest |got − expected|; None if nothing was compared, or if a NaN or infinity makes it meaningless."""
        return self.max_finite_error if not self.nan + self.infinite else None

    @property
    def precision(self) -> tuple[TensorErrors, ...]:
        """The errors of each output tensor; empty if some values are not finite."""
        return self.errors if not self.nan + self.infinite else ()


def check_output(
    operator: Operator, shape: Shape, expected: Path, got: Path, tolerance: Tolerance, input: Path | None = None
) -> Check:
    """Compare the file `got` with `expected`. `tolerance` is one number, or one per output tensor by name. `input` is
    the testcase's, which an operator with its own `check` needs.

    Raises GraderFault if the expected file is missing or has the wrong size, which is never the student's fault.
    """
    size = operator.expected_bytes(shape)
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
        given = Given(input) if input is not None else None
        return compare_output(operator, shape, FileValues(reference.fileno()), got, tolerance, given, expected)


def compare_output(
    operator: Operator,
    shape: Shape,
    expected: Expected,
    got: Path,
    tolerance: Tolerance,
    given: Given | None = None,
    right: Path | None = None,
) -> Check:
    """Compare the file `got` with the values `expected`; otherwise like `check_output`. An operator with its own
    `check` gets the input `given`; `right` is a file of which it must approve."""
    try:
        descriptor = open_output(got)
    except OSError as error:
        return _unopened(error, operator.output_bytes(shape))
    try:
        if (refused := _refused(operator, shape, descriptor)) is not None:
            return refused
        before = os.fstat(descriptor)
        if operator.has_check and given is not None:
            check: Check | None = _by_property(operator, shape, violated(operator, shape, given, descriptor, right))
        else:
            scan = Scan(operator, shape, tolerance)
            complete = scan.compare(expected, descriptor)
            check = _scanned(scan, operator.output_bytes(shape)) if complete else None
        after = os.fstat(descriptor)
        if check is None or _changes(after) != _changes(before):
            reason = "The output file changed while it was being read: a process of the program was still running."
            return Check("changed", reason, operator.output_bytes(shape), after.st_size)
        return check
    finally:
        os.close(descriptor)


def _unopened(error: OSError, size: int) -> Check:
    if error.errno == errno.ENOENT:
        return Check("missing", f"The program wrote no output file; {size:,} bytes were expected.", size)
    if error.errno == errno.ELOOP:
        return Check("not_a_file", "The output is a symbolic link; a regular file was expected.", size)
    if error.errno in (errno.ENXIO, errno.EACCES, errno.ENOTDIR):
        return Check("not_a_file", f"The output cannot be read as a regular file ({error.strerror}).", size)
    raise GraderFault(f"The output file cannot be opened: {error.strerror}.") from error


def _refused(operator: Operator, shape: Shape, got: int) -> Check | None:
    """The check of a file that cannot be an output; None if it may be one."""
    size = operator.output_bytes(shape)
    before = os.fstat(got)
    if not stat.S_ISREG(before.st_mode):
        kind = "directory" if stat.S_ISDIR(before.st_mode) else "special file (a pipe, socket or device)"
        return Check("not_a_file", f"The output is a {kind}; a regular file was expected.", size)
    if before.st_nlink != 1:
        reason = "The output is a hard link to a file with another name; a file with one name was expected."
        return Check("not_a_file", reason, size)
    if before.st_size != size:
        return Check("size", _size_reason(operator, shape, before.st_size), size, before.st_size)
    return None


def _by_property(operator: Operator, shape: Shape, found: Found | None) -> Check:
    size, values = operator.output_bytes(shape), sum(layout.values for layout in operator.output_layouts(shape))
    if found is None:
        return Check("passed", "", size, size, values)
    where = operator.location(shape, found.tensor, found.unit, found.row, found.column) if found.tensor else None
    reason = f"{where}: {found.sentence}" if where is not None else found.sentence
    return Check("values", reason, size, size, values, wrong=min(values, found.wrong), violated=where)


def _changes(facts: os.stat_result) -> tuple[int, int, int]:
    """Properties of a file that change whenever it is written. A program can set the mtime (utimensat), but not the
    ctime."""
    return facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _size_reason(operator: Operator, shape: Shape, found: int) -> str:
    size = operator.output_bytes(shape)
    names = ", ".join(f"{n} = {v}" for n, v in zip(operator.dimension_names, shape, strict=True))
    text = f"The output file has {found:,} bytes, {size:,} expected for {names}"
    unit = operator.unit_output_bytes(shape)
    if found == 0:
        return f"{text}: it is empty."
    if found == size + operator.header_bytes:
        return f"{text}: {operator.header_bytes} too many, as if the program wrote the input's header first."
    if found == 2 * size:
        wider = "float32" if size < operator.expected_bytes(shape) else "doubles"
        return f"{text}: exactly twice as many, as if it wrote {wider}, or wrote everything twice."
    if not operator.planar_output and found % unit == 0:
        units = found // unit
        what = operator.unit if units == 1 else operator.units_name
        return f"{text}: that is {units:,} whole {what} of {operator.units(shape):,}."
    return f"{text}: {abs(found - size):,} too {'few' if found < size else 'many'}."


def _scanned(scan: Scan, size: int) -> Check:
    """The outcome for an output of `size` bytes that was scanned completely."""
    sloppy = any(each.sloppy for each in scan.errors) and not scan.nan + scan.infinite
    kind: Kind = "values" if scan.wrong else "precision" if sloppy else "passed"
    check = Check(
        kind=kind,
        reason="",
        expected_bytes=size,
        found_bytes=size,
        values=sum(each.values for each in scan.errors),
        wrong=scan.wrong,
        nan=scan.nan,
        infinite=scan.infinite,
        first=scan.first,
        worst=scan.worst,
        errors=tuple(scan.errors),
    )
    return replace(check, reason=_reason(check))


def precision_in_words(found: TensorErrors) -> str:
    """A phrase that compares a tensor's errors with those of the plain implementation: by their root mean square if
    that is too large, else by the largest error."""
    name, what = ("rms", "the root mean square of the errors") if found.sloppy else ("largest", "the largest error")
    error, allowed, usual = (getattr(each, name, None) for each in (found, found.limit, found.limit.plain))
    compared = f"that of a plain implementation {usual:.2g}, " if usual is not None else ""
    return f"{what} of {found.tensor} is {error:.2g}, {compared}allowed {allowed:.2g}"


def share_in_words(part: int, whole: int) -> str:
    """Format a share as a percentage: 100 % only if it is exact, and never 0 % for a small share."""
    percent = 100 * part / whole
    if part == whole:
        return "100 %"
    if percent > 99.9:
        return "over 99.9 %"
    if percent < 0.01:
        return "under 0.01 %"
    return f"{percent:.1f} %" if percent >= 10 else f"{percent:.2g} %"


def _reason(check: Check) -> str:
    if check.passed:
        return ""
    if check.kind == "precision":
        sentences = [precision_in_words(each) for each in check.precision if each.sloppy]
        return f"No single value is far off, but {'; '.join(sentences)}."
    limits = {errors.tensor: str(errors.limit) for errors in check.errors}
    named = ", ".join(f"{limit or 0} for {name}" for name, limit in limits.items())
    limit = next(iter(limits.values())) if len(set(limits.values())) == 1 else f"the tolerance ({named})"
    parts = [
        f"{check.wrong:,} of {check.values:,} values ({share_in_words(check.wrong, check.values)}) differ"
        f"{f' by more than {limit}' if limit else ''}"
    ]
    odd = [f"{n:,} {name}" for n, name in ((check.nan, "NaN"), (check.infinite, "infinite")) if n]
    if odd:
        parts[0] += f" ({' and '.join(odd)})"
    parts.append(f"first at {check.first}")
    if check.worst is not None and check.first is not None and check.worst.index != check.first.index:
        parts.append(f"worst at {check.worst}")
    off = [each for each in check.precision if each.sloppy or each.largest > each.limit.largest]
    return "; ".join([*parts, *(precision_in_words(each) for each in off if each.limit.plain)]) + "."
