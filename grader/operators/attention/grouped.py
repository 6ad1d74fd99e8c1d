"""Attention in half precision as models use it: grouped heads, masks at ragged ends, packed tensors; and its gradient.

The header is B Hq Hkv Nq Nk d type causal window layout scale; scale is a float32. A unit is a key head of one batch
with the query heads that read it, its *group*: query head h reads key head h·Hkv/Hq, rounded down. So Q of a unit has
group · Nq rows, head after head. With o = Nk − Nq, query i sees keys j ≤ i + o if causal, and j ≥ i + o − window if
window ≥ 0. A query that sees no key has zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.wrong_ways import running_maxima
from grader.operators.base import Dimension, Operator, Rows, Shape, Tensors
from grader.operators.layout import Strides, Tensor
from grader.operators.number_types import BF16, E4M3, E5M2, F16, NumberType

F64 = NDArray[np.float64]
Real = NDArray[Any]
"""float32 or float64."""
Gradients = tuple[Real, Real, Real, Real]

TYPES = (F16, BF16, E4M3, E5M2)
SEPARATE, PACKED, PACKED_KV = 0, 1, 2
MOST_HEADS, MOST_ROWS = 65536, 65536
TILE_ROWS = 256


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
        """How many keys lie before query 0 sees its own one."""
        return self.keys - self.queries

    @property
    def output_type(self) -> NumberType:
        return self.type if self.type in (F16, BF16) else F16

    @property
    def is_masked(self) -> bool:
        return self.causal or self.window >= 0


def problem_of(shape: Shape) -> Problem:
    b, hq, hkv, nq, nk, d, kind, causal, window, layout = (int(number) for number in shape[:10])
    return Problem(b, hq, hkv, nq, nk, d, TYPES[kind], bool(causal), window, layout, float(shape[10]))


def dimensions(types: int) -> tuple[Dimension, ...]:
    """The header, if the first `types` of TYPES are legal."""
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
    """What the forward pass and the gradient have in common: units and layouts."""

    unit, units_name = "key head", "key heads"

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

    def unit_label(self, shape: Shape, unit: int) -> str:
        batch, head = divmod(unit, problem_of(shape).key_heads)
        return f"batch {batch}, key head {head}"

    def shrink(self, shape: Shape, units: int) -> Shape:
        p = problem_of(shape)
        return (1, units * p.group, units, *shape[3:])

    def pairs(self, shape: Shape) -> int:
        """The pairs of a query and a key that it sees, of all heads."""
        p = problem_of(shape)
        first, end = seen(p, np.arange(p.queries))
        return p.batches * p.query_heads * int(np.maximum(0, end - first).sum())


def seen(p: Problem, queries: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first key that each query sees, and the one after the last. Nothing is seen if the second is not larger."""
    place = queries + p.ahead
    first = np.maximum(place - p.window, 0) if p.window >= 0 else np.zeros_like(queries)
    end = np.minimum(place + 1, p.keys) if p.causal else np.full_like(queries, p.keys)
    return first, end


# ---- layouts ----------------------------------------------------------------------------------------------------


def query_tensor(p: Problem, name: str, type: NumberType) -> Tensor:
    """O, dO, or Q or dQ unless these are packed with K and V: [B, Hq, Nq, d], or [B, Nq, Hq, d] in packed layouts."""
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


# ---- ways to compute it -----------------------------------------------------------------------------------------

Round = Callable[[Real], Real]


def exact(values: Real) -> Real:
    return values


Sees = Callable[[Problem, NDArray[np.intp]], tuple[NDArray[np.intp], NDArray[np.intp]]]
"""(first, end) of the keys that queries see."""


@dataclass(frozen=True)
class Way:
    """How something computes attention and its gradient: the right way by default, or with mistakes.

    Rounding: `products` rounds QKᵀ, `scores` scale · QKᵀ, `weights` the softmax, `slopes` dP and dS, `results` every
    output. `sees` gives the keys of each query; the backward pass, which computes the exponentials again and divides
    by the forward pass's sum, may see more, `backward_sees`. `padding` is the number of keys beyond the last that
    count with score 0. `factor` multiplies scores, and gradients unless `gradient_factor` does. `stale` = (tile, what):
    keys are merged a tile at a time, and "O", "l" or "both" are not rescaled when the maximum grows. `heads` are those
    of a group that add to dK and dV.
    """

    number: Any = np.float64
    products: Round = exact
    scores: Round = exact
    weights: Round = exact
    slopes: Round = exact
    results: Round = exact
    sees: Sees = seen
    backward_sees: Sees | None = None
    padding: Callable[[Problem], int] = lambda p: 0
    factor: Callable[[Problem], float] = lambda p: p.scale
    gradient_factor: Callable[[Problem], float] | None = None
    base: float = math.e
    stale: tuple[int, str] | None = None
    subtracts_d: bool = True
    heads: Callable[[Problem], slice] = lambda p: slice(None)


RIGHT = Way()


def plain_way(p: Problem) -> Way:
    """Sums in float32; S, scale · S, P, dP, dS and the results are rounded to the type, to nearest even."""
    rounded = p.output_type.rounded
    return Way(np.float32, products=rounded, scores=rounded, weights=rounded, slopes=rounded, results=rounded)


def probabilities(p: Problem, way: Way, q: Real, k: Real, queries: NDArray[np.intp]) -> tuple[slice, Real]:
    """The softmax of some rows, and the keys for which it was computed."""
    first, end = way.sees(p, queries)
    keys = slice(max(0, int(first.min())), min(p.keys, max(int(end.max()), 0)))
    if keys.stop <= keys.start:
        return slice(0, 0), np.zeros((len(q), 0), way.number)
    s = way.scores(way.products(q @ k[keys].T) * way.number(way.factor(p)))
    numbers = np.arange(keys.start, keys.stop)
    if int(first.max()) > keys.start or int(end.min()) < keys.stop:
        s[(numbers < first[:, None]) | (numbers >= end[:, None])] = -np.inf
    top = s.max(axis=1, keepdims=True)
    top[np.isneginf(top)] = 0  # a row that sees nothing: all its weights are 0
    padding = way.padding(p)
    if padding:
        top = np.maximum(top, 0)
    if way.base != math.e:
        s, top = s * way.number(math.log(way.base)), top * way.number(math.log(way.base))
    exponentials = np.exp(s - top)
    total = exponentials.sum(axis=1, keepdims=True)
    if padding:
        total += padding * np.exp(-top)
    if way.stale:
        tile, what = way.stale
        merged = np.nan_to_num(np.exp(s - running_maxima(s, tile)))
        exponentials = exponentials if what == "l" else merged
        total = total if what == "O" else merged.sum(axis=1, keepdims=True)
    total[total == 0] = 1
    return keys, way.weights(exponentials / total)


def tiles(p: Problem, numbers: NDArray[np.intp]) -> Iterator[tuple[slice, NDArray[np.intp], NDArray[np.intp]]]:
    """Divide row numbers of a unit into tiles: (their places in `numbers`, the rows, their queries). A tile's queries
    lie together, so that masks leave out most keys."""
    for first in range(0, len(numbers), TILE_ROWS):
        place = slice(first, first + TILE_ROWS)
        yield place, numbers[place], numbers[place] % p.queries


def forward(p: Problem, tensors: Sequence[Real], rows: Rows, way: Way = RIGHT) -> Real:
    """The rows `rows` of O of one unit."""
    q, k, v = (tensor.astype(way.number) for tensor in tensors[:3])
    numbers = np.arange(len(q))[rows]
    o = np.empty((len(numbers), p.d), way.number)
    for place, here, queries in tiles(p, numbers):
        keys, weights = probabilities(p, way, q[here], k, queries)
        o[place] = weights @ v[keys]
    return way.results(o)


def _with_sum_of_forward(p: Problem, way: Way, q: Real, k: Real, queries: NDArray[np.intp]) -> tuple[slice, Real]:
    """Weights of the keys that the backward pass sees, divided by the sum of those that the forward pass sees."""
    assert way.backward_sees is not None
    keys, weights = probabilities(p, replace(way, sees=way.backward_sees), q, k, queries)
    first, end = (ends[:, None] for ends in way.sees(p, queries))
    numbers = np.arange(keys.start, keys.stop)
    return keys, weights / (weights * ((numbers >= first) & (numbers < end))).sum(axis=1, keepdims=True)


def gradients(p: Problem, tensors: Tensors, way: Way = RIGHT) -> Gradients:
    """(O, dQ, dK, dV) of one unit."""
    q, k, v, do = (tensor.astype(way.number) for tensor in tensors[:4])
    o, dq, dk, dv = np.empty_like(q), np.empty_like(q), np.zeros_like(k), np.zeros_like(v)
    factor = way.number((way.gradient_factor or way.factor)(p))
    adds = np.zeros((p.group, p.queries, 1), way.number)
    adds[way.heads(p)] = 1
    adds = adds.reshape(-1, 1)
    for _, here, queries in tiles(p, np.arange(len(q))):
        keys, weights = probabilities(p, way, q[here], k, queries)
        o[here] = way.results(weights @ v[keys])
        if way.backward_sees is not None:
            keys, weights = _with_sum_of_forward(p, way, q[here], k, queries)
        slopes = way.slopes(do[here] @ v[keys].T)
        if way.subtracts_d:
            slopes = slopes - (do[here] * o[here]).sum(axis=1, keepdims=True)
        slopes = way.slopes(slopes * weights)
        dq[here] = slopes @ k[keys] * factor
        dk[keys] += slopes.T @ (q[here] * adds[here])
        dv[keys] += weights.T @ (do[here] * adds[here])
    return o, way.results(dq), way.results(dk * factor), way.results(dv)
