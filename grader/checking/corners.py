"""The top-left corner of every output tensor, got and expected side by side, as in a first debug print."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.checking.scan import read_values
from grader.operators import Operator, Shape
from grader.records.record import CornerRecord
from grader.sandbox.quarantine import open_output

_WIDTH = 11
"""Characters of a printed number: sign, digit, point, four digits, exponent."""


def read_corners(operator: Operator, shape: Shape, expected: Path, got: Path, size: int) -> tuple[CornerRecord, ...]:
    """Read the first `size` rows and columns of each output tensor of the first unit. The corner's `got` lacks rows
    that the program did not write, or did not write to a regular file."""
    corners = []
    with expected.open("rb", buffering=0) as reference:
        for number, tensor in enumerate(operator.outputs(shape)):
            rows, columns = min(size, tensor.rows), min(size, tensor.columns)
            offsets = [operator.output_offset(shape, number, 0, row) for row in range(rows)]
            corners.append(
                CornerRecord(
                    tensor=tensor.name,
                    unit=operator.unit_label(shape, 0),
                    expected=_rows(reference.fileno(), offsets, columns),
                    got=_untrusted_rows(got, offsets, columns),
                )
            )
    return tuple(corners)


def _untrusted_rows(path: Path, offsets: Sequence[int], columns: int) -> tuple[tuple[float, ...], ...]:
    try:
        descriptor = open_output(path)
    except OSError:
        return ()
    try:
        return _rows(descriptor, offsets, columns)
    except OSError:  # a pipe, a directory
        return ()
    finally:
        os.close(descriptor)


def _rows(descriptor: int, offsets: Sequence[int], columns: int) -> tuple[tuple[float, ...], ...]:
    """The rows at `offsets`, up to the end of the file."""
    rows = []
    for offset in offsets:
        values: NDArray[np.float32] = np.empty(columns, dtype="<f4")
        if not read_values(descriptor, values, offset):
            break
        rows.append(tuple(map(float, values)))
    return tuple(rows)


def render_corners(test: str, corners: Sequence[CornerRecord]) -> str:
    """Render the corners of one test as text."""
    return "\n\n".join("\n".join(_lines(test, corner)) for corner in corners)


def _lines(test: str, corner: CornerRecord) -> Iterator[str]:
    rows, columns = len(corner.expected), len(corner.expected[0])
    where = f" of {corner.unit}" if corner.unit else ""
    yield f"{test}: {corner.tensor}{where}, first {rows} rows and {columns} columns: got | expected"
    for number, expected in enumerate(corner.expected):
        got = corner.got[number] if number < len(corner.got) else ()
        left = "".join(f"{value:{_WIDTH}.4g}" for value in got) if got else f"{'not written':>{_WIDTH * columns}}"
        yield f"{left}  |{''.join(f'{value:{_WIDTH}.4g}' for value in expected)}"
