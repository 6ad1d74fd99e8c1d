"""Heat in a box, step by step: header nx, ny, nz, steps; input U (nz ny, nx), output V like U after so many steps.

A step is v = u + (sum of the 6 neighbours − 6 u) / 8 for all cells inside; cells on the surface of the box stay as they are.
"""

import numpy as np

from grader.operators.base import Alternate, Tensor, WholeOperator, size_of


def _stepped(shape, tensors, steps, surface=False):
    nx, ny, nz, _ = shape
    u = tensors[0].astype(np.float64).reshape(nz, ny, nx)
    for _ in range(steps):
        padded = np.pad(u, 1, mode="edge")
        near = sum(np.roll(padded, way, axis)[1:-1, 1:-1, 1:-1] for axis in range(3) for way in (1, -1))
        v = u + (near - 6 * u) / 8
        if not surface:
            inside = (slice(1, -1),) * 3
            kept, u = u, u.copy()
            u[inside] = v[inside] if min(kept.shape) > 2 else kept[inside]
        else:
            u = v
    return u.reshape(nz * ny, nx)


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
        return (_stepped(shape, tensors, shape[3])[rows],)

    def alternates(self):
        return (
            Alternate(
                "one_step_less",
                "It matches one step less: which of the two arrays has the last step, and is every step done?",
                lambda shape, tensors, rows: _stepped(shape, tensors, shape[3] - 1)[rows],
            ),
            Alternate(
                "surface_changed",
                "It matches a box whose surface changes, too: cells at its edges must stay as they are.",
                lambda shape, tensors, rows: _stepped(shape, tensors, shape[3], surface=True)[rows],
            ),
        )


OPERATOR = Stencil3d()
