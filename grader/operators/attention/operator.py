"""What all operators of attention share: O = softmax(scale · Q Kᵀ) V of a `Problem` and, with `gradient`, from dO the
gradients dQ, dK and dV. If P is the result of the softmax and ∘ the element-wise product,

    dV = Pᵀ dO      dP = dO Vᵀ      D_i = Σ_x dO_ix O_ix      dS = P ∘ (dP − D)
    dQ = scale · dS K               dK = scale · dSᵀ Q

Each pair of a query and a key that it sees costs 4·d floating-point operations and one exponential. The backward pass
has five products (S again, dP, dV, dQ, dK) where the forward pass has two: 14·d operations and two exponentials for
both passes, the usual count since FlashAttention.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.passes import F64, RIGHT, Real, Way, forward, gradients, with_other_queries
from grader.operators.attention.probes import probe_without_d, weights_probe
from grader.operators.attention.problem import Problem
from grader.operators.attention.steps import attention_steps
from grader.operators.base import Draw, GpuOracle, Kernel, Operator, Rows, Shape, Tensor, Tensors
from grader.operators.number_types import BF16, F32_TYPE, NumberType
from grader.operators.probes import Probe
from grader.operators.steps import Steps

GPU_SOURCE = Path(__file__).with_name("gpu_oracle.cu")
# Its tiles, the threads of its blocks, and the size of its struct Statistics.
_ROWS, _TILE, _THREADS = 32, 16, 128
_STATISTICS_BYTES = 40


class Attention(Operator):
    """A subclass says what the header's numbers mean."""

    gradient = False
    """Whether the file of outputs has O and the gradients, rather than O alone."""

    def __init__(self) -> None:
        self.independent_rows, self.differentiable = not self.gradient, self.gradient

    @abstractmethod
    def numbers(self, shape: Shape) -> Problem:
        """The header's numbers by name."""

    @abstractmethod
    def probed_shape(self, shape: Shape, units: int) -> Shape:
        """A small shape like this one, with at least so many units."""

    def tensor(self, p: Problem, name: str, type: NumberType) -> Tensor:
        return Tensor(name, p.keys if name[-1] in "KV" else p.rows, p.d, type=type)

    def units(self, shape: Shape) -> int:
        p = self.numbers(shape)
        return p.batches * p.key_heads

    def unit_label(self, shape: Shape, unit: int) -> str:
        batch, head = divmod(unit, self.numbers(shape).key_heads)
        return f"batch {batch}" if self.unit == "batch" else f"batch {batch}, {self.unit} {head}"

    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        p, names = self.numbers(shape), ("Q", "K", "V", "dO") if self.gradient else ("Q", "K", "V")
        return tuple(self.tensor(p, name, p.type) for name in names)

    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        p, names = self.numbers(shape), ("O", "dQ", "dK", "dV") if self.gradient else ("O",)
        return tuple(self.tensor(p, name, p.output_type) for name in names)

    def flops(self, shape: Shape) -> int:
        p = self.numbers(shape)
        return (14 if self.gradient else 4) * p.d * p.pairs

    def exponentials(self, shape: Shape) -> int:
        return (2 if self.gradient else 1) * self.numbers(shape).pairs

    def unavoidable(self, shape: Shape) -> tuple[int, int]:
        """A program that keeps S or P need not compute them again in the backward pass."""
        p = self.numbers(shape)
        return (12 if self.gradient else 4) * p.d * p.pairs, p.pairs

    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[F64, ...]:
        return self.computed(shape, tensors, rows, RIGHT)

    def computed(self, shape: Shape, tensors: Sequence[Real], rows: Rows, way: Way) -> tuple[Real, ...]:
        """The rows `rows` of each output tensor, rounded in this way."""
        p = self.numbers(shape)
        if self.gradient:
            return tuple(each[rows] for each in gradients(p, tensors, way))
        return (forward(p, tensors, rows, way),)

    def with_other_rows(
        self, shape: Shape, tensors: Tensors, outputs: Tensors, rows: NDArray[np.intp], draw: Draw
    ) -> tuple[Tensors, Tensors] | None:
        if not self.gradient:
            return None
        p = self.numbers(shape)
        fresh = p.type.rounded(draw(2 * len(rows) * p.d)).reshape(2, len(rows), p.d)
        return with_other_queries(p, tensors, outputs, rows, fresh)

    def function(self, shape: Shape, tensors: Sequence[F64]) -> F64:
        return np.asarray(forward(self.numbers(shape), tensors, slice(None)))

    def gpu_oracle(self, shape: Shape) -> GpuOracle:
        p = self.numbers(shape)
        plain = p.type is not F32_TYPE

        def kernel(name: str, count: int, per_block: int, tensors: int) -> Kernel:
            """Each block computes `per_block` of a unit's `count` rows, and has `tensors` rows in shared memory."""
            return Kernel(name, -(-count // per_block), 4 * tensors * (p.d + 1))

        kernels = [kernel("attention", p.rows, _ROWS, _ROWS + 2 * _TILE)]
        if self.gradient:
            kernels += [
                kernel("attention_queries", p.rows, _ROWS, 2 * _ROWS + 2 * _TILE),
                kernel("attention_keys", p.keys, _TILE, 4 * _TILE),
            ]
        numbers = (p.group, p.queries, p.keys, p.causal, p.window, p.output_type is BF16)
        return GpuOracle(
            source=GPU_SOURCE,
            kernels=tuple(kernels),
            threads=_THREADS,
            defines={"D": p.d} | ({"GRADIENT": 1} if self.gradient else {}) | ({"PLAIN": 1} if plain else {}),
            arguments=(*map(np.int32, numbers), np.float64(p.scale)),
            scratch_bytes=_STATISTICS_BYTES * p.rows,
            plain=plain,
        )

    def steps(self, shape: Shape) -> Steps:
        return attention_steps(self.numbers(shape), gradient=self.gradient)

    def probes(self, shape: Shape) -> tuple[Probe, ...]:
        p = self.numbers(self.probed_shape(shape, 1))
        many = self.probed_shape(shape, -(-max(p.keys, p.rows if self.gradient else 0) // p.d))
        probes = (weights_probe(many, self.units(many), self.numbers(many), self.gradient),)
        if not self.gradient:
            return probes
        two = self.probed_shape(shape, 2)
        return *probes, probe_without_d(two, self.units(two), self.numbers(two))
