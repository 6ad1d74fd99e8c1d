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

SAMPLED_UNITS = 3
COMPARED_UNITS = 16
"""Up to this many units, a wrong unit is compared with all others; with more, only with its neighbours and both
ends."""
FEWEST_ERRORS = 16
"""Fewer errors can correlate, or match a mistake, by chance."""
RTOL = 1e-3
"""The relative difference up to which a sampled value counts as equal, in addition to the absolute one (`Limit.match`).
float32 attention is within 1e-5 of float64."""

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Nearness:
    """The largest absolute and relative differences at which values count as equal."""

    atol: float
    rtol: float


@dataclass(frozen=True)
class Sample:
    """Some wrong rows of one unit, with the data that may explain them."""

    unit: int
    near: Nearness
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    """The columns with wrong values: a mistake may affect only some of a thread's accumulators. All columns if so few
    values are wrong that one of many mistakes could match them by chance."""
    tensors: tuple[F32, ...]
    got: F32
    """The unit's whole output tensor, as written."""
    expected: F32
    others: dict[int, F32]
    """Expected outputs of a few other units."""


def draw_samples(
    operator: Operator,
    shape: Shape,
    number: int,
    errors: TensorErrors,
    input: Path,
    expected: Path,
    got: Path,
    most_rows: int,
    *,
    only_wrong: bool = True,
) -> list[Sample]:
    """Sample wrong rows of wrong units or, unless `only_wrong`, any rows of any units."""
    wrong_units = np.flatnonzero(errors.by_unit) if only_wrong else np.arange(len(errors.by_unit))
    right_layout, layout = operator.expected_layouts(shape)[number], operator.output_layouts(shape)[number]
    near = Nearness(errors.limit.match, max(RTOL, 2 * layout.type.roundoff))
    if layout.type.is_integer:
        near = Nearness(0.5, 0.0)
    chosen = np.unique(wrong_units[np.linspace(0, len(wrong_units) - 1, SAMPLED_UNITS).astype(int)])
    few = errors.wrong < FEWEST_ERRORS
    columns = np.arange(len(errors.by_column)) if few else np.flatnonzero(errors.by_column)
    last = operator.units(shape) - 1
    output = open_output(got)
    try:
        found = os.fstat(output)
        if not stat.S_ISREG(found.st_mode):
            return []
        with input.open("rb") as source, expected.open("rb") as kept:
            samples = []
            for unit in (int(u) for u in chosen):
                tensors = operator.read_unit(source, shape, unit)
                mine = layout.read(output, unit)
                right = right_layout.read(kept.fileno(), unit)
                if mine is None or right is None:
                    return []
                wrong_rows = _wrong_rows(mine, right, errors.limit) if only_wrong else np.arange(len(mine))
                if not len(wrong_rows):
                    continue
                picks = np.unique(np.linspace(0, len(wrong_rows) - 1, most_rows).astype(int))
                others = {}
                close = set(range(last + 1)) if last < COMPARED_UNITS else {0, unit - 1, unit + 1, last}
                for other in close - {unit}:
                    if 0 <= other <= last:
                        values = right_layout.read(kept.fileno(), other)
                        if values is not None:
                            others[other] = values
                rows = wrong_rows[picks]
                samples.append(Sample(unit, near, rows, columns, tensors, mine, right, others))
            return samples
    finally:
        os.close(output)


def _wrong_rows(got: F32, expected: F32, limit: Limit) -> NDArray[np.intp]:
    return np.flatnonzero(~(errors_of(got, expected) <= limit.allowed(expected)).all(axis=1))


CLOSE = 20
"""Values whose errors are less than so many times the allowed one lost precision; they are not other values."""


def distance(got: F32, alternate: F32 | F64, near: Nearness) -> float:
    """The largest difference, as a multiple of the allowed one; 1 or less is a match. An infinite value matches one
    beyond float32's range."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        shares = np.abs(got - alternate) / (near.atol + near.rtol * np.abs(alternate))
        largest = float(np.where(np.isinf(got) & (alternate.astype(np.float32) == got), 0.0, shares).max())
    return largest if np.isfinite(largest) else np.inf
