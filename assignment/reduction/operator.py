"""The sum of n numbers: header n; input X; output S, one number."""

import numpy as np

from grader.operators.base import Alternate, WholeOperator, size_of, vector


class Reduction(WholeOperator):
    name = "reduction"
    dimensions = (size_of("n"),)

    def inputs(self, shape):
        return (vector("X", shape[0]),)

    def outputs(self, shape):
        return (vector("S", 1),)

    def flops(self, shape):
        return shape[0]

    def oracle(self, shape, tensors, rows=slice(None)):
        return (tensors[0].sum(axis=0, keepdims=True, dtype=np.float64)[rows],)

    def alternates(self):
        return (
            Alternate("mean", "It matches the mean: do not divide by n.", lambda s, t, rows: _sum(t[0]) / s[0]),
            *(
                Alternate(
                    f"whole_{block}",
                    f"It matches the sum without the last n mod {block} numbers.",
                    lambda s, t, rows, b=block: _sum(t[0][: s[0] - s[0] % b]),
                    lambda s, b=block: s[0] % b == 0,
                )
                for block in (1024, 512, 256, 128, 64, 32, 4)
            ),
        )


def _sum(x):
    return x.sum(axis=0, keepdims=True, dtype=np.float64)


OPERATOR = Reduction()
