"""A sparse matrix times a vector: header rows, columns, nonzeros; input P, J, V (the matrix in CSR) and X; output Y.

Row i has the entries from P[i] to P[i + 1] − 1, each V[k] in column J[k]; a place may occur twice, and then counts twice.
"""

import numpy as np

from grader.operators.base import WholeOperator, size_of, vector
from grader.operators.number_types import I32


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
        p, j, v, x = (tensor.ravel() for tensor in tensors)
        before = np.concatenate([[0.0], np.cumsum(v.astype(np.float64) * x[j])])
        return ((before[p[1:]] - before[p[:-1]]).reshape(-1, 1)[rows],)


OPERATOR = Spmv()
