"""Inclusive prefix sums: header n; input X, n int32; output Y with y_i = x_0 + … + x_i."""

import numpy as np

from grader.operators.base import WholeOperator, size_of, vector
from grader.operators.number_types import I32


class Scan(WholeOperator):
    name = "scan"
    dimensions = (size_of("n"),)
    independent_rows = False

    def inputs(self, shape):
        return (vector("X", shape[0], I32),)

    def outputs(self, shape):
        return (vector("Y", shape[0], I32),)

    def flops(self, shape):
        return shape[0]

    def oracle(self, shape, tensors, rows=slice(None)):
        return (tensors[0].cumsum(axis=0, dtype=np.int64)[rows],)


OPERATOR = Scan()
