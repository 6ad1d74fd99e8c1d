"""Attention and its gradient: O = softmax(Q Kᵀ / √d) V and, from dO, the gradients dQ, dK and dV.

The header is B N d. For each batch, the input has Q, K, V, dO, each (N, d). The output is all O, then all dQ, all dK,
all dV, each (N, d). If P is the result of the softmax and ∘ the element-wise product,

    dV = Pᵀ dO      dP = dO Vᵀ      D_i = Σ_x dO_ix O_ix      dS = P ∘ (dP − D)
    dQ = dS K / √d                  dK = dSᵀ Q / √d

The forward pass has two products of N·N·d multiply-adds, or 4·N²·d floating-point operations. The backward pass has
five products (S again, dP, dV, dQ, dK): 2.5 times as many operations, the usual count since FlashAttention. The
exponentials are computed once in the forward pass and again in the backward pass.

Rounding errors hardly depend on the shape: a plain float32 implementation in numpy is within 5.5e-7 (O), 7.7e-7 (dQ),
8.9e-7 (dK) and 6.4e-7 (dV) of float64 for values in [−2, 2] and N from 128 to 4096 (the largest errors in 10 shapes).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.dimensions import HEAD_DIMENSION, SEQUENCE_LENGTH, OneHead, one_head
from grader.operators.attention.passes import F64, gradients, with_other_queries
from grader.operators.attention.probes import attention_probes
from grader.operators.attention.steps import gradient_steps
from grader.operators.base import Dimension, Draw, Rows, Shape, Tensors, sizes
from grader.operators.probes import MOST_ROWS, Probe
from grader.operators.steps import Steps


class AttentionGradient(OneHead):
    name = "attention_gradient"
    dimensions = (Dimension("B", "from 1 to 14000", lambda v: 1 <= v <= 14000), SEQUENCE_LENGTH, HEAD_DIMENSION)
    planar_output = True
    independent_rows = False
    differentiable = True

    names = ("Q", "K", "V", "dO"), ("O", "dQ", "dK", "dV")

    def flops(self, shape: Shape) -> int:
        b, n, d = sizes(shape)
        return 14 * b * n * n * d

    def exponentials(self, shape: Shape) -> int:
        b, n, _ = sizes(shape)
        return 2 * b * n * n

    def unavoidable(self, shape: Shape) -> tuple[int, int]:
        """A program that keeps S or P, N² numbers for each batch, need not compute them again in the backward pass."""
        b, n, d = sizes(shape)
        return 12 * b * n * n * d, b * n * n

    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[F64, ...]:
        return tuple(each[rows] for each in gradients(one_head(shape), tensors))

    def with_other_rows(
        self, shape: Shape, tensors: Tensors, outputs: Tensors, rows: NDArray[np.intp], draw: Draw
    ) -> tuple[Tensors, Tensors]:
        p = one_head(shape)
        return with_other_queries(p, tensors, outputs, rows, draw(2 * len(rows) * p.d).reshape(2, len(rows), p.d))

    def function(self, shape: Shape, tensors: Sequence[F64]) -> F64:
        q, k, v = tensors[:3]
        weights = q @ k.T / math.sqrt(q.shape[1])
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True) @ v)

    def steps(self, shape: Shape, units: Sequence[Tensors]) -> Steps:
        _, n, d = sizes(shape)
        return gradient_steps(units, n, d, 1 / math.sqrt(d))

    def probes(self, shape: Shape) -> tuple[Probe, ...]:
        _, n, d = sizes(shape)
        return attention_probes(self, one_head, lambda units: (units, min(n, MOST_ROWS), d), gradient=True)


OPERATOR = AttentionGradient()
