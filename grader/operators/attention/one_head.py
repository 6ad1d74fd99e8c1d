"""What attention over one head for each batch shares, forward and backward: the header B N d and tensors (N, d)."""

from __future__ import annotations

import math

from grader.operators.attention.operator import Attention
from grader.operators.attention.problem import SEPARATE, Problem
from grader.operators.base import Dimension, Shape, sizes
from grader.operators.number_types import F32_TYPE
from grader.operators.probes import MOST_ROWS

SEQUENCE_LENGTH = Dimension(
    "N", "a power of two from 128 to 32768", lambda v: 128 <= v <= 32768 and int(v).bit_count() == 1
)
HEAD_DIMENSION = Dimension("d", "32 or 64", lambda v: v in (32, 64))


class OneHead(Attention):
    """The scale is 1/√d."""

    def numbers(self, shape: Shape) -> Problem:
        b, n, d = sizes(shape)
        return Problem(b, 1, 1, n, n, d, F32_TYPE, False, -1, SEPARATE, 1 / math.sqrt(d))

    def shrink(self, shape: Shape, units: int) -> Shape:
        return (units, *shape[1:])

    def probed_shape(self, shape: Shape, units: int) -> Shape:
        return max(2, units), min(shape[1], MOST_ROWS), shape[2]
