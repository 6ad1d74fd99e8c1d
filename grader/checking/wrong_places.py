"""Says in words which values of an output are wrong: tensors, units, rows, columns; and numbers in few words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grader.checking.scan import TensorErrors
from grader.operators import Operator

TILES = (16, 32, 64, 128, 256)


def which_tensors(errors: tuple[TensorErrors, ...]) -> str:
    wrong = [e.tensor for e in errors if e.wrong]
    right = [e.tensor for e in errors if not e.wrong]
    if not right:
        return ""
    return f"{', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} wrong, {', '.join(right)} right."


def where_wrong(operator: Operator, errors: TensorErrors) -> str:
    axes = (
        (operator.unit, operator.units_name, errors.by_unit),
        ("row", "rows", errors.by_row),
        ("column", "columns", errors.by_column),
    )
    said = [phrase for one, many, counts in axes if (phrase := _places(one, many, counts > 0))]
    return f"Where: {'; '.join(said)}." if said else ""


def _places(one: str, many: str, wrong: NDArray[np.bool_]) -> str:
    """Which of the units, rows or columns are wrong; '' if all are."""
    numbers, count = np.flatnonzero(wrong), len(wrong)
    first, last = int(numbers[0]), int(numbers[-1])
    if len(numbers) == count:
        return ""
    if len(numbers) == count - 1 and first == 1 and one not in ("row", "column"):
        return f"only {one} 0 is right, all {many} after the first are wrong (look at the offset per {one})"
    if first == last:
        return f"only {one} {first} of {count} is wrong"
    if np.ptp(numbers) < len(numbers):  # in one piece
        return f"only {many} {first} to {last} of {count} are wrong"
    if len(numbers) > 2 and (step := even_step(numbers)) and first < step and last + step >= count:
        return f"one {one} in {step} is wrong, from {one} {first} on"
    for tile in (tile for tile in TILES if count % tile == 0 and count > tile):
        inside = np.flatnonzero(wrong[:tile])
        if (wrong.reshape(-1, tile) == wrong[:tile]).all() and np.ptp(inside) < len(inside):
            return f"{many} {inside[0]} to {inside[-1]} of every tile of {tile} are wrong"
    return f"{len(numbers)} of {count} {many} are wrong, the first is {one} {first}"


def even_step(numbers: NDArray[np.intp] | list[int]) -> int | None:
    """The distance between numbers that repeat evenly, such as the last of each tile."""
    steps = np.unique(np.diff(numbers))
    return int(steps[0]) if len(steps) == 1 and steps[0] > 1 else None


def spans(numbers: NDArray[np.intp] | list[int]) -> str:
    """Numbers in few words: "31, 63, 95 and 127", "32 to 63", "0, 100 …"."""
    if not len(numbers):
        return ""
    groups = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    said = [f"{g[0]}–{g[-1]}" if len(g) > 1 else str(g[0]) for g in groups[:6]]
    return ", ".join(said) + (" …" if len(groups) > 6 else "")
