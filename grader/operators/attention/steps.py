"""The steps of attention, forward and backward, for the watch."""

from __future__ import annotations

import numpy as np

from grader.operators.attention.problem import Problem, seen
from grader.operators.steps import Difference, Steps, Sum, Weights

_WORDS = {"total": "l", "over score": "columns", "over total": "keys", "over O": "keys", "over dV": "rows",
          "over dK": "rows", "over dQ": "keys", "over dP": "columns", "over D": "columns"}  # fmt: skip


def attention_steps(p: Problem, *, gradient: bool) -> Steps:
    """score = Q Kᵀ; P = softmax(scale · scores) over the keys that each query sees; O = P V. Backward: dV = Pᵀ dO,
    dP = dO Vᵀ, D = Σ dO ∘ O, dS = P ∘ (dP − D), dQ = scale · dS K and dK = scale · dSᵀ Q."""

    def keys_of(row: int) -> tuple[int, int]:
        first, end = seen(p, np.array([row % p.queries]))
        return int(first[0]), int(end[0])

    sums, results = [
        Sum("score", "ij", "x", (("Q", "ix"), ("K", "jx")), p.d),
        Sum("total", "i", "j", (("P", "ij"),), p.keys),
        Sum("O", "ic", "j", (("P", "ij"), ("V", "jc")), p.keys),
    ], {"O": ("O", 1.0)}  # fmt: skip
    if gradient:
        sums += [
            Sum("dV", "jc", "i", (("P", "ij"), ("dO", "ic")), p.rows),
            Sum("dP", "ij", "c", (("dO", "ic"), ("V", "jc")), p.d),
            Sum("D", "i", "c", (("dO", "ic"), ("O", "ic")), p.d),
            Sum("dQ", "ix", "j", (("dS", "ij"), ("K", "jx")), p.keys),
            Sum("dK", "jx", "i", (("dS", "ij"), ("Q", "ix")), p.rows),
        ]
        results |= {"dQ": ("dQ", p.scale), "dK": ("dK", p.scale), "dV": ("dV", 1.0)}
    return Steps(
        sums=tuple(sums),
        results=results,
        weights=Weights("P", "score", "total", p.scale, keys_of),
        difference=Difference("dS", "P", "dP", "D") if gradient else None,
        words=_WORDS,
    )
