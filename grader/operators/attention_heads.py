"""Attention with several heads, with or without a causal mask: O = softmax(scale · Q Kᵀ) V for each batch and head.

The header is B H N d causal scale; scale is a float32. For each batch and head, the input has Q, K and V, and the
output O, each (N, d). With causal = 1, row i sees keys 0 to i. Each key that a row sees costs 4·d
floating-point operations and one exponential. A head has N² such pairs, or N(N + 1)/2 with the mask.

A unit is one head of one batch. Units are numbered across batches; sentences name batch and head.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from grader.operators.attention.grouped import SEPARATE, Problem
from grader.operators.attention.passes import F64, forward
from grader.operators.attention.probes import attention_probes
from grader.operators.attention.steps import softmax_steps
from grader.operators.base import Dimension, Operator, Rows, Shape, Tensor, Tensors, sizes
from grader.operators.number_types import F32_TYPE
from grader.operators.probes import Probe, small
from grader.operators.steps import Steps

MAX_HEADS = 65536


def _problem(shape: Shape) -> Problem:
    b, h, n, d, causal = sizes(shape[:5])
    return Problem(b, h, h, n, n, d, F32_TYPE, bool(causal), -1, SEPARATE, float(shape[5]))


class AttentionHeads(Operator):
    name = "attention_heads"
    dimensions = (
        Dimension("B", "from 1 to 65536", lambda v: 1 <= v <= MAX_HEADS),
        Dimension("H", "from 1 to 65536", lambda v: 1 <= v <= MAX_HEADS),
        Dimension("N", "from 1 to 32768", lambda v: 1 <= v <= 32768),
        Dimension("d", "16, 32, 64 or 128", lambda v: v in (16, 32, 64, 128)),
        Dimension("causal", "0 or 1", lambda v: v in (0, 1)),
        Dimension("scale", "a finite number", math.isfinite, real=True),
    )
    unit, units_name = "head", "heads"

    def relation(self, shape: Shape) -> str:
        heads = self.units(shape)
        return f"B × H must be at most {MAX_HEADS}, found {heads}" if heads > MAX_HEADS else ""

    def units(self, shape: Shape) -> int:
        return int(shape[0]) * int(shape[1])

    def unit_label(self, shape: Shape, unit: int) -> str:
        batch, head = divmod(unit, int(shape[1]))
        return f"batch {batch}, head {head}"

    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        _, _, n, d, *_ = sizes(shape)
        return Tensor("Q", n, d), Tensor("K", n, d), Tensor("V", n, d)

    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        _, _, n, d, *_ = sizes(shape)
        return (Tensor("O", n, d),)

    def exponentials(self, shape: Shape) -> int:
        b, h, n, _, causal, _ = sizes(shape)
        return b * h * (n * (n + 1) // 2 if causal else n * n)

    def flops(self, shape: Shape) -> int:
        return 4 * int(shape[3]) * self.exponentials(shape)

    def shrink(self, shape: Shape, units: int) -> Shape:
        return (1, units, *shape[2:])

    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[F64, ...]:
        return (np.asarray(forward(_problem(shape), tensors, rows)),)

    def steps(self, shape: Shape, units: Sequence[Tensors]) -> Steps:
        _, _, n, d, causal = sizes(shape[:5])
        return softmax_steps(units, n, n, d, float(shape[5]), lambda row: (0, row + 1 if causal else n))

    def probes(self, shape: Shape) -> tuple[Probe, ...]:
        _, h, n, *_ = sizes(shape[:5])

        def shaped(units: int) -> Shape:
            heads = min(h, units)
            return (2 if units == 2 else -(-units // heads), heads, small(n), *shape[3:])

        return attention_probes(self, _problem, shaped)


OPERATOR = AttentionHeads()
