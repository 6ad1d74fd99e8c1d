"""Probes: what the output of a wrong program shows on the inputs that an operator chooses. The programs are numpy's."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from grader.checking.probes.reading import examine, read_probe, write_probe
from grader.findings import Finding, claimed, sentence
from grader.operators import Operator, load_operator
from grader.operators.attention.operator import Attention
from grader.operators.attention.problem import seen
from grader.operators.base import Shape
from grader.operators.probes import Probe

F64 = NDArray[np.float64]
Program = Callable[[Shape, list[tuple[F64, ...]]], list[tuple[F64, ...]]]
"""From the inputs of all units to the outputs of all units."""
HW4, HEADS, GRADIENT = (cast(Attention, load_operator(f"attention_{n}")) for n in ("forward", "heads", "gradient"))


@pytest.fixture
def probed(tmp_path: Path) -> Callable[[Operator, Shape, Program], tuple[Finding, ...]]:
    """Runs a program on the probes for a shape, and returns what they show."""

    def run(operator: Operator, shape: Shape, program: Program) -> tuple[Finding, ...]:
        def show(probe: Probe) -> list[Finding]:
            assert not operator.problem(probe.shape)
            source, out = tmp_path / "in", tmp_path / "out"
            write_probe(operator, probe, source)
            assert operator.read_header(source) == operator.canonical(probe.shape)
            with source.open("rb") as file:
                units = [operator.read_unit(file, probe.shape, unit) for unit in range(operator.units(probe.shape))]
            with np.errstate(all="ignore"):
                outputs = program(probe.shape, [tuple(t.astype(np.float64) for t in tensors) for tensors in units])
            with out.open("w+b") as file:
                file.truncate(operator.output_bytes(probe.shape))
                for unit, tensors in enumerate(outputs):
                    for layout, values in zip(operator.output_layouts(probe.shape), tensors, strict=True):
                        layout.write(file.fileno(), unit, layout.type.rounded(values.astype(np.float32)))
            return read_probe(operator, probe, out)

        return examine(map(show, operator.probes(shape)))

    return run


def attention(q: F64, k: F64, v: F64, scale: float | None = None, sees: Any = True) -> F64:
    scores = np.where(sees, q @ k.T * (q.shape[1] ** -0.5 if scale is None else scale), -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True) @ v)


def online(q: F64, k: F64, v: F64, tile: int, *, o: bool = True, total: bool = True) -> F64:
    """An online softmax that multiplies O, or the total, by exp(m_old − m_new) or not."""
    top, sum, out = np.full((len(q), 1), -np.inf), np.zeros((len(q), 1)), np.zeros(q.shape)
    for first in range(0, len(k), tile):
        part = q @ k[first : first + tile].T * q.shape[1] ** -0.5
        new = np.maximum(top, part.max(axis=1, keepdims=True))
        weights, shrink = np.exp(part - new), np.exp(top - new)
        sum = sum * (shrink if total else 1) + weights.sum(axis=1, keepdims=True)
        out = out * (shrink if o else 1) + weights @ v[first : first + tile]
        top = new
    return out / sum


def each(compute: Callable[..., F64]) -> Program:
    return lambda shape, units: [(compute(*tensors),) for tensors in units]


def exponentials(q: F64, k: F64) -> F64:
    scores = q @ k.T * q.shape[1] ** -0.5
    return np.asarray(np.exp(scores - scores.max(axis=1, keepdims=True)))


def without(keys: Any) -> Program:
    return each(lambda q, k, v: attention(q, np.delete(k, keys, axis=0), np.delete(v, keys, axis=0)))


FORWARD: dict[str, tuple[Program, str, dict[str, Any]]] = {
    "no scale": (each(lambda q, k, v: attention(q, k, v, 1.0)), "scale_wrong", {"meaning": "no_scale"}),
    "scale 1/d": (each(lambda q, k, v: attention(q, k, v, 1 / q.shape[1])), "scale_wrong", {"meaning": "scale_twice"}),
    "divided by the scale": (
        each(lambda q, k, v: attention(q, k, v, q.shape[1] ** 0.5)),
        "scale_wrong",
        {"meaning": "inverse"},
    ),
    "base two": (
        each(lambda q, k, v: attention(q, k, v, np.log(2) * q.shape[1] ** -0.5)),
        "scale_wrong",
        {"meaning": "base_two"},
    ),
    "sign": (each(lambda q, k, v: attention(-q, k, v)), "scale_wrong", {"meaning": "negative"}),
    "scale 0": (each(lambda q, k, v: attention(0 * q, k, v)), "scale_wrong", {"meaning": "unused"}),
    "other scale": (each(lambda q, k, v: attention(q, k, v, 0.3)), "scale_wrong", {"slope": 0.3}),
    "last key of each tile": (
        without(slice(31, None, 32)),
        "keys_unused",
        {"keys": "31, 63, 95, 127", "tile": 32, "count": 4},
    ),
    "first tile": (without(slice(0, 32)), "keys_unused", {"keys": "0–31"}),
    "half": (without(slice(64, None)), "keys_unused", {"keys": "64–127"}),
    "causal": (
        each(lambda q, k, v: attention(q, k, v, sees=np.tri(len(q), dtype=bool))),
        "mask_wrong",
        {"how": "causal", "found": "0–63"},
    ),
    "half of the columns": (
        each(lambda q, k, v: attention(q[:, :16], k[:, :16], v, q.shape[1] ** -0.5)),
        "columns_unused",
        {"columns": "16–31"},
    ),
    "V of the first tile": (
        each(lambda q, k, v: attention(q, k, np.tile(v[:32], (len(v) // 32, 1)))),
        "values_of_other_keys",
        {"key": 32, "other": 0, "tile": 32},
    ),
    "V of the next key": (
        each(lambda q, k, v: attention(q, k, np.roll(v, -1, axis=0))),
        "values_of_other_keys",
        {"key": 0, "other": 1},
    ),
    "O not rescaled": (each(lambda q, k, v: online(q, k, v, 32, o=False)), "not_rescaled", {"tile": 32}),
    "O not rescaled by key": (each(lambda q, k, v: online(q, k, v, 1, o=False)), "not_rescaled", {"tile": 1}),
    "l not rescaled": (each(lambda q, k, v: online(q, k, v, 64, total=False)), "not_rescaled", {"tile": 64}),
    "nothing rescaled": (each(lambda q, k, v: online(q, k, v, 16, o=False, total=False)), "not_rescaled", {"tile": 16}),
    "not normalised": (each(lambda q, k, v: exponentials(q, k) @ v), "rows_not_normalised", {"how": "undivided"}),
}


@pytest.mark.parametrize("name", FORWARD)
def test_the_mistake_is_read_off(probed: Any, name: str) -> None:
    program, kind, facts = FORWARD[name]
    found = probed(HW4, (2, 128, 32), program)
    first = next(finding for finding in found if finding.kind == kind)
    assert {**first.words, **first.values}.items() >= facts.items()
    assert "?" not in sentence(first).replace("division?", "")
    assert {finding.kind for finding in found} == {kind}


def test_which_sum_was_not_rescaled(probed: Any) -> None:
    arrays = {
        name: probed(HW4, (2, 128, 32), FORWARD[name][0])[0].array
        for name in ("O not rescaled", "l not rescaled", "nothing rescaled")
    }
    assert list(arrays.values()) == ["O", "l", "O and l"]


RIGHT = {
    "hw4": (HW4, (3, 128, 64)),
    "hw4, long": (HW4, (2, 2048, 32)),
    "heads": (HEADS, (2, 3, 77, 32, 0, 0.2)),
    "causal": (HEADS, (1, 4, 300, 64, 1, 0.125)),
    "gradient": (GRADIENT, (2, 128, 32)),
    **{
        f"half, {number}": (
            load_operator("half_attention"),
            (2, 8, 2, 200, 200, 64, kind, causal, window, layout, 0.125),
        )
        for number, (kind, causal, window, layout) in enumerate(
            ((0, 1, -1, 0), (1, 0, 16, 2), (2, 0, -1, 2), (3, 0, -1, 0))
        )
    },
    "half, gradient": (load_operator("half_attention_gradient"), (2, 4, 2, 100, 120, 64, 1, 1, -1, 2, 0.125)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_is_not_accused(probed: Any, name: str) -> None:
    operator, shape = RIGHT[name]

    def right(shape: Shape, units: list[tuple[F64, ...]]) -> list[tuple[F64, ...]]:
        return [operator.oracle(shape, tensors) for tensors in units]

    assert operator.probes(shape) and not probed(operator, shape, right)


def test_values_of_a_unit_that_was_not_written_say_nothing(probed: Any) -> None:
    def first(shape: Shape, units: list[tuple[F64, ...]]) -> list[tuple[F64, ...]]:
        return [(attention(q, k, v) * (unit == 0),) for unit, (q, k, v) in enumerate(units)]

    assert not probed(HW4, (4, 128, 32), first)


def test_a_result_in_the_place_of_another_claims_nothing_of_its_inputs(probed: Any) -> None:
    def late(shape: Shape, units: list[tuple[F64, ...]]) -> list[tuple[F64, ...]]:
        return [(attention(*units[max(0, unit - 1)]),) for unit in range(len(units))]  # type: ignore[arg-type]

    assert claimed([probed(HW4, (4, 128, 32), late)]) is None


def test_noise_says_nothing(probed: Any) -> None:
    noise = np.random.default_rng(1)
    assert not probed(HW4, (2, 128, 32), each(lambda q, k, v: noise.normal(size=q.shape)))


@pytest.mark.parametrize(("late", "last"), [(1, "0–51"), (-1, "0–49")])
def test_a_mask_that_is_off_by_one(probed: Any, late: int, last: str) -> None:
    def masked(shape: Shape, units: list[tuple[F64, ...]]) -> list[tuple[F64, ...]]:
        p = HEADS.numbers(shape)
        end = seen(p, np.arange(p.queries))[1] + late
        return [(attention(q, k, v, p.scale, np.arange(p.keys) < end[:, None]),) for q, k, v in units]

    found = probed(HEADS, (1, 2, 100, 32, 1, 0.2), masked)
    assert found[0].kind == "mask_wrong"
    words = found[0].words
    query = found[0].values["query"]
    assert words["expected"] == f"0–{query}" and words["found"] == f"0–{query + late}"


def test_a_gradient_without_d_and_one_without_some_queries(probed: Any) -> None:
    def mistaken(*, subtracts: bool, first: int) -> Program:
        def program(shape: Shape, units: list[tuple[F64, ...]]) -> list[tuple[F64, ...]]:
            scale = HW4.numbers(shape).scale
            outputs: list[tuple[F64, ...]] = []
            for q, k, v, do in units:
                p = exponentials(q, k)
                p /= p.sum(axis=1, keepdims=True)
                dp, o = do @ v.T, p @ v
                ds = p * (dp - (do * o).sum(axis=1, keepdims=True) * subtracts)
                outputs.append((o, ds @ k * scale, ds.T @ q * scale, p[first:].T @ do[first:]))
            return outputs

        return program

    without_d = probed(GRADIENT, (1, 128, 32), mistaken(subtracts=False, first=0))
    assert {(finding.kind, finding.array) for finding in without_d} == {
        ("row_sum_not_subtracted", "dQ"),
        ("row_sum_not_subtracted", "dK"),
    }
    late = probed(GRADIENT, (1, 128, 32), mistaken(subtracts=True, first=32))
    assert [(each.kind, each.array, each.words["numbers"]) for each in late] == [("terms_missing", "dV", "0–31")]


def test_weights_that_are_too_small_are_not_taken_for_none(probed: Any) -> None:
    def tiny(q: F64, k: F64, v: F64) -> F64:
        return attention(q, k, v) * np.where(np.arange(len(q)) % 3, 1e-4, 1e-12)[:, None]

    found = probed(HW4, (2, 128, 32), each(tiny))
    assert {finding.kind for finding in found} == {"rows_not_normalised"}


def test_keys_without_weight_are_named_only_where_the_other_weights_are_right(probed: Any) -> None:
    def misread(q: F64, k: F64, v: F64) -> F64:
        return attention(np.where(np.abs(q) < 1, 200 * q, q**3), k[::-1] ** 5, v)

    assert "keys_unused" not in [each.kind for each in probed(HW4, (2, 128, 32), each(misread))]


def test_a_cut_output_says_nothing(tmp_path: Path) -> None:
    probe = HW4.probes((2, 128, 32))[0]
    (tmp_path / "out").write_bytes(bytes(100))
    assert read_probe(HW4, probe, tmp_path / "out") == []
    assert read_probe(HW4, replace(probe, readings=()), tmp_path / "missing") == []
