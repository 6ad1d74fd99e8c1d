"""The softmax of every row of a matrix: y_j = exp(x_j − m) / Σ exp(x_j − m), m the row's maximum.

The header is rows, columns. The input X and the output Y are both (rows, columns). Each element counts as 4
floating-point operations (maximum, subtraction, sum, division) and one exponential.

A row of Y sums to 1, so its values are 1/columns on average, and the assignment's tolerance is relative to that.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from grader.operators.base import Generator, Rows, Shape, Tensor, Tensors, WholeOperator, size_of, sizes
from grader.operators.steps import Steps, Sum, Weights

F64 = NDArray[np.float64]

MOST_VALUES = 1 << 26
"""256 MiB of input, since the oracle computes the whole matrix at once."""


class RowSoftmax(WholeOperator):
    name = "row_softmax"
    dimensions = (size_of("rows", 1 << 24), size_of("columns", 1 << 24))
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
        y = tensors[0][rows].astype(np.float64)
        y -= y.max(axis=1, keepdims=True)
        np.exp(y, out=y)
        y /= y.sum(axis=1, keepdims=True)
        return (y,)

    def generators(self) -> Mapping[str, Generator]:
        return {"rows": _rows_apart}

    def steps(self, shape: Shape) -> Steps:
        _, columns = sizes(shape)
        return Steps(
            sums=(Sum("total", "i", "j", (("Y", "ij"),), columns),),
            results={"Y": ("Y", 1.0)},
            weights=Weights("Y", "X", "total", 1.0, lambda row: (0, columns)),
            words={"total": "the sum of exp(x − m)", "over total": "columns"},
        )


def _rows_apart(shape: Shape, random: np.random.Generator) -> tuple[NDArray[np.float32]]:
    """Each row in an interval of 20 of its own, which begins between −120 and 80."""
    begins = np.float32(200) * random.random((sizes(shape)[0], 1), np.float32) - np.float32(120)
    return (begins + np.float32(20) * random.random(sizes(shape), np.float32),)


OPERATOR = RowSoftmax()
