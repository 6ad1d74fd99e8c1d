"""Likely mistakes in addresses: the matrix of another batch, the row of another key, too few columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from grader.operators.attention.softmax import F64
from grader.operators.attention.wrong_ways import F32, Compute, attention
from grader.operators.base import Alternate, Rows, Shape, Step, Tensors

Place = tuple[int, int]
"""A matrix by unit and number (0: Q, 1: K, 2: V)."""

_NAMES = ("Q", "K", "V")
_LOADS: tuple[Step, ...] = ("batch_of_q", "batch_of_k", "batch_of_v")

_WITHOUT_OFFSET: tuple[tuple[int, ...], ...] = ((2,), (1,), (0,), (1, 2))
_WITH_SMALL_OFFSET: tuple[tuple[int, ...], ...] = ((0, 1, 2), *_WITHOUT_OFFSET)
"""Groups of matrices, by number, that are read from a wrong place together."""


def _elsewhere(name: str, sentence: str, places: Callable[[int, int], tuple[Place, ...]], step: Step) -> Alternate:
    """Attention over the three matrices `places(batch, batches)`."""

    def others(shape: Shape, unit: int) -> tuple[Place, ...]:
        batches = int(shape[0])
        return tuple((min(at, batches - 1), number) for at, number in places(unit, batches))

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        return attention()(shape, tensors[3:], rows)

    return Alternate(name, sentence, compute, steps=(step, "batch", "read"), others=others)


def other_batches() -> Iterator[Alternate]:
    """Matrices taken from another batch. In the input, matrix t (Q, K, V: 0, 1, 2) of batch b is number 3·b + t."""
    for wrong in _WITHOUT_OFFSET:
        names = " and ".join(_NAMES[each] for each in wrong)
        lacks, their = ("lacks", "its") if len(wrong) == 1 else ("lack", "their")
        yield _elsewhere(
            f"{''.join(_NAMES[each] for each in wrong)}_of_batch_0",
            f"It matches attention in which every batch uses {names} of batch 0: {names} {lacks} the offset of {their} "
            "batch.",
            lambda batch, batches, wrong=wrong: tuple((0 if t in wrong else batch, t) for t in range(3)),  # type: ignore[misc]
            _LOADS[wrong[0]],
        )
    for wrong in _WITH_SMALL_OFFSET:
        names = "the batches" if len(wrong) == 3 else "the batches of " + " and ".join(_NAMES[each] for each in wrong)
        yield _elsewhere(
            f"{''.join(_NAMES[each] for each in wrong)}_one_matrix_apart",
            f"It matches attention in which {names} are N·d values apart in the input: they are 3·N·d apart, since "
            "each has Q, K and V.",
            lambda batch, batches, wrong=wrong: tuple(  # type: ignore[misc]
                divmod((1 if t in wrong else 3) * batch + t, 3) for t in range(3)
            ),
            "batch" if len(wrong) == 3 else _LOADS[wrong[0]],
        )
    yield _elsewhere(
        "planar_input",
        "It matches a program that takes the input for all Q, then all K, then all V: the file has Q, K and V of batch "
        "0, then those of batch 1, and so on.",
        lambda batch, batches: tuple(divmod(t * batches + batch, 3) for t in range(3)),
        "read_file",
    )


def header_read_in_another_order() -> Alternate:
    """The program takes the header's B for N and N for B. If B divides N, a batch in the file then holds N / B batches
    of B rows."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        batches, n, d = (int(each) for each in shape[:3])
        parts = np.concatenate([each.ravel() for each in tensors]).reshape(n // batches, 3, batches, d)
        alone = (batches, batches, d)
        return np.concatenate([attention()(alone, tuple(each), slice(None)) for each in parts])[rows]

    return Alternate(
        "header_n_b",
        "It matches a program that takes the first number of the header for N and the second for B: the header "
        "is B, N, d.",
        compute,
        lambda shape: shape[1] % shape[0] != 0 or shape[1] == shape[0],
        steps=("header",),
    )


def other_rows(tiles: tuple[int, ...]) -> Iterator[Alternate]:
    """Rows of Q, K or V that are read by a wrong index."""
    yield Alternate(
        "query_by_key",
        "It matches scores of each key with the query of the same number, the same for every row of O: index Q by the "
        "output's row.",
        _query_by_key,
        steps=("scores",),
    )
    for name, change in (
        ("the key after", lambda matrix: np.roll(matrix, -1, axis=0)),
        ("the key before", lambda matrix: np.roll(matrix, 1, axis=0)),
    ):
        yield Alternate(
            f"value_of_{name.replace(' ', '_')}",
            f"It matches attention in which each weight is multiplied by the value of {name}: the same key's rows of K "
            "and V belong together.",
            attention(lambda q, k, v, change=change: (q, k, change(v))),  # type: ignore[misc]
            steps=("output_sum",),
        )
    for tile in tiles:
        for number, step in ((2, "load_v"), (1, "load_k")):
            which: Step = step  # type: ignore[assignment]
            yield Alternate(
                f"{_NAMES[number]}_tile_of_{tile}_by_query",
                f"It matches attention in which every tile of {_NAMES[number]} holds the {tile} rows of the block's "
                f"Q: index {_NAMES[number]} by the key's number, not by the row's.",
                _tile_of_the_queries(tile, number),
                lambda shape, tile=tile: shape[1] <= tile,  # type: ignore[misc]
                steps=(which,),
            )
        for number, step in ((2, "load_v"), (1, "load_k")):
            which = step  # type: ignore[assignment]
            yield Alternate(
                f"{_NAMES[number]}_tile_of_{tile}_at_offset_without_d",
                f"It matches attention in which tile t of {_NAMES[number]} begins at value {tile}·t instead of value "
                f"{tile}·t·d: multiply the key's number by d.",
                _tile_without_d(tile, number),
                lambda shape, tile=tile: shape[1] <= tile,  # type: ignore[misc]
                steps=(which,),
            )
    for d, other in ((32, 64), (64, 32), (32, 1), (64, 1)):
        for number, step in ((1, "scores"), (2, "output_sum"), (0, "scores")):
            which = step  # type: ignore[assignment]
            yield _rows_apart(d, other, (number,), which)
        yield _rows_apart(d, other, (0, 1, 2), "scores")


def _query_by_key(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    q, k, v = (t.astype(np.float64) for t in tensors)
    scores = (q * k).sum(axis=1) / np.sqrt(shape[2])
    weights = np.exp(scores - scores.max())
    return np.broadcast_to(weights @ v / weights.sum(), v.shape)[rows]


def _tile_of_the_queries(tile: int, number: int) -> Compute:
    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        numbers = np.arange(len(tensors[0]))[rows]
        out = np.empty((len(numbers), tensors[2].shape[1]))
        for first in np.unique(numbers - numbers % tile):
            here = numbers - numbers % tile == first
            changed = list(tensors)
            changed[number] = np.tile(tensors[number][first : first + tile], (len(tensors[0]) // tile, 1))
            out[here] = attention()(shape, changed, numbers[here])
        return out

    return compute


def _tile_without_d(tile: int, number: int) -> Compute:
    def change(matrix: F32) -> F32:
        rows, d = matrix.shape
        keys = np.arange(rows)
        begins = keys - keys % tile + keys % tile * d
        return np.asarray(matrix.ravel()[begins[:, None] + np.arange(d)])

    return attention(lambda q, k, v: (q, change(k), v) if number == 1 else (q, k, change(v)))


def _rows_apart(d: int, other: int, wrong: tuple[int, ...], step: Step) -> Alternate:
    """The matrices `wrong` are read with rows `other` values apart instead of `d`, so that the last rows run into the
    next matrix."""
    names = "Q, K and V" if len(wrong) == 3 else _NAMES[wrong[0]]

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        flat = np.concatenate([each.ravel() for each in tensors])
        n = len(tensors[0])
        at = other * np.arange(n)[:, None] + np.arange(d)
        changed = [flat[t * n * d + at] if t in wrong else tensors[t] for t in range(3)]
        return attention()(shape, changed, rows)

    return Alternate(
        f"rows_of_{names.replace(', ', '').replace(' and ', '')}_{other}_apart_for_{d}",
        f"It matches attention in which the rows of {names} are {other} value{'s' * (other > 1)} apart: they are "
        f"d = {d} values apart.",
        compute,
        lambda shape: shape[2] != d,
        steps=(step,),
        others=lambda shape, unit: tuple((min(unit + 1, int(shape[0]) - 1), t) for t in range(3)),
    )


def too_few_columns() -> Iterator[Alternate]:
    """Scores that are sums over only some of the columns."""
    parts: tuple[tuple[str, str, Callable[[int], slice], Callable[[Shape], bool]], ...] = (
        ("32_columns_of_scores", "the first 32 columns", lambda d: slice(0, 32), lambda shape: shape[2] <= 32),
        (
            "half_of_the_columns",
            "the first half of the columns",
            lambda d: slice(0, d // 2),
            lambda shape: shape[2] != 32,
        ),
        ("all_columns_but_the_last", "all columns but the last", lambda d: slice(0, d - 1), _never),
        ("all_columns_but_the_first", "all columns but the first", lambda d: slice(1, d), _never),
        ("every_second_column", "every second column", lambda d: slice(0, d, 2), _never),
        ("every_fourth_column", "every fourth column", lambda d: slice(0, d, 4), _never),
        ("one_column", "the first column", lambda d: slice(0, 1), _never),
    )
    for name, words, part, unless in parts:

        def some(q: F32, k: F32, v: F32, part: Callable[[int], slice] = part) -> tuple[F32, F32, F32]:
            columns = part(q.shape[1])
            return q[:, columns], k[:, columns], v

        yield Alternate(
            name,
            f"It matches scores summed over {words} of Q and K only: load all d columns and sum over them.",
            attention(some),
            unless,
            steps=("columns",),
        )


def _never(shape: Shape) -> bool:
    return False
