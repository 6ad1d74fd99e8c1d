"""Describes a wrong output to its student.

It combines three kinds of evidence into a few sentences:
- where the wrong values are (which tensor, batches, rows, columns; NaN or zero), as counted by the checker;
- whether wrong rows equal right values in a wrong place (another batch or row, a transpose) or times a factor;
- whether wrong rows are right for exchanged or transposed inputs, or equal one of the operator's alternates, that is,
  a known wrong way to compute it.

A match counts only if every sampled wrong row agrees to about a tenth of the tolerance, or to within the rounding
errors if the tolerance is a multiple of them. Lost precision counts only if it explains most of the errors. So a
diagnosis is a statement about the numbers, not a guess. Evidence that explains nothing is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from grader.base.errors import UsageError
from grader.checking.causes import LOST_PRECISION, by_alternates, by_rounding, exchanged, misplaced, overflown
from grader.checking.check import Check
from grader.checking.samples import CLOSE, Sample, draw_samples
from grader.checking.scan import TensorErrors
from grader.checking.wrong_places import where_nan, where_wrong, which_tensors
from grader.findings import Finding, sentence
from grader.operators import Operator, Shape

SAMPLED_ROWS = 6
PRECISION_ROWS = 32
FEWEST_VALUES = 8
"""With fewer values, many mistakes look alike: other testcases show more."""


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosis of a wrong output. `where` says which values are wrong, and `cause` why; each is '' if unknown.
    `findings` are the facts behind the cause. `overflows`: of whole numbers, only so many of the lowest bits
    are right."""

    where: str = ""
    cause: str = ""
    findings: tuple[Finding, ...] = ()
    overflows: Literal["16 bits", "8 bits"] | None = None

    def __str__(self) -> str:
        return " ".join(filter(None, (self.where, self.cause)))


def diagnose(check: Check, operator: Operator, input: Path, expected: Path, got: Path) -> Diagnosis | None:
    """Diagnose a wrong output; None if there is nothing to say about it.

    Only checks of kind "values", "precision" and "size" get a diagnosis; the other kinds explain themselves.
    """
    if check.kind == "size":
        cause, header = "The output file has the wrong size.", operator.header_bytes
        if check.found_bytes == check.expected_bytes + header:
            cause += f" It has {header} bytes more, as many as the input's header: the output has no header."
        return Diagnosis(cause=cause)
    if check.kind not in ("values", "precision") or not check.errors:
        return None
    try:
        shape = operator.read_header(input)
    except UsageError:
        return None
    try:
        found = _examine(check, operator, shape, input, expected, got)
    except OSError:
        return None
    return found if str(found) else None


def _examine(check: Check, operator: Operator, shape: Shape, input: Path, expected: Path, got: Path) -> Diagnosis:
    if check.kind == "precision":
        number = next(i for i, found in enumerate(check.precision) if found.sloppy)
        samples = draw_samples(
            operator, shape, number, check.errors[number], input, expected, got, PRECISION_ROWS, only_wrong=False
        )
        return Diagnosis(cause=by_rounding(operator, shape, number, samples) or LOST_PRECISION)
    number, errors = next((i, e) for i, e in enumerate(check.errors) if e.wrong)
    if check.values < FEWEST_VALUES and errors.zeros != errors.wrong:
        return Diagnosis()
    tensors = which_tensors(check.errors)
    if check.nan + check.infinite == check.values:
        cause = (
            "Every value is infinite or NaN: look for exp of a large number (a difference taken the wrong way round, "
            "or relative to the maximum before this tile, which is −inf at first), 0/0 (a sum l that stays 0), "
            "inf − inf, or memory that was never written."
        )
        return Diagnosis(tensors, cause)
    where = " ".join(filter(None, (tensors, where_wrong(operator, errors))))
    return replace(_cause(check, operator, shape, number, errors, input, expected, got), where=where)


def _cause(
    check: Check,
    operator: Operator,
    shape: Shape,
    number: int,
    errors: TensorErrors,
    input: Path,
    expected: Path,
    got: Path,
) -> Diagnosis:
    """The diagnosis without the place; empty if nothing explains the values."""
    if check.nan:
        return Diagnosis(cause=where_nan(check, operator, errors))
    if errors.zeros == errors.wrong:
        cause = (
            "Every wrong value is exactly 0: either this part of the output is never written (the grid, the guard, the "
            "copy back), or zeros are written there."
        )
        return Diagnosis(cause=cause)
    samples = draw_samples(operator, shape, number, errors, input, expected, got, SAMPLED_ROWS)
    if not samples:
        return Diagnosis()
    finite = check.max_finite_error if check.infinite == 0 else None

    if exchange := exchanged(operator, shape, number, samples):
        return _found(exchange)

    def rounding(_: list[Sample]) -> str:
        if finite is None or not any(alternate.rounding for alternate in operator.alternates()):
            return ""
        more = draw_samples(operator, shape, number, errors, input, expected, got, PRECISION_ROWS, only_wrong=False)
        return by_rounding(operator, shape, number, more)

    if bits := overflown(samples):
        cause = f"Every wrong value is right but for its highest bits: a number of {bits} overflows."
        return Diagnosis(cause=cause, overflows=bits)
    if (known := by_alternates(operator, shape, number, samples)) is not None:
        return _found(known)
    for explain in (rounding, partial(misplaced, operator)):
        if cause := explain(samples):
            return Diagnosis(cause=cause)
    if finite is not None and finite < CLOSE * errors.limit.largest:
        return Diagnosis(cause=f"The largest error is {finite:.2g}. {LOST_PRECISION}")
    wrong = errors.by_unit > 0
    if not wrong[0] and wrong[1:].all() and len(wrong) > 1:
        one = operator.unit
        cause = (
            f"Only {one} 0 is right: look at the offset per {one}, in the kernel and on the host, and at what must "
            f"be reset for each {one} (such as a running maximum or sum)."
        )
        return Diagnosis(cause=cause)
    return Diagnosis()


def _found(finding: Finding) -> Diagnosis:
    return Diagnosis(cause=sentence(finding), findings=(finding,))
