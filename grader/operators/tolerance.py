"""Tolerances: the largest errors that pass for an output tensor.

A tolerance is either a largest error for every value (absolute, relative to the expected value, in units in the last
place, a sum of these, or none: `exact`), or a multiple of the errors of a plain implementation that rounds to the
tensors' type after every operation (`Operator.plain`), as in FlashAttention's tests. The second kind also limits the
root mean square, which reveals sloppy rounding before any single value is far off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

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


class ErrorRule(StrictModel):
    """The rule of an assignment: an error up to `absolute`, plus `relative` times the expected value's magnitude, plus
    `ulps` units in the last place of the expected value passes; none at all if `exact`."""

    exact: Literal[True] | None = None
    absolute: Annotated[float, Field(gt=0, lt=math.inf)] = 0.0
    relative: Annotated[float, Field(gt=0, lt=1)] = 0.0
    ulps: Annotated[int, Field(gt=0)] = 0

    @model_validator(mode="after")
    def _says_something(self) -> ErrorRule:
        if bool(self.exact) == bool(self.absolute or self.relative or self.ulps):
            raise ValueError("expected either exact: true, or some of absolute, relative and ulps")
        return self

    def limit(self, type: NumberType, magnitude: float) -> Limit:
        ulp = 2 * type.roundoff or 1.0
        return Limit(self.absolute * magnitude, relative=self.relative, ulps=self.ulps, ulp=ulp)


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
    may have been computed from the errors `plain`. A value's error may also be a share `relative` of the expected
    value, and the last `ulps` units in the last place, each `ulp` times the power of two at or below that value."""

    largest: float
    rms: float | None = None
    plain: PlainErrors | None = None
    relative: float = 0.0
    ulps: int = 0
    ulp: float = 0.0

    @property
    def is_number(self) -> bool:
        """Whether the same error is allowed everywhere."""
        return not self.relative and not self.ulps

    def allowed(self, expected: NDArray[Any]) -> Any:
        """The largest error of each of these values: one number, or an array."""
        if self.is_number:
            return self.largest
        size = np.abs(expected.astype(np.float64))
        in_units = self.ulps * self.ulp * np.ldexp(1.0, np.frexp(size)[1] - 1) if self.ulps else 0.0
        return self.largest + self.relative * size + in_units

    def __str__(self) -> str:
        """The limit in words, after "differ by more than"; '' if no difference is allowed."""
        parts = [f"{self.largest:.3g}"] if self.largest else []
        parts += [f"{self.relative:.3g} of the expected value"] if self.relative else []
        parts += [f"{self.ulps} units in the last place"] if self.ulps else []
        return " + ".join(parts)

    @property
    def match(self) -> float:
        """The largest difference at which an output still counts as equal to that of a known mistake. An absolute
        tolerance is wide compared with rounding errors, so a tenth of it is enough."""
        return max(self.largest / 10, 1e-30) if self.plain is None else self.largest


def times_plain(plain: PlainErrors, type: NumberType, values: int, factor: float) -> Limit:
    """The limit for a tensor with this number of values: `factor` times the plain errors, and a little more, since
    plain errors can be zero."""
    largest = max(factor, FEW_VALUES_FACTOR) if values < FEW_VALUES else factor
    return Limit(
        largest * plain.largest + 1e-5 * plain.magnitude + type.roundoff / 100,
        factor * plain.rms + 1e-6 * plain.magnitude + type.roundoff / 400,
        plain,
    )


def errors_of(got: NDArray[Any], expected: NDArray[Any]) -> NDArray[Any]:
    """|got − expected|, in float64 unless both are float32. Different integers never have an error of 0, even where
    float64 cannot tell them apart."""
    with np.errstate(invalid="ignore", over="ignore"):
        if got.dtype == np.float32:
            error = np.subtract(got, expected)
            return np.asarray(np.abs(error, out=error))
        error = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        if got.dtype == np.int64:
            error = np.where(got == expected, 0.0, np.maximum(error, 1.0))
        return np.asarray(error)


Tolerance = float | Limit | Mapping[str, float | Limit]
"""One limit for all output tensors of an operator, or one for each by name."""


def limit_of(tolerance: Tolerance, tensor: str) -> Limit:
    """The limit of one output tensor."""
    found = tolerance[tensor] if isinstance(tolerance, Mapping) else tolerance
    return found if isinstance(found, Limit) else Limit(found)
