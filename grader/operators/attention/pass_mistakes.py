"""Builds mistakes from ways to compute attention, and those that several operators share: scales, tails, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.grouped import Problem, problem_of, seen
from grader.operators.attention.passes import F64, Keys, Sees, Way, forward, gradients
from grader.operators.base import Alternate, Rows, Shape, Step, Tensors

Unless = Callable[[Problem], bool]
ProblemOf = Callable[[Shape], Problem]

MAX_PAIRS_EXPLAINED = 1 << 21
"""The most pairs of queries and keys with which mistakes in gradients are tried. Each one computes the gradient of a
whole unit."""

_NUMBER = {"O": 0, "dQ": 1, "dK": 2, "dV": 3}


def never(p: Problem) -> bool:
    return False


def forward_mistake(
    name: str,
    sentence: str,
    way: Way | Callable[[Problem], Way],
    unless: Unless = never,
    steps: tuple[Step, ...] = (),
    *,
    rounding: bool = False,
    problem_of: ProblemOf = problem_of,
) -> Alternate:
    """A wrong way to compute O."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        p = problem_of(shape)
        return np.asarray(forward(p, tensors, rows, way if isinstance(way, Way) else way(p)), np.float64)

    return Alternate(name, sentence, compute, lambda shape: unless(problem_of(shape)), steps=steps, rounding=rounding)


def gradient_mistake(
    name: str, tensor: str, sentence: str, way: Way, unless: Unless = never, *, problem_of: ProblemOf = problem_of
) -> Alternate:
    """A wrong way to compute the output `tensor` of the gradient."""
    number = _NUMBER[tensor]

    def is_impossible(shape: Shape) -> bool:
        p = problem_of(shape)
        return p.group * p.queries * p.keys > MAX_PAIRS_EXPLAINED or unless(p)

    return Alternate(
        f"{tensor}_{name}",
        f"{tensor} {sentence}",
        lambda shape, tensors, rows: np.asarray(gradients(problem_of(shape), tensors, way)[number][rows]),
        is_impossible,
        number,
    )


# ---- masks ------------------------------------------------------------------------------------------------------


def shifted(first: int = 0, end: int = 0) -> Sees:
    """Masks, where there are any, with ends that are off by this many keys."""

    def sees(p: Problem, queries: NDArray[np.intp]) -> Keys:
        low, high = seen(p, queries)
        if p.window >= 0:
            low = np.maximum(queries + p.ahead - p.window + first, 0)
        if p.causal:
            high = np.minimum(queries + p.ahead + 1 + end, p.keys)
        return low, high

    return sees


def changed(**changes: object) -> Sees:
    """Masks that would follow from other numbers in the header."""
    return lambda p, queries: seen(replace(p, **changes), queries)  # type: ignore[arg-type]


# ---- scores -----------------------------------------------------------------------------------------------------


def scale_mistakes(problem_of: ProblemOf = problem_of) -> Iterable[Alternate]:
    """Scores with another scale than the header's."""
    ways: tuple[tuple[str, str, Way, Unless, Step], ...] = (
        (
            "scale_of_the_dimension",
            "attention with the scale 1/√d: take the scale from the header.",
            Way(factor=lambda p: 1 / math.sqrt(p.d)),
            lambda p: abs(p.scale * math.sqrt(p.d) - 1) < 1e-3,
            "scale",
        ),
        (
            "no_scale",
            "attention without the scale: multiply the scores by the header's scale before the softmax.",
            Way(factor=lambda p: 1.0),
            lambda p: abs(p.scale - 1) < 1e-3,
            "scale",
        ),
        (
            "scale_twice",
            "attention with the scale applied twice, such as to Q and again to the scores.",
            Way(factor=lambda p: p.scale**2),
            lambda p: abs(p.scale - 1) < 1e-3,
            "scale",
        ),
        (
            "base_two",
            "powers of 2 instead of e: exp2 needs scores that are multiplied by log2(e) = 1.4427.",
            Way(base=2.0),
            never,
            "weight",
        ),
    )
    for name, words, way, unless, step in ways:
        yield forward_mistake(name, f"It matches {words}", way, unless, (step,), problem_of=problem_of)


def tail_mistakes(tiles: Iterable[int], problem_of: ProblemOf = problem_of) -> Iterable[Alternate]:
    """Sums that include the keys that fill up the last tile."""
    for tile in tiles:
        yield forward_mistake(
            f"tail_of_{tile}_counted_as_zeros",
            f"It matches attention in which the keys that fill up the last tile of {tile} count with a score of 0: "
            "keys beyond the last must get −∞, so that their exponential is 0.",
            Way(padding=lambda p, t=tile: -p.keys % t),  # type: ignore[misc]
            lambda p, t=tile: p.keys % t == 0,  # type: ignore[misc]
            ("tile",),
            problem_of=problem_of,
        )


# ---- gradients --------------------------------------------------------------------------------------------------


def slope_mistakes(tensor: str, problem_of: ProblemOf = problem_of) -> Iterable[Alternate]:
    """Mistakes in dS or its factor, which show in dQ or dK."""
    ways = (
        (
            "without_d",
            "matches dS = P ∘ dP without the subtraction of D, the row's sum of dO ∘ O.",
            Way(subtracts_d=False),
        ),
        (
            "without_scale",
            "matches a gradient without the scale: the scores' scale is also a factor of the gradient.",
            Way(gradient_factor=lambda p: 1.0),
        ),
        ("scaled_twice", "matches a gradient with the scale applied twice.", Way(gradient_factor=lambda p: p.scale**2)),
        ("sign", "has the wrong sign: dS = P ∘ (dP − D), not P ∘ (D − dP).", Way(gradient_factor=lambda p: -p.scale)),
    )
    for name, sentence, way in ways:
        yield gradient_mistake(name, tensor, sentence, way, problem_of=problem_of)
