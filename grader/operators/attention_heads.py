"""Attention with several heads, with or without a causal mask: O = softmax(scale · Q Kᵀ) V for each batch and head.

The header is B H N d causal scale; scale is a float32. For each batch and head, the input has Q, K and V, and the
output O, each (N, d). With causal = 1, row i sees keys 0 to i. Each pair of a row and a key that it sees costs 4·d
floating-point operations and one exponential; there are N² pairs, or N(N + 1)/2 with the mask.

A unit is one head of one batch. Units are numbered across batches; sentences name batch and head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grader.operators.base import Alternate, Dimension, Operator, Rows, Shape, Tensor, Tensors, sizes

F64 = NDArray[np.float64]

MOST_HEADS = 65536
TILE_ROWS = 128


@dataclass(frozen=True)
class _Problem:
    """The header's numbers by name. `heads` counts the heads of all batches."""

    heads: int
    heads_of_a_batch: int
    n: int
    d: int
    causal: bool
    scale: float


def _problem(shape: Shape) -> _Problem:
    b, h, n, d, causal = sizes(shape[:5])
    return _Problem(b * h, h, n, d, bool(causal), shape[5])


class AttentionHeads(Operator):
    name = "attention_heads"
    dimensions = (
        Dimension("B", "from 1 to 65536", lambda v: 1 <= v <= MOST_HEADS),
        Dimension("H", "from 1 to 65536", lambda v: 1 <= v <= MOST_HEADS),
        Dimension("N", "from 1 to 32768", lambda v: 1 <= v <= 32768),
        Dimension("d", "16, 32, 64 or 128", lambda v: v in (16, 32, 64, 128)),
        Dimension("causal", "0 or 1", lambda v: v in (0, 1)),
        Dimension("scale", "a finite number", math.isfinite, real=True),
    )
    unit, units_name = "head", "heads"

    def relation(self, shape: Shape) -> str:
        heads = int(shape[0]) * int(shape[1])
        return f"B × H must be at most {MOST_HEADS}, found {heads}" if heads > MOST_HEADS else ""

    def units(self, shape: Shape) -> int:
        return _problem(shape).heads

    def unit_label(self, shape: Shape, unit: int) -> str:
        batch, head = divmod(unit, _problem(shape).heads_of_a_batch)
        return f"batch {batch}, head {head}"

    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        p = _problem(shape)
        return Tensor("Q", p.n, p.d), Tensor("K", p.n, p.d), Tensor("V", p.n, p.d)

    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        p = _problem(shape)
        return (Tensor("O", p.n, p.d),)

    def exponentials(self, shape: Shape) -> int:
        p = _problem(shape)
        return p.heads * (p.n * (p.n + 1) // 2 if p.causal else p.n * p.n)

    def flops(self, shape: Shape) -> int:
        return 4 * _problem(shape).d * self.exponentials(shape)

    def shrink(self, shape: Shape, units: int) -> Shape:
        return (1, units, *shape[2:])

    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[F64, ...]:
        p = _problem(shape)
        return (_masked(tensors, rows, p.scale, 0 if p.causal else None),)

    def alternates(self) -> tuple[Alternate, ...]:
        return _ALTERNATES


def _masked(tensors: Tensors, rows: Rows, scale: float, ahead: int | None, padding: int = 0) -> F64:
    """softmax(scale q kᵀ) v, where row i sees keys up to i + `ahead` (None: all). A row that sees no key is NaN.

    `padding` is a number of additional keys, with score 0 and value 0, that every row sees.
    """
    q, k, v = (tensor.astype(np.float64) for tensor in tensors)
    keys = np.arange(len(k))
    wanted = np.arange(len(q))[rows]
    output = np.empty((len(wanted), v.shape[1]))
    for first in range(0, len(wanted), TILE_ROWS):
        numbers = wanted[first : first + TILE_ROWS]
        end = len(k) if ahead is None else max(1, min(len(k), int(numbers.max()) + ahead + 1))
        scores = q[numbers] @ k[:end].T * scale
        if ahead is not None:
            scores[keys[None, :end] > numbers[:, None] + ahead] = -np.inf
        top = scores.max(axis=1, keepdims=True)
        if padding:
            top = np.maximum(top, 0.0)
        with np.errstate(invalid="ignore", over="ignore"):  # a row that sees no key: NaN, as on a GPU
            weights = np.exp(scores - top)
            total = weights.sum(axis=1, keepdims=True)
            if padding:
                total += padding * np.exp(-top)
            output[first : first + TILE_ROWS] = weights @ v[:end] / total
    return output


# ---- likely mistakes ------------------------------------------------------------------------------------------

Compute = Callable[[Shape, Tensors, Rows], F64]


def _with_mask(ahead: int | None) -> Compute:
    return lambda shape, tensors, rows: _masked(tensors, rows, _problem(shape).scale, ahead)


def _with_scale(scale: Callable[[_Problem], float]) -> Compute:
    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        p = _problem(shape)
        return _masked(tensors, rows, scale(p), 0 if p.causal else None)

    return compute


def _padded(tile: int) -> Compute:
    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        p = _problem(shape)
        return _masked(tensors, rows, p.scale, 0 if p.causal else None, padding=-p.n % tile)

    return compute


def _without_tail(tile: int) -> Compute:
    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        p = _problem(shape)
        q, k, v = tensors
        end = p.n - p.n % tile
        return _masked((q, k[:end], v[:end]), rows, p.scale, 0 if p.causal else None)

    return compute


def _full(shape: Shape) -> bool:
    return not shape[4]


def _causal(shape: Shape) -> bool:
    return bool(shape[4])


def _tails() -> list[Alternate]:
    found = []
    for tile in (32, 64, 16, 128):
        found += [
            Alternate(
                f"tail_of_{tile}_counted_as_zeros",
                f"It matches attention in which the keys that fill up the last tile of {tile} count with a score of 0: "
                "keys beyond N must get −∞, so that their exponential is 0.",
                _padded(tile),
                lambda shape, t=tile: shape[2] % t == 0,  # type: ignore[misc]
            ),
            Alternate(
                f"tail_of_{tile}_dropped",
                f"It matches attention without the last N mod {tile} keys: the loop over tiles runs N / {tile} times, "
                "rounded down.",
                _without_tail(tile),
                lambda shape, t=tile: shape[2] % t == 0 or shape[2] < t,  # type: ignore[misc]
            ),
        ]
    return found


_ALTERNATES: tuple[Alternate, ...] = (
    Alternate(
        "mask_ignored",
        "It matches attention without the mask: with causal = 1, row i sees keys 0 to i only.",
        _with_mask(None),
        _full,
    ),
    Alternate(
        "mask_not_asked_for",
        "It matches causal attention: with causal = 0, every row sees all keys.",
        _with_mask(0),
        _causal,
    ),
    Alternate(
        "mask_one_too_late",
        "It matches a mask that is off by one: row i sees keys 0 to i + 1, but the last should be i.",
        _with_mask(1),
        _full,
    ),
    Alternate(
        "mask_one_too_early",
        "It matches a mask that is off by one: row i sees keys 0 to i − 1, but the last should be i itself.",
        _with_mask(-1),
        _full,
    ),
    Alternate(
        "scale_of_the_dimension",
        "It matches attention with the scale 1/√d: take the scale from the header.",
        _with_scale(lambda p: 1 / math.sqrt(p.d)),
        lambda shape: abs(shape[5] * math.sqrt(shape[3]) - 1) < 1e-3,
    ),
    Alternate(
        "no_scale",
        "It matches attention without the scale: multiply the scores by the header's scale before the softmax.",
        _with_scale(lambda p: 1.0),
        lambda shape: abs(shape[5] - 1) < 1e-3,
    ),
    *_tails(),
)

OPERATOR = AttentionHeads()
