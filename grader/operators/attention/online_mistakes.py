"""Likely mistakes in the online softmax, for loops over tiles of keys and over one key at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grader.operators.attention.wrong_ways import Powers, normalised_without_l, online
from grader.operators.base import Alternate, Shape, Step

RIGHT, STALE = Powers(), Powers(correction=0.0)
TWO = float(np.log(2.0))

_WEIGHTS, _CORRECTION = "the weights exp(s − m)", "the correction exp(m_old − m_new)"


def not_rescaled(tile: int) -> list[Alternate]:
    """Sums that are not rescaled when a tile has a larger maximum."""
    forgotten: tuple[tuple[str, str, Step, Powers, Powers], ...] = (
        ("both", "neither O nor l is", "output_sum", STALE, STALE),
        ("O", "O (the accumulated output) is not", "output_sum", STALE, RIGHT),
        ("l", "l (the running sum) is not", "total", RIGHT, STALE),
    )
    return [
        _mistake(
            f"{what}_not_rescaled",
            f"{sentence} multiplied by exp(m_old − m_new) when the running maximum grows.",
            tile,
            step,
            lambda shape, both=(of_o, of_l): both,  # type: ignore[misc]
        )
        for what, sentence, step, of_o, of_l in forgotten
    ]


def unlike_exponentials(tile: int) -> list[Alternate]:
    """Exponentials that do not fit one another: one of them lacks the scale, has it twice, or has the base 2."""
    mixed: tuple[tuple[str, str, Step, Callable[[float], tuple[Powers, Powers]]], ...] = (
        (
            "scale_twice_in_weights",
            f"{_WEIGHTS} have the scale 1/√d twice and {_CORRECTION} has it once",
            "weight",
            lambda root: (Powers(weight=1 / root),) * 2,
        ),
        (
            "scale_not_in_correction",
            f"{_WEIGHTS} have the scale 1/√d and {_CORRECTION} does not",
            "rescale",
            lambda root: (Powers(correction=root),) * 2,
        ),
        (
            "scale_twice_in_correction",
            f"{_CORRECTION} has the scale 1/√d twice and {_WEIGHTS} have it once",
            "rescale",
            lambda root: (Powers(correction=1 / root),) * 2,
        ),
        (
            "base_two_in_weights",
            f"{_WEIGHTS} have the base 2 and {_CORRECTION} has the base e",
            "weight",
            lambda root: (Powers(weight=TWO),) * 2,
        ),
        (
            "base_two_in_correction",
            f"{_CORRECTION} has the base 2 and {_WEIGHTS} have the base e",
            "rescale",
            lambda root: (Powers(correction=TWO),) * 2,
        ),
        (
            "base_two_in_O",
            f"{_WEIGHTS} have the base 2 in the sum O and the base e in the sum l",
            "output_sum",
            lambda root: (Powers(weight=TWO), RIGHT),
        ),
        (
            "base_two_in_l",
            f"{_WEIGHTS} have the base e in the sum O and the base 2 in the sum l",
            "total",
            lambda root: (RIGHT, Powers(weight=TWO)),
        ),
    )
    return [
        _mistake(
            name,
            f"{sentence}; use one scale and one base in all of them.",
            tile,
            step,
            lambda shape, powers=powers: powers(float(np.sqrt(shape[2]))),  # type: ignore[misc]
        )
        for name, sentence, step, powers in mixed
    ]


def normalised_each_time(tile: int) -> Alternate:
    """O divided by l after each tile without being multiplied by the old l."""
    return Alternate(
        f"normalised_without_l_tile_{tile}",
        f"It matches an online softmax {_over_tiles(tile)} that divides O by the new l each time without multiplying "
        "it by the old l first: O' = (exp(m − m') · l · O + …) / l'.",
        normalised_without_l(tile),
        lambda shape: shape[1] <= tile,
        steps=("output_sum",),
    )


def _mistake(
    name: str, sentence: str, tile: int, step: Step, powers: Callable[[Shape], tuple[Powers, Powers]]
) -> Alternate:
    return Alternate(
        f"{name}_tile_{tile}",
        f"It matches an online softmax {_over_tiles(tile)} in which {sentence}",
        online(tile, powers),
        lambda shape: shape[1] <= tile,
        steps=("base_two", step) if name.startswith("base_two") else (step,),
    )


def _over_tiles(tile: int) -> str:
    return f"over tiles of {tile} keys" if tile > 1 else "over one key at a time"
