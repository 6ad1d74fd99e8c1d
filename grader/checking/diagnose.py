"""Describes a wrong output to its student: which values are wrong (tensor, batches, rows, columns), as counted by the
checker, and what they look like: zeros, NaN, right values in a wrong place or times a factor, the result for exchanged
or transposed inputs, or that of one of the operator's alternates, a known wrong way to compute it.

A match counts only if every sampled wrong row agrees to about a tenth of the tolerance, or to within the rounding
errors if the tolerance is a multiple of them. Lost precision counts only if it explains most of the errors. So a
diagnosis is a statement about the numbers, not a guess. Evidence that explains nothing is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from grader.base.errors import UsageError
from grader.checking.causes import PATTERN, by_alternates, by_rounding, exchanged, moved, overflown, scaled
from grader.checking.check import Check
from grader.checking.samples import CLOSE, Sample, draw_samples
from grader.checking.scan import TensorErrors
from grader.checking.wrong_places import where_wrong, which_tensors
from grader.findings import Finding, sentence
from grader.operators import Operator, Shape

SAMPLED_ROWS = 6
PRECISION_ROWS = 32
FEWEST_VALUES = 8
"""With fewer values, many mistakes look alike: other testcases show more."""


@dataclass(frozen=True)
class Diagnosis:
    """Which values are wrong ('' if all are), and what they look like (None if unknown)."""

    where: str = ""
    finding: Finding | None = None

    def __str__(self) -> str:
        return " ".join(filter(None, (self.where, sentence(self.finding) if self.finding is not None else "")))


def diagnose(check: Check, operator: Operator, input: Path, expected: Path, got: Path) -> Diagnosis | None:
    """Diagnose an output with wrong values; None if there is nothing to say about it."""
    if check.kind not in ("values", "precision") or not check.errors:
        return None
    sloppy = check.kind == "precision"
    number = next(n for n, errors in enumerate(check.errors) if (errors.sloppy if sloppy else errors.wrong))
    errors = check.errors[number]
    try:
        shape = operator.read_header(input)
        draw = partial(draw_samples, operator, shape, number, errors, (input, expected, got))
        finding = _looks_like(check, operator, shape, number, draw)
    except (OSError, UsageError):
        return None
    few = check.values < FEWEST_VALUES and errors.zeros != errors.wrong
    where = "" if few or sloppy else f"{which_tensors(check.errors)} {where_wrong(operator, errors)}".strip()
    return Diagnosis(where, finding) if where or finding is not None else None


def _looks_like(
    check: Check, operator: Operator, shape: Shape, number: int, draw: Callable[..., list[Sample]]
) -> Finding | None:
    errors: TensorErrors = check.errors[number]
    several = check.values >= FEWEST_VALUES
    if check.nan + check.infinite == check.values or (check.nan and several):
        return _pattern("output_not_finite", count=check.nan + check.infinite, of=check.wrong)
    if errors.wrong and errors.zeros == errors.wrong:
        return _pattern("output_zero")
    if not several:
        return None
    samples, found = draw(SAMPLED_ROWS), None
    if samples:
        found = exchanged(operator, shape, number, samples) or overflown(samples)
        found = found or by_alternates(operator, shape, number, samples)
    finite = check.max_finite_error if check.infinite == 0 else None
    if found is None and finite is not None and any(each.rounding for each in operator.alternates()):
        found = by_rounding(operator, shape, number, draw(PRECISION_ROWS, only_wrong=False))
    if found is None and samples:
        found = moved(errors.tensor, samples) or scaled(errors.tensor, samples)
    close = samples and finite is not None and finite < CLOSE * errors.limit.largest
    if found is None and (close or not errors.wrong):
        found = _pattern("precision_lost", **({"error": finite} if finite is not None else {}))
    return found


def _pattern(kind: str, **values: float) -> Finding:
    return Finding(kind=kind, certainty=PATTERN, values=values)
