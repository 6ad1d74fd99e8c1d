"""What attention over one head shares, forward and backward: the header B N d and tensors (N, d)."""

from __future__ import annotations

import math

from grader.operators.attention.grouped import SEPARATE, Problem
from grader.operators.base import Dimension, Operator, Shape, Tensor, sizes
from grader.operators.number_types import F32_TYPE


def _power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


SEQUENCE_LENGTH = Dimension(
    "N", "a power of two from 128 to 32768", lambda v: 128 <= v <= 32768 and _power_of_two(int(v))
)
HEAD_DIMENSION = Dimension("d", "32 or 64", lambda v: v in (32, 64))


class OneHead(Operator):
    """The units and tensors of attention with one head for each batch."""

    names: tuple[tuple[str, ...], tuple[str, ...]]
    """The input and the output tensors."""

    def units(self, shape: Shape) -> int:
        return sizes(shape)[0]

    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        return tuple(Tensor(name, *sizes(shape)[1:]) for name in self.names[0])

    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        return tuple(Tensor(name, *sizes(shape)[1:]) for name in self.names[1])

    def shrink(self, shape: Shape, units: int) -> Shape:
        return (units, *shape[1:])


def one_head(shape: Shape) -> Problem:
    """The numbers of the header by name."""
    b, n, d = sizes(shape)
    return Problem(b, 1, 1, n, n, d, F32_TYPE, False, -1, SEPARATE, 1 / math.sqrt(d))
