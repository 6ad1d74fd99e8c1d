"""Attention with several heads, with or without a causal mask: O = softmax(scale · Q Kᵀ) V for each batch and head.

The header is B H N d causal scale; scale is a float32. For each batch and head, the input has Q, K and V, and the
output O, each (N, d). With causal = 1, row i sees keys 0 to i. Each key that a row sees costs 4·d
floating-point operations and one exponential. A head has N² such pairs, or N(N + 1)/2 with the mask.

A unit is one head of one batch. Units are numbered across batches; sentences name batch and head.
"""

from __future__ import annotations

import math

from grader.operators.attention.operator import Attention
from grader.operators.attention.problem import SEPARATE, Problem
from grader.operators.base import Dimension, Shape, size_of, sizes
from grader.operators.number_types import F32_TYPE
from grader.operators.probes import small

MAX_HEADS = 65536


class AttentionHeads(Attention):
    name = "attention_heads"
    dimensions = (
        size_of("B", MAX_HEADS),
        size_of("H", MAX_HEADS),
        size_of("N", 32768),
        Dimension("d", "16, 32, 64 or 128", lambda v: v in (16, 32, 64, 128)),
        Dimension("causal", "0 or 1", lambda v: v in (0, 1)),
        Dimension("scale", "a finite number", math.isfinite, real=True),
    )
    unit, units_name = "head", "heads"

    def relation(self, shape: Shape) -> str:
        heads = self.units(shape)
        return f"B × H must be at most {MAX_HEADS}, found {heads}" if heads > MAX_HEADS else ""

    def numbers(self, shape: Shape) -> Problem:
        b, h, n, d, causal = sizes(shape[:5])
        return Problem(b, h, h, n, n, d, F32_TYPE, bool(causal), -1, SEPARATE, float(shape[5]))

    def shrink(self, shape: Shape, units: int) -> Shape:
        return (1, units, *shape[2:])

    def probed_shape(self, shape: Shape, units: int) -> Shape:
        heads = min(int(shape[1]), units)
        return (2 if units == 2 else -(-units // heads), heads, small(int(shape[2])), *shape[3:])


OPERATOR = AttentionHeads()
