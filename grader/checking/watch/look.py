"""Chooses the wrong values of an output that a second run records, and explains them by that recording."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated

import numpy as np
from pydantic import Field

from grader.base.hints import report
from grader.base.sizes import AtMost
from grader.checking.watch.labels import MOST_NODES, Reader
from grader.checking.watch.reading import read
from grader.checking.watch.recording import Malformed, read_recording
from grader.checking.watch.written import not_finite, written_at
from grader.findings import Finding
from grader.operators import Location, Operator, Shape
from grader.operators.number_types import F32_TYPE
from grader.operators.tolerance import Tolerance, errors_of, limit_of
from grader.sandbox.quarantine import open_output
from grader.sandbox.room import Unreadable, confined

WATCHED_VALUES, CONTROL_VALUES = 6, 3
FEWEST_RIGHT, RIGHT, RELATIVE = 0.25, 0.002, 1e-3
"""Right values are controls if there are this many for each wrong one, and their errors are at most these shares of the
allowed one and of the value: others are right by chance, or because a mistake hardly matters there."""
_MOST_FINDINGS = 20
WORD = 4
"""The bytes of a value that can be watched."""
MOST_VALUES = 2_000_000
"""Larger inputs are not watched."""
_NOT_FOLLOWED = "its values were not followed"


@dataclass(frozen=True)
class Watched:
    """A value of an output: its tensor, (unit, row, column), its place in the file in words, and its bits. A right one
    is a control: what seems odd about it is no mistake."""

    tensor: str
    index: tuple[int, int, int]
    word: int
    bits: int
    right: bool = False


@dataclass(frozen=True)
class Explained:
    """`findings`: what is wrong, the likeliest first. `unread`: why the recording says nothing; '' if it was read."""

    findings: tuple[Finding, ...] = ()
    unread: str = ""


def wrong_values(
    operator: Operator, shape: Shape, expected: Path, got: Path, tolerance: Tolerance, violated: Location | None = None
) -> tuple[Watched, ...]:
    """Some wrong values of the first output tensor that has any, and some right ones; of an operator that checks its
    outputs, the one that is `violated`. Empty where nothing can be watched."""
    if operator.units(shape) * operator.unit_input_values(shape) > MOST_VALUES:
        return ()
    layouts = operator.output_layouts(shape)
    output = open_output(got)
    try:
        with expected.open("rb") as kept:
            for right, layout in zip(operator.expected_layouts(shape), layouts, strict=True):
                if layout.type.bytes != WORD:
                    continue
                limit = limit_of(tolerance, layout.tensor.name)
                places: dict[bool, list[tuple[int, int, int, int]]] = {True: [], False: []}
                for unit in range(operator.units(shape)):
                    mine, good = layout.read(output, unit), right.read(kept.fileno(), unit)
                    if mine is None or good is None:
                        return ()
                    error, allowed = errors_of(mine, good), limit.allowed(good)
                    wrong = np.asarray(~(error <= allowed))
                    if operator.has_check:
                        wrong[:] = False
                        if violated and violated.unit == unit and violated.tensor in ("", layout.tensor.name):
                            wrong[violated.row, violated.column] = True
                    fine = (error <= np.minimum(RIGHT * allowed, RELATIVE * np.abs(good))) & (mine != 0)
                    for is_right, chosen in ((False, wrong), (True, fine)):
                        rows, columns = np.nonzero(chosen)
                        bits = mine.view(np.uint32)[rows, columns]
                        places[is_right] += [(unit, *each) for each in np.stack([rows, columns, bits], 1).tolist()]
                if places[False]:
                    if len(places[True]) < FEWEST_RIGHT * len(places[False]):
                        places[True] = []
                    return tuple(
                        Watched(layout.tensor.name, (u, i, j), layout.offset(u, i) // 4 + j, bits, is_right)
                        for is_right, most in ((False, WATCHED_VALUES), (True, CONTROL_VALUES))
                        for u, i, j, bits in _spread(places[is_right], most)
                    )
    except OSError:
        return ()
    finally:
        os.close(output)
    return ()


def _spread(places: Sequence[tuple[int, int, int, int]], most: int) -> list[tuple[int, int, int, int]]:
    if not places:
        return []
    return [places[n] for n in np.unique(np.linspace(0, len(places) - 1, most).astype(int))]


def explain(
    operator: Operator, shape: Shape, input: Path, recording: IO[bytes], watched: Sequence[Watched]
) -> Explained:
    """What is wrong with the watched values, by the recording of a run, which is read in the room: the program could
    have written it."""
    with input.open("rb", buffering=0) as file:
        try:
            found, unread = _explained(operator, shape, file, recording, tuple(watched))
        except Unreadable as unreadable:
            if unreadable.detail:
                report(unreadable)
            return Explained(unread=f"{_NOT_FOLLOWED}: reading the recording {unreadable}")
    return Explained(found, unread)


@confined(cpu_s=60, memory_bytes=4 << 30)
def _explained(
    operator: Operator, shape: Shape, input: IO[bytes], recording: IO[bytes], watched: Sequence[Watched]
) -> tuple[Annotated[tuple[Finding, ...], Field(max_length=_MOST_FINDINGS)], Annotated[str, AtMost(200)]]:
    names = [tensor.name for tensor in operator.inputs(shape)]
    tensors = (operator.read_unit(input, shape, unit) for unit in range(operator.units(shape)))
    units = [dict(zip(names, each, strict=True)) for each in tensors]
    floats = all(each.type == F32_TYPE for each in operator.outputs(shape))
    steps = operator.steps(shape) if floats else None
    try:
        found = read_recording(recording)
    except Malformed as malformed:
        return (), f"{_NOT_FOLLOWED}: the recording is unreadable, {malformed}"
    if found.cut_off:
        return (), f"{_NOT_FOLLOWED}: it computes more of them than a recording holds"
    wanted = [(each.tensor, each.index, each.right) for each in watched]
    if not any(each.type.is_integer for each in operator.outputs(shape)) and (arising := not_finite(found, wanted)):
        return arising, ""
    if steps is None:
        return written_at(found, wanted, stored=operator.has_check), ""
    reader = Reader(found, steps, units)
    if not reader.run():
        return (), f"{_NOT_FOLLOWED}: they come from more than {MOST_NODES:,} others"
    return tuple(read(reader, wanted, lambda unit: operator.unit_label(shape, unit))), ""
