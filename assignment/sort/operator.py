"""Numbers in ascending order: header n; input X, n int32; output Y."""

import numpy as np

from grader.operators.base import Alternate, WholeOperator, size_of, vector
from grader.operators.number_types import I32


class Sort(WholeOperator):
    name = "sort"
    dimensions = (size_of("n"),)
    independent_rows = False

    def inputs(self, shape):
        return (vector("X", shape[0], I32),)

    def outputs(self, shape):
        return (vector("Y", shape[0], I32),)

    def flops(self, shape):
        return shape[0] * max(1, int(shape[0]).bit_length())  # comparisons, as a merge sort makes them

    def unavoidable(self, shape):
        return 0, 0  # a radix sort compares nothing

    def oracle(self, shape, tensors, rows=slice(None)):
        return (np.sort(tensors[0], axis=0)[rows],)

    def alternates(self):
        return (
            Alternate(
                "descending",
                "It matches the descending order.",
                lambda shape, tensors, rows: np.sort(tensors[0], axis=0)[::-1][rows],
            ),
            Alternate(
                "unsigned",
                "It matches an order in which negative numbers come last, as if they had no sign.",
                lambda shape, tensors, rows: np.sort(tensors[0].view(np.uint32), axis=0).view(np.int32)[rows],
            ),
        )


OPERATOR = Sort()
