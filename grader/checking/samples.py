"""Some wrong rows of an output, with the data that may explain them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.checking.scan import TensorErrors
from grader.operators import Operator, Shape
from grader.operators.tolerance import Limit, errors_of
from grader.sandbox.quarantine import open_output

SAMPLED_UNITS, NEAR_UNITS = 3, 16
"""A wrong unit is compared with both ends and with so many units before and after it."""
FEWEST_ERRORS = 16
"""Fewer errors can correlate, or match a mistake, by chance."""
RTOL = 1e-3
"""The relative difference up to which a sampled value counts as equal, in addition to the absolute one (`Limit.match`).
float32 attention is within 1e-5 of float64."""
CLOSE = 20
"""Values whose errors are less than so many times the allowed one lost precision; they are not other values."""

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """Some wrong rows of one unit, with the data that may explain them."""

    unit: int
    near: Limit
    """The differences up to which values count as equal."""
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    """The columns with wrong values: a mistake may affect only some of a thread's accumulators. All columns if so few
    values are wrong that one of many mistakes could match them by chance."""
    tensors: tuple[F32, ...]
    got: F32
    """The rows, as written."""
    right: F32
    numbers: list[int]
    others: F32
    """The whole expected outputs of this unit and of a few others, with their `numbers`."""


def draw_samples(
    operator: Operator,
    shape: Shape,
    number: int,
    errors: TensorErrors,
    files: tuple[Path, Path, Path],
    most_rows: int,
    *,
    only_wrong: bool = True,
) -> list[Sample]:
    """Sample wrong rows of wrong units or, unless `only_wrong`, any rows of any units. Empty if a file ends early. The
    files are the input, the expected output, and the output."""
    input, expected, got = files
    right_layout, layout = operator.expected_layouts(shape)[number], operator.output_layouts(shape)[number]
    whole, roundoff = layout.type.is_integer, layout.type.roundoff
    near = Limit(0.5) if whole else Limit(errors.limit.match, relative=max(RTOL, 2 * roundoff))
    few = errors.wrong < FEWEST_ERRORS
    columns = np.arange(len(errors.by_column)) if few else np.flatnonzero(errors.by_column)
    wrong_units = np.flatnonzero(errors.by_unit) if only_wrong else np.arange(len(errors.by_unit))
    last, samples = operator.units(shape) - 1, []
    with (
        os.fdopen(open_output(got), "rb", buffering=0) as output,
        input.open("rb") as source,
        expected.open("rb") as kept,
    ):
        if not stat.S_ISREG(os.fstat(output.fileno()).st_mode):
            return []
        for unit in spread(wrong_units, SAMPLED_UNITS).tolist():
            close = sorted({0, last, *range(max(0, unit - NEAR_UNITS), min(unit + NEAR_UNITS, last) + 1)})
            found = [right_layout.read(kept.fileno(), each) for each in close]
            units = [values for values in found if values is not None]
            mine = layout.read(output.fileno(), unit)
            if mine is None or len(units) < len(close):
                return []
            others, right = np.stack(units), units[close.index(unit)]
            wrong = ~(errors_of(mine, right) <= errors.limit.allowed(right)).all(axis=1)
            rows = spread(np.flatnonzero(wrong) if only_wrong else np.arange(len(mine)), most_rows)
            if len(rows):
                tensors = operator.read_unit(source, shape, unit)
                samples.append(Sample(unit, near, rows, columns, tensors, mine[rows], right[rows], close, others))
    return samples


def spread(places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """At most so many of the places, evenly spaced, with the first and the last."""
    return places[np.unique(np.linspace(0, len(places) - 1, most).astype(int))] if len(places) else places


def distance(got: F32 | F64, alternate: F32 | F64, near: Limit) -> float:
    """The largest difference, as a multiple of the allowed one; 1 or less is a match. An infinite value matches one
    beyond float32's range."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        shares = np.abs(got - alternate) / near.allowed(alternate)
        largest = float(np.where(np.isinf(got) & (alternate.astype(np.float32) == got), 0.0, shares).max())
    return largest if np.isfinite(largest) else np.inf
