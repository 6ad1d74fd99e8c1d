"""Z = a X + Y for vectors of n numbers: header n, a; input X, Y; output Z."""

import numpy as np

from grader.operators.base import Alternate, Dimension, WholeOperator, size_of, vector


class Saxpy(WholeOperator):
    name = "saxpy"
    dimensions = (size_of("n"), Dimension("a", "from -100 to 100", lambda v: -100 <= v <= 100, real=True))

    def inputs(self, shape):
        return vector("X", shape[0]), vector("Y", shape[0])

    def outputs(self, shape):
        return (vector("Z", shape[0]),)

    def flops(self, shape):
        return 2 * shape[0]

    def oracle(self, shape, tensors, rows=slice(None)):
        x, y = (tensor[rows].astype(np.float64) for tensor in tensors)
        return (shape[1] * x + y,)

    def alternates(self):
        return (
            Alternate("a_missing", "It matches X + Y: a is missing.", lambda s, t, rows: (t[0] + t[1])[rows]),
            Alternate("a_on_y", "It matches X + a Y: a belongs to X.", lambda s, t, rows: (t[0] + s[1] * t[1])[rows]),
            Alternate("y_missing", "It matches a X: Y is missing.", lambda s, t, rows: (s[1] * t[0])[rows]),
        )


OPERATOR = Saxpy()
