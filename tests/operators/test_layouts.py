"""The layouts that hw4 does not use: several output tensors per unit, one after another or planar."""

from __future__ import annotations

import numpy as np

from grader.operators.base import Dimension, Operator, Rows, Shape, Tensor, Tensors


class TwoOutputs(Operator):
    """Row sums and negation of a matrix: outputs of different sizes."""

    name = "two_outputs"
    dimensions = (Dimension("B", "positive", lambda v: v > 0), Dimension("n", "positive", lambda v: v > 0))

    def units(self, shape: Shape) -> int:
        return shape[0]

    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        return (Tensor("X", shape[1], 3),)

    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        return Tensor("sum", shape[1], 1), Tensor("negative", shape[1], 3)

    def flops(self, shape: Shape) -> int:
        return 3 * shape[0] * shape[1]

    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)):
        x = tensors[0].astype(np.float64)
        return x.sum(axis=1, keepdims=True)[rows], -x[rows]


class Planar(TwoOutputs):
    planar_output = True


def test_unit_after_unit_positions_and_offsets_agree():
    op, shape = TwoOutputs(), (3, 4)
    for index in range(op.output_bytes(shape) // 4):
        tensor, unit, row, column = op.position(shape, index)
        assert op.output_offset(shape, tensor, unit, row) + 4 * column == 4 * index
    assert str(op.locate(shape, 16 + 4 + 7)) == "negative of batch 1, row 2, column 1"


def test_planar_positions_and_offsets_agree():
    op, shape = Planar(), (3, 4)
    for index in range(op.output_bytes(shape) // 4):
        tensor, unit, row, column = op.position(shape, index)
        assert op.output_offset(shape, tensor, unit, row) + 4 * column == 4 * index
    assert str(op.locate(shape, 12)) == "negative of batch 0, row 0, column 0"


def test_runs_cover_the_output_once_and_name_its_tensors():
    shape = (3, 4)
    for op in (TwoOutputs(), Planar()):
        runs = list(op.output_runs(shape))
        assert [r.first for r in runs] == list(np.cumsum([0] + [r.size for r in runs[:-1]]))
        assert sum(r.size for r in runs) * 4 == op.output_bytes(shape)
    assert [r.tensor for r in Planar().output_runs(shape)] == ["sum", "negative"]
    assert len(list(TwoOutputs().output_runs(shape))) == 6
