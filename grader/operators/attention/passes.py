"""The forward and backward pass of attention in numpy: exact, or rounded like a plain implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.problem import Problem, seen
from grader.operators.base import Rows, Tensors

F64 = NDArray[np.float64]
Real = NDArray[Any]
"""float32 or float64."""
Gradients = tuple[Real, Real, Real, Real]
Round = Callable[[Real], Real]

TILE_ROWS = 128

SAFE_SCORE = 300.0
"""Scores up to here need no maximum subtracted, which takes a tenth of the time: exp(±300) ≈ 10^±130, so sums of any
legal length stay far inside float64's 10^±308."""


def exact(values: Real) -> Real:
    return values


@dataclass(frozen=True)
class Way:
    """A way to round in attention and its gradient. The default is exact: `products` rounds QKᵀ, `scores` rounds
    scale · QKᵀ, `weights` the softmax, `slopes` dP and dS, and `results` every output.
    """

    number: Any = np.float64
    products: Round = exact
    scores: Round = exact
    weights: Round = exact
    slopes: Round = exact
    results: Round = exact


RIGHT = Way()


def plain_way(p: Problem) -> Way:
    """The plain implementation: sums in float32; S, scale · S, P, dP, dS and the results are rounded to the type."""
    rounded = p.output_type.rounded
    return Way(np.float32, products=rounded, scores=rounded, weights=rounded, slopes=rounded, results=rounded)


def exponentials(p: Problem, way: Way, q: Real, k: Real, queries: NDArray[np.intp]) -> tuple[slice, Real, Real]:
    """Return (the keys that any of these rows sees, the exponentials of the rows' scores, the sum of each row). The
    softmax is their quotient."""
    first, end = seen(p, queries)
    keys = slice(max(0, int(first.min())), min(p.keys, max(int(end.max()), 0)))
    if keys.stop <= keys.start:
        return slice(0, 0), np.zeros((len(q), 0), way.number), np.ones((len(q), 1), way.number)
    s = way.products(q @ k[keys].T)
    s *= way.number(p.scale)
    s = way.scores(s)
    numbers = np.arange(keys.start, keys.stop)
    if int(first.max()) > keys.start or int(end.min()) < keys.stop:
        s[(numbers < first[:, None]) | (numbers >= end[:, None])] = -np.inf
    if way.number is not np.float64 or _magnitude(q) * _magnitude(k) * q.shape[1] * abs(p.scale) > SAFE_SCORE:
        top = s.max(axis=1, keepdims=True)
        top[np.isneginf(top)] = 0  # a row that sees no key: all its weights are 0
        s -= top
    np.exp(s, out=s)
    total = s.sum(axis=1, keepdims=True)
    total[total == 0] = 1
    return keys, s, total


def _magnitude(values: Real) -> float:
    return max(float(values.max()), -float(values.min()))


def tiles(p: Problem, numbers: NDArray[np.intp]) -> Iterator[tuple[slice, NDArray[np.intp], NDArray[np.intp]]]:
    """Divide row numbers of a unit into tiles: (their places in `numbers`, the rows, their queries). The queries of a
    tile are neighbours, so masks exclude most keys of the whole tile."""
    for first in range(0, len(numbers), TILE_ROWS):
        place = slice(first, first + TILE_ROWS)
        yield place, numbers[place], numbers[place] % p.queries


def forward(p: Problem, tensors: Sequence[Real], rows: Rows, way: Way = RIGHT) -> Real:
    """The rows `rows` of O of one unit."""
    q, k, v = (tensor.astype(way.number) for tensor in tensors[:3])
    numbers = np.arange(len(q))[rows]
    o = np.empty((len(numbers), p.d), way.number)
    for place, here, queries in tiles(p, numbers):
        keys, weights, total = exponentials(p, way, q[here], k, queries)
        if way.weights is exact:  # O is smaller than the weights
            o[place] = weights @ v[keys] / total
        else:
            o[place] = way.weights(weights / total) @ v[keys]
    return way.results(o)


def gradients(p: Problem, tensors: Sequence[Real], way: Way = RIGHT, rows: Rows = slice(None)) -> Gradients:
    """(O, dQ, dK, dV) of one unit: the rows `rows` of O and dQ, and what these queries add to dK and dV."""
    q, k, v, do = (tensor.astype(way.number) for tensor in tensors[:4])
    numbers = np.arange(len(q))[rows]
    o, dq = (np.empty((len(numbers), p.d), way.number) for _ in range(2))
    dk, dv = np.zeros_like(k), np.zeros_like(v)
    factor = way.number(p.scale)
    for place, here, queries in tiles(p, numbers):
        keys, weights, total = exponentials(p, way, q[here], k, queries)
        weights = way.weights(weights / total)
        o[place] = way.results(weights @ v[keys])
        slopes = way.slopes(do[here] @ v[keys].T)
        slopes = slopes - (do[here] * o[place]).sum(axis=1, keepdims=True)
        slopes = way.slopes(slopes * weights)
        dq[place] = slopes @ k[keys] * factor
        dk[keys] += slopes.T @ q[here]
        dv[keys] += weights.T @ do[here]
    return o, way.results(dq), way.results(dk * factor), way.results(dv)


def with_other_queries(
    p: Problem, tensors: Tensors, outputs: Tensors, rows: NDArray[np.intp], fresh: NDArray[np.float32]
) -> tuple[Tensors, Tensors]:
    """Return (Q, K, V, dO) with the values `fresh` in the rows `rows` of Q and dO, and the outputs (O, dQ, dK, dV) for
    them; `outputs` are those for the old values. O and dQ have a row for each query, and dK and dV are sums over
    queries, so only these queries are computed."""
    q, k, v, do = tensors
    changed = (_with_rows(q, rows, fresh[0]), k, v, _with_rows(do, rows, fresh[1]))
    before, after = (gradients(p, each, rows=rows) for each in (tensors, changed))
    own = (_with_rows(whole, rows, new) for whole, new in zip(outputs[:2], after[:2], strict=True))
    sums = (whole + (new - old) for whole, new, old in zip(outputs[2:], after[2:], before[2:], strict=True))
    return changed, (*own, *(np.asarray(total, np.float32) for total in sums))


def _with_rows(whole: NDArray[np.float32], rows: NDArray[np.intp], values: Real) -> NDArray[np.float32]:
    changed = whole.copy()
    changed[rows] = values
    return changed
