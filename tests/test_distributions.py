"""What a group's `distribution` draws: integers, graphs, pictures, and a tensor at a time."""

import numpy as np
import pytest
from pydantic import TypeAdapter

from grader.base.errors import UsageError
from grader.course.distributions import Distribution
from grader.course.seeds import draw_tensors, public_seed
from grader.operators.base import Operator, Tensor, size_of
from grader.operators.number_types import F32_TYPE, I32, U8


class Made(Operator):
    """Tensors that a test chooses."""

    name = "made"
    dimensions = (size_of("n"), size_of("e"))

    def __init__(self, *tensors: Tensor) -> None:
        self._tensors = tensors

    def units(self, shape):
        return 2

    def inputs(self, shape):
        return self._tensors

    outputs = inputs

    def flops(self, shape):
        return 1

    def oracle(self, shape, tensors, rows=slice(None)):
        return tuple(tensors)


def draw(rule, *tensors: Tensor, shape=(100, 400), unit=0):
    distribution = TypeAdapter(Distribution).validate_python(rule)
    return draw_tensors(Made(*tensors), shape, distribution, public_seed("x"), str(distribution), unit)


INTEGERS = Tensor("X", 1, 1000, type=I32)


def test_integers_follow_their_pattern_and_stay_in_their_range() -> None:
    drawn = {
        pattern: draw({"kind": "integers", "low": -50, "high": 1000, "pattern": pattern}, INTEGERS)[0][0]
        for pattern in ("uniform", "zipf", "sorted", "reversed", "few", "equal")
    }
    assert all(x.min() >= -50 and x.max() < 1000 and x.dtype == np.int32 for x in drawn.values())
    assert (np.diff(drawn["sorted"]) >= 0).all() and (np.diff(drawn["reversed"]) <= 0).all()
    assert len(set(drawn["few"].tolist())) <= 4 and len(set(drawn["equal"].tolist())) == 1
    assert (drawn["zipf"] < -40).sum() > 3 * (drawn["uniform"] < -40).sum()


def test_a_bound_may_be_a_dimension_and_units_differ() -> None:
    rule = {"kind": "integers", "high": "n"}
    first, second = (draw(rule, INTEGERS, unit=unit)[0] for unit in (0, 1))
    assert first.max() == second.max() == 99 and (first != second).any()
    with pytest.raises(UsageError, match="no dimension 'm'"):
        draw({"kind": "integers", "high": "m"}, INTEGERS)


def test_a_permutation_has_every_number_once() -> None:
    assert sorted(draw({"kind": "permutation"}, INTEGERS)[0][0].tolist()) == list(range(1000))


@pytest.mark.parametrize("pattern", ["uniform", "power_law", "grid", "banded"])
def test_a_graph_has_exactly_its_edges_in_both_forms(pattern: str) -> None:
    csr = (Tensor("offsets", 1, 101, type=I32), Tensor("ends", 1, 400, type=I32), Tensor("values", 1, 400))
    offsets, ends, values = (each[0] for each in draw({"kind": "graph", "pattern": pattern, "band": 3}, *csr))
    assert offsets[0] == 0 and offsets[-1] == 400 and (np.diff(offsets) >= 0).all()
    assert ends.min() >= 0 and ends.max() < 100 and -1 <= values.min() < 0 < values.max() <= 1
    begins = np.repeat(np.arange(100), np.diff(offsets))
    if pattern == "grid":
        assert set(np.abs(ends - begins).tolist()) <= {1, 10}
    if pattern == "banded":
        assert np.abs(ends - begins).max() == 3
    if pattern == "power_law":
        assert np.sort(np.diff(offsets))[-10:].sum() > 200 and np.diff(offsets).argmax() == 0
    edges = draw({"kind": "graph", "pattern": pattern, "form": "edges", "vertices": "n"}, csr[1], csr[1])
    assert edges[0].max() < 100 and (np.diff(edges[0][0]) >= 0).all()


def test_a_picture_has_the_range_of_its_type() -> None:
    bytes_, floats = draw({"kind": "image", "channels": 3}, Tensor("B", 40, 90, type=U8), Tensor("F", 40, 90))
    assert bytes_.dtype == np.uint8 and bytes_.max() > 150 and bytes_.min() < 120
    assert 0 <= floats.min() < floats.max() <= 1 and floats.dtype == F32_TYPE.storage


def test_each_tensor_may_have_its_own() -> None:
    tensors = {"X": {"kind": "normal", "clip": 2}, "T": {"kind": "integers", "high": "e"}}
    x, t = draw({"kind": "each", "tensors": tensors}, Tensor("X", 9, 9), Tensor("T", 9, 1, type=I32))
    assert np.abs(x).max() <= 2 and t.max() < 400
    with pytest.raises(UsageError, match="expected the tensors X, found X, T"):
        draw({"kind": "each", "tensors": tensors}, Tensor("X", 9, 9))
