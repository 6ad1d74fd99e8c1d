"""Inclusive prefix sums of floats: header n; input X; output Y with y_i = x_0 + … + x_i."""

import numpy as np

from grader.operators.base import WholeOperator, size_of, vector


class ScanFloat(WholeOperator):
    name = "scan_float"
    dimensions = (size_of("n"),)
    independent_rows = False

    def inputs(self, shape):
        return (vector("X", shape[0]),)

    def outputs(self, shape):
        return (vector("Y", shape[0]),)

    def flops(self, shape):
        return shape[0]

    def oracle(self, shape, tensors, rows=slice(None)):
        return (tensors[0].cumsum(axis=0, dtype=np.float64)[rows],)

    def magnitude(self, shape, tensor):
        return max(1.0, shape[0] / 4096)  # the sums grow with the root of n, and so does the number of roundings


OPERATOR = ScanFloat()
