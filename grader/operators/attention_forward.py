"""Attention, forward: O_i = softmax(Q_i K_iᵀ / √d) V_i for each batch i.

Header B N d; input per batch Q, K, V, output O, each (N, d). Cost counted as 4·B·N²·d floating-point operations
(two matrix products) and B·N² exponentials.

The oracle works on tiles of scores that stay in a core's cache. The scale is folded into Q. A softmax may be
shifted by any constant without changing it, so where the Cauchy–Schwarz bound |q·k| ≤ ‖q‖‖k‖ shows that no
exponential can leave float64's range, no shift is made and the pass over the scores that finds the row's
maximum is saved; |value| ≤ 3 gives scores of at most 9√d = 72, far below that. Otherwise the running maximum of
the online softmax (Milakov and Gimelshein, 2018) is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.operators.base import Alternate, Dimension, GpuOracle, Operator, Rows, Shape, Tensor, Tensors, sizes

# A tile of scores is 128 × 512 float64 = 512 KiB: half of the second-level cache of the machines measured, and
# within 3 % of the fastest of ten sizes tried there.
TILE_ROWS = 128
TILE_KEYS = 512

SAFE_SCORE = 300.0
"""exp(±300) ≈ 10^±130: sums of any legal length stay far inside float64's 10^±308."""

F64 = NDArray[np.float64]


def _power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


class AttentionForward(Operator):
    name = "attention_forward"
    dimensions = (
        Dimension("B", "from 2 to 14000", lambda v: 2 <= v <= 14000),
        Dimension("N", "a power of two from 128 to 32768", lambda v: 128 <= v <= 32768 and _power_of_two(v)),
        Dimension("d", "32 or 64", lambda v: v in (32, 64)),
    )

    def units(self, shape: Shape) -> int:
        return sizes(shape)[0]

    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        _, n, d = sizes(shape)
        return Tensor("Q", n, d), Tensor("K", n, d), Tensor("V", n, d)

    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        _, n, d = sizes(shape)
        return (Tensor("O", n, d),)

    def flops(self, shape: Shape) -> int:
        b, n, d = sizes(shape)
        return 4 * b * n * n * d

    def exponentials(self, shape: Shape) -> int:
        b, n, _ = sizes(shape)
        return b * n * n

    def gpu_oracle(self, shape: Shape, largest: float) -> GpuOracle | None:
        _, n, d = sizes(shape)
        if largest * largest * float(np.sqrt(d)) > SAFE_SCORE:
            return None
        rows, keys = 64, 32  # attention_forward.cu's tiles
        return GpuOracle(
            source=Path(__file__).with_name("attention_forward.cu"),
            name="attention_forward",
            defines={"D": d},
            arguments=(np.int32(n), np.float64(1.0 / np.sqrt(d))),
            block=(128, 1, 1),
            grid=lambda units: (n // rows, units, 1),
            shared_bytes=8 * (rows * (d + 1) + keys * (d + 1) + keys * d + rows * (keys + 1)),
        )

    def shrink(self, shape: Shape, units: int) -> Shape:
        return (units, *shape[1:])

    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[F64, ...]:
        q, k, v = tensors
        scale = 1.0 / np.sqrt(shape[2])
        return (softmax_attention(q[rows].astype(np.float64) * scale, k, v),)

    def alternates(self) -> tuple[Alternate, ...]:
        return _ALTERNATES


def softmax_attention(scaled_q: F64, k: NDArray[np.float32], v: NDArray[np.float32]) -> F64:
    """softmax(scaled_q kᵀ) v in float64 with O(rows) extra memory. scaled_q (rows, d); k, v (keys, d)."""
    keys = len(k)
    kt = np.ascontiguousarray(k.astype(np.float64).T)
    values = v.astype(np.float64)
    ones = np.ones(min(keys, TILE_KEYS))
    bound = _longest(scaled_q) * _longest(kt.T)
    tiles = [(first, min(first + TILE_KEYS, keys)) for first in range(0, keys, TILE_KEYS)]
    output = np.empty((len(scaled_q), v.shape[1]))
    for row in range(0, len(scaled_q), TILE_ROWS):
        q = scaled_q[row : row + TILE_ROWS]
        out = output[row : row + TILE_ROWS]
        if bound <= SAFE_SCORE:
            _plain(q, kt, values, tiles, ones, out)
        else:
            _online(q, kt, values, tiles, ones, out)
    return output


def _longest(vectors: F64) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors).max(initial=0.0)))


def _plain(q: F64, kt: F64, v: F64, tiles: list[tuple[int, int]], ones: F64, out: F64) -> None:
    total = np.zeros(len(q))
    out[:] = 0.0
    for first, end in tiles:
        weights = q @ kt[:, first:end]
        np.exp(weights, out=weights)
        total += weights @ ones[: end - first]
        out += weights @ v[first:end]
    out /= total[:, None]


def _online(q: F64, kt: F64, v: F64, tiles: list[tuple[int, int]], ones: F64, out: F64) -> None:
    top = np.full(len(q), -np.inf)
    total = np.zeros(len(q))
    out[:] = 0.0
    for first, end in tiles:
        weights = q @ kt[:, first:end]
        new_top = np.maximum(top, weights.max(axis=1))
        shrink = np.exp(top - new_top)
        weights -= new_top[:, None]
        np.exp(weights, out=weights)
        total = total * shrink + weights @ ones[: end - first]
        out *= shrink[:, None]
        out += weights @ v[first:end]
        top = new_top
    out /= total[:, None]


# ---- likely mistakes ------------------------------------------------------------------------------------------

Compute = Callable[[Shape, Tensors, Rows], F64]


def _scaled(scale: Callable[[int], float]) -> Compute:
    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = tensors
        return softmax_attention(q[rows].astype(np.float64) * scale(int(shape[2])), k, v)

    return compute


def _with(order: tuple[int, int, int]) -> Compute:
    """Attention with the roles of Q, K, V given to tensors number `order`."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = (tensors[i] for i in order)
        return softmax_attention(q[rows].astype(np.float64) / np.sqrt(shape[2]), k, v)

    return compute


def _some_keys(keys: Callable[[int], slice]) -> Compute:
    """Attention over a part of the keys."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = tensors
        used = keys(int(shape[1]))
        return softmax_attention(q[rows].astype(np.float64) / np.sqrt(shape[2]), k[used], v[used])

    return compute


def _without(dropped: Callable[[int], NDArray[np.intp]]) -> Compute:
    """Attention over all keys but those numbered `dropped(N)`."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = tensors
        kept = np.delete(np.arange(int(shape[1])), dropped(int(shape[1])))
        return softmax_attention(q[rows].astype(np.float64) / np.sqrt(shape[2]), k[kept], v[kept])

    return compute


def _rearranged(
    k_of: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    v_of: Callable[[NDArray[np.float32]], NDArray[np.float32]],
) -> Compute:
    """Attention that sees K as `k_of(K)` and V as `v_of(V)`."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = tensors
        return softmax_attention(q[rows].astype(np.float64) / np.sqrt(shape[2]), k_of(k), v_of(v))

    return compute


def _as_it_is(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    return matrix


def _tiles_transposed(tile: int) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """Every tile of `tile` rows, stored row after row and read column after column."""
    return lambda matrix: np.ascontiguousarray(matrix.reshape(-1, matrix.shape[1], tile).transpose(0, 2, 1)).reshape(
        matrix.shape
    )


def _first_tile_again(tile: int) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    return lambda matrix: np.tile(matrix[:tile], (len(matrix) // tile, 1))


def _columns_of_scores(columns: int) -> Compute:
    """Scores summed over the first columns only."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = tensors
        return softmax_attention(q[rows, :columns].astype(np.float64) / np.sqrt(shape[2]), k[:, :columns], v)

    return compute


def _mean_of_v(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    v = tensors[2].astype(np.float64)
    return np.broadcast_to(v.mean(axis=0), v.shape)[rows]


def _unnormalised(shifted: bool) -> Compute:
    """exp(scores) V without the division by the sum; `shifted`: with the row's maximum taken off first."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = (t.astype(np.float64) for t in tensors)
        scores = q[rows] @ k.T / np.sqrt(shape[2])
        if shifted:
            scores -= scores.max(axis=1, keepdims=True)
        return np.asarray(np.exp(scores) @ v)

    return compute


def _softmax_over_queries(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    q, k, v = (t.astype(np.float64) for t in tensors)
    scale = 1.0 / np.sqrt(shape[2])
    total = np.zeros(len(k))
    for first in range(0, len(q), TILE_KEYS):
        total += np.exp(q[first : first + TILE_KEYS] @ k.T * scale).sum(axis=0)
    return np.asarray((np.exp(q[rows] @ k.T * scale) / total) @ v)


def _causal(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    q, k, v = (t.astype(np.float64) for t in tensors)
    numbers = np.arange(len(q))[rows]
    scores = q[rows] @ k.T / np.sqrt(shape[2])
    scores[np.arange(len(k))[None, :] > numbers[:, None]] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray((weights @ v) / weights.sum(axis=1, keepdims=True))


def _not_rescaled(tile: int, what: str) -> Compute:
    """Online softmax over tiles of keys in which O, ℓ or both are not rescaled when the maximum grows."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = (t.astype(np.float64) for t in tensors)
        scores = q[rows] @ k.T / np.sqrt(shape[2])
        top = np.full(len(scores), -np.inf)
        total, out = np.zeros(len(scores)), np.zeros((len(scores), v.shape[1]))
        for first in range(0, len(k), tile):
            part = scores[:, first : first + tile]
            new_top = np.maximum(top, part.max(axis=1))
            shrink = np.exp(top - new_top)
            weights = np.exp(part - new_top[:, None])
            total = total * (1.0 if what in ("l", "both") else shrink) + weights.sum(axis=1)
            out = out * (1.0 if what in ("O", "both") else shrink[:, None]) + weights @ v[first : first + tile]
            top = new_top
        return np.asarray(out / total[:, None])

    return compute


def _tile_alternates() -> list[Alternate]:
    found: list[Alternate] = []
    for tile in (32, 64, 16, 128):
        whole = _at_most(tile)
        found += [
            Alternate(
                f"last_{tile}_keys_dropped",
                f"It matches attention that ignores the last {tile} keys: the loop over tiles of K and V ends "
                "one tile early.",
                _some_keys(lambda n, t=tile: slice(0, n - t)),  # type: ignore[misc]
                whole,
            ),
            Alternate(
                f"first_{tile}_keys_dropped",
                f"It matches attention that ignores the first {tile} keys: the loop over tiles of K and V "
                "starts one tile late.",
                _some_keys(lambda n, t=tile: slice(t, n)),  # type: ignore[misc]
                whole,
            ),
            Alternate(
                f"first_{tile}_keys_only",
                f"It matches attention over the first {tile} keys only: the loop over tiles of K and V runs "
                "once, or each tile overwrites the one before.",
                _some_keys(lambda n, t=tile: slice(0, t)),  # type: ignore[misc]
                whole,
            ),
            Alternate(
                f"last_{tile}_keys_only",
                f"It matches attention over the last {tile} keys only: O, l or m is overwritten by each tile "
                "instead of being carried on.",
                _some_keys(lambda n, t=tile: slice(n - t, n)),  # type: ignore[misc]
                whole,
            ),
        ]
    for tile in (32, 64, 16, 128):
        for what, sentence in (
            ("both", "neither O nor l is"),
            ("O", "O (the accumulated output) is not"),
            ("l", "l (the running sum) is not"),
        ):
            found.append(
                Alternate(
                    f"{what}_not_rescaled_tile_{tile}",
                    f"It matches an online softmax over tiles of {tile} keys in which {sentence} multiplied by "
                    "exp(m_old − m_new) when the running maximum grows.",
                    _not_rescaled(tile, what),
                    _at_most(tile),
                )
            )
    return found


def _key_alternates() -> list[Alternate]:
    """Single keys that are left out, by a loop's bound or a condition."""
    found = [
        Alternate(
            "last_key_dropped",
            "It matches attention that ignores the last key: a loop over the keys ends one too early.",
            _without(lambda n: np.array([n - 1])),
        ),
        Alternate(
            "first_key_dropped",
            "It matches attention that ignores the first key: a loop over the keys starts one too late.",
            _without(lambda n: np.array([0])),
        ),
    ]
    for tile in (32, 64, 16, 128, 8):
        found.append(
            Alternate(
                f"last_key_of_tiles_of_{tile}",
                f"It matches attention that ignores the last key of every tile of {tile}: the loop inside the tile "
                "ends one too early.",
                _without(lambda n, t=tile: np.arange(t - 1, n, t)),  # type: ignore[misc]
            )
        )
        found.append(
            Alternate(
                f"first_key_of_tiles_of_{tile}",
                f"It matches attention that ignores the first key of every tile of {tile}: the loop inside the tile "
                "starts one too late.",
                _without(lambda n, t=tile: np.arange(0, n, t)),  # type: ignore[misc]
            )
        )
    for step in (100, 10, 1000):
        for first in (step - 1, 0):
            found.append(
                Alternate(
                    f"every_{step}th_key_dropped_from_{first}",
                    f"It matches attention that ignores every {step}th key, from key {first} on.",
                    _without(lambda n, f=first, s=step: np.arange(f, n, s)),  # type: ignore[misc]
                    lambda shape, f=first: shape[1] <= f,  # type: ignore[misc]
                )
            )
    return found


def _shared_memory_alternates() -> list[Alternate]:
    """Tiles that are read in another way than they were written."""
    found = []
    for tile in (32, 64, 16, 128):
        for name, transposed, again in (
            ("K", (_tiles_transposed(tile), _as_it_is), (_first_tile_again(tile), _as_it_is)),
            ("V", (_as_it_is, _tiles_transposed(tile)), (_as_it_is, _first_tile_again(tile))),
        ):
            found.append(
                Alternate(
                    f"{name}_tile_of_{tile}_transposed",
                    f"It matches attention in which each tile of {name} of {tile} rows is read with rows and columns "
                    "exchanged: look at how the tile is written to shared memory and how it is read.",
                    _rearranged(*transposed),
                )
            )
            found.append(
                Alternate(
                    f"{name}_tile_of_{tile}_not_reloaded",
                    f"It matches attention in which every tile uses the same {tile} rows of {name}, the first: look at "
                    f"the offset from which the tile of {name} is loaded.",
                    _rearranged(*again),
                    _at_most(tile),
                )
            )
    return found


def _at_most(tile: int) -> Callable[[Shape], bool]:
    return lambda shape: shape[1] <= tile


_ALTERNATES: tuple[Alternate, ...] = (
    Alternate(
        "no_scale",
        "It matches attention without the scale: multiply the scores by 1/√d before the softmax.",
        _scaled(lambda d: 1.0),
    ),
    Alternate(
        "scale_1_over_d",
        "It matches attention with the scale 1/d: it should be 1/√d.",
        _scaled(lambda d: 1.0 / d),
    ),
    Alternate(
        "scale_sqrt_d",
        "It matches attention with the scores multiplied by √d: they should be divided by it.",
        _scaled(lambda d: float(np.sqrt(d))),
    ),
    Alternate(
        "sign_of_scores",
        "It matches attention with the sign of the scores turned round: look at exp(m − s) where exp(s − m) is meant.",
        _scaled(lambda d: -1.0 / float(np.sqrt(d))),
    ),
    Alternate(
        "base_two",
        "It matches attention with 2 instead of e as the base of the exponentials: multiply the scores by log2(e) "
        "where exp2 is used.",
        _scaled(lambda d: float(np.log(2.0) / np.sqrt(d))),
    ),
    Alternate(
        "32_columns_of_scores",
        "It matches scores summed over the first 32 columns of Q and K only: here d is 64.",
        _columns_of_scores(32),
        lambda shape: shape[2] <= 32,
    ),
    Alternate(
        "mean_of_v",
        "Every row equals the mean of V: the scores have no effect, as if Q Kᵀ were 0 for every key.",
        _mean_of_v,
    ),
    Alternate(
        "k_not_transposed",
        "It matches attention with K taken for its transpose: Kᵀ is d × N, and its element (x, key) is k[key * d + x].",
        _rearranged(lambda k: k.reshape(k.shape[::-1]).T, _as_it_is),
    ),
    Alternate(
        "q_k_swapped",
        "It matches attention with Q and K exchanged: look at which is indexed by the output's row, and at the "
        "order Q, K, V in the input file.",
        _with((1, 0, 2)),
    ),
    Alternate(
        "k_v_swapped",
        "It matches attention with K and V exchanged: the input file has Q, K, V in this order.",
        _with((0, 2, 1)),
    ),
    Alternate(
        "q_v_swapped",
        "It matches attention with Q and V exchanged: the input file has Q, K, V in this order.",
        _with((2, 1, 0)),
    ),
    Alternate(
        "softmax_over_queries",
        "It matches a softmax over the queries instead of over the keys: maximum and sum belong to a row of "
        "the scores.",
        _softmax_over_queries,
        lambda shape: shape[1] > 8192,  # it costs as much as the whole batch
    ),
    Alternate(
        "not_normalised_shifted",
        "It matches the right numerator without the division by the softmax's sum l.",
        _unnormalised(True),
    ),
    Alternate(
        "not_normalised",
        "It matches exp(scores) V without the division by the softmax's sum.",
        _unnormalised(False),
    ),
    Alternate(
        "v_returned",
        "It equals V: the output is a copy of an input, the softmax was not applied.",
        lambda shape, tensors, rows: tensors[2][rows].astype(np.float64),
    ),
    Alternate(
        "q_returned",
        "It equals Q: the output is a copy of an input, or the buffer of Q was written to the file.",
        lambda shape, tensors, rows: tensors[0][rows].astype(np.float64),
    ),
    Alternate(
        "k_returned",
        "It equals K: the output is a copy of an input, or the buffer of K was written to the file.",
        lambda shape, tensors, rows: tensors[1][rows].astype(np.float64),
    ),
    Alternate(
        "causal",
        "It matches causal attention, in which row i sees keys 0 to i only: every row should see all keys.",
        _causal,
    ),
    Alternate(
        "half_of_keys",
        "It matches attention over the first half of the keys: the loop over K and V covers N/2 of N keys.",
        _some_keys(lambda n: slice(0, n // 2)),
    ),
    *_tile_alternates(),
    *_key_alternates(),
    *_shared_memory_alternates(),
)

OPERATOR = AttentionForward()
