"""Probes of attention. It is linear in V, and dV is linear in dO: with the identity in their place, spread over several
units, the outputs are the matrix of weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.grouped import Problem, seen
from grader.operators.base import Operator, Shape
from grader.operators.layout import Tensor
from grader.operators.probes import F64, Outputs, Probe, Vanishes, Weights

F32 = NDArray[np.float32]


def attention_probes(
    operator: Operator, problem_of: Callable[[Shape], Problem], shaped: Callable[[int], Shape], gradient: bool = False
) -> tuple[Probe, ...]:
    """Probes of an operator with the inputs Q, K, V, and dO for the `gradient`. `shaped(units)` is a shape with at
    least so many units."""
    p = problem_of(shaped(1))
    rows = p.group * p.queries
    shape = shaped(-(-max(p.keys, rows if gradient else 0) // p.d))
    weights = _Maker(operator, problem_of, shape, gradient).weights()
    return (weights, _Maker(operator, problem_of, shaped(2), gradient).without_d()) if gradient else (weights,)


def _joined(pieces: Sequence[F32]) -> F64:
    """The inverse of `_Maker._piece`. NaN if a whole unit is 0, since it may never have been written."""
    if not all(piece.any() for piece in pieces):
        return np.full((len(pieces[0]), pieces[0].shape[1] * len(pieces)), np.nan)
    return np.stack(pieces, axis=2).reshape(len(pieces[0]), -1).astype(np.float64)


class _Maker:
    def __init__(
        self, operator: Operator, problem_of: Callable[[Shape], Problem], shape: Shape, gradient: bool
    ) -> None:
        self.operator, self.shape, self.p, self.gradient = operator, shape, problem_of(shape), gradient
        self.units, self.rows = operator.units(shape), self.p.group * self.p.queries
        draw = np.random.default_rng(1)
        self.tensors = operator.inputs(shape)
        # Scores from about −3 to 3: weights of all sizes that any float can hold.
        reach = 3 / (self.p.scale * np.sqrt(self.p.d))
        self.q = self._rounded(0, draw.uniform(-reach, reach, (self.rows, self.p.d)))
        self.k = self._rounded(1, draw.uniform(-1, 1, (self.p.keys, self.p.d)))

    def _rounded(self, number: int, values: F64) -> F32:
        tensor: Tensor = self.tensors[number]
        return np.asarray(tensor.type.rounded(values.astype(np.float32)), np.float32)

    @property
    def _seen(self) -> NDArray[np.bool_]:
        first, end = seen(self.p, np.arange(self.rows) % self.p.queries)
        keys = np.arange(self.p.keys)
        return np.asarray((keys >= first[:, None]) & (keys < end[:, None]))

    def _piece(self, size: int, unit: int) -> F32:
        """Column x of unit u is column x · units + u of the identity, so a unit that is left out looks like no mistake
        in a loop over keys."""
        place = np.arange(self.p.d) * self.units + unit
        return np.asarray(np.arange(size)[:, None] == place, np.float32)

    def weights(self) -> Probe:
        keys, rows, scores = self.p.keys, self.rows, self.q.astype(np.float64) @ self.k.astype(np.float64).T
        factors = self.q.astype(np.float64), self.k.astype(np.float64)

        def of_o(outputs: Outputs) -> F64:
            return _joined(outputs[0])[:, :keys]

        def of_dv(outputs: Outputs) -> F64:
            return _joined(outputs[3])[:, :rows].T

        readings = [Weights(of_o, scores, self.p.scale, self._seen, "O", factors)]
        if self.gradient:
            readings.append(
                Weights(of_dv, scores, self.p.scale, self._seen, "dV", factors, terms="queries", heads=self.p.group)
            )
        sizes = (keys, rows) if self.gradient else (keys,)
        units = [(self.q, self.k, *(self._piece(size, unit) for size in sizes)) for unit in range(self.units)]
        return Probe(self.shape, units, tuple(readings))

    def without_d(self) -> Probe:
        """With V = 1 all dP of a row are equal, so dS = P ∘ (dP − D) is 0."""
        do = self._rounded(3, np.random.default_rng(2).uniform(0.5, 1, (self.rows, self.p.d)))
        units = [(self.q, self.k, np.ones((self.p.keys, self.p.d), np.float32), do)] * self.units
        kind, size = "row_sum_not_subtracted", float(self.p.scale * do.sum(axis=1).mean()) / 4
        return Probe(self.shape, units, (Vanishes(1, "dQ", kind, size), Vanishes(2, "dK", kind, size)))
