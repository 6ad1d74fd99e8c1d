"""Attention in which a sum, a score or a weight is kept in too small a type."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from grader.operators.attention.passes import F64, RIGHT, Round, Way, exact, exponentials, forward
from grader.operators.attention.problem import Problem, seen
from grader.operators.base import Alternate, Rows, Shape, Tensors
from grader.operators.number_types import BF16, E4M3, E5M2, NumberType

Compute = Callable[[Problem, Tensors, Rows], F64]

MAX_KEYS_ONE_BY_ONE = 2048
"""The most keys with which sums that are rounded after every term are tried. They are computed term by term."""


def _online(p: Problem, tensors: Tensors, rows: Rows, *, in_half: str = "", round_weight: Round = exact) -> F64:
    """An online softmax over one key at a time, with `in_half`, o or total, rounded after every key, or every
    exponential."""
    q, k, v = (tensor.astype(np.float64) for tensor in tensors[:3])
    numbers = np.arange(len(q))[rows]
    round_o, round_total = (p.output_type.rounded if in_half == each else exact for each in ("o", "total"))
    first, end = seen(p, numbers % p.queries)
    scores = q[numbers] @ k.T * p.scale
    top, total, o = np.full((len(numbers), 1), -np.inf), np.zeros((len(numbers), 1)), np.zeros((len(numbers), p.d))
    for key in range(max(0, int(first.min())), int(end.max())):
        sees = ((first <= key) & (key < end))[:, None]
        higher = np.maximum(top, scores[:, key : key + 1])
        shrink, weight = np.exp(top - higher), round_weight(np.exp(scores[:, key : key + 1] - higher))
        total = np.where(sees, round_total(total * shrink + weight), total)
        o = np.where(sees, round_o(o * shrink + weight * v[key]), o)
        top = np.where(sees, higher, top)
    return np.asarray(o / np.where(total > 0, total, 1))


def _scores_summed_in_half(p: Problem, tensors: Tensors, rows: Rows) -> F64:
    q, k, v = (tensor.astype(np.float64) for tensor in tensors[:3])
    numbers = np.arange(len(q))[rows]
    scores = np.zeros((len(numbers), len(k)))
    for x in range(p.d):
        scores = p.output_type.rounded(scores + np.outer(q[numbers, x], k[:, x])).astype(np.float64)
    keys, weights, total = exponentials(p, RIGHT, scores, np.eye(len(k)), numbers % p.queries)
    return np.asarray(weights @ v[keys] / total)


def _too_many(p: Problem) -> bool:
    return p.keys > MAX_KEYS_ONE_BY_ONE


_HALF = " in half precision, which has 8 or 11 bits: sum in float32."
_SCORES = "scores that are rounded to bfloat16 before the softmax: keep them in float32."
_WEIGHTS = "probabilities that are rounded to bfloat16, though the tensors are not: use their type."
_FLOAT8 = "that are rounded to float8, the type of the input: keep them in float16"


def precision_mistakes(problem_of: Callable[[Shape], Problem]) -> tuple[Alternate, ...]:
    def mistake(name: str, said: str, compute: Compute, unless: Callable[[Problem], bool] = _too_many) -> Alternate:
        """`said`: what it looks like; `unless`: where it cannot be or be seen."""
        return Alternate(
            name,
            f"It looks like {said}",
            lambda shape, tensors, rows: compute(problem_of(shape), tensors, rows),
            lambda shape: unless(problem_of(shape)),
            rounding=True,
        )

    def exponentials_in(kind: NumberType) -> Alternate:
        said = f"probabilities that are rounded to {kind.words}: use the type of O."
        compute = partial(_online, round_weight=kind.rounded)
        return mistake(f"exponentials_in_{kind.name}", said, compute, lambda p: p.output_type is kind or _too_many(p))

    def rounded(step: str, said: str, *, float8: bool = False) -> Alternate:
        """A step of the computation rounded to bfloat16 or, with `float8`, to that type of the input."""

        def compute(p: Problem, tensors: Tensors, rows: Rows) -> F64:
            return forward(p, tensors, rows, Way(**{step: (p.type if float8 else BF16).rounded}))

        name = f"{step}_in_{'float8' if float8 else 'bfloat16'}"
        return mistake(name, said, compute, lambda p: p.type not in (E4M3, E5M2) if float8 else p.type is BF16)

    return (
        mistake("o_summed_in_half", f"O summed up{_HALF}", partial(_online, in_half="o")),
        mistake("total_in_half", f"ℓ, the sum of the exponentials, kept{_HALF}", partial(_online, in_half="total")),
        mistake("scores_summed_in_half", f"scores Q·K summed up{_HALF}", _scores_summed_in_half),
        rounded("scores", _SCORES),
        rounded("products", _SCORES),
        exponentials_in(BF16),
        exponentials_in(E4M3),
        rounded("weights", _WEIGHTS),
        rounded("scores", f"scores {_FLOAT8} or more.", float8=True),
        rounded("weights", f"probabilities {_FLOAT8}.", float8=True),
    )
