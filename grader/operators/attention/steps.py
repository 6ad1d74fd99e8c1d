"""The steps of attention, forward and backward, for the watch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from grader.operators.base import Tensors
from grader.operators.steps import Difference, Steps, Sum, Weights

F64 = NDArray[np.float64]


def softmax_steps(
    units: Sequence[Tensors], queries: int, keys: int, d: int, scale: float, seen: Callable[[int], tuple[int, int]]
) -> Steps:
    """scores = Q Kᵀ; P = softmax(scale · scores) over the keys that each query sees; O = P V."""

    def scores(unit: int) -> F64:
        q, k = (np.asarray(t, np.float64) for t in units[unit][:2])
        return np.asarray(q @ k.T)

    def log(unit: int) -> F64:
        s = scale * scores(unit)
        first, end = np.array([seen(i) for i in range(queries)]).T
        numbers = np.arange(keys)
        counted = np.where((numbers >= first[:, None]) & (numbers < end[:, None]), s, -np.inf)
        top = counted.max(axis=1, keepdims=True)
        top[~np.isfinite(top)] = 0
        total = np.log(np.maximum(np.exp(counted - top).sum(axis=1, keepdims=True), 1e-300))
        return np.asarray(s - top - total)

    return Steps(
        sums=(
            Sum("score", "ij", "x", (("Q", "ix"), ("K", "jx")), d),
            Sum("total", "i", "j", (("P", "ij"),), keys),
            Sum("O", "ic", "j", (("P", "ij"), ("V", "jc")), keys),
        ),
        results={"O": ("O", 1.0)},
        weights=Weights("P", "score", "total", scale, log, seen),
        words={"score": "score", "total": "l", "over total": "keys", "over O": "keys", "over score": "columns"},
        columns={"Q": d, "K": d, "V": d},
        scores=scores,
    )


def gradient_steps(units: Sequence[Tensors], n: int, d: int, scale: float) -> Steps:
    """After the forward pass: dV = Pᵀ dO, dP = dO Vᵀ, D = Σ dO ∘ O, dS = P ∘ (dP − D), dQ = scale · dS K and
    dK = scale · dSᵀ Q."""
    forward = softmax_steps(units, n, n, d, scale, lambda row: (0, n))
    weights = forward.weights
    assert weights is not None

    def less(unit: int) -> F64:
        _, _, v, do = (np.asarray(t, np.float64) for t in units[unit])
        return np.asarray(((np.exp(weights.log(unit)) @ v) * do).sum(axis=1))

    return Steps(
        sums=(
            *forward.sums,
            Sum("dV", "jc", "i", (("P", "ij"), ("dO", "ic")), n),
            Sum("dP", "ij", "c", (("dO", "ic"), ("V", "jc")), d),
            Sum("D", "i", "c", (("dO", "ic"), ("O", "ic")), d),
            Sum("dQ", "ix", "j", (("dS", "ij"), ("K", "jx")), n),
            Sum("dK", "jx", "i", (("dS", "ij"), ("Q", "ix")), n),
        ),
        results={"O": ("O", 1.0), "dQ": ("dQ", scale), "dK": ("dK", scale), "dV": ("dV", 1.0)},
        weights=weights,
        difference=Difference("dS", "P", "dP", "D", less),
        words={
            **forward.words,
            "over dV": "rows",
            "over dK": "rows",
            "over dQ": "keys",
            "over dP": "columns",
            "over D": "columns",
        },
        columns={**forward.columns, "dO": d},
        scores=forward.scores,
    )
