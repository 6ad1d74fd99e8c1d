"""Likely mistakes in attention in half precision, forward and backward, to recognise them in wrong outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from grader.operators.attention.grouped import PACKED, PACKED_KV, Problem, problem_of
from grader.operators.attention.pass_mistakes import (
    Unless,
    changed,
    forward_mistake,
    gradient_mistake,
    scale_mistakes,
    shifted,
    slope_mistakes,
    tail_mistakes,
)
from grader.operators.attention.passes import F64, Keys, Sees, Way, forward
from grader.operators.attention.precision_mistakes import precision_mistakes
from grader.operators.base import Alternate, Rows, Shape, Tensors
from grader.operators.number_types import BF16, F16

# ---- masks ------------------------------------------------------------------------------------------------------


def _top_left(p: Problem, queries: NDArray[np.intp]) -> Keys:
    low = np.maximum(queries - p.window, 0) if p.window >= 0 else np.zeros_like(queries)
    high = np.minimum(queries + 1, p.keys) if p.causal else np.full_like(queries, p.keys)
    return low, high


_MASKS: tuple[tuple[str, str, Sees, Unless], ...] = (
    (
        "mask_aligned_to_the_top_left",
        "a mask that is aligned to the top left: query i belongs to key i + Nk − Nq, so that the last query sees the "
        "last key.",
        _top_left,
        lambda p: not p.is_masked or p.ahead == 0,
    ),
    (
        "causal_mask_ignored",
        "attention without the causal mask: with causal = 1, query i sees keys up to i + Nk − Nq only.",
        changed(causal=False),
        lambda p: not p.causal,
    ),
    (
        "causal_mask_one_too_late",
        "a causal mask that is off by one: the last key that query i sees is i + Nk − Nq, not the one after it.",
        shifted(end=1),
        lambda p: not p.causal,
    ),
    (
        "causal_mask_one_too_early",
        "a causal mask that is off by one: query i must also see key i + Nk − Nq.",
        shifted(end=-1),
        lambda p: not p.causal,
    ),
    (
        "window_ignored",
        "attention without the window: query i sees no key before i + Nk − Nq − window.",
        changed(window=-1),
        lambda p: p.window < 0,
    ),
    (
        "window_exclusive",
        "a window that is one key too narrow: query i must also see key i + Nk − Nq − window.",
        shifted(first=1),
        lambda p: p.window < 0,
    ),
    (
        "window_one_too_wide",
        "a window that is one key too wide: the first key that query i sees is i + Nk − Nq − window.",
        shifted(first=-1),
        lambda p: p.window < 0,
    ),
    (
        "mask_not_asked_for",
        "causal attention: with causal = 0, every query sees all keys of its window.",
        changed(causal=True),
        lambda p: p.causal,
    ),
)

_WIDER_MASKS = ("causal_mask_ignored", "causal_mask_one_too_late", "window_ignored", "window_one_too_wide")


# ---- the forward pass -------------------------------------------------------------------------------------------


def _not_rescaled() -> Iterable[Alternate]:
    for tile, (what, words) in product((1, 64, 128, 32, 16), (("O", "O"), ("l", "ℓ"), ("both", "O and ℓ"))):
        each = f"a tile of {tile} keys" if tile > 1 else "a key"
        yield forward_mistake(
            f"{what}_not_rescaled_{tile}",
            f"It matches an online softmax over {each} at a time that does not rescale {words} when the maximum "
            "grows: multiply what was summed up so far by exp(m_old − m_new).",
            Way(stale=(tile, what)),
            steps=("rescale",),
        )


def _keys_of_other_heads(head_of: Callable[[Problem, int], int]) -> Callable[[Shape, int], tuple[tuple[int, int], ...]]:
    """The places of K and V of the key heads that the query heads of a group read by mistake."""

    def others(shape: Shape, unit: int) -> tuple[tuple[int, int], ...]:
        p = problem_of(shape)
        batch, key_head = divmod(unit, p.key_heads)
        heads = (head_of(p, key_head * p.group + number) for number in range(p.group))
        return tuple((batch * p.key_heads + head, slot) for head in heads for slot in (1, 2))

    return others


def _each_with_its_own(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    """O if each head of the group has its own K and V. These pairs follow the unit's tensors."""
    p = problem_of(shape)
    pairs = tensors[len(tensors) - 2 * p.group :]
    numbers = np.arange(p.group * p.queries)[rows]
    o = np.empty((len(numbers), p.d))
    for head in range(p.group):
        mine = numbers // p.queries == head
        o[mine] = forward(p, (tensors[0], *pairs[2 * head : 2 * head + 2]), numbers[mine])
    return o


def _packed_by_head(shape: Shape, unit: int) -> tuple[tuple[int, int], ...]:
    """The places that a program reads as Q, K and V of a head if it takes [B, N, 3, H, d] for [B, N, H, 3, d]."""
    p = problem_of(shape)
    batch, head = divmod(unit, p.key_heads)
    slots = (divmod(3 * head + number, p.key_heads) for number in range(3))
    return tuple((batch * p.key_heads + other, number) for number, other in slots)


def _kv_packed_by_head(shape: Shape, unit: int) -> tuple[tuple[int, int], ...]:
    """The places that a program reads as K and V of a head if it takes [B, N, 2, H, d] for [B, N, H, 2, d]."""
    p = problem_of(shape)
    batch, head = divmod(unit, p.key_heads)
    slots = (divmod(2 * head + number, p.key_heads) for number in range(2))
    return tuple((batch * p.key_heads + other, 1 + number) for number, other in slots)


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
            "kv_packed_by_head",
            "It matches packed tensors that are read as [B, N, H, 2, d]: layout 2 has K and V as [B, N, 2, H, d], all "
            "heads of K, then all of V.",
            lambda shape, tensors, rows: np.asarray(forward(problem_of(shape), (tensors[0], *tensors[-2:]), rows)),
            lambda shape: problem_of(shape).layout != PACKED_KV or one_key_head(shape),
            steps=("load_k",),
            others=_kv_packed_by_head,
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


FORWARD_MISTAKES: tuple[Alternate, ...] = (
    *(
        forward_mistake(name, f"It matches {words}", Way(sees=sees), unless, ("keys",))
        for name, words, sees, unless in _MASKS
    ),
    *scale_mistakes(),
    *_places(),
    *_not_rescaled(),
    *tail_mistakes((64, 128, 32, 16, 256)),
    *precision_mistakes(),
)


# ---- the gradient -----------------------------------------------------------------------------------------------


def _group_mistakes(tensor: str) -> Iterable[Alternate]:
    """Mistakes in the sum over a group's heads, which show in dK and dV."""
    for which, head in (("last", slice(-1, None)), ("first", slice(0, 1))):
        yield gradient_mistake(
            f"of_the_{which}_head",
            tensor,
            f"matches the sum over the {which} query head of each group alone: it is the sum over all heads of the "
            "group, as they share K and V.",
            Way(adds=lambda p, head=head: head),  # type: ignore[misc]
            lambda p: p.group == 1,
        )


def _mask_mistakes(tensor: str) -> Iterable[Alternate]:
    """Wrong masks in both passes, then masks that are too wide in the backward pass alone."""
    for name, words, sees, unless in _MASKS:
        yield gradient_mistake(name, tensor, f"matches {words}", Way(sees=sees), unless)
    for name, words, sees, unless in _MASKS:
        if name in _WIDER_MASKS:
            sentence = f"matches a right forward pass, and in the backward pass {words}"
            yield gradient_mistake(f"backward_{name}", tensor, sentence, Way(backward_sees=sees), unless)


GRADIENT_MISTAKES: tuple[Alternate, ...] = (
    *FORWARD_MISTAKES,
    *(mistake for tensor in ("dQ", "dK") for mistake in slope_mistakes(tensor)),
    *(mistake for tensor in ("dK", "dV") for mistake in _group_mistakes(tensor)),
    *(mistake for tensor in ("dQ", "dK", "dV") for mistake in _mask_mistakes(tensor)),
)
