"""The header and the file layouts of attention with grouped heads, masks and packed tensors, as models use it.

The header is B Hq Hkv Nq Nk d type causal window layout scale; scale is a float32. A unit is a key head of one batch
with the query heads that read it, its *group*: query head h reads key head h·Hkv/Hq, rounded down. So Q of a unit has
group · Nq rows, head after head. With o = Nk − Nq, query i sees keys j ≤ i + o if causal, and j ≥ i + o − window if
window ≥ 0. A query that sees no key has zeros.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grader.operators.base import Dimension, Operator, Shape
from grader.operators.layout import Dims, Layout, Strides, Tensor
from grader.operators.number_types import BF16, E4M3, E5M2, F16, NumberType
from grader.operators.probes import small

TYPES = (F16, BF16, E4M3, E5M2)
SEPARATE, PACKED, PACKED_KV = 0, 1, 2
MOST_HEADS, MOST_ROWS = 65536, 65536


@dataclass(frozen=True)
class Problem:
    """The header's numbers by name."""

    batches: int
    query_heads: int
    key_heads: int
    queries: int
    keys: int
    d: int
    type: NumberType
    causal: bool
    window: int
    layout: int
    scale: float

    @property
    def group(self) -> int:
        return self.query_heads // self.key_heads

    @property
    def ahead(self) -> int:
        """The number of the key with which query 0 is aligned: the last query is aligned with the last key."""
        return self.keys - self.queries

    @property
    def output_type(self) -> NumberType:
        return self.type if self.type in (F16, BF16) else F16


def problem_of(shape: Shape) -> Problem:
    b, hq, hkv, nq, nk, d, kind, causal, window, layout = (int(number) for number in shape[:10])
    return Problem(b, hq, hkv, nq, nk, d, TYPES[kind], bool(causal), window, layout, float(shape[10]))


def probed_shape(shape: Shape, units: int) -> Shape:
    """A small shape like this one, with at least so many units."""
    _, hq, hkv, nq, nk, *rest = shape
    return (-(-units // int(hkv)), hq, hkv, small(int(nq), 128), small(int(nk), 128), *rest)


def dimensions(types: int) -> tuple[Dimension, ...]:
    """The dimensions of the header, of which the first `types` of TYPES are legal."""
    heads, rows = f"from 1 to {MOST_HEADS}", f"from 1 to {MOST_ROWS}"
    names = ", ".join(f"{number} ({kind.words})" for number, kind in enumerate(TYPES[:types]))
    return (
        Dimension("B", heads, lambda v: 1 <= v <= MOST_HEADS),
        Dimension("Hq", heads, lambda v: 1 <= v <= MOST_HEADS),
        Dimension("Hkv", heads, lambda v: 1 <= v <= MOST_HEADS),
        Dimension("Nq", rows, lambda v: 1 <= v <= MOST_ROWS),
        Dimension("Nk", rows, lambda v: 1 <= v <= MOST_ROWS),
        Dimension("d", "a multiple of 8 from 16 to 256", lambda v: 16 <= v <= 256 and v % 8 == 0),
        Dimension("type", names, lambda v: 0 <= v < types),
        Dimension("causal", "0 or 1", lambda v: v in (0, 1)),
        Dimension("window", "-1 or a number of keys", lambda v: v >= -1),
        Dimension("layout", "0, 1 or 2", lambda v: v in (SEPARATE, PACKED, PACKED_KV)),
        Dimension("scale", "a number above 0", lambda v: 0 < v < math.inf, real=True),
    )


class GroupedOperator(Operator):
    """The units, labels and legal shapes that the forward pass and the gradient share."""

    unit, units_name = "key head", "key heads"
    solve_numbers = ("scale", "causal", "window")

    def relation(self, shape: Shape) -> str:
        p = problem_of(shape)
        if p.query_heads % p.key_heads:
            return f"Hq must be a multiple of Hkv, found {p.query_heads} and {p.key_heads}"
        if p.batches * p.query_heads > MOST_HEADS:
            return f"B × Hq must be at most {MOST_HEADS}, found {p.batches * p.query_heads}"
        if p.layout == PACKED and (p.group != 1 or p.queries != p.keys):
            return "with layout 1 (Q, K and V packed), Hq must be Hkv and Nq must be Nk"
        return ""

    def units(self, shape: Shape) -> int:
        p = problem_of(shape)
        return p.batches * p.key_heads

    def dimensions_of(self, layout: Layout) -> Dims:
        """[B, H, N]: the key heads and the query heads of each are one dimension."""
        (batches, heads), (*group, rows) = layout.units, layout.rows
        if group:
            heads = heads[0] * group[0][0], group[0][1]
        return batches, heads, rows

    def unit_label(self, shape: Shape, unit: int) -> str:
        batch, head = divmod(unit, problem_of(shape).key_heads)
        return f"batch {batch}, key head {head}"

    def shrink(self, shape: Shape, units: int) -> Shape:
        p = problem_of(shape)
        return (1, units * p.group, units, *shape[3:])

    def pairs(self, shape: Shape) -> int:
        """The number of pairs of a query and a key that it sees, over all heads."""
        p = problem_of(shape)
        first, end = seen(p, np.arange(p.queries))
        return p.batches * p.query_heads * int(np.maximum(0, end - first).sum())


def seen(p: Problem, queries: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return (first, end) of the keys that each query sees; a query sees none if `end` is not larger than `first`."""
    place = queries + p.ahead
    first = np.maximum(place - p.window, 0) if p.window >= 0 else np.zeros_like(queries)
    end = np.minimum(place + 1, p.keys) if p.causal else np.full_like(queries, p.keys)
    return first, end


# ---- layouts ----------------------------------------------------------------------------------------------------


def query_tensor(p: Problem, name: str, type: NumberType) -> Tensor:
    """O or dO, or Q or dQ if they are not packed with K and V: [B, Hq, Nq, d], or [B, Nq, Hq, d] in packed layouts."""
    return Tensor(name, p.group * p.queries, p.d, type=type, strides=_queries(p, name, p.layout != SEPARATE))


def operands(p: Problem, names: tuple[str, str, str], type: NumberType) -> tuple[Tensor, ...]:
    """Q, K and V, or their gradients."""
    d, group = p.d, p.group
    if p.layout == PACKED:
        heads, n = p.key_heads, p.keys
        units, rows = ((p.batches, n * 3 * heads * d), (heads, d)), ((n, 3 * heads * d),)
        return tuple(
            Tensor(name, n, d, type=type, strides=Strides("packed", slot * heads * d, units, rows))
            for slot, name in enumerate(names)
        )
    q = Tensor(names[0], group * p.queries, d, type=type, strides=_queries(p, names[0], p.layout == PACKED_KV))
    n, heads = p.keys, p.key_heads
    if p.layout == PACKED_KV:
        units, rows = ((p.batches, n * 2 * heads * d), (heads, d)), ((n, 2 * heads * d),)
        places = [Strides("packed", slot * heads * d, units, rows) for slot in range(2)]
    else:
        units, rows = ((p.batches, heads * n * d), (heads, n * d)), ((n, d),)
        places = [Strides(name, 0, units, rows) for name in names[1:]]
    return (q, *(Tensor(name, n, d, type=type, strides=at) for name, at in zip(names[1:], places, strict=True)))


def _queries(p: Problem, name: str, row_after_row: bool) -> Strides:
    n, d, heads, group = p.queries, p.d, p.query_heads, p.group
    if row_after_row:
        return Strides(name, 0, ((p.batches, n * heads * d), (p.key_heads, group * d)), ((group, d), (n, heads * d)))
    return Strides(name, 0, ((p.batches, heads * n * d), (p.key_heads, group * n * d)), ((group, n * d), (n, d)))
