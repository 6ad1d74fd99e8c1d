"""A sparse matrix times a vector: header rows, columns, nonzeros; input P, J, V (the matrix in CSR) and X; output Y.

Row i has the entries from P[i] to P[i + 1] − 1, each V[k] in column J[k]; a place may occur twice, and then counts twice.
"""

import numpy as np

from grader.operators.base import Alternate, WholeOperator, size_of, vector
from grader.operators.number_types import I32


def _product(shape, tensors, x=None, ends=0):
    p, j, v, own = (tensor.ravel() for tensor in tensors)
    products = v.astype(np.float64) * (own[j] if x is None else x)
    before = np.concatenate([[0.0], np.cumsum(products)])
    last = np.maximum(p[1:] - ends, p[:-1])
    return (before[last] - before[p[:-1]]).reshape(-1, 1)


class Spmv(WholeOperator):
    name = "spmv"
    dimensions = (size_of("rows"), size_of("columns"), size_of("nonzeros"))
    independent_rows = False

    def inputs(self, shape):
        rows, columns, nonzeros = shape
        matrix = vector("P", rows + 1, I32), vector("J", nonzeros, I32), vector("V", nonzeros)
        return *matrix, vector("X", columns)

    def outputs(self, shape):
        return (vector("Y", shape[0]),)

    def flops(self, shape):
        return 2 * shape[2]

    def oracle(self, shape, tensors, rows=slice(None)):
        return (_product(shape, tensors)[rows],)

    def alternates(self):
        return (
            Alternate(
                "last_entry_missing",
                "It matches sums without the last entry of each row: row i ends before P[i + 1].",
                lambda shape, tensors, rows: _product(shape, tensors, ends=1)[rows],
            ),
            Alternate(
                "x_by_place",
                "It matches V[k] X[k]: the column of entry k is J[k].",
                lambda shape, t, rows: _product(shape, t, t[3].ravel()[np.arange(shape[2]) % shape[1]])[rows],
            ),
        )


OPERATOR = Spmv()
