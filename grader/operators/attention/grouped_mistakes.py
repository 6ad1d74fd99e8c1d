"""Likely mistakes in attention in half precision, forward and backward, to recognise them in wrong outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.grouped import (
    F64,
    PACKED,
    Problem,
    Round,
    Way,
    exact,
    forward,
    gradients,
    probabilities,
    problem_of,
    seen,
)
from grader.operators.base import Alternate, Rows, Shape, Step, Tensors
from grader.operators.number_types import BF16, F16

Sight = tuple[NDArray[np.intp], NDArray[np.intp]]
Unless = Callable[[Problem], bool]

MOST_KEYS_ONE_BY_ONE = 2048
"""Sums that are rounded after every term are computed term by term, which takes too long beyond this."""
MOST_PAIRS_EXPLAINED = 1 << 21
"""The gradient of a whole unit is computed for each of its mistakes, which takes too long beyond this."""


def never(p: Problem) -> bool:
    return False


def _alternate(
    name: str,
    sentence: str,
    way: Way | Callable[[Problem], Way],
    unless: Unless = never,
    steps: tuple[Step, ...] = (),
    rounding: bool = False,
) -> Alternate:
    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        p = problem_of(shape)
        return np.asarray(forward(p, tensors, rows, way if isinstance(way, Way) else way(p)), np.float64)

    return Alternate(name, sentence, compute, lambda shape: unless(problem_of(shape)), steps=steps, rounding=rounding)


# ---- masks ------------------------------------------------------------------------------------------------------


def _shifted(first: int = 0, end: int = 0) -> Callable[[Problem, NDArray[np.intp]], Sight]:
    """Masks whose ends are off by so many keys, where there are masks."""

    def sees(p: Problem, queries: NDArray[np.intp]) -> Sight:
        low, high = seen(p, queries)
        if p.window >= 0:
            low = np.maximum(queries + p.ahead - p.window + first, 0)
        if p.causal:
            high = np.minimum(queries + p.ahead + 1 + end, p.keys)
        return low, high

    return sees


def _top_left(p: Problem, queries: NDArray[np.intp]) -> Sight:
    low = np.maximum(queries - p.window, 0) if p.window >= 0 else np.zeros_like(queries)
    high = np.minimum(queries + 1, p.keys) if p.causal else np.full_like(queries, p.keys)
    return low, high


def _without(**changes: object) -> Callable[[Problem, NDArray[np.intp]], Sight]:
    return lambda p, queries: seen(replace(p, **changes), queries)  # type: ignore[arg-type]


MASKS: tuple[tuple[str, str, Callable[[Problem, NDArray[np.intp]], Sight], Unless], ...] = (
    (
        "mask_aligned_to_the_top_left",
        "a mask that is aligned to the top left: query i stands at key i + Nk − Nq, so that the last query sees the "
        "last key.",
        _top_left,
        lambda p: not p.is_masked or p.ahead == 0,
    ),
    (
        "causal_mask_ignored",
        "attention without the causal mask: with causal = 1, query i sees keys up to i + Nk − Nq only.",
        _without(causal=False),
        lambda p: not p.causal,
    ),
    (
        "causal_mask_one_too_late",
        "a causal mask that is off by one: the last key that query i sees is i + Nk − Nq, not the one after it.",
        _shifted(end=1),
        lambda p: not p.causal,
    ),
    (
        "causal_mask_one_too_early",
        "a causal mask that is off by one: key i + Nk − Nq itself is seen by query i.",
        _shifted(end=-1),
        lambda p: not p.causal,
    ),
    (
        "window_ignored",
        "attention without the window: query i sees no key before i + Nk − Nq − window.",
        _without(window=-1),
        lambda p: p.window < 0,
    ),
    (
        "window_exclusive",
        "a window that is one key too narrow: key i + Nk − Nq − window itself is seen.",
        _shifted(first=1),
        lambda p: p.window < 0,
    ),
    (
        "window_one_too_wide",
        "a window that is one key too wide: the first key that query i sees is i + Nk − Nq − window.",
        _shifted(first=-1),
        lambda p: p.window < 0,
    ),
    (
        "mask_not_asked_for",
        "causal attention: with causal = 0, every query sees all keys of its window.",
        _without(causal=True),
        lambda p: p.causal,
    ),
)


WIDER_MASKS = ("causal_mask_ignored", "causal_mask_one_too_late", "window_ignored", "window_one_too_wide")

# ---- the forward pass -------------------------------------------------------------------------------------------


def _is_one_over_root(p: Problem) -> bool:
    return abs(p.scale * math.sqrt(p.d) - 1) < 1e-3


def _scales() -> list[Alternate]:
    return [
        _alternate(
            "scale_of_the_dimension",
            "It matches attention with the scale 1/√d: take the scale from the header.",
            Way(factor=lambda p: 1 / math.sqrt(p.d)),
            _is_one_over_root,
            ("scale",),
        ),
        _alternate(
            "no_scale",
            "It matches attention without the scale: multiply the scores by the header's scale before the softmax.",
            Way(factor=lambda p: 1.0),
            steps=("scale",),
        ),
        _alternate(
            "scale_twice",
            "It matches attention with the scale applied twice, such as to Q and again to the scores.",
            Way(factor=lambda p: p.scale**2),
            steps=("scale",),
        ),
        _alternate(
            "base_two",
            "It matches powers of 2 instead of e: exp2 needs scores that are multiplied by log2(e) = 1.4427.",
            Way(base=2.0),
            steps=("weight",),
        ),
    ]


def _tiled() -> list[Alternate]:
    found = []
    for tile in (1, 64, 128, 32, 16):
        each = f"a tile of {tile} keys" if tile > 1 else "a key"
        found += [
            _alternate(
                f"{what}_not_rescaled_{tile}",
                f"It matches an online softmax over {each} at a time that does not rescale {words} when the maximum "
                "grows: multiply what was summed up so far by exp(m_old − m_new).",
                Way(stale=(tile, what)),
                steps=("rescale",),
            )
            for what, words in (("O", "O"), ("l", "ℓ"), ("both", "O and ℓ"))
        ]
    for tile in (64, 128, 32, 16, 256):
        found.append(
            _alternate(
                f"tail_of_{tile}_counted_as_zeros",
                f"It matches attention in which the keys that fill up the last tile of {tile} count with a score of 0: "
                "keys beyond the last must get −∞, so that their exponential is 0.",
                Way(padding=lambda p, t=tile: -p.keys % t),  # type: ignore[misc]
                lambda p, t=tile: p.keys % t == 0,  # type: ignore[misc]
                ("tile",),
            )
        )
    return found


def _keys_of_other_heads(head_of: Callable[[Problem, int], int]) -> Callable[[Shape, int], tuple[tuple[int, int], ...]]:
    """K and V of the key head that each query head of a group reads by mistake."""

    def others(shape: Shape, unit: int) -> tuple[tuple[int, int], ...]:
        p = problem_of(shape)
        batch, key_head = divmod(unit, p.key_heads)
        heads = (head_of(p, key_head * p.group + number) for number in range(p.group))
        return tuple((batch * p.key_heads + head, slot) for head in heads for slot in (1, 2))

    return others


def _each_with_its_own(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    """O where each head of the group has K and V of its own, which follow the unit's tensors in pairs."""
    p = problem_of(shape)
    pairs = tensors[len(tensors) - 2 * p.group :]
    numbers = np.arange(p.group * p.queries)[rows]
    o = np.empty((len(numbers), p.d))
    for head in range(p.group):
        mine = numbers // p.queries == head
        o[mine] = forward(p, (tensors[0], *pairs[2 * head : 2 * head + 2]), numbers[mine])
    return o


def _packed_by_head(shape: Shape, unit: int) -> tuple[tuple[int, int], ...]:
    """Q, K and V of a head if [B, N, 3, H, d] is taken for [B, N, H, 3, d]."""
    p = problem_of(shape)
    batch, head = divmod(unit, p.key_heads)
    slots = (divmod(3 * head + number, p.key_heads) for number in range(3))
    return tuple((batch * p.key_heads + other, number) for number, other in slots)


def _as_float16(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    mistaken = [F16.decode(BF16.encode(tensor).view(np.float16)) for tensor in tensors[:3]]
    o = F16.encode(forward(problem_of(shape), mistaken, rows))
    return BF16.decode(o.view(np.uint16)).astype(np.float64)


def _places() -> list[Alternate]:
    def one_key_head(shape: Shape) -> bool:
        return problem_of(shape).key_heads == 1

    return [
        Alternate(
            "key_head_modulo",
            "It matches query heads that read the wrong key head: query head h reads key head h·Hkv/Hq (rounded down), "
            "not h mod Hkv.",
            _each_with_its_own,
            lambda shape: one_key_head(shape) or problem_of(shape).group == 1,
            steps=("load_k", "batch"),
            others=_keys_of_other_heads(lambda p, head: head % p.key_heads),
        ),
        Alternate(
            "first_key_head_only",
            "It matches query heads that all read key head 0: query head h reads key head h·Hkv/Hq (rounded down).",
            _each_with_its_own,
            one_key_head,
            steps=("load_k", "batch"),
            others=_keys_of_other_heads(lambda p, head: 0),
        ),
        Alternate(
            "packed_by_head",
            "It matches packed tensors that are read as [B, N, H, 3, d]: layout 1 is [B, N, 3, H, d], all heads of Q, "
            "then all of K, then all of V.",
            lambda shape, tensors, rows: np.asarray(forward(problem_of(shape), tensors[-3:], rows)),
            lambda shape: problem_of(shape).layout != PACKED or one_key_head(shape),
            steps=("load_q", "load_k"),
            others=_packed_by_head,
        ),
        Alternate(
            "k_v_swapped",
            "It matches attention with K and V exchanged.",
            lambda shape, tensors, rows: np.asarray(
                forward(problem_of(shape), (tensors[0], tensors[2], tensors[1]), rows)
            ),
            steps=("load_k", "load_v"),
        ),
        Alternate(
            "bfloat16_read_as_float16",
            "It matches bfloat16 numbers that are taken for float16 ones: with type = 1, the tensors are bfloat16.",
            _as_float16,
            lambda shape: problem_of(shape).type is not BF16,
            steps=("load_q", "load_k"),
        ),
    ]


# ---- lost precision ---------------------------------------------------------------------------------------------


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


def _too_many(p: Problem) -> bool:
    return p.keys > MOST_KEYS_ONE_BY_ONE


def _precision() -> list[Alternate]:
    half = "which has 11 bits in float16 and 8 in bfloat16: sum in float32."
    return [
        Alternate(
            "o_summed_in_half",
            f"It looks like O summed up in half precision, {half}",
            _online(o_in_half=True),
            lambda shape: _too_many(problem_of(shape)),
            steps=("output_sum",),
            rounding=True,
        ),
        Alternate(
            "total_in_half",
            f"It looks like ℓ, the sum of the exponentials, kept in half precision, {half}",
            _online(total_in_half=True),
            lambda shape: _too_many(problem_of(shape)),
            steps=("total",),
            rounding=True,
        ),
        Alternate(
            "scores_summed_in_half",
            f"It looks like scores Q·K summed up in half precision, {half}",
            _scores_summed_in_half,
            lambda shape: _too_many(problem_of(shape)),
            steps=("scores",),
            rounding=True,
        ),
        *(
            _alternate(
                f"{name}_in_bfloat16",
                "It looks like scores that are rounded to bfloat16 before the softmax: keep them in float32.",
                way,
                lambda p: p.type is BF16,
                ("scores",),
                rounding=True,
            )
            for name, way in (("scores", Way(scores=BF16.rounded)), ("products", Way(products=BF16.rounded)))
        ),
        Alternate(
            "exponentials_in_bfloat16",
            "It looks like probabilities that are rounded to bfloat16, though the tensors are not: use their type.",
            _online(round_weight=BF16.rounded),
            lambda shape: problem_of(shape).type is BF16 or _too_many(problem_of(shape)),
            steps=("weight",),
            rounding=True,
        ),
        _alternate(
            "weights_in_bfloat16",
            "It looks like probabilities that are rounded to bfloat16, though the tensors are not: use their type.",
            Way(weights=BF16.rounded),
            lambda p: p.type is BF16,
            ("weight",),
            rounding=True,
        ),
        _alternate(
            "scores_in_float8",
            "It looks like scores that are rounded to float8, the type of the input: keep them in float16 or more.",
            lambda p: Way(scores=p.type.rounded),
            lambda p: p.type in (F16, BF16),
            ("scores",),
            rounding=True,
        ),
        _alternate(
            "weights_in_float8",
            "It looks like probabilities that are rounded to float8, the type of the input: keep them in float16.",
            lambda p: Way(weights=p.type.rounded),
            lambda p: p.type in (F16, BF16),
            ("weight",),
            rounding=True,
        ),
    ]


FORWARD_MISTAKES: tuple[Alternate, ...] = (
    *(
        _alternate(name, f"It matches {words}", Way(sees=sees), unless, ("keys",))
        for name, words, sees, unless in MASKS
    ),
    *_scales(),
    *_places(),
    *_tiled(),
    *_precision(),
)


# ---- the gradient -----------------------------------------------------------------------------------------------

_NUMBER = {"O": 0, "dQ": 1, "dK": 2, "dV": 3}


def _of_gradient(name: str, tensor: str, sentence: str, way: Way, unless: Unless = never) -> Alternate:
    number = _NUMBER[tensor]

    def is_impossible(shape: Shape) -> bool:
        p = problem_of(shape)
        return p.group * p.queries * p.keys > MOST_PAIRS_EXPLAINED or unless(p)

    return Alternate(
        f"{tensor}_{name}",
        f"{tensor} {sentence}",
        lambda shape, tensors, rows: np.asarray(gradients(problem_of(shape), tensors, way)[number][rows]),
        is_impossible,
        number,
    )


def _of_slopes(tensor: str) -> list[Alternate]:
    """Mistakes in dS or its factor, which show in dQ or dK."""
    return [
        _of_gradient(
            "without_d",
            tensor,
            "matches dS = P ∘ dP without the subtraction of D, the row's sum of dO ∘ O.",
            Way(subtracts_d=False),
        ),
        _of_gradient(
            "without_scale",
            tensor,
            "matches a gradient without the scale: the scores' scale is also a factor of the gradient.",
            Way(gradient_factor=lambda p: 1.0),
        ),
        _of_gradient(
            "scaled_twice",
            tensor,
            "matches a gradient with the scale applied twice.",
            Way(gradient_factor=lambda p: p.scale**2),
        ),
        _of_gradient(
            "sign",
            tensor,
            "has the wrong sign: dS = P ∘ (dP − D), not P ∘ (D − dP).",
            Way(gradient_factor=lambda p: -p.scale),
        ),
    ]


def _of_group(tensor: str) -> list[Alternate]:
    """Mistakes in the sum over a group's heads, which show in dK and dV."""
    return [
        _of_gradient(
            f"of_the_{which}_head",
            tensor,
            f"matches the sum over the {which} query head of each group alone: it is the sum over all heads of the "
            "group, as they share K and V.",
            Way(heads=lambda p, part=part: part),  # type: ignore[misc]
            lambda p: p.group == 1,
        )
        for which, part in (("last", slice(-1, None)), ("first", slice(0, 1)))
    ]


def _of_masks(tensor: str) -> list[Alternate]:
    in_both_passes = [
        _of_gradient(name, tensor, f"matches {words}", Way(sees=sees), unless) for name, words, sees, unless in MASKS
    ]
    in_the_second = [
        _of_gradient(
            f"backward_{name}",
            tensor,
            f"matches a right forward pass, and in the backward pass {words}",
            Way(backward_sees=sees),
            unless,
        )
        for name, words, sees, unless in MASKS
        if name in WIDER_MASKS
    ]
    return in_both_passes + in_the_second


GRADIENT_MISTAKES: tuple[Alternate, ...] = (
    *FORWARD_MISTAKES,
    *(mistake for tensor in ("dQ", "dK") for mistake in _of_slopes(tensor)),
    *(mistake for tensor in ("dK", "dV") for mistake in _of_group(tensor)),
    *(mistake for tensor in ("dQ", "dK", "dV") for mistake in _of_masks(tensor)),
)
