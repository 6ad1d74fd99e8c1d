"""Probes of attention. It is linear in V, and dV is linear in dO: with the identity in their place, spread over several
units, the outputs are the matrix of weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.problem import Problem, is_seen
from grader.operators.base import Shape
from grader.operators.probes import F64, Outputs, Probe, Vanishes, Weights

F32 = NDArray[np.float32]


def _queries_and_keys(p: Problem) -> tuple[F32, F32]:
    """Scores from about −3 to 3: weights of all sizes that any float can hold."""
    draw, reach = np.random.default_rng(1), 3 / (p.scale * np.sqrt(p.d))
    q = _rounded(p, draw.uniform(-reach, reach, (p.rows, p.d)))
    return q, _rounded(p, draw.uniform(-1, 1, (p.keys, p.d)))


def _rounded(p: Problem, values: F64) -> F32:
    return np.asarray(p.type.rounded(values.astype(np.float32)), np.float32)


def _joined(pieces: Sequence[F32]) -> F64:
    """The matrix whose columns u, u + units, … are the piece of unit u. NaN if a whole unit is 0, since it may never
    have been written."""
    if not all(piece.any() for piece in pieces):
        return np.full((len(pieces[0]), pieces[0].shape[1] * len(pieces)), np.nan)
    return np.stack(pieces, axis=2).reshape(len(pieces[0]), -1).astype(np.float64)


def weights_probe(shape: Shape, units: int, p: Problem, gradient: bool) -> Probe:
    """The probe of `shape`, with so many units, that shows the weights."""
    q, k = _queries_and_keys(p)
    factors = q.astype(np.float64), k.astype(np.float64)
    scores, visible = factors[0] @ factors[1].T, is_seen(p)

    def piece(size: int, unit: int) -> F32:
        """Column x of unit u is column x · units + u of the identity, so a unit that is left out looks like no mistake
        in a loop over keys."""
        return np.asarray(np.arange(size)[:, None] == np.arange(p.d) * units + unit, np.float32)

    def of_o(outputs: Outputs) -> F64:
        return _joined(outputs[0])[:, : p.keys]

    def of_dv(outputs: Outputs) -> F64:
        return _joined(outputs[3])[:, : p.rows].T

    readings = [Weights(of_o, scores, p.scale, visible, "O", factors)]
    if gradient:
        readings.append(Weights(of_dv, scores, p.scale, visible, "dV", factors, terms="queries", heads=p.group))
    sizes = (p.keys, p.rows) if gradient else (p.keys,)
    return Probe(shape, [(q, k, *(piece(size, u) for size in sizes)) for u in range(units)], tuple(readings))


def probe_without_d(shape: Shape, units: int, p: Problem) -> Probe:
    """With V = 1 all dP of a row are equal, so dS = P ∘ (dP − D) is 0."""
    do = _rounded(p, np.random.default_rng(2).uniform(0.5, 1, (p.rows, p.d)))
    tensors = (*_queries_and_keys(p), np.ones((p.keys, p.d), np.float32), do)
    kind, size = "row_sum_not_subtracted", float(p.scale * do.sum(axis=1).mean()) / 4
    return Probe(shape, [tensors] * units, (Vanishes(1, "dQ", kind, size), Vanishes(2, "dK", kind, size)))
