"""Launches grouped_oracle.cu: the oracle of attention in half precision, and of its gradient, on a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from grader.operators.attention.problem import Problem
from grader.operators.base import GpuOracle, Kernel
from grader.operators.number_types import BF16

SOURCE = Path(__file__).with_name("grouped_oracle.cu")

# The source's tiles, and the size of its struct Statistics.
_ROWS, _TILE, _THREADS = 32, 16, 128
_STATISTICS_BYTES = 40


def grouped_oracle(p: Problem, *, gradient: bool) -> GpuOracle:
    """The kernels for the forward pass, or for both passes."""
    rows = p.rows

    def kernel(name: str, count: int, per_block: int, tensors: int) -> Kernel:
        """A kernel whose blocks each compute `per_block` of a unit's `count` rows, and hold `tensors` rows in shared
        memory."""
        blocks = -(-count // per_block)
        return Kernel(name, lambda units: (units * blocks, 1, 1), (_THREADS, 1, 1), 4 * tensors * (p.d + 1))

    kernels = [kernel("half_attention", rows, _ROWS, _ROWS + 2 * _TILE)]
    if gradient:
        kernels += [
            kernel("half_attention_queries", rows, _ROWS, 2 * _ROWS + 2 * _TILE),
            kernel("half_attention_keys", p.keys, _TILE, 4 * _TILE),
        ]
    numbers = (p.group, p.queries, p.keys, p.causal, p.window, p.output_type is BF16)
    return GpuOracle(
        source=SOURCE,
        kernels=tuple(kernels),
        defines={"D": p.d, **({"GRADIENT": 1} if gradient else {})},
        arguments=(*map(np.int32, numbers), np.float32(p.scale)),
        scratch_bytes=_STATISTICS_BYTES * rows,
        plain=True,
    )
