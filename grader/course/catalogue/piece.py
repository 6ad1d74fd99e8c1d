"""Divides the work on a testcase into pieces: some units, or some rows of a large unit. A piece needs only the seed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.course.seeds import Distribution, Seed, draw_unit
from grader.operators import Operator, Shape, load_operator

PIECE_FLOPS = 2e9
"""The work of one piece: enough (about 50 ms) to hide the cost of the pipe between processes, little enough to share
the work out evenly and to show progress."""

PIECE_BYTES = 8 << 20
"""The input of one piece, unless a single unit is larger."""

PIECE_ROWS = 512
"""The fewest rows in a piece of a unit: drawing the unit again for each piece must stay cheap compared with the
oracle."""


@dataclass(frozen=True)
class Piece:
    """Some units of a testcase, or some rows of one unit, with everything that is needed to make or recompute them."""

    operator: str
    shape: Shape
    distribution: Distribution
    seed: Seed
    identity: str
    first_unit: int
    end_unit: int
    rows: tuple[int, int] | None
    input: Path | None
    output: Path

    def amount(self) -> int:
        """The bytes of output, to show progress, since they are in proportion to the work."""
        operator = load_operator(self.operator)
        size = operator.unit_output_bytes(self.shape) * (self.end_unit - self.first_unit)
        if self.rows is None:
            return size
        return size * (self.rows[1] - self.rows[0]) // operator.outputs(self.shape)[0].rows


def pieces(operator: Operator, shape: Shape) -> Iterator[tuple[int, int, tuple[int, int] | None]]:
    """Divide the work; each piece is (first unit, end unit, rows or None)."""
    units = operator.units(shape)
    unit_flops = max(operator.flops(shape) / units, 1.0)
    rows = operator.outputs(shape)[0].rows
    same_rows = all(tensor.rows == rows for tensor in operator.outputs(shape))
    if operator.independent_rows and same_rows and unit_flops >= 2 * PIECE_FLOPS and rows >= 2 * PIECE_ROWS:
        step = max(PIECE_ROWS, int(rows * PIECE_FLOPS / unit_flops))
        for unit in range(units):
            for first in range(0, rows, step):
                yield unit, unit + 1, (first, min(first + step, rows))
        return
    by_flops, by_bytes = PIECE_FLOPS / unit_flops, PIECE_BYTES / operator.unit_input_bytes(shape)
    step = max(1, int(min(by_flops, by_bytes)))
    for unit in range(0, units, step):
        yield unit, min(unit + step, units), None


def make(piece: Piece) -> int:
    """Write a piece's inputs and expected outputs; return its `amount`."""
    operator = load_operator(piece.operator)
    count = operator.unit_input_bytes(piece.shape) // 4
    rows = slice(None) if piece.rows is None else slice(*piece.rows)
    first_row = 0 if piece.rows is None else piece.rows[0]
    source = os.open(piece.input, os.O_WRONLY) if piece.input is not None and first_row == 0 else None
    target = os.open(piece.output, os.O_WRONLY)
    try:
        for unit in range(piece.first_unit, piece.end_unit):
            values = draw_unit(piece.seed, piece.identity, unit, count, piece.distribution)
            if source is not None:
                write_at(source, values, operator.input_offset(piece.shape, unit))
            results = operator.oracle(piece.shape, operator.split_unit(piece.shape, values), rows)
            for number, result in enumerate(results):
                offset = operator.output_offset(piece.shape, number, unit, first_row)
                write_at(target, np.ascontiguousarray(result, dtype="<f4"), offset)
    finally:
        os.close(target)
        if source is not None:
            os.close(source)
    return piece.amount()


def write_at(descriptor: int, values: NDArray[np.float32], offset: int) -> None:
    """Write all of `values` at byte `offset`."""
    write_bytes_at(descriptor, values.data.cast("B"), offset)


def write_bytes_at(descriptor: int, data: memoryview, offset: int) -> None:
    """Write all of `data` at byte `offset`."""
    while data:
        written = os.pwrite(descriptor, data, offset)
        data, offset = data[written:], offset + written
