"""The softmax of every row of a matrix: y_j = exp(x_j − m) / Σ exp(x_j − m), m the row's maximum.

The header is rows, columns. The input X and the output Y are both (rows, columns). Each element counts as 4
floating-point operations (maximum, subtraction, sum, division) and one exponential.

A row of Y sums to 1, so its values are 1/columns on average, and the assignment's tolerance is relative to that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from grader.operators.base import Alternate, Dimension, Generator, Rows, Shape, Tensor, Tensors, WholeOperator, sizes
from grader.operators.steps import Steps, Sum, Weights

F64 = NDArray[np.float64]

MOST = 1 << 24
MOST_VALUES = 1 << 26
"""256 MiB of input, since the oracle computes the whole matrix at once."""


class RowSoftmax(WholeOperator):
    name = "row_softmax"
    dimensions = (
        Dimension("rows", f"from 1 to {MOST}", lambda v: 1 <= v <= MOST),
        Dimension("columns", f"from 1 to {MOST}", lambda v: 1 <= v <= MOST),
    )
    unit, units_name = "matrix", "matrices"

    def relation(self, shape: Shape) -> str:
        values = int(shape[0]) * int(shape[1])
        return f"rows × columns must be at most {MOST_VALUES:,}, found {values:,}" if values > MOST_VALUES else ""

    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        return (Tensor("X", *sizes(shape)),)

    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        return (Tensor("Y", *sizes(shape)),)

    def flops(self, shape: Shape) -> int:
        rows, columns = sizes(shape)
        return 4 * rows * columns

    def exponentials(self, shape: Shape) -> int:
        rows, columns = sizes(shape)
        return rows * columns

    def magnitude(self, shape: Shape, tensor: str) -> float:
        return 1 / shape[1]

    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[F64, ...]:
        weights = _exponentials(tensors, rows)
        weights /= weights.sum(axis=1, keepdims=True)
        return (weights,)

    def generators(self) -> Mapping[str, Generator]:
        return {"rows": _rows_apart}

    def steps(self, shape: Shape, units: Sequence[Tensors]) -> Steps:
        _, columns = sizes(shape)

        def scores(unit: int) -> F64:
            return np.asarray(units[unit][0], np.float64)

        def log(unit: int) -> F64:
            x = scores(unit)
            x = x - x.max(axis=1, keepdims=True)
            return np.asarray(x - np.log(np.exp(x).sum(axis=1, keepdims=True)))

        return Steps(
            sums=(Sum("total", "i", "j", (("Y", "ij"),), columns),),
            results={"Y": ("Y", 1.0)},
            weights=Weights("Y", "X", "total", 1.0, log, lambda row: (0, columns)),
            words={"total": "the sum of exp(x − m)", "over total": "columns"},
            columns={"X": columns},
            scores=scores,
        )

    def alternates(self) -> tuple[Alternate, ...]:
        return _ALTERNATES


def _exponentials(tensors: Tensors, rows: Rows) -> F64:
    x = tensors[0][rows].astype(np.float64)
    x -= x.max(axis=1, keepdims=True)
    return np.exp(x, out=x)


def _rows_apart(shape: Shape, random: np.random.Generator) -> tuple[NDArray[np.float32]]:
    """Each row in an interval of 20 of its own, which begins between −120 and 80."""
    begins = np.float32(200) * random.random((sizes(shape)[0], 1), np.float32) - np.float32(120)
    return (begins + np.float32(20) * random.random(sizes(shape), np.float32),)


# ---- likely mistakes ------------------------------------------------------------------------------------------

_BLOCKS = (32, 64, 128, 256, 512, 1024, 2048)
Compute = Callable[[Shape, Tensors, Rows], F64]


def _summed_over(columns: Callable[[int], slice]) -> Compute:
    """The softmax, in which every column is divided by a sum over only some of the columns."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        weights = _exponentials(tensors, rows)
        return np.asarray(weights / weights[:, columns(int(shape[1]))].sum(axis=1, keepdims=True))

    return compute


def _sum_not_rescaled(block: int) -> Compute:
    """The softmax with a running sum over blocks of columns that keeps the scale of each block's own maximum."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        x = tensors[0][rows].astype(np.float64)
        begins = np.arange(0, x.shape[1], block)
        maxima = np.maximum.accumulate(np.maximum.reduceat(x, begins, axis=1), axis=1)
        x -= np.repeat(maxima, np.diff([*begins, x.shape[1]]), axis=1)
        return np.asarray(_exponentials(tensors, rows) / np.exp(x, out=x).sum(axis=1, keepdims=True))

    return compute


def _maximum_in_one(*, inside_sum: bool) -> Compute:
    """The softmax with the maximum subtracted only inside the sum, or only outside it."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        m = tensors[0][rows].astype(np.float64).max(axis=1, keepdims=True)
        right = _exponentials(tensors, rows)
        return np.asarray(right / right.sum(axis=1, keepdims=True) * np.exp(m if inside_sum else -m))

    return compute


def _down_the_columns(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    x = tensors[0].astype(np.float64)
    weights = np.exp(x - x.max(axis=0))
    return np.asarray((weights / weights.sum(axis=0))[rows])


def _with_dimensions_exchanged(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    count, columns = sizes(shape)
    weights = _exponentials((tensors[0].reshape(columns, count),), slice(None))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(weights.reshape(count, columns)[rows])


def _over_the_matrix(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    x = tensors[0].astype(np.float64)
    return np.asarray(np.exp(x[rows] - x.max()) / np.exp(x - x.max()).sum())


def _parts() -> list[Alternate]:
    return [
        Alternate(
            f"part_of_{block}_not_summed",
            f"It matches a sum without the last (columns mod {block}) columns: the row's length is not a multiple of "
            f"{block}, and its end is missing from the sum.",
            _summed_over(lambda n, b=block: slice(0, n - n % b)),  # type: ignore[misc]
            lambda shape, b=block: shape[1] % b == 0 or shape[1] < b,  # type: ignore[misc]
            steps=("bound",),
        )
        for block in (*_BLOCKS, 4)
    ]


_ALTERNATES: tuple[Alternate, ...] = (
    Alternate(
        "not_normalised",
        "It matches exp(x − m) without the division by the row's sum.",
        lambda shape, tensors, rows: _exponentials(tensors, rows),
        lambda shape: shape[1] == 1,
        steps=("store",),
    ),
    Alternate(
        "maximum_in_the_sum_only",
        "It matches exp(x) / Σ exp(x − m): the maximum is subtracted in the sum, but not where the output is computed.",
        _maximum_in_one(inside_sum=True),
        steps=("store",),
    ),
    Alternate(
        "maximum_outside_the_sum_only",
        "It matches exp(x − m) / Σ exp(x): the maximum is subtracted where the output is computed, but not in the sum.",
        _maximum_in_one(inside_sum=False),
        steps=("total",),
    ),
    *(
        Alternate(
            f"sum_of_{block}_not_rescaled" if block > 1 else "sum_not_rescaled",
            "It matches a running sum that is not multiplied by exp(m_old − m_new) when the running maximum grows.",
            _sum_not_rescaled(block),
            lambda shape, b=block: shape[1] <= b,  # type: ignore[misc]
            steps=("total",),
        )
        for block in (1, 16, *_BLOCKS)
    ),
    Alternate(
        "down_the_columns",
        "It matches a softmax of every column: take the maximum and the sum of each row.",
        _down_the_columns,
        lambda shape: shape[0] == shape[1] == 1,
        steps=("maximum",),
    ),
    Alternate(
        "over_the_matrix",
        "It matches a softmax over the whole matrix: every row needs its own maximum and sum.",
        _over_the_matrix,
        lambda shape: shape[0] == 1,
        steps=("maximum",),
    ),
    Alternate(
        "dimensions_exchanged",
        "It matches the softmax of a matrix in which the number of rows and that of columns are exchanged: the header "
        "has the number of rows first.",
        _with_dimensions_exchanged,
        lambda shape: 1 in shape or shape[0] == shape[1],
        steps=("header",),
    ),
    Alternate(
        "input_returned",
        "It equals X: the output is a copy of the input.",
        lambda shape, tensors, rows: tensors[0][rows].astype(np.float64),
        steps=("store",),
    ),
    *_parts(),
)

OPERATOR = RowSoftmax()
