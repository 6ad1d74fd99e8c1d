"""A filter over a picture: header rows, columns, K (odd); input X (rows, columns), F (K, K); output Y like X.

y_ij = Σ f_ab x_{i+a−K/2, j+b−K/2}; x is 0 outside of the picture. (Signal processing calls this a correlation.)
"""

import numpy as np

from grader.operators.base import Alternate, Dimension, Tensor, WholeOperator, size_of


def _filtered(x, f, rows, mode="constant"):
    half = len(f) // 2
    padded = np.pad(x.astype(np.float64), half, mode=mode)
    chosen = np.arange(len(x))[rows]
    result = np.zeros((len(chosen), x.shape[1]))
    for (a, b), weight in np.ndenumerate(f.astype(np.float64)):
        result += weight * padded[chosen + a, b : b + x.shape[1]]
    return result


class Convolution(WholeOperator):
    name = "convolution"
    dimensions = (
        size_of("rows", 1 << 15),
        size_of("columns", 1 << 15),
        Dimension("K", "an odd number from 1 to 15", lambda v: 1 <= v <= 15 and v % 2 == 1),
    )

    def inputs(self, shape):
        return Tensor("X", shape[0], shape[1]), Tensor("F", shape[2], shape[2])

    def outputs(self, shape):
        return (Tensor("Y", shape[0], shape[1]),)

    def flops(self, shape):
        return 2 * shape[0] * shape[1] * shape[2] ** 2

    def oracle(self, shape, tensors, rows=slice(None)):
        return (_filtered(*tensors, rows),)

    def alternates(self):
        return (
            Alternate(
                "flipped",
                "It matches the filter turned by 180 degrees: f_ab belongs to x_{i+a−K/2, j+b−K/2}.",
                lambda s, tensors, rows: _filtered(tensors[0], tensors[1][::-1, ::-1], rows),
                lambda shape: shape[2] == 1,
            ),
            Alternate(
                "filter_transposed",
                "It matches the transposed filter: a is its row and goes with i.",
                lambda s, tensors, rows: _filtered(tensors[0], tensors[1].T, rows),
                lambda shape: shape[2] == 1,
            ),
            Alternate(
                "edge_repeated",
                "It matches a picture whose edges go on outside of it: there x is 0.",
                lambda s, tensors, rows: _filtered(*tensors, rows, "edge"),
                lambda shape: shape[2] == 1,
            ),
        )


OPERATOR = Convolution()
