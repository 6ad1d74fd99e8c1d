"""The header and the file layouts of attention with grouped heads, masks and packed tensors, as models use it.

The header is B Hq Hkv Nq Nk d type causal window layout scale; scale is a float32. A unit is a key head of one batch
with the query heads that read it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.operator import Attention
from grader.operators.attention.passes import plain_way
from grader.operators.attention.precision_mistakes import precision_mistakes
from grader.operators.attention.problem import PACKED, PACKED_KV, SEPARATE, Problem
from grader.operators.base import Alternate, Dimension, Rows, Shape, Tensors, size_of, sizes
from grader.operators.layout import Dims, Layout, Strides, Tensor
from grader.operators.number_types import BF16, E4M3, E5M2, F16, NumberType
from grader.operators.probes import small

TYPES = (F16, BF16, E4M3, E5M2)
MOST = 65536


def dimensions(types: int) -> tuple[Dimension, ...]:
    """The dimensions of the header, of which the first `types` of TYPES are legal."""
    names = ", ".join(f"{number} ({kind.words})" for number, kind in enumerate(TYPES[:types]))
    return (
        *(size_of(name, MOST) for name in ("B", "Hq", "Hkv", "Nq", "Nk")),
        Dimension("d", "a multiple of 8 from 16 to 256", lambda v: 16 <= v <= 256 and v % 8 == 0),
        Dimension("type", names, lambda v: 0 <= v < types),
        Dimension("causal", "0 or 1", lambda v: v in (0, 1)),
        Dimension("window", "-1 or a number of keys", lambda v: v >= -1),
        Dimension("layout", "0, 1 or 2", lambda v: v in (SEPARATE, PACKED, PACKED_KV)),
        Dimension("scale", "a number above 0", lambda v: 0 < v < math.inf, real=True),
    )


class GroupedAttention(Attention):
    """The forward pass and the gradient, with a plain implementation to which tolerances are relative."""

    unit, units_name = "key head", "key heads"
    solve_numbers = ("scale", "causal", "window")

    def numbers(self, shape: Shape) -> Problem:
        b, hq, hkv, nq, nk, d, kind, causal, window, layout = sizes(shape[:10])
        return Problem(b, hq, hkv, nq, nk, d, TYPES[kind], bool(causal), window, layout, float(shape[10]))

    def relation(self, shape: Shape) -> str:
        p = self.numbers(shape)
        if p.query_heads % p.key_heads:
            return f"Hq must be a multiple of Hkv, found {p.query_heads} and {p.key_heads}"
        if p.batches * p.query_heads > MOST:
            return f"B × Hq must be at most {MOST}, found {p.batches * p.query_heads}"
        if p.layout == PACKED and (p.group != 1 or p.queries != p.keys):
            return "with layout 1 (Q, K and V packed), Hq must be Hkv and Nq must be Nk"
        return ""

    def tensor(self, p: Problem, name: str, type: NumberType) -> Tensor:
        plain = super().tensor(p, name, type)
        return Tensor(name, plain.rows, plain.columns, type=type, strides=_strides(p, name))

    def dimensions_of(self, layout: Layout) -> Dims:
        """[B, H, N]: the key heads and the query heads of each are one dimension."""
        (batches, heads), (*group, rows) = layout.units, layout.rows
        if group:
            heads = heads[0] * group[0][0], group[0][1]
        return batches, heads, rows

    def shrink(self, shape: Shape, units: int) -> Shape:
        return (1, units * self.numbers(shape).group, units, *shape[3:])

    def probed_shape(self, shape: Shape, units: int) -> Shape:
        _, hq, hkv, nq, nk, *rest = shape
        return (-(-units // int(hkv)), hq, hkv, small(int(nq), 128), small(int(nk), 128), *rest)

    def plain(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[NDArray[np.float32], ...]:
        return self.computed(shape, tensors, rows, plain_way(self.numbers(shape)))

    def alternates(self) -> tuple[Alternate, ...]:
        return precision_mistakes(self.numbers)


def _strides(p: Problem, name: str) -> Strides:
    """Layout 0: each tensor [B, H, N, d]. Packed: Q, K and V, or K and V, or their gradients as [B, N, 2 or 3, H, d],
    all others [B, N, H, d]."""
    n, heads = (p.keys, p.key_heads) if name[-1] in "KV" else (p.queries, p.query_heads)
    d, group = p.d, heads // p.key_heads
    if p.layout == SEPARATE:
        return Strides(name, 0, ((p.batches, heads * n * d), (p.key_heads, group * n * d)), ((group, n * d), (n, d)))
    packed = "QKV" if p.layout == PACKED else "KV"
    block, slot, slots = ("packed", packed.index(name[-1]), len(packed)) if name[-1] in packed else (name, 0, 1)
    row = slots * heads * d
    return Strides(block, slot * heads * d, ((p.batches, n * row), (p.key_heads, group * d)), ((group, d), (n, row)))
