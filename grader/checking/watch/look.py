"""Chooses the wrong values of an output that a second run records, and explains them by that recording."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from grader.base.hints import report
from grader.base.sizes import AtMost
from grader.checking.samples import spread
from grader.checking.watch.labels import MOST_NODES, Reader
from grader.checking.watch.reading import read
from grader.checking.watch.recording import Malformed, Watched, read_recording
from grader.checking.watch.written import not_finite, written_at
from grader.findings import Finding
from grader.operators import Location, Operator, Shape
from grader.operators.layout import Layout
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
class Explained:
    """`findings`: what is wrong, the likeliest first. `unread`: why the recording says nothing; '' if it was read."""

    findings: Annotated[tuple[Finding, ...], Field(max_length=_MOST_FINDINGS)] = ()
    unread: Annotated[str, AtMost(200)] = ""


def wrong_values(
    operator: Operator, shape: Shape, expected: Path, got: Path, tolerance: Tolerance, violated: Location | None = None
) -> tuple[Watched, ...]:
    """Some wrong values of the first output tensor that has any, and some right ones; of an operator that checks its
    outputs, the one that is `violated`. Empty where nothing can be watched."""
    if operator.units(shape) * operator.unit_input_values(shape) > MOST_VALUES:
        return ()
    layouts = zip(operator.expected_layouts(shape), operator.output_layouts(shape), strict=True)
    with suppress(OSError), os.fdopen(open_output(got), "rb", buffering=0) as output, expected.open("rb") as kept:
        for right, layout in (both for both in layouts if both[1].type.bytes == WORD):
            units = range(operator.units(shape))
            pairs = [(layout.read(output.fileno(), unit), right.read(kept.fileno(), unit)) for unit in units]
            whole = [(mine, good) for mine, good in pairs if mine is not None and good is not None]
            if len(whole) < len(pairs):
                return ()
            mine, good = (np.stack(each) for each in zip(*whole, strict=True))
            error, allowed = errors_of(mine, good), limit_of(tolerance, layout.tensor.name).allowed(good)
            wrong = np.asarray(~(error <= allowed))
            if operator.has_check:
                wrong[:] = False
                if violated and violated.tensor in ("", layout.tensor.name):
                    wrong[violated.unit, violated.row, violated.column] = True
            fine = (error <= np.minimum(RIGHT * allowed, RELATIVE * np.abs(good))) & (mine != 0)
            controls = CONTROL_VALUES if fine.sum() >= FEWEST_RIGHT * wrong.sum() else 0
            if wrong.any():
                wanted = [(place, False) for place in spread(np.argwhere(wrong), WATCHED_VALUES).tolist()]
                wanted += [(place, True) for place in spread(np.argwhere(fine), controls).tolist()]
                return tuple(_watched(layout, mine, *each) for each in wanted)
    return ()


def _watched(layout: Layout, values: NDArray[Any], place: Sequence[int], right: bool) -> Watched:
    unit, row, column = place
    word, bits = layout.offset(unit, row) // WORD + column, int(values[unit, row, column].view(np.uint32))
    return Watched(layout.tensor.name, (unit, row, column), word, bits, right)


def explain(
    operator: Operator, shape: Shape, input: Path, recording: IO[bytes], watched: Sequence[Watched]
) -> Explained:
    """What is wrong with the watched values, by the recording of a run, which is read in the room: the program could
    have written it."""
    with input.open("rb", buffering=0) as file:
        try:
            return _explained(operator, shape, file, recording, tuple(watched))
        except Unreadable as unreadable:
            if unreadable.detail:
                report(unreadable)
            return Explained(unread=f"{_NOT_FOLLOWED}: reading the recording {unreadable}")


@confined(cpu_s=60, memory_bytes=4 << 30)
def _explained(
    operator: Operator, shape: Shape, input: IO[bytes], recording: IO[bytes], watched: Sequence[Watched]
) -> Explained:
    gc.disable()  # labels live to the end; the collector takes a quarter of the time
    names = [tensor.name for tensor in operator.inputs(shape)]
    tensors = (operator.read_unit(input, shape, unit) for unit in range(operator.units(shape)))
    units = [dict(zip(names, each, strict=True)) for each in tensors]
    floats = all(each.type == F32_TYPE for each in operator.outputs(shape))
    steps = operator.steps(shape) if floats else None
    try:
        found = read_recording(recording)
    except Malformed as malformed:
        return Explained(unread=f"{_NOT_FOLLOWED}: the recording is unreadable, {malformed}")
    if found.cut_off:
        return Explained(unread=f"{_NOT_FOLLOWED}: it computes more of them than a recording holds")
    if not any(each.type.is_integer for each in operator.outputs(shape)) and (arising := not_finite(found, watched)):
        return Explained(arising)
    if steps is None:
        return Explained(written_at(found, watched, stored=operator.has_check))
    reader = Reader(found, steps, units)
    if not reader.run():
        return Explained(unread=f"{_NOT_FOLLOWED}: they come from more than {MOST_NODES:,} others")
    return Explained(tuple(read(reader, watched, lambda unit: operator.unit_label(shape, unit))))
