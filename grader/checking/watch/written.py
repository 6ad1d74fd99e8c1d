"""Which lines computed the wrong values of an output, by a recording, for operators without steps: a fact that needs no
knowledge of what is right on the way. An integer has the line that stored it, which is told apart from arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from grader.checking.watch.recording import LEAF, Recording
from grader.emulator.operations import OPERATIONS
from grader.findings import CLAIMED, Finding, Place

_MOVES = frozenset({"none", "load", "store", "cvt"})
UNSURE = 0.3
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
