"""Likely mistakes in attention, the likeliest first, to recognise them in a wrong output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from grader.operators.attention.addressing_mistakes import (
    header_read_in_another_order,
    other_batches,
    other_rows,
    too_few_columns,
)
from grader.operators.attention.key_mistakes import (
    at_most,
    key_of_each_tile,
    keys_of_tiles,
    keys_one_at_a_time,
    one_key_in,
    part_of_a_tile,
)
from grader.operators.attention.online_mistakes import maxima_not_shared, mistakes_in_parts, online_mistakes
from grader.operators.attention.reduction_mistakes import block_sums, divisions, warp_sums
from grader.operators.attention.wrong_ways import (
    F32,
    Compute,
    attention,
    carried_scores,
    carried_state,
    causal,
    first_tile_again,
    mean_of_v,
    numerators,
    scaled,
    scores_of_tile_transposed,
    softmax_over_queries,
    some_keys,
    taken_for_its_transpose,
    tiles_transposed,
    weighted,
)
from grader.operators.base import Alternate, Step

TILES = (32, 64, 16, 128)
"""The numbers of rows in a tile, the likeliest first."""
ODD_TILES = (48, 24, 96)
"""Less usual numbers, most of which do not divide N."""

MOST_KEYS = 8192
"""Mistakes that do not depend on the length are tried only up to this number of keys: shorter tests reveal them as
well."""

# ---- families of mistakes -------------------------------------------------------------------------------------


def _scores_transposed(tile: int) -> Alternate:
    return Alternate(
        f"scores_of_{tile}_transposed",
        f"It matches attention in which each tile of {tile} x {tile} scores is written with rows and columns "
        "exchanged: look at how the scores are stored and how they are read.",
        scores_of_tile_transposed(tile),
        lambda shape: shape[1] % tile != 0 or shape[1] == tile,  # a single tile is Q and K exchanged
        steps=("store_scores",),
    )


def _tile_in_shared_memory(tile: int, name: str, load: Step, use: Step) -> list[Alternate]:
    """Mistakes in which a tile of K or V (`name`) is not read in the order in which it was written."""

    def seen_as(change: Callable[[F32, int], F32]) -> Compute:
        if name == "K":
            return attention(lambda q, k, v: (q, change(k, tile), v))
        return attention(lambda q, k, v: (q, k, change(v, tile)))

    return [
        Alternate(
            f"{name}_tile_of_{tile}_transposed",
            f"It matches attention in which each tile of {name} of {tile} rows is read with rows and columns "
            "exchanged: look at how the tile is written to shared memory and how it is read.",
            seen_as(tiles_transposed),
            at_most(tile),
            steps=(load, use),
        ),
        Alternate(
            f"{name}_tile_of_{tile}_not_reloaded",
            f"It matches attention in which every tile uses the first {tile} rows of {name}: look at "
            f"the offset from which the tile of {name} is loaded.",
            seen_as(first_tile_again),
            at_most(tile),
            steps=("tile_launch", load),
        ),
    ]


def _state_carried_over(rows: int) -> Alternate:
    return Alternate(
        f"state_carried_over_{rows}_rows",
        "It matches an online softmax in which a thread's m, l and O of one row are carried over to its next row, "
        f"{rows} rows below: reset them for each row.",
        carried_state(rows),
        at_most(rows),
        steps=("state_start",),
    )


def _up_to(keys: int, alternates: Iterable[Alternate]) -> Iterator[Alternate]:
    """The alternates, for shapes with at most `keys` keys."""
    for each in alternates:
        yield replace(each, unless=lambda shape, unless=each.unless: shape[1] > keys or unless(shape))  # type: ignore[misc]


# ---- all of them ----------------------------------------------------------------------------------------------

ALTERNATES: tuple[Alternate, ...] = (
    Alternate(
        "no_scale",
        "It matches attention without the scale: multiply the scores by 1/√d before the softmax.",
        scaled(lambda d: 1.0),
        steps=("scale",),
    ),
    Alternate(
        "scale_1_over_d",
        "It matches attention with the scale 1/d: it should be 1/√d.",
        scaled(lambda d: 1.0 / d),
        steps=("scale",),
    ),
    Alternate(
        "scale_sqrt_d",
        "It matches attention with the scores multiplied by √d: they should be divided by it.",
        scaled(lambda d: float(np.sqrt(d))),
        steps=("scale",),
    ),
    *(
        Alternate(
            f"scale_for_d_{columns}",
            f"It matches attention with the scale 1/√{columns} for every d: it should be 1/√d.",
            scaled(lambda d, columns=columns: 1.0 / float(np.sqrt(columns))),  # type: ignore[misc]
            lambda shape, columns=columns: shape[2] == columns,  # type: ignore[misc]
            steps=("scale",),
        )
        for columns in (64, 32)
    ),
    Alternate(
        "scale_1_over_sqrt_n",
        "It matches attention with the scale 1/√N: it should be 1/√d.",
        attention(scale=lambda shape: 1.0 / float(np.sqrt(shape[1]))),
        steps=("scale",),
    ),
    Alternate(
        "sign_of_scores",
        "It matches attention with the sign of the scores reversed: look for exp(m − s) in place of exp(s − m).",
        scaled(lambda d: -1.0 / float(np.sqrt(d))),
        steps=("weight",),
    ),
    Alternate(
        "base_two",
        "It matches attention with 2 instead of e as the base of the exponentials: multiply the scores by log2(e) "
        "where exp2 is used.",
        scaled(lambda d: float(np.log(2.0) / np.sqrt(d))),
        steps=("weight",),
    ),
    *too_few_columns(),
    *(
        Alternate(
            name,
            "It matches attention in which each score still contains that of the key before: set the sum to 0 before "
            "each key.",
            carried_scores(scaled_too),
            steps=("score_start",),
        )
        for name, scaled_too in (("scores_carried", False), ("scaled_scores_carried", True))
    ),
    *(
        Alternate(
            f"scores_carried_over_tiles_of_{tile}",
            f"It matches attention in which the scores of each tile of {tile} keys still contain those of the tiles "
            "before: set the sums to 0 before each tile.",
            carried_scores(False, tile),
            at_most(tile),
            steps=("score_start",),
        )
        for tile in (*TILES, *ODD_TILES, 8)
    ),
    Alternate(
        "mean_of_v",
        "Every row equals the mean of V: the scores have no effect, as if Q Kᵀ were 0 for every key. Is the scale 0 "
        "because of an integer division?",
        mean_of_v,
        steps=("zero_scale",),
    ),
    Alternate(
        "k_not_transposed",
        "It matches attention with K read as its transpose: Kᵀ is d × N, and its element (x, key) is k[key * d + x].",
        attention(lambda q, k, v: (q, taken_for_its_transpose(k), v)),
        steps=("scores",),
    ),
    Alternate(
        "v_not_transposed",
        "It matches attention with V read as its transpose: element x of a key is v[key * d + x].",
        attention(lambda q, k, v: (q, k, taken_for_its_transpose(v))),
        steps=("output_sum",),
    ),
    Alternate(
        "q_k_swapped",
        "It matches attention with Q and K exchanged: look at which is indexed by the output's row, and at the "
        "order Q, K, V in the input file.",
        attention(lambda q, k, v: (k, q, v)),
        steps=("read_order", "scores"),
    ),
    Alternate(
        "k_v_swapped",
        "It matches attention with K and V exchanged: the input file has Q, K, V in this order.",
        attention(lambda q, k, v: (q, v, k)),
        steps=("order",),
    ),
    Alternate(
        "q_v_swapped",
        "It matches attention with Q and V exchanged: the input file has Q, K, V in this order.",
        attention(lambda q, k, v: (v, k, q)),
        steps=("order",),
    ),
    Alternate(
        "k_read_as_v",
        "It matches attention that takes its values from K: V is never read, so look at the offset at which V begins.",
        attention(lambda q, k, v: (q, k, k)),
        steps=("batch_of_v", "load_v"),
    ),
    Alternate(
        "v_read_as_k",
        "It matches attention that takes its keys from V: K is never read, so look at the offset at which K begins.",
        attention(lambda q, k, v: (q, v, v)),
        steps=("batch_of_k", "load_k"),
    ),
    *other_batches(),
    header_read_in_another_order(),
    Alternate(
        "softmax_over_queries",
        "It matches a softmax over the queries instead of over the keys: take the maximum and the sum of each row of "
        "the scores.",
        softmax_over_queries,
        lambda shape: shape[1] > 8192,  # it costs as much as the whole batch
        steps=("total",),
    ),
    Alternate(
        "not_normalised_shifted",
        "It matches the right numerator without the division by the softmax's sum l.",
        weighted(lambda scores, rows: numerators(scores)),
        steps=("division",),
    ),
    Alternate(
        "not_normalised",
        "It matches exp(scores) V without the division by the softmax's sum.",
        weighted(lambda scores, rows: np.exp(scores)),
        steps=("division",),
    ),
    Alternate(
        "no_softmax",
        "It matches the scores times V, without a softmax between the two products.",
        weighted(lambda scores, rows: scores),
        steps=("weight", "launch"),
    ),
    *divisions(),
    Alternate(
        "v_returned",
        "It equals V: V is indexed by the output's row instead of by the key, or the output is a copy of V.",
        lambda shape, tensors, rows: tensors[2][rows].astype(np.float64),
        steps=("value_by_row", "load_v", "output_sum", "store"),
    ),
    Alternate(
        "q_returned",
        "It equals Q: the output is a copy of an input, or the buffer of Q was written to the file.",
        lambda shape, tensors, rows: tensors[0][rows].astype(np.float64),
        steps=("store",),
    ),
    Alternate(
        "k_returned",
        "It equals K: the output is a copy of an input, or the buffer of K was written to the file.",
        lambda shape, tensors, rows: tensors[1][rows].astype(np.float64),
        steps=("store",),
    ),
    Alternate(
        "causal",
        "It matches causal attention, in which row i sees keys 0 to i only: every row should see all keys.",
        weighted(causal),
        steps=("keys",),
    ),
    Alternate(
        "half_of_keys",
        "It matches attention over the first half of the keys: the loop over K and V covers N/2 of N keys.",
        some_keys(lambda matrix: matrix[: len(matrix) // 2]),
        steps=("keys",),
    ),
    *(mistake for tile in (*TILES, *ODD_TILES) for mistake in keys_of_tiles(tile)),
    *(mistake for tile in (*ODD_TILES, *TILES) for mistake in part_of_a_tile(tile)),
    *_up_to(MOST_KEYS, (mistake for tile in (*TILES, 8, 1, *ODD_TILES) for mistake in online_mistakes(tile))),
    *_up_to(MOST_KEYS, (mistake for parts in (4, 8, 32) for mistake in mistakes_in_parts(parts))),
    *_up_to(MOST_KEYS, (mistake for tile in (32, 48, 64) for mistake in maxima_not_shared(tile))),
    *keys_one_at_a_time(),
    *_up_to(MOST_KEYS, (_state_carried_over(rows) for rows in (32, 64, 128, 256, 512, 1024, 16, 8, 1))),
    *(mistake for tile in (*TILES, 8) for mistake in key_of_each_tile(tile)),
    *one_key_in((100, 10, 1000)),
    *(
        mistake
        for tile in TILES
        for mistake in (
            *_tile_in_shared_memory(tile, "K", "load_k", "scores"),
            *_tile_in_shared_memory(tile, "V", "load_v", "output_sum"),
        )
    ),
    *(_scores_transposed(tile) for tile in TILES),
    *_up_to(MOST_KEYS, other_rows(TILES)),
    *_up_to(MOST_KEYS, warp_sums()),
    *_up_to(MOST_KEYS, (each for threads in (32, 64, 128, 256, 512) for each in block_sums(threads))),
)
