"""The steps of a right computation, as an operator declares them next to its oracle.

A step is a sum of products of earlier steps or input tensors, or the exponential of one, divided by its sum. From these
the watch (checking/watch) recognises what a program computes at each line, in any order and in any tiling. Indices are
letters; all steps are of one unit (a batch, a head). `StepValues` computes them for its input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

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
    `seen(i)`: the (first, end) of the j that count."""

    name: str
    of: str
    total: str
    scale: float
    seen: Callable[[int], tuple[int, int]]


@dataclass(frozen=True)
class Difference:
    """`name`[i, j] = `weights`[i, j] · (`of`[i, j] − `less`[i]), all of them steps."""

    name: str
    weights: str
    of: str
    less: str


@dataclass(frozen=True)
class Steps:
    """All steps of an operator for one shape. `results`: for each output tensor its step and the factor by which it is
    multiplied. `words`: names of steps, and of what they are summed over ("over NAME"), for people."""

    sums: tuple[Sum, ...]
    results: Mapping[str, tuple[str, float]]
    weights: Weights | None = None
    difference: Difference | None = None
    words: Mapping[str, str] = field(default_factory=dict)


class StepValues:
    """The values of one unit's `steps`, from its input `tensors` by name; each is computed when it is asked for."""

    def __init__(self, steps: Steps, tensors: Mapping[str, NDArray[Any]]) -> None:
        self._steps = steps
        self._known: dict[str, F64] = {name: np.asarray(tensor, np.float64) for name, tensor in tensors.items()}

    def of(self, name: str) -> F64:
        """An input tensor, a sum or the weights."""
        if name not in self._known:
            sums = {each.name: each for each in self._steps.sums}
            self._known[name] = self._summed(sums[name]) if name in sums else np.exp(self.log) * self._seen
        return self._known[name]

    def _summed(self, of: Sum) -> F64:
        letters = ",".join(indices for _, indices in of.factors)
        factors = [self.of(name) for name, _ in of.factors]
        return np.asarray(np.einsum(f"{letters}->{of.index}", *factors, optimize=True))

    @cached_property
    def scores(self) -> F64:
        """What the weights are exponentials of."""
        assert self._steps.weights is not None
        return self._steps.weights.scale * self.of(self._steps.weights.of)

    @cached_property
    def log(self) -> F64:
        """The weights' logarithms, as if those that do not count did."""
        counted = np.where(self._seen, self.scores, -np.inf)
        top = counted.max(axis=1, keepdims=True)
        top[~np.isfinite(top)] = 0
        total = np.maximum(np.exp(counted - top).sum(axis=1, keepdims=True), 1e-300)
        return np.asarray(self.scores - top - np.log(total))

    @cached_property
    def _seen(self) -> NDArray[np.bool_]:
        assert self._steps.weights is not None
        ends = np.array([self._steps.weights.seen(row) for row in range(len(self.scores))])
        keys = np.arange(self.scores.shape[1])
        return np.asarray((keys >= ends[:, :1]) & (keys < ends[:, 1:]))
