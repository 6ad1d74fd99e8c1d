"""Divides the work on a testcase into pieces: some units, or some rows of a large unit. A piece needs only the seed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.course.distributions import Distribution
from grader.course.seeds import Seed, draw_tensors
from grader.operators import Operator, Shape, load_operator
from grader.operators.returned import right_rows
from grader.operators.tolerance import ErrorSums, error_sums

PIECE_FLOPS = 2e9
"""The work of one piece: enough (about 50 ms) to hide the cost of the pipe between processes, but small enough to
distribute the work evenly and to show progress."""

PIECE_BYTES = 8 << 20
"""The maximum size of a piece's input, unless a single unit is larger."""

PIECE_ROWS = 512
"""The minimum number of rows in a piece of a unit: each piece draws the whole unit again, which must stay cheap
compared with the oracle."""


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
        """The size of the output in bytes, which is proportional to the work and so serves to show progress."""
        operator = load_operator(self.operator)
        size = operator.unit_output_bytes(self.shape) * (self.end_unit - self.first_unit)
        if self.rows is None:
            return size
        return size * (self.rows[1] - self.rows[0]) // operator.outputs(self.shape)[0].rows


@dataclass(frozen=True)
class Made:
    """The result of making a piece: its `amount`, and for each output tensor the errors of the plain implementation, if
    the operator has one."""

    amount: int
    plain: tuple[ErrorSums, ...] = ()


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


def make(piece: Piece) -> Made:
    """Write a piece's inputs and expected outputs."""
    operator, shape = load_operator(piece.operator), piece.shape
    layouts = operator.expected_layouts(shape)
    rows = slice(None) if piece.rows is None else slice(*piece.rows)
    first_row = 0 if piece.rows is None else piece.rows[0]
    plain: tuple[ErrorSums, ...] = ()
    source = os.open(piece.input, os.O_WRONLY) if piece.input is not None and first_row == 0 else None
    target = os.open(piece.output, os.O_WRONLY)
    try:
        for unit in range(piece.first_unit, piece.end_unit):
            tensors = draw_tensors(operator, shape, piece.distribution, piece.seed, piece.identity, unit)
            if source is not None:
                operator.write_unit(source, shape, unit, tensors)
            right = right_rows(operator, shape, tensors, rows)
            for layout, result in zip(layouts, right, strict=True):
                layout.write(target, unit, result, first_row)
            pairs = zip(operator.plain(shape, tensors, rows), right, strict=False)
            errors = tuple(error_sums(*pair) for pair in pairs)
            plain = tuple(map(ErrorSums.__add__, plain, errors)) if plain else errors
    finally:
        os.close(target)
        if source is not None:
            os.close(source)
    return Made(piece.amount(), plain)
