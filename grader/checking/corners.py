"""Reads the top-left corner of every output tensor, got and expected."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from grader.operators import Operator, Shape
from grader.operators.layout import Layout, read_exactly
from grader.records.record import CornerRecord
from grader.sandbox.quarantine import open_output


def read_corners(operator: Operator, shape: Shape, expected: Path, got: Path, size: int) -> tuple[CornerRecord, ...]:
    """Read the first `size` rows and columns of each output tensor of the first unit. The corner's `got` lacks the rows
    that the program's output lacks, and all rows if the output is not a regular file."""
    layouts = zip(operator.output_layouts(shape), operator.expected_layouts(shape), strict=True)
    with expected.open("rb", buffering=0) as reference:
        return tuple(
            CornerRecord(
                tensor=mine.tensor.name,
                unit=operator.unit_label(shape, 0),
                expected=_corner(reference.fileno(), right, size),
                got=_untrusted_corner(got, mine, size),
            )
            for mine, right in layouts
        )


def _untrusted_corner(path: Path, layout: Layout, size: int) -> tuple[tuple[float, ...], ...]:
    try:
        with os.fdopen(open_output(path), "rb", buffering=0) as file:
            return _corner(file.fileno(), layout, size)
    except OSError:  # no file, a pipe, a directory
        return ()


def _corner(descriptor: int, layout: Layout, size: int) -> tuple[tuple[float, ...], ...]:
    """The corner of the first unit, up to the end of the file."""
    rows: list[tuple[float, ...]] = []
    for row in range(min(size, layout.tensor.rows)):
        stored = np.empty(min(size, layout.tensor.columns), layout.type.storage)
        if not read_exactly(descriptor, stored, layout.offset(0, row)):
            break
        rows.append(tuple(map(float, layout.type.decode(stored))))
    return tuple(rows)
