"""Probes: experiments whose output shows a mistake by itself, as an operator declares them.

A probe is an input for the program for which an output is a picture of the weights of a softmax, or 0. The readers
are in `grader/checking/probes`. Operators of one unit need none: they have the smallest input, which works for any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Outputs = Sequence[Sequence[NDArray[Any]]]
"""For each output tensor, its values in each unit: (rows, columns)."""


@dataclass(frozen=True)
class Weights:
    """`of(outputs)` should be softmax(scale · scores) over the keys that each query sees; `scores` and `seen` are
    (queries, keys). `array`: the output in which it shows. `factors`: Q (queries, columns) and K (keys, columns), of
    which the scores are the product. `terms`: what the queries are to the output, if it is a sum over them; they are
    those of so many `heads`."""

    of: Callable[[Outputs], F64]
    scores: F64
    scale: float
    seen: NDArray[np.bool_]
    array: str
    factors: tuple[F64, F64]
    terms: str = ""
    heads: int = 1


@dataclass(frozen=True)
class Vanishes:
    """The output number `output`, called `array`, should be 0. With the mistake `kind` it is about `size`."""

    output: int
    array: str
    kind: str
    size: float


@dataclass(frozen=True)
class Probe:
    """An input of `shape`, the tensors of each unit in file order, and how the output is read."""

    shape: tuple[int | float, ...]
    units: Sequence[Sequence[NDArray[Any]]]
    readings: tuple[Weights | Vanishes, ...]


MOST_ROWS = 256


def small(size: int, most: int = MOST_ROWS) -> int:
    """A size up to `most` with the same remainders as `size`, for which a program makes the same mistakes."""
    return size if size <= most else most // 2 + size % (most // 2)
