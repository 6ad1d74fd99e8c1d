"""The steps of a right computation, as an operator declares them next to its oracle.

A step is a sum of products of earlier steps or input tensors, or the exponential of one, divided by its sum. From these
the watch (checking/watch) recognises what a program computes at each line, in any order and in any tiling. Indices are
letters; all steps are of one unit (a batch, a head), whose number comes before them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Factor = tuple[str, str]
"""A step or an input tensor, and its indices: ("K", "jx")."""


@dataclass(frozen=True)
class Sum:
    """`name`[`index`] = Σ over `over` of the product of one or two `factors`. `count`: the number of terms."""

    name: str
    index: str
    over: str
    factors: tuple[Factor, ...]
    count: int


@dataclass(frozen=True)
class Weights:
    """`name`[i, j] = exp(scale · `of`[i, j] − any number of row i), divided by the row's sum, the step `total`.
    `log(unit)` has scale · `of` − log Σ exp for all i, j, and `seen(i)` the (first, end) of the j that count."""

    name: str
    of: str
    total: str
    scale: float
    log: Callable[[int], F64]
    seen: Callable[[int], tuple[int, int]]


@dataclass(frozen=True)
class Difference:
    """`name`[i, j] = `weights`[i, j] · (`of`[i, j] − `less`[i]); `value(unit)` has `less`."""

    name: str
    weights: str
    of: str
    less: str
    value: Callable[[int], F64]


@dataclass(frozen=True)
class Steps:
    """All steps of an operator for one input. `results`: for each output tensor its step and the factor by which it is
    multiplied. `words`: names of steps, and of what they are summed over ("over NAME"), for people. `columns`: of each
    input tensor. `scores(unit)`: what the weights are exponentials of, without the scale."""

    sums: tuple[Sum, ...]
    results: Mapping[str, tuple[str, float]]
    weights: Weights | None = None
    difference: Difference | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, int] = field(default_factory=dict)
    scores: Callable[[int], F64] | None = None
