"""Heat in a box, step by step: header nx, ny, nz, steps; input U (nz ny, nx), output V like U after so many steps.

A step is v = u + (sum of the 6 neighbours − 6 u) / 8 for all cells inside; cells on the surface of the box stay as they are.
"""

import numpy as np

from grader.operators.base import Tensor, WholeOperator, size_of


class Stencil3d(WholeOperator):
    name = "stencil3d"
    dimensions = (size_of("nx", 4096), size_of("ny", 4096), size_of("nz", 4096), size_of("steps", 1000))
    independent_rows = False

    def relation(self, shape):
        cells = shape[0] * shape[1] * shape[2]
        return f"nx × ny × nz must be at most 2^28, found {cells:,}" if cells > 1 << 28 else ""

    def inputs(self, shape):
        return (Tensor("U", shape[1] * shape[2], shape[0]),)

    def outputs(self, shape):
        return (Tensor("V", shape[1] * shape[2], shape[0]),)

    def flops(self, shape):
        return 8 * shape[0] * shape[1] * shape[2] * shape[3]

    def oracle(self, shape, tensors, rows=slice(None)):
        nx, ny, nz, steps = shape
        u = tensors[0].astype(np.float64).reshape(nz, ny, nx)
        v = u.copy()
        for _ in range(steps if min(nx, ny, nz) > 2 else 0):
            for z in range(1, nz - 1):  # a plane stays in the cache: the whole array takes eight times as long
                near = u[z - 1, 1:-1, 1:-1] + u[z + 1, 1:-1, 1:-1]
                near += u[z, :-2, 1:-1]
                near += u[z, 2:, 1:-1]
                near += u[z, 1:-1, :-2]
                near += u[z, 1:-1, 2:]
                v[z, 1:-1, 1:-1] = near / 8 + u[z, 1:-1, 1:-1] / 4
            u, v = v, u
        return (u.reshape(nz * ny, nx)[rows],)


OPERATOR = Stencil3d()
