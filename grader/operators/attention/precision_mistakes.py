"""Attention in which a sum, a score or a weight is kept in too small a type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.grouped import Problem, problem_of, seen
from grader.operators.attention.passes import F64, Round, Way, exact, forward, probabilities
from grader.operators.base import Alternate, Rows, Shape, Tensors
from grader.operators.number_types import BF16, E4M3, F16

MAX_KEYS_ONE_BY_ONE = 2048
"""The most keys with which sums that are rounded after every term are tried. They are computed term by term."""


def _summed(terms: Sequence[F64] | NDArray[np.float64], rounded: Round) -> F64:
    total = np.zeros_like(terms[0])
    for term in terms:
        total = rounded(total + term).astype(np.float64)
    return np.asarray(total)


def _online(
    o_in_half: bool = False, total_in_half: bool = False, round_weight: Round = exact
) -> Callable[[Shape, Tensors, Rows], F64]:
    """An online softmax over one key at a time, with O or ℓ rounded after every key, or every exponential."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        p = problem_of(shape)
        q, k, v = (tensor.astype(np.float64) for tensor in tensors[:3])
        numbers = np.arange(len(q))[rows]
        round_o, round_total = (p.output_type.rounded if half else exact for half in (o_in_half, total_in_half))
        first, end = seen(p, numbers % p.queries)
        scores = q[numbers] @ k.T * p.scale
        top, total, o = np.full((len(numbers), 1), -np.inf), np.zeros((len(numbers), 1)), np.zeros((len(numbers), p.d))
        for key in range(max(0, int(first.min())), int(end.max())):
            sees = ((first <= key) & (key < end))[:, None]
            higher = np.maximum(top, scores[:, key : key + 1])
            shrink, weight = np.exp(top - higher), np.exp(scores[:, key : key + 1] - higher)
            weight = round_weight(weight)
            total = np.where(sees, round_total(total * shrink + weight), total)
            o = np.where(sees, round_o(o * shrink + weight * v[key]), o)
            top = np.where(sees, higher, top)
        return np.asarray(o / np.where(total > 0, total, 1))

    return compute


def _scores_summed_in_half(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    p = problem_of(shape)
    q, k = (tensor.astype(np.float64) for tensor in tensors[:2])
    numbers = np.arange(len(q))[rows]
    products = q[numbers].T[:, :, None] * k.T[:, None, :]
    scores = _summed(products, p.output_type.rounded)
    identity = np.eye(len(k))
    weights_of = replace(p, d=len(k))
    o = np.empty((len(numbers), p.d))
    for place, number in enumerate(numbers):
        keys, weights = probabilities(
            weights_of, Way(), scores[place : place + 1], identity, np.array([number % p.queries])
        )
        o[place] = (weights @ tensors[2][keys].astype(np.float64))[0]
    return o


def _rounded_in(
    name: str, sentence: str, way: Way | Callable[[Problem], Way], unless: Callable[[Problem], bool]
) -> Alternate:
    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        p = problem_of(shape)
        return np.asarray(forward(p, tensors, rows, way if isinstance(way, Way) else way(p)), np.float64)

    return Alternate(name, sentence, compute, lambda shape: unless(problem_of(shape)), rounding=True)


def _too_many(p: Problem) -> bool:
    return p.keys > MAX_KEYS_ONE_BY_ONE


def precision_mistakes() -> list[Alternate]:
    half = "which has 11 bits in float16 and 8 in bfloat16: sum in float32."
    return [
        Alternate(
            "o_summed_in_half",
            f"It looks like O summed up in half precision, {half}",
            _online(o_in_half=True),
            lambda shape: _too_many(problem_of(shape)),
            rounding=True,
        ),
        Alternate(
            "total_in_half",
            f"It looks like ℓ, the sum of the exponentials, kept in half precision, {half}",
            _online(total_in_half=True),
            lambda shape: _too_many(problem_of(shape)),
            rounding=True,
        ),
        Alternate(
            "scores_summed_in_half",
            f"It looks like scores Q·K summed up in half precision, {half}",
            _scores_summed_in_half,
            lambda shape: _too_many(problem_of(shape)),
            rounding=True,
        ),
        *(
            _rounded_in(
                f"{name}_in_bfloat16",
                "It looks like scores that are rounded to bfloat16 before the softmax: keep them in float32.",
                way,
                lambda p: p.type is BF16,
            )
            for name, way in (("scores", Way(scores=BF16.rounded)), ("products", Way(products=BF16.rounded)))
        ),
        *(
            Alternate(
                f"exponentials_in_{kind.name}",
                f"It looks like probabilities that are rounded to {kind.words}: use the type of O.",
                _online(round_weight=kind.rounded),
                lambda shape, kind=kind: problem_of(shape).output_type is kind or _too_many(problem_of(shape)),  # type: ignore[misc]
                rounding=True,
            )
            for kind in (BF16, E4M3)
        ),
        _rounded_in(
            "weights_in_bfloat16",
            "It looks like probabilities that are rounded to bfloat16, though the tensors are not: use their type.",
            Way(weights=BF16.rounded),
            lambda p: p.type is BF16,
        ),
        _rounded_in(
            "scores_in_float8",
            "It looks like scores that are rounded to float8, the type of the input: keep them in float16 or more.",
            lambda p: Way(scores=p.type.rounded),
            lambda p: p.type in (F16, BF16),
        ),
        _rounded_in(
            "weights_in_float8",
            "It looks like probabilities that are rounded to float8, the type of the input: keep them in float16.",
            lambda p: Way(weights=p.type.rounded),
            lambda p: p.type in (F16, BF16),
        ),
    ]
