"""Computes attention with the mistakes that students make."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.softmax import F64, TILE_KEYS, softmax_attention
from grader.operators.base import Rows, Shape, Tensors

F32 = NDArray[np.float32]
Compute = Callable[[Shape, Tensors, Rows], F64]


def attention(
    change: Callable[[F32, F32, F32], tuple[F32, F32, F32]] = lambda q, k, v: (q, k, v),
    scale: Callable[[Shape], float] = lambda shape: 1.0 / float(np.sqrt(shape[2])),
) -> Compute:
    """Attention over Q, K and V after `change`, with the scores multiplied by `scale`."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = change(*tensors)
        return softmax_attention(q[rows].astype(np.float64) * scale(shape), k, v)

    return compute


def scaled(scale: Callable[[int], float]) -> Compute:
    return attention(scale=lambda shape: scale(int(shape[2])))


def some_keys(some: Callable[[F32], F32]) -> Compute:
    """Attention over a part of the keys, which `some` selects from K and from V."""
    return attention(lambda q, k, v: (q, some(k), some(v)))


def without(dropped: Callable[[int], NDArray[np.intp]]) -> Compute:
    """Attention over all keys except those with the numbers `dropped(N)`."""
    return some_keys(lambda matrix: np.delete(matrix, dropped(len(matrix)), axis=0))


def tiles_transposed(matrix: F32, tile: int) -> F32:
    """The matrix with every tile of `tile` rows stored row by row but read column by column."""
    tiles = matrix.reshape(-1, matrix.shape[1], tile).transpose(0, 2, 1)
    return np.ascontiguousarray(tiles).reshape(matrix.shape)


def first_tile_again(matrix: F32, tile: int) -> F32:
    return np.tile(matrix[:tile], (len(matrix) // tile, 1))


def taken_for_its_transpose(matrix: F32) -> F32:
    return matrix.reshape(matrix.shape[::-1]).T


def mean_of_v(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    v = tensors[2].astype(np.float64)
    return np.broadcast_to(v.mean(axis=0), v.shape)[rows]


def weighted(weights: Callable[[F64, NDArray[np.intp]], F64]) -> Compute:
    """V weighted by a function of the scores, (rows, keys), and of the rows' numbers."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = (t.astype(np.float64) for t in tensors)
        return np.asarray(weights(q[rows] @ k.T / np.sqrt(shape[2]), np.arange(len(q))[rows]) @ v)

    return compute


def numerators(scores: F64) -> F64:
    """The numerators of the softmax: exp(s − m)."""
    return np.asarray(np.exp(scores - scores.max(axis=1, keepdims=True)))


def softmax_rows(scores: F64) -> F64:
    weights = numerators(scores)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def softmax_over_queries(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    q, k, v = (t.astype(np.float64) for t in tensors)
    scale = 1.0 / np.sqrt(shape[2])
    total = np.zeros(len(k))
    for first in range(0, len(q), TILE_KEYS):
        total += np.exp(q[first : first + TILE_KEYS] @ k.T * scale).sum(axis=0)
    return np.asarray((np.exp(q[rows] @ k.T * scale) / total) @ v)


def carried_scores(scaled_too: bool, apart: int = 1) -> Compute:
    """Attention in which each score is added to that of the key `apart` keys before. If `scaled_too`, their sum is then
    scaled."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = (t.astype(np.float64) for t in tensors)
        scale = 1.0 / np.sqrt(shape[2])
        scores = q[rows] @ k.T * scale
        for key in range(apart, len(k)):
            scores[:, key] += scores[:, key - apart] * (scale if scaled_too else 1.0)
        return np.asarray(softmax_rows(scores) @ v)

    return compute


def carried_state(apart: int) -> Compute:
    """A thread that keeps its maximum, sum and output from one row to its next row, `apart` rows below."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = (t.astype(np.float64) for t in tensors)
        out = []
        for row in np.arange(len(q))[rows]:
            scores = q[row % apart : row + 1 : apart] @ k.T / np.sqrt(shape[2])
            weights = np.exp(scores - scores.max()).sum(axis=0)
            out.append(weights @ v / weights.sum())
        return np.array(out)

    return compute


def causal(scores: F64, rows: NDArray[np.intp]) -> F64:
    """The softmax over keys 0 to i in row i."""
    scores[np.arange(scores.shape[1]) > rows[:, None]] = -np.inf
    return softmax_rows(scores)


def running_maxima(scores: F64, tile: int) -> F64:
    """The running maximum for each key, at the time when the key's tile is merged."""
    tops = np.maximum.accumulate(np.maximum.reduceat(scores, np.arange(0, scores.shape[1], tile), axis=1), axis=1)
    return np.repeat(tops, tile, axis=1)[:, : scores.shape[1]]


def scores_of_tile_transposed(tile: int) -> Compute:
    """Attention in which each square tile of scores is written with rows and columns exchanged."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = (t.astype(np.float64) for t in tensors)
        numbers = np.arange(len(q))[rows]
        out = np.empty((len(numbers), v.shape[1]))
        for place, row in enumerate(numbers):
            first, inside = row - row % tile, row % tile
            scores = (q[first : first + tile] @ k[inside::tile].T / np.sqrt(shape[2])).T.ravel()
            weights = np.exp(scores - scores.max())
            out[place] = weights @ v / weights.sum()
        return out

    return compute
