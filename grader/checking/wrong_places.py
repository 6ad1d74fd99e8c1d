"""Says in words which values of an output are wrong: tensors, units, rows, columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grader.checking.scan import TensorErrors
from grader.operators import Operator

TILES = (16, 32, 64, 128, 256)

Bools = NDArray[np.bool_]


def which_tensors(errors: tuple[TensorErrors, ...]) -> str:
    wrong = [e.tensor for e in errors if e.wrong]
    right = [e.tensor for e in errors if not e.wrong]
    if not right:
        return ""
    return f"{listed(wrong)} {'is' if len(wrong) == 1 else 'are'} wrong, {listed(right)} right."


def listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def where_wrong(operator: Operator, errors: TensorErrors) -> str:
    phrases = [
        _units(operator, errors.by_unit > 0),
        _lines("row", errors.by_row > 0),
        _lines("column", errors.by_column > 0),
    ]
    said = [phrase for phrase in phrases if phrase]
    return f"Where: {'; '.join(said)}." if said else ""


def _units(operator: Operator, wrong: Bools) -> str:
    one, many, count = operator.unit, operator.units_name, len(wrong)
    numbers = np.flatnonzero(wrong)
    first, last = int(numbers[0]), int(numbers[-1])
    steps = np.unique(np.diff(numbers))
    if len(numbers) == count:
        return ""
    if len(numbers) == count - 1 and first == 1:
        return f"only {one} 0 is right, all {many} after the first are wrong (look at the offset per {one})"
    if first == last:
        return f"only {one} {first} of {count} is wrong"
    if len(steps) > 1:
        return f"{len(numbers)} of {count} {many} are wrong, the first is {one} {first}"
    if steps[0] > 1:
        return f"every {_ordinal(int(steps[0]))} {one} is wrong, from {one} {first} on"
    if last == count - 1:
        return f"{many} from {first} on are wrong, those before are right"
    return f"{many} {first} to {last} of {count} are wrong"


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third", 4: "fourth"}.get(number, f"{number}th")


def _lines(name: str, wrong: Bools) -> str:
    numbers = np.flatnonzero(wrong)
    first, last = int(numbers[0]), int(numbers[-1])
    if len(numbers) == len(wrong):
        return ""
    if first == last:
        return f"only {name} {first} is wrong"
    if len(numbers) == last - first + 1:
        return f"only {name}s {first} to {last} of {len(wrong)} are wrong"
    for tile in (tile for tile in TILES if len(wrong) % tile == 0 and len(wrong) > tile):
        inside = np.flatnonzero(wrong[:tile])
        if (wrong.reshape(-1, tile) == wrong[:tile]).all() and len(inside) == inside[-1] - inside[0] + 1:
            if len(inside) == 1:
                return f"{name} {inside[0]} of every tile of {tile} is wrong"
            return f"{name}s {inside[0]} to {inside[-1]} of every tile of {tile} are wrong"
    return f"{len(numbers)} of {len(wrong)} {name}s are wrong, the first is {name} {first}"
