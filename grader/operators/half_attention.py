"""Attention in float16, bfloat16 or float8: O = softmax(scale · Q Kᵀ) V, with grouped heads, masks and packed tensors.

`grader.operators.attention.grouped` says what the header holds and which query sees which keys. O has the type of the
input, or float16 if that is a float8. Each pair of a query and a key that it sees costs 4·d floating-point operations
and one exponential.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.grouped import (
    TYPES,
    GroupedOperator,
    dimensions,
    operands,
    probed_shape,
    problem_of,
    query_tensor,
)
from grader.operators.attention.grouped_oracle import grouped_oracle
from grader.operators.attention.passes import forward, plain_way
from grader.operators.attention.precision_mistakes import precision_mistakes
from grader.operators.attention.probes import attention_probes
from grader.operators.base import Alternate, GpuOracle, Rows, Shape, Tensor, Tensors
from grader.operators.probes import Probe


class HalfAttention(GroupedOperator):
    name = "half_attention"
    dimensions = dimensions(len(TYPES))

    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        p = problem_of(shape)
        return operands(p, ("Q", "K", "V"), p.type)

    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        p = problem_of(shape)
        return (query_tensor(p, "O", p.output_type),)

    def exponentials(self, shape: Shape) -> int:
        return self.pairs(shape)

    def flops(self, shape: Shape) -> int:
        return 4 * problem_of(shape).d * self.pairs(shape)

    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[NDArray[np.float64], ...]:
        return (forward(problem_of(shape), tensors, rows),)

    def plain(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[NDArray[np.float32], ...]:
        p = problem_of(shape)
        return (forward(p, tensors, rows, plain_way(p)),)

    def gpu_oracle(self, shape: Shape, largest: float) -> GpuOracle | None:
        return grouped_oracle(problem_of(shape), gradient=False)

    def probes(self, shape: Shape) -> tuple[Probe, ...]:
        return attention_probes(self, problem_of, lambda units: probed_shape(shape, units))

    def alternates(self) -> tuple[Alternate, ...]:
        return tuple(precision_mistakes())


OPERATOR = HalfAttention()
