"""Inclusive prefix sums: header n; input X, n int32; output Y with y_i = x_0 + … + x_i."""

import numpy as np

from grader.operators.base import Alternate, WholeOperator, size_of, vector
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

    def alternates(self):
        return (
            Alternate(
                "exclusive",
                "It matches the exclusive sums, without the element itself: y_i ends with x_i.",
                lambda shape, tensors, rows: (tensors[0].cumsum(axis=0, dtype=np.int64) - tensors[0])[rows],
            ),
            *(
                Alternate(
                    f"blocks_of_{block}",
                    f"It matches sums that begin again every {block} elements: the sums of the blocks before are missing.",
                    lambda shape, tensors, rows, b=block: _blocks(tensors[0], b)[rows],
                    lambda shape, b=block: shape[0] <= b,
                )
                for block in (256, 512, 1024, 2048, 4096)
            ),
        )


def _blocks(x, block):
    whole = x.cumsum(axis=0, dtype=np.int64)
    begins = np.arange(len(x)) // block * block
    return whole - (whole - x)[begins]


OPERATOR = Scan()
