"""Likely mistakes in reductions, where the threads of a warp or block share the work on a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.softmax import F64
from grader.operators.attention.wrong_ways import Compute, numerators, softmax_rows, weighted
from grader.operators.base import Alternate, Rows, Shape, Tensors

WARP = 32
_ALL_OFFSETS = (16, 8, 4, 2, 1)
_WHOLE = "use __shfl_xor_sync, or __shfl_down_sync and then __shfl_sync from lane 0, with the offsets 16, 8, 4, 2, 1."


def _summed(offsets: tuple[int, ...], down: bool) -> F64:
    """The result of a sum with shuffles in a warp: row i holds how often lane i has counted each lane's part."""
    parts = np.eye(WARP)
    for offset in offsets:
        lanes = np.arange(WARP)
        source = np.where(lanes + offset < WARP, lanes + offset, lanes) if down else lanes ^ offset
        parts = parts + parts[source]
    return parts


def _scores_by_lane(parts: F64, contiguous: bool) -> Compute:
    """Attention in which column x of O uses the scores of the lane that holds it. Lane i holds the columns x mod 32 = i
    or, if `contiguous`, a block of adjacent columns."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = (t.astype(np.float64) for t in tensors)
        d = v.shape[1]
        lane_of = np.arange(d) * WARP // d if contiguous else np.arange(d) % WARP
        out = np.empty((len(q[rows]), d))
        for lane in range(WARP):
            scores = (q[rows] * parts[lane, lane_of]) @ k.T / np.sqrt(d)
            mine = lane_of == lane
            out[:, mine] = softmax_rows(scores) @ v[:, mine]
        return out

    return compute


def warp_sums() -> Iterator[Alternate]:
    """Scores that a warp sums wrongly, with the columns divided among its lanes."""
    ways: tuple[tuple[str, str, F64], ...] = (
        ("no_sum", "each lane of a warp has only its own columns' part of the scores", np.eye(WARP)),
        (
            "sum_in_lane_0",
            "only lane 0 of a warp has the whole sum of a score, as after __shfl_down_sync",
            _summed(_ALL_OFFSETS, down=True),
        ),
        ("sum_from_8", "a warp's sum of a score begins at the offset 8", _summed(_ALL_OFFSETS[1:], down=False)),
        ("sum_to_2", "a warp's sum of a score ends at the offset 2", _summed(_ALL_OFFSETS[:-1], down=False)),
    )
    for name, words, parts in ways:
        for contiguous in (False, True):
            yield Alternate(
                f"{name}{'_contiguous' if contiguous else ''}",
                f"It matches attention in which {words}: {_WHOLE}",
                _scores_by_lane(parts, contiguous),
                lambda shape, contiguous=contiguous: contiguous and shape[2] == WARP,  # type: ignore[misc]
                steps=("shuffle", "scores"),
            )


def _divided_by(sums: Callable[[F64], F64]) -> Compute:
    """The softmax's numerators divided by `sums` of them, (rows, keys) or (rows, 1)."""

    def weights(scores: F64, rows: NDArray[np.intp]) -> F64:
        terms = numerators(scores)
        return np.asarray(terms / sums(terms))

    return weighted(weights)


def _of_own_thread(weights: F64, threads: int) -> F64:
    keys = weights.shape[1]
    padded = np.pad(weights, ((0, 0), (0, -keys % threads))).reshape(len(weights), -1, threads).sum(axis=1)
    return np.asarray(padded[:, np.arange(keys) % threads])


def block_sums(threads: int) -> Iterator[Alternate]:
    """Sums l over keys that are divided among `threads` threads, key j to thread j mod `threads`."""
    whole = "l is the sum of all threads' parts, after a reduction with a barrier in each step."
    yield Alternate(
        f"l_of_each_of_{threads}_threads",
        f"It matches attention in which each of {threads} threads divides by the sum of its own keys: {whole}",
        _divided_by(lambda weights: _of_own_thread(weights, threads)),
        steps=("total",),
    )
    yield Alternate(
        f"l_of_half_of_{threads}_threads",
        f"It matches attention in which l has the parts of the first {threads // 2} of {threads} threads only: {whole}",
        _divided_by(
            lambda weights: (weights * (np.arange(weights.shape[1]) % threads < threads // 2)).sum(
                axis=1, keepdims=True
            )
        ),
        lambda shape: shape[1] <= threads // 2,
        steps=("total",),
    )


def divisions() -> Iterator[Alternate]:
    """Attention in which O is divided by another number than l."""
    ways: tuple[tuple[str, str, Callable[[F64, int], F64 | float]], ...] = (
        ("divided_twice", "O divided by l twice", lambda total, keys: total * total),
        ("multiplied_by_l", "O multiplied by l instead of divided by it", lambda total, keys: 1 / total),
        ("divided_by_n", "O divided by N instead of l", lambda total, keys: float(keys)),
        ("l_starts_at_1", "a sum l that is too large by 1: it must start at 0", lambda total, keys: total + 1),
    )
    for name, words, divisor in ways:
        yield Alternate(
            name,
            f"It matches attention with {words}.",
            _divided_by(
                lambda weights, divisor=divisor: divisor(weights.sum(axis=1, keepdims=True), weights.shape[1])  # type: ignore[misc]
            ),
            steps=("total_start", "division") if name == "l_starts_at_1" else ("division",),
        )
