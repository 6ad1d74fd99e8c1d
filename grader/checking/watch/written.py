"""Which lines computed the wrong values of an output, by a recording, for operators without steps: a fact that needs no
knowledge of what is right on the way. An integer has the line that stored it, which is told apart from arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cudaemu.operations import OPERATIONS
from grader.checking.watch.recording import LEAF, Recording
from grader.findings import CLAIMED, Finding, Place

_MOVES = frozenset({"none", "load", "store", "cvt"})
SURE, UNSURE = 0.9, 0.3
Wanted = tuple[str, tuple[int, ...], bool]
"""An output tensor, (unit, row, column) of one of its values, and whether that is right."""


def written_at(recording: Recording, wanted: Sequence[Wanted], *, stored: bool) -> tuple[Finding, ...]:
    """The line that computed most of the values that are `wanted` and not right. With `stored`, it is claimed, and one
    that only stored a value counts as well: there is no other evidence."""
    lines = Counter[tuple[str, Place]]()
    for root, (tensor, _, is_right) in zip(recording.roots, wanted, strict=False):
        place, computed = _origin(recording, root)
        if place is not None and not is_right and (computed or stored):
            lines[tensor, place] += 1
    certainty = CLAIMED if stored else UNSURE
    return tuple(
        Finding(kind="wrong_value_from", certainty=certainty, file=place.file, line=place.line, array=tensor)
        for (tensor, place), _ in lines.most_common(1)
    )


def not_finite(recording: Recording, wanted: Sequence[Wanted]) -> tuple[Finding, ...]:
    """Where the NaNs and infinities arise that most of the wrong values are: the line, and what it computes there."""
    found, wrong = dict[Place, list[Finding]](), 0
    for root, (tensor, _, is_right) in zip(recording.roots, wanted, strict=False):
        wrong += bool(root) and not is_right
        if root and not is_right and not np.isfinite(recording.value[root]):
            arising = _arising(recording, root, tensor)
            if arising.place is not None:
                found.setdefault(arising.place, []).append(arising)
    most = max(found.values(), key=len, default=[])
    return (most[0],) if 2 * len(most) > wrong else ()


def _arising(recording: Recording, node: int, array: str) -> Finding:
    """The step at which a NaN or infinity arises: its operands are numbers, or infinities of which a NaN is made."""
    value, place = recording.value, None
    what = "NaN" if np.isnan(value[node]) else "infinite"
    while True:
        operands = [int(of[node]) for of in (recording.a, recording.b, recording.c) if of[node]]
        site = int(recording.site[node])
        if site >= LEAF:  # a value that was read or written down
            break
        operation, file, line = (int(n) for n in recording.sites[site])
        name = recording.files.get(file, "")
        place = Place(file=name, line=line) if name and line else place
        same = [each for each in operands if np.isnan(value[each]) == np.isnan(value[node])]
        same = [each for each in same if not np.isfinite(value[each])]
        if not same:
            break
        node = same[0]
    facts = {}
    if site < LEAF and operands:
        facts["computed"] = _computed(OPERATIONS[operation], [float(value[each]) for each in operands])
    found = Finding(kind="not_finite", certainty=SURE, array=array, words={"what": what, **facts})
    return found.model_copy(update={"file": place.file, "line": place.line}) if place is not None else found


def _computed(operation: str, operands: Sequence[float]) -> str:
    said = [f"({each:.4g})" if each < 0 else f"{each:.4g}" for each in operands]
    if sign := {"add": " + ", "sub": " − ", "mul": " · ", "div": " / "}.get(operation):
        return sign.join(said)
    if operation == "fma" and len(said) == 3:
        return f"{said[0]} · {said[1]} + {said[2]}"
    name = {"rcp": "1 / ", "ex2": "2 ^ ", "lg2": "log2 ", "sqrt": "√", "rsqrt": "1 / √"}.get(operation)
    return f"{name}{said[0]}" if name else ""


def _origin(recording: Recording, node: int) -> tuple[Place | None, bool]:
    """The line of the arithmetic that a value comes from; of NaN or infinity, that which made it from numbers. False if
    no arithmetic was recorded: then it is the line that stored the value first."""
    at = None
    while node and (site := int(recording.site[node])) < LEAF:
        operation, file, line = (int(n) for n in recording.sites[site])
        name = recording.files.get(file, "")
        at = Place(file=name, line=line) if name and line else at
        operands = [int(of[node]) for of in (recording.a, recording.b, recording.c) if of[node]]
        computes = OPERATIONS[operation] not in _MOVES
        if not np.isfinite(recording.value[node]):
            operands = [each for each in operands if not np.isfinite(recording.value[each])]
        elif computes:
            return at, True
        if not operands:
            return at, computes
        node = operands[0]
    return at, False
