"""Attention in float16 or bfloat16 and its gradient: O and, from dO, the gradients dQ, dK and dV.

`grader.operators.attention.grouped` says what the header holds and which query sees which keys. The input is Q, K, V
and dO. dK and dV are sums over the queries of all heads of a group. Each pair of a query and a key that it sees costs
14·d floating-point operations: two products forward, five backward, which need the scores again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.grouped import (
    GroupedOperator,
    dimensions,
    operands,
    probed_shape,
    problem_of,
    query_tensor,
)
from grader.operators.attention.grouped_oracle import grouped_oracle
from grader.operators.attention.passes import forward, gradients, plain_way, with_other_queries
from grader.operators.attention.precision_mistakes import precision_mistakes
from grader.operators.attention.probes import attention_probes
from grader.operators.base import Alternate, Draw, GpuOracle, Rows, Shape, Tensor, Tensors
from grader.operators.probes import Probe


class HalfAttentionGradient(GroupedOperator):
    name = "half_attention_gradient"
    dimensions = dimensions(2)
    independent_rows = False
    differentiable = True

    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        p = problem_of(shape)
        return (*operands(p, ("Q", "K", "V"), p.type), query_tensor(p, "dO", p.type))

    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        p = problem_of(shape)
        return (query_tensor(p, "O", p.type), *operands(p, ("dQ", "dK", "dV"), p.type))

    def exponentials(self, shape: Shape) -> int:
        return 2 * self.pairs(shape)

    def flops(self, shape: Shape) -> int:
        return 14 * problem_of(shape).d * self.pairs(shape)

    def unavoidable(self, shape: Shape) -> tuple[int, int]:
        """A program that keeps S or P need not compute them again in the backward pass."""
        return 12 * problem_of(shape).d * self.pairs(shape), self.pairs(shape)

    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[NDArray[np.float64], ...]:
        return tuple(each[rows] for each in gradients(problem_of(shape), tensors))

    def with_other_rows(
        self, shape: Shape, tensors: Tensors, outputs: Tensors, rows: NDArray[np.intp], draw: Draw
    ) -> tuple[Tensors, Tensors]:
        p = problem_of(shape)
        fresh = p.type.rounded(draw(2 * len(rows) * p.d)).reshape(2, len(rows), p.d)
        return with_other_queries(p, tensors, outputs, rows, fresh)

    def function(self, shape: Shape, tensors: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        return np.asarray(forward(problem_of(shape), tensors, slice(None)))

    def plain(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[NDArray[np.float32], ...]:
        p = problem_of(shape)
        return tuple(each[rows] for each in gradients(p, tensors, plain_way(p)))

    def gpu_oracle(self, shape: Shape, largest: float) -> GpuOracle | None:
        return grouped_oracle(problem_of(shape), gradient=True)

    def probes(self, shape: Shape) -> tuple[Probe, ...]:
        return attention_probes(self, problem_of, lambda units: probed_shape(shape, units), gradient=True)

    def alternates(self) -> tuple[Alternate, ...]:
        return tuple(precision_mistakes())


OPERATOR = HalfAttentionGradient()
