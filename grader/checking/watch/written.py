"""Which lines computed the wrong values of an output, by a recording, for operators without steps: a fact that needs no
knowledge of what is right on the way. An integer has the line that stored it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from grader.checking.watch.recording import LEAF, Recording
from grader.emulator.operations import OPERATIONS
from grader.findings import Finding, Place

_MOVES = frozenset({"none", "load", "store", "cvt"})


def written_at(
    recording: Recording, wanted: Sequence[tuple[str, tuple[int, ...], bool]], certainty: float
) -> tuple[Finding, ...]:
    """The line that computed most of the values that are `wanted` and not right: (tensor, index, is it right)."""
    lines = Counter[tuple[str, Place]]()
    for root, (tensor, _, is_right) in zip(recording.roots, wanted, strict=False):
        if root and not is_right and (place := _computed(recording, root)) is not None:
            lines[tensor, place] += 1
    return tuple(
        Finding(kind="wrong_value_from", certainty=certainty, file=place.file, line=place.line, array=tensor)
        for (tensor, place), _ in lines.most_common(1)
    )


def _computed(recording: Recording, node: int) -> Place | None:
    """The line of the arithmetic that a value comes from; of NaN or infinity, that which made it from numbers."""
    at = None
    while node and (site := int(recording.site[node])) < LEAF:
        operation, file, line = (int(n) for n in recording.sites[site])
        name = recording.files.get(file, "")
        at = Place(file=name, line=line) if name and line else at
        operands = [int(of[node]) for of in (recording.a, recording.b, recording.c) if of[node]]
        if np.isfinite(recording.value[node]):
            if OPERATIONS[operation] not in _MOVES:
                return at
        else:
            operands = [each for each in operands if not np.isfinite(recording.value[each])]
        if not operands:
            return at
        node = operands[0]
    return at
