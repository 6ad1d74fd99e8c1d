"""Tolerances: the largest errors that pass for an output tensor.

A tolerance is either a largest error for every value, or a multiple of the errors of a plain implementation that rounds
to the tensors' type after every operation (`Operator.plain`), as in FlashAttention's tests. The second kind also limits
the root mean square, which reveals sloppy rounding before any single value is far off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from grader.base.errors import UsageError
from grader.base.yaml_model import StrictModel
from grader.operators.number_types import NumberType

Factor = Annotated[float, Field(gt=0, le=1000)]

FEW_VALUES = 128
FEW_VALUES_FACTOR = 3.0
"""With few values, the largest error varies a lot between correct programs, so three times the
plain implementation's passes."""


class TimesPlain(StrictModel):
    """The rule of an assignment: errors up to this many times those of the plain implementation pass. One factor for
    all output tensors, or one for each by name."""

    times_plain: Factor | dict[str, Factor]

    def of(self, tensor: str) -> float:
        return limit_of(self.times_plain, tensor).largest


@dataclass(frozen=True)
class PlainErrors:
    """The errors of a plain implementation's output tensor: the largest, their root mean square, and the largest
    magnitude of a right value."""

    largest: float
    rms: float
    magnitude: float


@dataclass(frozen=True)
class ErrorSums:
    """The sums from which `PlainErrors` are computed, for part of a tensor. The sums of several parts can be added."""

    count: int = 0
    largest: float = 0.0
    squares: float = 0.0
    magnitude: float = 0.0

    def __add__(self, other: ErrorSums) -> ErrorSums:
        return ErrorSums(
            self.count + other.count,
            max(self.largest, other.largest),
            self.squares + other.squares,
            max(self.magnitude, other.magnitude),
        )

    @property
    def errors(self) -> PlainErrors:
        return PlainErrors(self.largest, (self.squares / max(1, self.count)) ** 0.5, self.magnitude)


def error_sums(got: NDArray[np.float32], right: NDArray[np.float64]) -> ErrorSums:
    """Sum up the errors of finite values."""
    if not right.size:
        return ErrorSums()
    error = np.abs(got - right).ravel()
    return ErrorSums(error.size, float(error.max()), float(error @ error), float(np.abs(right).max()))


@dataclass(frozen=True)
class Limit:
    """The limits for one output tensor: on the largest |got − expected| and, unless None, on the root mean square. Both
    may have been computed from the errors `plain`."""

    largest: float
    rms: float | None = None
    plain: PlainErrors | None = None

    @property
    def match(self) -> float:
        """The largest difference at which an output still counts as equal to that of a known mistake. An absolute
        tolerance is wide compared with rounding errors, so a tenth of it is enough."""
        return self.largest / 10 if self.plain is None else self.largest


def times_plain(plain: PlainErrors, type: NumberType, values: int, factor: float) -> Limit:
    """The limit for a tensor with this number of values: `factor` times the plain errors, and a little more, since
    plain errors can be zero."""
    largest = max(factor, FEW_VALUES_FACTOR) if values < FEW_VALUES else factor
    return Limit(
        largest * plain.largest + 1e-5 * plain.magnitude + type.roundoff / 100,
        factor * plain.rms + 1e-6 * plain.magnitude + type.roundoff / 400,
        plain,
    )


Tolerance = float | Limit | Mapping[str, float | Limit]
"""One limit for all output tensors of an operator, or one for each by name."""


def limit_of(tolerance: Tolerance, tensor: str) -> Limit:
    """The limit of one output tensor."""
    if isinstance(tolerance, Mapping):
        if tensor not in tolerance:
            raise UsageError(
                f"No tolerance is given for output tensor {tensor}; given: {', '.join(tolerance) or 'none'}."
            )
        tolerance = tolerance[tensor]
    return tolerance if isinstance(tolerance, Limit) else Limit(tolerance)
