"""Likely mistakes in the online softmax, for loops over tiles of keys and over one key at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from grader.operators.attention.online_softmax import (
    F64,
    RIGHT,
    Merges,
    Next,
    Sum,
    larger,
    last_score,
    of_the_tile,
    online,
    own_maxima,
    right_correction,
    right_weight,
)
from grader.operators.base import Alternate, Step

TWO = float(np.log(2.0))

_WEIGHTS, _CORRECTION = "the weights exp(s − m)", "the correction exp(m_old − m_new)"
_SUMS = (
    ("", "O and l", "output_sum"),
    ("_O", "O (the accumulated output)", "output_sum"),
    ("_l", "l (the sum)", "total"),
)


@dataclass(frozen=True)
class _Mistake:
    """A wrong online softmax: its sums, the maximum that it keeps, and whether it divides O by l. `steps`
    are those in which it may be, the likeliest first.
    `tiles_only`: it changes nothing in a loop over single keys."""

    name: str
    sentence: str
    steps: tuple[Step, ...]
    of_o: Sum = RIGHT
    of_l: Sum = RIGHT
    keep: Next = larger
    divided: bool = True
    tiles_only: bool = False


def _of_either_sum(
    name: str, sentence: str, wrong: Sum, steps: tuple[Step, ...] = (), tiles_only: bool = False
) -> Iterator[_Mistake]:
    """A mistake in both sums, in O alone and in l alone; "{}" in the sentence stands for the wrong sums."""
    for (suffix, sums, step), of_o, of_l in zip(_SUMS, (wrong, wrong, RIGHT), (wrong, RIGHT, wrong), strict=True):
        own: Step = step  # type: ignore[assignment]
        of_o_or_l = (own, *steps) if suffix else (*steps, own)  # a wrong weight alone would spoil both sums
        yield _Mistake(name + suffix, sentence.format(sums), of_o_or_l, of_o, of_l, tiles_only=tiles_only)


def _below(name: Callable[[Merges], F64]) -> Callable[[Merges], F64]:
    """Exponents of weights relative to the maxima that `name` returns for each tile."""
    return lambda merge: merge.scores - merge.of_keys(name(merge))


def _times(weight: float = 1.0, correction: float = 1.0) -> Sum:
    """Sums whose exponents are multiplied by constants."""
    return Sum(lambda merge: weight * right_weight(merge), lambda merge: correction * right_correction(merge))


_STALE = Sum(correction=lambda merge: np.zeros_like(merge.new))

_FORGOTTEN = (
    _Mistake(
        "both_not_rescaled",
        "neither O nor l is multiplied by exp(m_old − m_new), or m_old is overwritten before.",
        ("overwritten_maximum", "output_sum"),
        _STALE,
        _STALE,
    ),
    _Mistake(
        "O_not_rescaled",
        "O (the accumulated output) is not multiplied by exp(m_old − m_new) when the running maximum grows.",
        ("output_sum",),
        _STALE,
    ),
    _Mistake(
        "l_not_rescaled",
        "l (the running sum) is not multiplied by exp(m_old − m_new) when the running maximum grows.",
        ("total",),
        of_l=_STALE,
    ),
)

_MAXIMA = (
    _Mistake(
        "last_score_kept",
        "the maximum m is set to the last score instead of max(m, s): the next key's correction starts from a wrong "
        "maximum.",
        ("next_maximum",),
        keep=last_score,
    ),
    _Mistake(
        "maximum_of_the_tile_kept",
        "the maximum m is set to that of the tile alone instead of max(m_old, m_tile).",
        ("next_maximum",),
        keep=of_the_tile,
        tiles_only=True,
    ),
)

_WEIGHT_MISTAKES = (
    *_of_either_sum(
        "relative_to_the_tile",
        "the weights in {} are exp(s − m_tile), relative to the maximum of their tile alone: use the running maximum "
        "m_new, or multiply the tile's sum by exp(m_tile − m_new).",
        Sum(_below(lambda merge: merge.top)),
        ("weight",),
        tiles_only=True,
    ),
    *_of_either_sum(
        "shifted_twice",
        "the weights in {} are relative to m_new already, and multiplied by exp(m_tile − m_new) as well.",
        Sum(lambda merge: right_weight(merge) + merge.of_keys(merge.top - merge.new)),
        tiles_only=True,
    ),
    *_of_either_sum(
        "not_shifted",
        "the weights in {} are exp(s) without the maximum m_new, by which the sum is corrected.",
        Sum(lambda merge: merge.scores),
        ("weight",),
    ),
)

_CORRECTION_MISTAKES = (
    *_of_either_sum(
        "corrected_too_late",
        "{} is multiplied by exp(m_old − m_new) after the new terms were added, which then shrink too: multiply "
        "first, then add.",
        Sum(late=True),
    ),
    *_of_either_sum(
        "new_terms_corrected",
        "the new terms of {} are multiplied by exp(m_old − m_new) instead of the old sum.",
        Sum(
            lambda merge: right_weight(merge) + merge.of_keys(right_correction(merge)),
            lambda merge: np.zeros_like(merge.new),
        ),
    ),
    *_of_either_sum(
        "corrected_for_each_key",
        "{} is multiplied by exp(m_old − m_new) for every key of the tile: once for each tile is right.",
        Sum(each_key=True),
        tiles_only=True,
    ),
    *_of_either_sum("corrected_twice", "{} is multiplied by exp(m_old − m_new) twice.", _times(correction=2.0)),
    *_of_either_sum(
        "corrected_by_the_tile",
        "the correction of {} is exp(m_old − m_tile), with the maximum of the tile alone: it should be "
        "exp(m_old − m_new).",
        Sum(correction=lambda merge: merge.old - merge.top),
        ("rescale",),
        tiles_only=True,
    ),
)

_PARTS: tuple[tuple[str, Step], ...] = (("O", "output_sum"), ("l", "total"))
_PARTIAL_SUMS = (
    _Mistake(
        "only_last_tile_in_O",
        "O is overwritten by each {each} instead of being carried on (= in place of +=).",
        ("output_sum",),
        Sum(only=lambda key, tile, keys: key >= keys - tile),
    ),
    _Mistake(
        "only_last_tile_in_l",
        "l is overwritten by each {each} instead of being carried on (= in place of +=).",
        ("total",),
        of_l=Sum(only=lambda key, tile, keys: key >= keys - tile),
    ),
    *(
        _Mistake(
            f"only_{which}_key_of_tiles_in_{what}",
            f"only the {which} key of each tile is added to {what}.",
            (step,),
            **{f"of_{what.lower()}": Sum(only=only)},  # type: ignore[arg-type]
            tiles_only=True,
        )
        for what, step in _PARTS
        for which, only in (
            ("last", lambda key, tile, keys: key % tile == tile - 1),
            ("first", lambda key, tile, keys: key % tile == 0),
        )
    ),
)

_NORMALISED_EACH_TIME = (
    _Mistake(
        "normalised_without_l",
        "O is divided by the new l each time without being multiplied by the old l first: "
        "O' = (exp(m − m') · l · O + …) / l'.",
        ("output_sum",),
        Sum(
            lambda merge: right_weight(merge) - merge.of_keys(merge.logarithms_of_l()),
            lambda merge: right_correction(merge) - merge.logarithms_of_l(),
        ),
        divided=False,
    ),
    _Mistake(
        "new_l_in_place_of_old",
        "O is multiplied by the new l in place of the old one: O' = (exp(m − m') · l · O + …) / l'.",
        ("output_sum",),
        Sum(lambda merge: right_weight(merge) - merge.of_keys(merge.logarithms_of_l())),
        divided=False,
    ),
    _Mistake(
        "old_l_without_division",
        "O is multiplied by the old l but not divided by the new one: O' = (exp(m − m') · l · O + …) / l'.",
        ("output_sum",),
        Sum(correction=lambda merge: right_correction(merge) + np.roll(merge.logarithms_of_l(), 1, axis=1)),
        divided=False,
    ),
)

_ONE_SCALE_ONE_BASE = "; use one scale and one base in all of them."


def _unlike_exponentials() -> Iterator[_Mistake]:
    """Exponentials that do not match: one lacks the scale 1/√d, has it twice, or has the base 2."""
    both: tuple[tuple[str, str, Step, Sum], ...] = (
        (
            "scale_twice_in_weights",
            f"{_WEIGHTS} have the scale 1/√d twice and {_CORRECTION} has it once",
            "weight",
            Sum(lambda merge: right_weight(merge) / merge.root),
        ),
        (
            "scale_not_in_correction",
            f"{_WEIGHTS} have the scale 1/√d and {_CORRECTION} does not",
            "rescale",
            Sum(correction=lambda merge: right_correction(merge) * merge.root),
        ),
        (
            "scale_twice_in_correction",
            f"{_CORRECTION} has the scale 1/√d twice and {_WEIGHTS} have it once",
            "rescale",
            Sum(correction=lambda merge: right_correction(merge) / merge.root),
        ),
        (
            "base_two_in_weights",
            f"{_WEIGHTS} have the base 2 and {_CORRECTION} has the base e",
            "weight",
            _times(weight=TWO),
        ),
        (
            "base_two_in_correction",
            f"{_CORRECTION} has the base 2 and {_WEIGHTS} have the base e",
            "rescale",
            _times(correction=TWO),
        ),
    )
    for name, sentence, step, wrong in both:
        steps: tuple[Step, ...] = ("base_two", step) if name.startswith("base_two") else (step,)
        yield _Mistake(name, sentence + _ONE_SCALE_ONE_BASE, steps, wrong, wrong)
    two = _times(weight=TWO)
    in_o = f"{_WEIGHTS} have the base 2 in the sum O and the base e in the sum l{_ONE_SCALE_ONE_BASE}"
    in_l = f"{_WEIGHTS} have the base e in the sum O and the base 2 in the sum l{_ONE_SCALE_ONE_BASE}"
    yield _Mistake("base_two_in_O", in_o, ("base_two", "output_sum"), of_o=two)
    yield _Mistake("base_two_in_l", in_l, ("base_two", "total"), of_l=two)


_ALL = (
    *_FORGOTTEN,
    *_MAXIMA,
    *_WEIGHT_MISTAKES,
    *_CORRECTION_MISTAKES,
    *_PARTIAL_SUMS,
    *_NORMALISED_EACH_TIME,
    *_unlike_exponentials(),
)


def online_mistakes(tile: int) -> list[Alternate]:
    """Every mistake in a loop over tiles of `tile` keys, the likeliest first."""
    over, each = (f"over tiles of {tile} keys", "tile") if tile > 1 else ("over one key at a time", "key")
    return [
        _alternate(mistake, f"tile_{tile}", over, each, tile) for mistake in _ALL if tile > 1 or not mistake.tiles_only
    ]


def mistakes_in_parts(parts: int) -> list[Alternate]:
    """The commonest mistakes in programs whose threads or warps each take every `parts`-th key, one at a time."""
    over = f"over keys that are {parts} apart for each warp or thread"
    return [
        _alternate(mistake, f"parts_{parts}", over, "key", 1, parts)
        for mistake in (*_FORGOTTEN, *_MAXIMA)
        if not mistake.tiles_only
    ]


def _alternate(mistake: _Mistake, name: str, over: str, each: str, tile: int, parts: int = 1) -> Alternate:
    return Alternate(
        f"{mistake.name}_{name}",
        f"It matches an online softmax {over} in which {mistake.sentence.format(each=each)}",
        online(tile, mistake.of_o, mistake.of_l, mistake.keep, mistake.divided, parts),
        lambda shape: shape[1] <= tile * parts,
        steps=mistake.steps,
    )


def maxima_not_shared(tile: int) -> Iterator[Alternate]:
    """Mistakes in which the threads of a row share its maximum with only some of the others, or with none."""
    for threads, shared_by in ((4, 2), (2, 1), (4, 1), (8, 4), (16, 8), (32, 16)):
        if tile % threads == 0:
            yield Alternate(
                f"maximum_of_{shared_by}_of_{threads}_threads_tile_{tile}",
                f"It matches an online softmax over tiles of {tile} keys in which the {threads} threads of a row do "
                f"not use the same maximum: it is exchanged among {shared_by} of them. Exchange it among all {threads}."
                if shared_by > 1
                else f"It matches an online softmax over tiles of {tile} keys in which each of the {threads} threads "
                f"of a row uses its own maximum: exchange it among all {threads}.",
                own_maxima(tile, threads, shared_by),
                steps=("shuffled_maximum",),
            )
