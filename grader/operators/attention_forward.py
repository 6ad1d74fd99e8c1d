"""Attention, forward: O_i = softmax(Q_i K_iᵀ / √d) V_i for each batch i.

The header is B N d. For each batch, the input has Q, K, V, and the output O, each (N, d). The cost counts as 4·B·N²·d
floating-point operations (two matrix products) and B·N² exponentials.
"""

from __future__ import annotations

from grader.operators.attention.one_head import HEAD_DIMENSION, SEQUENCE_LENGTH, OneHead
from grader.operators.base import size_of


class AttentionForward(OneHead):
    name = "attention_forward"
    dimensions = (size_of("B", 14000, least=2), SEQUENCE_LENGTH, HEAD_DIMENSION)


OPERATOR = AttentionForward()
