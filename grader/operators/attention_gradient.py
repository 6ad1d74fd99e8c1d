"""Attention and its gradient: O = softmax(Q Kᵀ / √d) V and, from dO, the gradients dQ, dK and dV.

The header is B N d. For each batch, the input has Q, K, V, dO, each (N, d). The output is all O, then all dQ, all dK,
all dV, each (N, d). If P is the result of the softmax and ∘ the element-wise product,

    dV = Pᵀ dO      dP = dO Vᵀ      D_i = Σ_x dO_ix O_ix      dS = P ∘ (dP − D)
    dQ = dS K / √d                  dK = dSᵀ Q / √d

The forward pass has two products of N·N·d multiply-adds, or 4·N²·d floating-point operations. The backward pass has
five products (S again, dP, dV, dQ, dK), 2.5 times as many, as is customary since FlashAttention. The exponentials are
computed once in the forward pass and again in the backward pass.

Rounding errors hardly depend on the shape: a plain float32 implementation in numpy is within 5.5e-7 (O), 7.7e-7 (dQ),
8.9e-7 (dK) and 6.4e-7 (dV) of float64 for values in [−2, 2] and N from 128 to 4096 (the largest errors in 10 shapes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.dimensions import HEAD_DIMENSION, SEQUENCE_LENGTH
from grader.operators.base import Alternate, Dimension, Operator, Rows, Shape, Tensor, Tensors, sizes

F64 = NDArray[np.float64]
Gradients = tuple[F64, F64, F64, F64]

TILE_ROWS = 256

MOST_ROWS_EXPLAINED = 1024
"""Alternates cost as much as the oracle for each batch that is examined, so they are not tried beyond this."""


class AttentionGradient(Operator):
    name = "attention_gradient"
    dimensions = (
        Dimension("B", "from 1 to 14000", lambda v: 1 <= v <= 14000),
        SEQUENCE_LENGTH,
        HEAD_DIMENSION,
    )
    planar_output = True
    independent_rows = False
    differentiable = True

    def units(self, shape: Shape) -> int:
        return sizes(shape)[0]

    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        _, n, d = sizes(shape)
        return tuple(Tensor(name, n, d) for name in ("Q", "K", "V", "dO"))

    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        _, n, d = sizes(shape)
        return tuple(Tensor(name, n, d) for name in ("O", "dQ", "dK", "dV"))

    def flops(self, shape: Shape) -> int:
        b, n, d = sizes(shape)
        return 14 * b * n * n * d

    def exponentials(self, shape: Shape) -> int:
        b, n, _ = sizes(shape)
        return 2 * b * n * n

    def unavoidable(self, shape: Shape) -> tuple[int, int]:
        """A program that keeps S or P, N² numbers for each batch, need not compute them again in the backward pass."""
        b, n, d = sizes(shape)
        return 12 * b * n * n * d, b * n * n

    def shrink(self, shape: Shape, units: int) -> Shape:
        return (units, *shape[1:])

    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[F64, ...]:
        return tuple(each[rows] for each in gradients(tensors))

    def function(self, shape: Shape, tensors: Sequence[F64]) -> F64:
        q, k, v = tensors[:3]
        weights = q @ k.T / math.sqrt(q.shape[1])
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True) @ v)

    def alternates(self) -> tuple[Alternate, ...]:
        return _ALTERNATES


def gradients(
    tensors: Tensors,
    *,
    subtract_d: bool = True,
    gradient_scale: Callable[[int], float] | None = None,
    keep_rows: Callable[[int], slice] = lambda n: slice(0, n),
) -> Gradients:
    """(O, dQ, dK, dV) of one batch in float64, a tile of rows at a time.

    The other parameters are for likely mistakes: dS without D, another factor than 1/√d in dQ and dK, dK and dV summed
    over only some rows.
    """
    q, k, v, do = (tensor.astype(np.float64) for tensor in tensors)
    n, d = q.shape
    scale = 1 / math.sqrt(d)
    factor = scale if gradient_scale is None else gradient_scale(d)
    o, dq, dk, dv = np.empty_like(q), np.empty_like(q), np.zeros_like(q), np.zeros_like(q)
    summed = np.zeros((n, 1))
    summed[keep_rows(n)] = 1.0
    for first in range(0, n, TILE_ROWS):
        rows = slice(first, first + TILE_ROWS)
        p = q[rows] @ k.T * scale
        p -= p.max(axis=1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        o[rows] = p @ v
        ds = do[rows] @ v.T
        if subtract_d:
            ds -= (do[rows] * o[rows]).sum(axis=1, keepdims=True)
        ds *= p
        dq[rows] = ds @ k * factor
        dk += ds.T @ (q[rows] * summed[rows]) * factor
        dv += p.T @ (do[rows] * summed[rows])
    return o, dq, dk, dv


# ---- likely mistakes ------------------------------------------------------------------------------------------

_NUMBER = {"O": 0, "dQ": 1, "dK": 2, "dV": 3}


def _alternate(
    name: str,
    tensor: str,
    sentence: str,
    compute: Callable[[Tensors], Gradients],
    unless: Callable[[int], bool] = lambda n: False,
) -> Alternate:
    number = _NUMBER[tensor]
    return Alternate(
        f"{tensor}_{name}",
        f"{tensor} {sentence}",
        lambda shape, tensors, rows: compute(tensors)[number][rows],
        lambda shape: shape[1] > MOST_ROWS_EXPLAINED or unless(int(shape[1])),
        number,
    )


def _of_the_scores(tensor: str) -> list[Alternate]:
    """Mistakes in dS or its factor, which show in dQ or dK."""
    return [
        _alternate(
            "without_d",
            tensor,
            "matches dS = P ∘ dP without the subtraction of D, the row's sum of dO ∘ O.",
            lambda tensors: gradients(tensors, subtract_d=False),
        ),
        _alternate(
            "without_scale",
            tensor,
            "matches a gradient without the factor 1/√d: the scores' scale is also a factor of the gradient.",
            lambda tensors: gradients(tensors, gradient_scale=lambda d: 1.0),
        ),
        _alternate(
            "scaled_twice",
            tensor,
            "matches a gradient with the factor 1/d: 1/√d is applied twice.",
            lambda tensors: gradients(tensors, gradient_scale=lambda d: 1 / d),
        ),
        _alternate(
            "sign",
            tensor,
            "has the wrong sign: dS = P ∘ (dP − D), not P ∘ (D − dP).",
            lambda tensors: gradients(tensors, gradient_scale=lambda d: -1 / math.sqrt(d)),
        ),
    ]


def _of_the_sum(tensor: str, tile: int) -> list[Alternate]:
    """Mistakes in the sum over tiles of rows, which show in dK or dV."""

    def over(name: str, sentence: str, keep_rows: Callable[[int], slice]) -> Alternate:
        return _alternate(
            name, tensor, sentence, lambda tensors: gradients(tensors, keep_rows=keep_rows), lambda n: n <= tile
        )

    return [
        over(
            f"last_{tile}_rows_only",
            f"matches a sum over the last {tile} rows only: each tile overwrites the sum of the tiles before it.",
            lambda n: slice(n - tile, n),
        ),
        over(
            f"first_{tile}_rows_only",
            f"matches a sum over the first {tile} rows only: the loop over tiles of rows runs once.",
            lambda n: slice(0, tile),
        ),
        over(
            f"last_{tile}_rows_dropped",
            f"matches a sum without the last {tile} rows: the loop over tiles of rows ends one tile early.",
            lambda n: slice(0, n - tile),
        ),
    ]


def _without_scores_scale(tensors: Tensors) -> F64:
    q, k, v, _ = (tensor.astype(np.float64) for tensor in tensors)
    weights = q @ k.T
    weights = np.exp(weights - weights.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True) @ v)


_ALTERNATES: tuple[Alternate, ...] = (
    Alternate(
        "O_no_scale",
        "It matches attention without the scale: multiply the scores by 1/√d before the softmax.",
        lambda shape, tensors, rows: _without_scores_scale(tensors)[rows],
        lambda shape: shape[1] > MOST_ROWS_EXPLAINED,
    ),
    *(mistake for tensor in ("dQ", "dK") for mistake in _of_the_scores(tensor)),
    *(mistake for tensor in ("dK", "dV") for tile in (32, 64, 128, 16) for mistake in _of_the_sum(tensor, tile)),
)

OPERATOR = AttentionGradient()
