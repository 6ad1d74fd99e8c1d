"""Where values lie in files: several tensors a unit, one after another, planar or packed, of any type."""

import os

import numpy as np
import pytest

from grader.operators.base import Dimension, Operator, Rows, Shape, Tensor, Tensors
from grader.operators.layout import Layout, Strides, lay_out
from grader.operators.number_types import BF16, E4M3, E5M2, F16, F32_TYPE


class TwoOutputs(Operator):
    """Row sums and negation of a matrix: outputs of different sizes."""

    name = "two_outputs"
    dimensions = (Dimension("B", "positive", lambda v: v > 0), Dimension("n", "positive", lambda v: v > 0))

    def units(self, shape: Shape) -> int:
        return int(shape[0])

    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        return (Tensor("X", int(shape[1]), 3),)

    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        return Tensor("sum", int(shape[1]), 1), Tensor("negative", int(shape[1]), 3)

    def flops(self, shape: Shape) -> int:
        return int(3 * shape[0] * shape[1])

    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)):
        x = tensors[0].astype(np.float64)
        return x.sum(axis=1, keepdims=True)[rows], -x[rows]


class Planar(TwoOutputs):
    planar_output = True


def packed(b: int, n: int, heads: int, d: int) -> list[Tensor]:
    """[b, n, 2, heads, d]: keys and values next to each other."""
    units, rows = ((b, n * 2 * heads * d), (heads, d)), ((n, 2 * heads * d),)
    return [
        Tensor(name, n, d, type=F16, strides=Strides("KV", slot * heads * d, units, rows))
        for slot, name in enumerate(("K", "V"))
    ]


LAYOUTS = {
    "unit after unit": TwoOutputs().output_layouts((3, 4)),
    "planar": Planar().output_layouts((3, 4)),
    "packed": lay_out(packed(2, 5, 3, 4), 6, planar=False),
    "one row, one head": lay_out(packed(1, 1, 1, 4), 1, planar=False),
    "two types": lay_out([Tensor("A", 2, 3, type=E4M3), Tensor("B", 2, 2)], 3, planar=False, start=5),
}


@pytest.mark.parametrize("layouts", LAYOUTS.values(), ids=LAYOUTS)
def test_every_value_has_one_place_that_runs_and_lookups_agree_on(layouts: tuple[Layout, ...]) -> None:
    taken: set[int] = set()
    for layout in layouts:
        units = layout.values // layout.tensor.size
        places = {
            layout.offset(unit, row) + layout.type.bytes * column: (unit, row, column)
            for unit in range(units)
            for row in range(layout.tensor.rows)
            for column in range(layout.tensor.columns)
        }
        in_runs = [
            run.first + repeat * run.stride + layout.type.bytes * i
            for run in layout.runs()
            for repeat in range(run.repeats)
            for i in range(run.length)
        ]
        assert sorted(in_runs) == sorted(places) and not taken & set(places)
        taken |= set(places)
        found = zip(*(numbers.tolist() for numbers in layout.find(np.array(list(places)))), strict=True)
        assert list(found) == list(places.values())
    for layout in layouts:
        others = np.array(sorted(taken - {o for r in layout.runs() for o in _bytes_of(r)}))
        assert (layout.find(others)[0] == -1).all()


def _bytes_of(run):
    return (run.first + k * run.stride + run.value_bytes * i for k in range(run.repeats) for i in range(run.length))


@pytest.mark.parametrize("layouts", LAYOUTS.values(), ids=LAYOUTS)
def test_what_is_written_is_read_again_and_a_short_file_is_not_read(layouts: tuple[Layout, ...], tmp_path) -> None:
    random = np.random.default_rng(1)
    descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    kept = {}
    for number, layout in enumerate(layouts):
        for unit in range(layout.values // layout.tensor.size):
            values = layout.type.rounded(random.normal(size=(layout.tensor.rows, layout.tensor.columns)))
            kept[number, unit] = values
            layout.write(descriptor, unit, values[:1])
            layout.write(descriptor, unit, values[1:], 1)
    for (number, unit), values in kept.items():
        found = layouts[number].read(descriptor, unit)
        assert found is not None and np.array_equal(found, values)
        assert np.array_equal(layouts[number].values_of(np.fromfile(tmp_path / "file", np.uint8), unit), values)
    os.ftruncate(descriptor, os.fstat(descriptor).st_size - 1)
    assert layouts[-1].read(descriptor, layouts[-1].values // layouts[-1].tensor.size - 1) is None
    os.close(descriptor)


def test_the_fewest_runs_cover_a_tensor() -> None:
    assert [len(list(layout.runs())) for layouts in LAYOUTS.values() for layout in layouts] == [1] * 10


def test_a_location_names_tensor_unit_row_and_column() -> None:
    shape = (3, 4)
    assert str(TwoOutputs().locate(shape, 4 * (16 + 4 + 7))) == "negative of batch 1, row 2, column 1"
    assert str(Planar().locate(shape, 4 * 12)) == "negative of batch 0, row 0, column 0"


# ---- types ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [F32_TYPE, F16, BF16, E4M3, E5M2], ids=lambda kind: kind.name)
def test_what_a_type_can_hold_is_kept_and_the_rest_is_rounded_to_the_nearest(kind) -> None:
    values = np.random.default_rng(3).normal(size=4000).astype(np.float32)
    rounded = kind.rounded(values)
    assert np.array_equal(kind.rounded(rounded), rounded)
    normal = np.abs(values) > 0.02
    assert (np.abs(rounded - values)[normal] <= kind.roundoff * np.abs(values)[normal]).all()


@pytest.mark.parametrize(
    ("kind", "value", "code"),
    [
        (BF16, 1.0, 0x3F80),
        (BF16, 1 + 2.0**-8, 0x3F80),  # a tie: to the even one
        (BF16, 1 + 3 * 2.0**-8, 0x3F82),
        (BF16, np.nan, 0x7FC0),
        (E4M3, 1.0, 0x38),
        (E4M3, 448.0, 0x7E),
        (E4M3, 464.0, 0x7E),  # halfway to what would come next
        (E4M3, 465.0, 0x7F),  # NaN: there is no infinity
        (E4M3, 2.0**-9, 0x01),
        (E4M3, 2.0**-10, 0x00),
        (E4M3, -0.0, 0x80),
        (E4M3, 1 + 1 / 16, 0x38),
        (E4M3, 1 + 3 / 16, 0x3A),
        (E5M2, 1.0, 0x3C),
        (E5M2, 57344.0, 0x7B),
        (E5M2, np.inf, 0x7C),
        (E5M2, -3.0, 0xC2),
        (E5M2, np.nan, 0x7E),
    ],
)
def test_bits_are_those_of_the_formats(kind, value, code) -> None:
    assert int(kind.encode(np.array([value], np.float32)).view(f"u{kind.bytes}")[0]) == code
