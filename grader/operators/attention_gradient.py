"""Attention and its gradient: O = softmax(Q Kᵀ / √d) V and, from dO, the gradients dQ, dK and dV.

The header is B N d. For each batch, the input has Q, K, V, dO, each (N, d). The output is all O, then all dQ, all dK,
all dV, each (N, d).

Rounding errors hardly depend on the shape: a plain float32 implementation in numpy is within 5.5e-7 (O), 7.7e-7 (dQ),
8.9e-7 (dK) and 6.4e-7 (dV) of float64 for values in [−2, 2] and N from 128 to 4096 (the largest errors in 10 shapes).
"""

from __future__ import annotations

from grader.operators.attention.one_head import HEAD_DIMENSION, SEQUENCE_LENGTH, OneHead
from grader.operators.base import size_of


class AttentionGradient(OneHead):
    name = "attention_gradient"
    dimensions = (size_of("B", 14000), SEQUENCE_LENGTH, HEAD_DIMENSION)
    planar_output = True
    gradient = True


OPERATOR = AttentionGradient()
