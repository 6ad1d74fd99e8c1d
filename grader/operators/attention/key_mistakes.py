"""Likely mistakes in the loops over keys and over tiles of keys: some keys are left out, or count twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.wrong_ways import F32, some_keys, without
from grader.operators.base import Alternate, Shape, Step

_CARRIED_ON = "O, l or m is overwritten by each {} instead of being carried on"


def at_most(keys: int) -> Callable[[Shape], bool]:
    """A predicate: true for a shape with at most `keys` keys."""
    return lambda shape: shape[1] <= keys


def _ignoring(
    name: str, words: str, dropped: Callable[[int], NDArray[np.intp]], *, fewest: int = 0, step: Step = "keys"
) -> Alternate:
    """Attention without the keys `dropped(N)`, for shapes with more than `fewest` keys."""
    return Alternate(
        name, f"It matches attention that ignores {words}.", without(dropped), at_most(fewest), steps=(step,)
    )


def _over(name: str, words: str, some: Callable[[F32], F32], *, fewest: int = 0, step: Step = "keys") -> Alternate:
    """Attention over the keys that `some` selects from K and from V."""
    return Alternate(name, f"It matches attention over {words}.", some_keys(some), at_most(fewest), steps=(step,))


def keys_of_tiles(tile: int) -> Iterator[Alternate]:
    """Mistakes in the loop over tiles of K and V."""
    loop = "the loop over tiles of K and V"
    yield _ignoring(
        f"last_{tile}_keys_dropped",
        f"the last {tile} keys: {loop} ends one tile early",
        lambda n: np.arange(n - tile, n),
        fewest=tile,
        step="bound",
    )
    yield _ignoring(
        f"first_{tile}_keys_dropped",
        f"the first {tile} keys: {loop} starts one tile late",
        lambda n: np.arange(tile),
        fewest=tile,
    )
    yield _over(
        f"first_{tile}_keys_only",
        f"the first {tile} keys only: {loop} runs once, or each tile overwrites the one before",
        lambda matrix: matrix[:tile],
        fewest=tile,
    )
    yield _over(
        f"last_{tile}_keys_only",
        f"the last {tile} keys only: {_CARRIED_ON.format('tile')}",
        lambda matrix: matrix[-tile:],
        fewest=tile,
        step="output_sum",
    )
    yield _ignoring(
        f"all_but_every_fourth_tile_of_{tile}",
        f"all tiles of {tile} keys except every fourth: {loop} advances by {4 * tile} keys instead of {tile}",
        lambda n: np.flatnonzero(np.arange(n) // tile % 4),
        fewest=tile,
    )
    yield _ignoring(
        f"every_second_tile_of_{tile}",
        f"every second tile of {tile} keys: {loop} advances by {2 * tile} keys instead of {tile}",
        lambda n: np.flatnonzero(np.arange(n) // tile % 2),
        fewest=tile,
    )


def part_of_a_tile(tile: int) -> Iterator[Alternate]:
    """Mistakes with the last tile if the keys are not a whole number of tiles."""
    yield Alternate(
        f"keys_after_whole_tiles_of_{tile}_dropped",
        f"It matches attention over whole tiles of {tile} keys only: the last keys, N mod {tile}, are ignored. Round "
        f"the number of tiles up, (N + {tile - 1}) / {tile}.",
        some_keys(lambda matrix: matrix[: len(matrix) - len(matrix) % tile]),
        lambda shape: shape[1] % tile == 0 or shape[1] < tile,
        steps=("bound",),
    )
    yield Alternate(
        f"keys_past_the_end_of_tiles_of_{tile}",
        f"It matches attention in which the places past key N in the last tile of {tile} count as keys with the score "
        "0: give them the score −INFINITY, or leave them out.",
        some_keys(lambda matrix: np.pad(matrix, ((0, -len(matrix) % tile), (0, 0)))),
        lambda shape: shape[1] % tile == 0,
        steps=("store_scores",),
    )


def keys_one_at_a_time() -> Iterator[Alternate]:
    """The mistakes of `keys_of_tiles` in a loop that takes one key at a time."""
    yield _over(
        "first_key_only",
        "the first key only: the loop over the keys runs once, or every key uses the same row of V",
        lambda matrix: matrix[:1],
    )
    yield _over(
        "last_key_only",
        f"the last key only: {_CARRIED_ON.format('key')}",
        lambda matrix: matrix[-1:],
        step="output_sum",
    )
    second = "every second key: the loop over the keys advances by 2"
    yield _ignoring("every_second_key", second, lambda n: np.arange(1, n, 2))
    for which, end in (("first", slice(0, 1)), ("last", slice(-1, None))):
        yield _over(
            f"{which}_key_twice",
            f"all keys, with the {which} one counted twice: the loop over the keys includes a key that the code before "
            "or after the loop adds, too",
            lambda matrix, end=end: np.concatenate((matrix, matrix[end])),  # type: ignore[misc]
        )
    last, first = "the last key: a loop over the keys ends", "the first key: a loop over the keys starts"
    yield _ignoring("last_key_dropped", f"{last} one too early", lambda n: np.array([n - 1]))
    yield _ignoring("first_key_dropped", f"{first} one too late", lambda n: np.array([0]))


def key_of_each_tile(tile: int) -> Iterator[Alternate]:
    """Mistakes in the loop over the keys of a tile."""
    for which, ends, key in (("last", "ends one too early", tile - 1), ("first", "starts one too late", 0)):
        yield _ignoring(
            f"{which}_key_of_tiles_of_{tile}",
            f"the {which} key of every tile of {tile}: the loop inside the tile {ends}",
            lambda n, key=key: np.arange(key, n, tile),  # type: ignore[misc]
            step="tile",
        )


def one_key_in(steps: Iterable[int]) -> Iterator[Alternate]:
    """Attention that ignores one key in every `step` keys."""
    for step in steps:
        for first in (step - 1, 0):
            yield _ignoring(
                f"every_{step}th_key_dropped_from_{first}",
                f"every {step}th key, from key {first} on",
                lambda n, first=first, step=step: np.arange(first, n, step),  # type: ignore[misc]
                fewest=first,
            )
