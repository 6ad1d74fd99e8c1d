"""How often each of 256 values occurs: header n; input X, n uint8; output H, 256 int32."""

import numpy as np

from grader.operators.base import WholeOperator, size_of, vector
from grader.operators.number_types import I32, U8

BINS = 256


class Histogram(WholeOperator):
    name = "histogram"
    dimensions = (size_of("n"),)
    independent_rows = False

    def inputs(self, shape):
        return (vector("X", shape[0], U8),)

    def outputs(self, shape):
        return (vector("H", BINS, I32),)

    def flops(self, shape):
        return shape[0]

    def oracle(self, shape, tensors, rows=slice(None)):
        return (np.bincount(tensors[0].ravel(), minlength=BINS).reshape(BINS, 1)[rows],)


OPERATOR = Histogram()
