"""Attention in float16, bfloat16 or float8: O = softmax(scale · Q Kᵀ) V, with grouped heads, masks and packed tensors.

`grader.operators.attention.grouped` says what the header holds, `attention.problem` which query sees which keys. O has
the type of the input, or float16 if that is a float8.
"""

from __future__ import annotations

from grader.operators.attention.grouped import TYPES, GroupedAttention, dimensions


class HalfAttention(GroupedAttention):
    name = "half_attention"
    dimensions = dimensions(len(TYPES))


OPERATOR = HalfAttention()
