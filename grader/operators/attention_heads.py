"""Attention with several heads, with or without a causal mask: O = softmax(scale · Q Kᵀ) V for each batch and head.

The header is B H N d causal scale; scale is a float32. For each batch and head, the input has Q, K and V, and the
output O, each (N, d). With causal = 1, row i sees keys 0 to i. Each key that a row sees costs 4·d
floating-point operations and one exponential. A head has N² such pairs, or N(N + 1)/2 with the mask.

A unit is one head of one batch. Units are numbered across batches; sentences name batch and head.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.grouped import SEPARATE, Problem, seen
from grader.operators.attention.pass_mistakes import changed, forward_mistake, scale_mistakes, shifted, tail_mistakes
from grader.operators.attention.passes import F64, Keys, Way, forward
from grader.operators.attention.steps import softmax_steps
from grader.operators.base import Alternate, Dimension, Operator, Rows, Shape, Tensor, Tensors, sizes
from grader.operators.number_types import F32_TYPE
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

    def alternates(self) -> tuple[Alternate, ...]:
        return _ALTERNATES


# ---- likely mistakes ------------------------------------------------------------------------------------------


def _mask_mistakes() -> Iterable[Alternate]:
    for name, words, sees, if_causal in (
        (
            "mask_ignored",
            "attention without the mask: with causal = 1, row i sees keys 0 to i only.",
            changed(causal=False),
            True,
        ),
        (
            "mask_not_asked_for",
            "causal attention: with causal = 0, every row sees all keys.",
            changed(causal=True),
            False,
        ),
        (
            "mask_one_too_late",
            "a mask that is off by one: row i sees keys 0 to i + 1, but the last should be i.",
            shifted(end=1),
            True,
        ),
        (
            "mask_one_too_early",
            "a mask that is off by one: row i sees keys 0 to i − 1, but the last should be i itself.",
            shifted(end=-1),
            True,
        ),
    ):
        yield forward_mistake(
            name,
            f"It matches {words}",
            Way(sees=sees),
            lambda p, if_causal=if_causal: p.causal is not if_causal,  # type: ignore[misc]
            problem_of=_problem,
        )


def _dropped_tails(tiles: Iterable[int]) -> Iterable[Alternate]:
    for tile in tiles:

        def sees(p: Problem, queries: NDArray[np.intp], tile: int = tile) -> Keys:
            first, end = seen(p, queries)
            return first, np.minimum(end, p.keys - p.keys % tile)

        yield forward_mistake(
            f"tail_of_{tile}_dropped",
            f"It matches attention without the last N mod {tile} keys: the loop over tiles runs N / {tile} times, "
            "rounded down.",
            Way(sees=sees),
            lambda p, tile=tile: p.keys % tile == 0 or p.keys < tile,  # type: ignore[misc]
            problem_of=_problem,
        )


_TILES = (32, 64, 16, 128)

_ALTERNATES: tuple[Alternate, ...] = (
    *_mask_mistakes(),
    *scale_mistakes(_problem),
    *tail_mistakes(_TILES, _problem),
    *_dropped_tails(_TILES),
)

OPERATOR = AttentionHeads()
