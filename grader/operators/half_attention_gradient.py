"""Attention in float16 or bfloat16 and its gradient: O and, from dO, the gradients dQ, dK and dV.

`grader.operators.attention.grouped` says what the header holds, `attention.problem` which query sees which keys. The
input is Q, K, V and dO. dK and dV are sums over the queries of all heads of a group.
"""

from __future__ import annotations

from grader.operators.attention.grouped import GroupedAttention, dimensions


class HalfAttentionGradient(GroupedAttention):
    name = "half_attention_gradient"
    dimensions = dimensions(2)
    gradient = True


OPERATOR = HalfAttentionGradient()
