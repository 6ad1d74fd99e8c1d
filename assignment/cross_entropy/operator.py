"""Cross-entropy, forward and backward: header rows, classes; input L (rows, classes), bfloat16, and T, rows int64; output
loss, rows float32, and dL, the gradient of the mean loss, like L.

loss_i = m_i + log Σ exp(l_ij − m_i) − l_{i t_i}, with m_i the row's maximum; dL_ij = (softmax(l_i)_j − [j = t_i]) / rows.
"""

import numpy as np

from grader.operators.base import Alternate, Tensor, WholeOperator, size_of, vector
from grader.operators.number_types import BF16, I64


def _exact(shape, tensors, rows=slice(None), target=1.0):
    logits = tensors[0][rows].astype(np.float64)
    targets = tensors[1].ravel()[rows]
    places = np.arange(len(logits)), targets
    shifted = logits - logits.max(axis=1, keepdims=True)
    weights = np.exp(shifted)
    total = weights.sum(axis=1, keepdims=True)
    loss = np.log(total) - shifted[places].reshape(-1, 1)
    gradient = weights / total
    gradient[places] -= target
    return loss, gradient / shape[0]


class CrossEntropy(WholeOperator):
    name = "cross_entropy"
    dimensions = (size_of("rows", 1 << 20), size_of("classes", 1 << 20))
    planar_output = True

    def inputs(self, shape):
        return Tensor("L", shape[0], shape[1], type=BF16), vector("T", shape[0], I64)

    def outputs(self, shape):
        return vector("loss", shape[0]), Tensor("dL", shape[0], shape[1], type=BF16)

    def flops(self, shape):
        return 5 * shape[0] * shape[1]

    def exponentials(self, shape):
        return shape[0] * shape[1]

    def oracle(self, shape, tensors, rows=slice(None)):
        return _exact(shape, tensors, rows)

    def generators(self):
        return {"rows": _rows}

    def alternates(self):
        return (
            Alternate(
                "not_a_mean",
                "dL matches the gradient of the sum of all losses: divide by the number of rows.",
                lambda shape, tensors, rows: _exact(shape, tensors, rows)[1] * shape[0],
                lambda shape: shape[0] == 1,
                tensor=1,
            ),
            Alternate(
                "target_missing",
                "dL matches the softmax alone: 1 has to be taken off at the target.",
                lambda shape, tensors, rows: _exact(shape, tensors, rows, target=0.0)[1],
                tensor=1,
            ),
        )


def _rows(shape, random):
    """Logits of a trained network: spread by some units around a place of each row's own, somewhere between ±100."""
    places = random.random((shape[0], 1)) * 200 - 100
    return places + 3 * random.standard_normal(shape), random.integers(0, shape[1], shape[0])


OPERATOR = CrossEntropy()
