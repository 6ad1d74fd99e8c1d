"""Which lines computed the wrong values of an output, by a recording, for operators without steps: a fact that needs no
knowledge of what is right on the way. An integer has the line that stored it, which is told apart from arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from grader.checking.watch.recording import Recording, Watched
from grader.findings import CLAIMED, Finding, Place

_MOVES = frozenset({"", "none", "load", "store", "cvt"})
SURE, UNSURE = 0.9, 0.3


def written_at(recording: Recording, watched: Sequence[Watched], *, stored: bool) -> tuple[Finding, ...]:
    """The line that computed most of the values that are `watched` and not right. With `stored`, it is claimed, and one
    that only stored a value counts as well: there is no other evidence."""
    lines = Counter[tuple[str, Place]]()
    for root, tensor in _wrong(recording, watched):
        node, place = _origin(recording, root)
        if place is not None and (stored or recording.operation(node) not in _MOVES):
            lines[tensor, place] += 1
    certainty = CLAIMED if stored else UNSURE
    return tuple(
        Finding(kind="wrong_value_from", certainty=certainty, array=tensor, **place.model_dump())
        for (tensor, place), _ in lines.most_common(1)
    )


def not_finite(recording: Recording, watched: Sequence[Watched]) -> tuple[Finding, ...]:
    """Where the NaNs and infinities arise that most of the wrong values are: the line, and what it computes there."""
    wrong, found = _wrong(recording, watched), dict[Place, list[Finding]]()
    for root, tensor in wrong:
        node, place = _origin(recording, root)
        if place is not None and not np.isfinite(recording.value[root]):
            words = {"what": "NaN" if np.isnan(recording.value[root]) else "infinite"}
            words |= {"computed": _computed(recording, node)} if recording.operands(node) else {}
            one = Finding(kind="not_finite", certainty=SURE, array=tensor, words=words, **place.model_dump())
            found.setdefault(place, []).append(one)
    most = max(found.values(), key=len, default=[])
    return (most[0],) if 2 * len(most) > len(wrong) else ()


def _wrong(recording: Recording, watched: Sequence[Watched]) -> list[tuple[int, str]]:
    """(node, output tensor) of the recorded values that are not right."""
    pairs = zip(recording.roots, watched, strict=False)
    return [(root, each.tensor) for root, each in pairs if root and not each.right]


def _origin(recording: Recording, node: int) -> tuple[int, Place | None]:
    """The node that computes a value, below those that only move it, and its line. Of NaN or infinity, the one where
    it arises: its operands are numbers, or infinities of which a NaN is made. If nothing that computes was recorded, it
    is what was read or written down, with the line that stored it first."""
    value, place = recording.value, None
    while operation := recording.operation(node):
        place = recording.place(node) or place
        below = recording.operands(node)
        if not np.isfinite(value[node]):
            below = [n for n in below if np.isnan(value[n]) == np.isnan(value[node]) and not np.isfinite(value[n])]
        elif operation not in _MOVES:
            break
        if not below:
            break
        node = below[0]
    return node, place


def _computed(recording: Recording, node: int) -> str:
    operation, values = recording.operation(node), recording.value[recording.operands(node)].tolist()
    said = [f"({each:.4g})" if each < 0 else f"{each:.4g}" for each in values]
    if sign := {"add": " + ", "sub": " − ", "mul": " · ", "div": " / "}.get(operation):
        return sign.join(said)
    if operation == "fma" and len(said) == 3:
        return f"{said[0]} · {said[1]} + {said[2]}"
    name = {"rcp": "1 / ", "ex2": "2 ^ ", "lg2": "log2 ", "sqrt": "√", "rsqrt": "1 / √"}.get(operation)
    return f"{name}{said[0]}" if name else ""
