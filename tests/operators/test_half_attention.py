"""Attention in half precision and its gradient: files, masks, rounding by their definition, lost precision."""

import math
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.base.errors import UsageError
from grader.checking.check import check_output
from grader.checking.diagnose import diagnose
from grader.checking.gradient import differences
from grader.commands.gradients import chosen_case
from grader.course.assignment import load_assignment
from grader.course.catalogue import TestcaseFiles, ensure, limits
from grader.course.seeds import draw_tensors
from grader.course.testcase import Case, Suite, load_suite
from grader.operators import Alternate, load_operator
from grader.operators.attention.passes import Way, forward, gradients, plain_way
from grader.operators.attention.precision_mistakes import precision_mistakes
from grader.operators.half_attention import OPERATOR as HALF
from grader.operators.number_types import BF16, E4M3, E5M2, F16

FORWARD, BACKWARD = load_assignment("half"), load_assignment("half_backward")
TYPES = (F16, BF16, E4M3, E5M2)


@pytest.fixture(scope="module")
def suites(tmp_path_factory) -> dict[str, tuple[Suite, TestcaseFiles]]:
    made = {}
    for rules in (FORWARD, BACKWARD):
        suite, files = load_suite(rules.testcases_file), TestcaseFiles(tmp_path_factory.mktemp(rules.name))
        ensure(suite.select("public"), suite, files)
        made[rules.name] = suite, files
    return made


# ---- the definition, once more, from the bytes of the files ---------------------------------------------------


def read_input(path: Path, gradient: bool):
    """(header, Q, K, V, dO) with the tensors as [B, H, N, d] in float64."""
    data = path.read_bytes()
    b, hq, hkv, nq, nk, d, kind, causal, window, layout = struct.unpack_from("<10i", data)
    (scale,) = struct.unpack_from("<f", data, 40)
    type_ = TYPES[kind]
    values = type_.decode(np.frombuffer(data, type_.storage, offset=44)).astype(np.float64)
    do = None
    if gradient:
        values, do = np.split(values, [len(values) - b * hq * nq * d])
    q, k, v = split(values, (b, hq, hkv, nq, nk, d, layout))
    if do is not None:
        do = heads_first(do, b, hq, nq, d, layout)
    return (b, hq, hkv, nq, nk, d, kind, causal, window, layout, scale), q, k, v, do


def split(values, shape):
    b, hq, hkv, nq, nk, d, layout = shape
    if layout == 1:
        packed = values.reshape(b, nq, 3, hq, d).transpose(2, 0, 3, 1, 4)
        return packed[0], packed[1], packed[2]
    q, rest = values[: b * hq * nq * d], values[b * hq * nq * d :]
    if layout == 2:
        k, v = rest.reshape(b, nk, 2, hkv, d).transpose(2, 0, 3, 1, 4)
    else:
        k, v = rest.reshape(2, b, hkv, nk, d)
    return heads_first(q, b, hq, nq, d, layout), k, v


def heads_first(values, b, h, n, d, layout):
    return values.reshape(b, h, n, d) if layout == 0 else values.reshape(b, n, h, d).transpose(0, 2, 1, 3)


def attention(header, q, k, v, do=None, rounded=lambda values: values, number=np.float64):
    """O, and dQ, dK, dV if dO is given, head by head and with a mask of all pairs; rounded where the rules say so."""
    b, hq, hkv, nq, nk, _, _, causal, window, _, scale = header
    q, k, v = (t.astype(number) for t in (q, k, v))
    place = np.arange(nq)[:, None] + nk - nq
    keys = np.arange(nk)[None, :]
    hidden = ((keys > place) & bool(causal)) | ((keys < place - window) & (window >= 0))
    o, dq, dk, dv = (np.zeros(t.shape, number) for t in (q, q, k, v))
    for i in np.ndindex(b, hq):
        j = i[0], i[1] * hkv // hq
        s = rounded(rounded(q[i] @ k[j].T) * number(scale))
        s = np.where(hidden, -np.inf, s)
        top = s.max(axis=1, keepdims=True)
        p = np.exp(s - np.where(np.isneginf(top), 0, top))
        total = p.sum(axis=1, keepdims=True)
        p = rounded(p / np.where(total == 0, 1, total))
        o[i] = rounded(p @ v[j])
        if do is not None:
            grad = do[i].astype(number)
            ds = rounded(p * (rounded(grad @ v[j].T) - (grad * o[i]).sum(axis=1, keepdims=True)))
            dq[i] = rounded(ds @ k[j] * number(scale))
            dk[j] += ds.T @ q[i] * number(scale)
            dv[j] += p.T @ grad
    return o, dq, rounded(dk), rounded(dv)


def read_expected(path: Path, header, gradient: bool):
    b, hq, hkv, nq, nk, d, *_, layout, _ = header
    values = np.fromfile(path, "<f4").astype(np.float64)
    o = heads_first(values[: b * hq * nq * d], b, hq, nq, d, layout)
    return (o, *split(values[b * hq * nq * d :], (b, hq, hkv, nq, nk, d, layout))) if gradient else (o,)


@pytest.mark.parametrize("rules", [FORWARD, BACKWARD], ids=lambda rules: rules.name)
def test_expected_outputs_and_the_plain_errors_are_those_of_the_definition(rules, suites) -> None:
    suite, files = suites[rules.name]
    for case in suite.select("public"):
        gradient = rules is BACKWARD
        header, q, k, v, do = read_input(files.input(case), gradient)
        assert header == pytest.approx(case.shape)
        expected = read_expected(files.expected(case), header, gradient)
        right = attention(header, q, k, v, do)[: len(expected)]
        kind = TYPES[header[6]] if header[6] < 2 else F16
        plain = attention(header, q, k, v, do, kind.rounded, np.float32)
        passing: Any = limits(case, files, rules.tolerance)
        names = ("O", "dQ", "dK", "dV")
        for name, got, want, rough, limit in zip(names, expected, right, plain, passing.values(), strict=False):
            assert np.abs(got - want).max() <= 1e-6 * max(1, np.abs(want).max()), (case.name, name)
            error = np.abs(rough - want)
            # Sums in another order may round the other way.
            assert limit.plain.largest == pytest.approx(error.max(), rel=0.1, abs=1e-6), (case.name, name)
            assert limit.plain.rms == pytest.approx(np.sqrt((error**2).mean()), rel=0.02, abs=1e-7), (case.name, name)


def test_values_are_standard_normal_clipped_and_fit_the_type(suites) -> None:
    suite, files = suites["half"]
    for case in suite.select("public"):
        with files.input(case).open("rb") as file:
            values = np.concatenate([t.ravel() for t in case.operator.read_unit(file, case.shape, 0)])
        assert np.abs(values).max() <= 4
        assert np.array_equal(TYPES[case.shape[6]].rounded(values), values)
        if len(values) > 10000:
            assert abs(values.mean()) < 0.04 and abs(values.std() - 1) < 0.03


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({1: 3, 2: 2}, "Hq must be a multiple of Hkv"),
        ({9: 1, 1: 4, 2: 2}, "with layout 1"),
        ({5: 20}, "d must be a multiple of 8"),
        ({6: 4}, "type must be 0"),
        ({10: 0.0}, "scale must be a number above 0"),
        ({8: -2}, "window must be"),
    ],
)
def test_an_illegal_header_is_refused_with_the_rule(change, says) -> None:
    shape = [1, 2, 2, 8, 8, 16, 0, 0, -1, 0, 0.25]
    for place, value in change.items():
        shape[place] = value
    assert says in load_operator("half_attention").problem(shape)


def test_gradients_agree_with_differences() -> None:
    shape = (1, 2, 1, 3, 4, 16, 0, 1, 1, 0, 0.5)
    operator = load_operator("half_attention_gradient")
    random = np.random.default_rng(1)
    tensors = tuple(random.normal(size=(t.rows, t.columns)).astype(np.float32) for t in operator.inputs(shape))
    for by_formula, by_differences in zip(
        operator.oracle(shape, tensors), differences(operator, shape, tensors), strict=True
    ):
        assert np.abs(by_formula - by_differences).max() < 1e-6


# ---- outputs of programs ---------------------------------------------------------------------------------------


def write_output(case: Case, files: TestcaseFiles, path: Path, compute) -> None:
    """The output file of a program that computes `compute(tensors, unit)`, its output tensors in float64."""
    operator, shape = case.operator, case.shape
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with files.input(case).open("rb") as file, np.errstate(all="ignore"):
        for unit in range(operator.units(shape)):
            tensors = operator.read_unit(file, shape, unit)
            for layout, values in zip(operator.output_layouts(shape), compute(tensors, unit), strict=True):
                layout.write(descriptor, unit, values)
    os.close(descriptor)


def f32(p, **changes) -> Way:
    return Way(np.float32, **changes)


HONEST = {
    "float32 inside": lambda p: f32(p),
    "float64 inside": lambda p: Way(),
    "probabilities rounded": lambda p: f32(p, weights=p.output_type.rounded),
    "the plain way itself": plain_way,
    "scores rounded": lambda p: f32(p, scores=p.output_type.rounded),
    "dP and dS rounded": lambda p: f32(p, weights=p.output_type.rounded, slopes=p.output_type.rounded),
}


@pytest.mark.parametrize(("name", "sample"), [("half_backward", "s04"), ("half_backward", "s05"), ("backward", "s01")])
def test_the_outputs_of_a_unit_with_some_other_queries_are_those_of_the_oracle(name, sample) -> None:
    suite = load_suite(load_assignment(name).testcases_file)
    case = suite.cases[sample]
    operator, shape, random = case.operator, case.shape, np.random.default_rng(1)
    tensors = draw_tensors(operator, shape, case.distribution, suite.seed(case), case.identity, 0)
    outputs = [each.astype(np.float32) for each in operator.oracle(shape, tensors)]
    rows = np.array([3, 17, 19])
    changed = operator.with_other_rows(
        shape, tensors, outputs, rows, lambda count: random.normal(size=count).astype(np.float32)
    )
    assert changed is not None
    before = [np.flatnonzero((old != new).any(axis=1)).tolist() for old, new in zip(tensors, changed[0], strict=True)]
    assert before == [rows.tolist(), [], [], rows.tolist()]
    for found, right in zip(changed[1], operator.oracle(shape, changed[0]), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("way", HONEST.values(), ids=HONEST)
@pytest.mark.parametrize("rules", [FORWARD, BACKWARD], ids=lambda rules: rules.name)
def test_honest_rounding_passes(rules, way, suites, tmp_path) -> None:
    suite, files = suites[rules.name]
    for case in suite.select("public"):
        p = HALF.numbers(case.shape)

        def compute(tensors, unit, p=p):
            if rules is BACKWARD:
                return gradients(p, tensors, way(p))
            return (forward(p, tensors, slice(None), way(p)),)

        write_output(case, files, tmp_path / "out", compute)
        found = check_output(
            case.operator, case.shape, files.expected(case), tmp_path / "out", limits(case, files, rules.tolerance)
        )
        assert found.passed, (case.name, found.reason)


def with_mistake(case: Case, files: TestcaseFiles, alternate: Alternate):
    operator, shape = case.operator, case.shape

    def compute(tensors, unit):
        right = list(operator.oracle(shape, tensors))
        right[alternate.tensor] = alternate.compute(shape, tensors, slice(None))
        return right

    return compute


PAIRS = [(FORWARD, each) for each in precision_mistakes(HALF.numbers)]


@pytest.mark.parametrize(("rules", "alternate"), PAIRS, ids=lambda each: each.name)
def test_a_loss_of_precision_is_refused_and_named_on_most_samples_where_it_can_be_seen(
    rules, alternate, suites, tmp_path
) -> None:
    suite, files = suites[rules.name]
    refused = named = 0
    for case in suite.select("public"):
        if alternate.unless(case.shape):
            continue
        write_output(case, files, tmp_path / "out", with_mistake(case, files, alternate))
        tolerance = limits(case, files, rules.tolerance)
        found = check_output(case.operator, case.shape, files.expected(case), tmp_path / "out", tolerance)
        if not found.passed:
            refused += 1
            said = diagnose(found, case.operator, files.input(case), files.expected(case), tmp_path / "out")
            named += said is not None and same_mistake(str(said), alternate.sentence.removesuffix("."))
    assert refused and 2 * named >= refused, (alternate.name, refused, named)


def same_mistake(said: str, sentence: str) -> bool:
    """Tiles of several sizes can give the same output, so their number does not count."""
    return without_numbers(sentence) in without_numbers(said)


def without_numbers(text: str) -> str:
    return "".join(letter for letter in text.replace("a tile of ", "").replace(" keys", " key") if not letter.isdigit())


def test_a_root_mean_square_alone_can_fail_and_says_so(suites, tmp_path) -> None:
    suite, files = suites["half"]
    case = suite.cases["s08"]
    tolerance = limits(case, files, FORWARD.tolerance)
    shift = 0.99 * tolerance["O"].largest  # type: ignore[index, union-attr]

    write_output(
        case, files, tmp_path / "out", lambda tensors, unit: [case.operator.oracle(case.shape, tensors)[0] + shift]
    )
    found = check_output(case.operator, case.shape, files.expected(case), tmp_path / "out", tolerance)
    assert found.kind in ("precision", "values")
    assert "root mean square" in found.reason and "that of a plain implementation" in found.reason


def test_one_value_that_rounding_took_too_far_looks_like_lost_precision(suites, tmp_path) -> None:
    """Not like a row that is the right one times 1."""
    suite, files = suites["half_backward"]
    case = suite.cases["s04"]
    tolerance: Any = limits(case, files, BACKWARD.tolerance)

    def compute(tensors, unit):
        right = case.operator.oracle(case.shape, tensors)
        far = np.argmax(np.abs(right[2][19]))
        right[2][19, far] += 1.4 * tolerance["dK"].largest * np.sign(right[2][19, far])
        return right

    write_output(case, files, tmp_path / "out", compute)
    found = check_output(case.operator, case.shape, files.expected(case), tmp_path / "out", tolerance)
    said = diagnose(found, case.operator, files.input(case), files.expected(case), tmp_path / "out")
    assert said is not None and "lost precision" in str(said)


def test_nan_never_passes(suites, tmp_path) -> None:
    suite, files = suites["half"]
    case = suite.cases["s02"]

    def compute(tensors, unit):
        (right,) = case.operator.oracle(case.shape, tensors)
        right[0, 0] = math.nan
        return (right,)

    write_output(case, files, tmp_path / "out", compute)
    tolerance = limits(case, files, FORWARD.tolerance)
    found = check_output(case.operator, case.shape, files.expected(case), tmp_path / "out", tolerance)
    assert not found.passed and found.nan == 2


# ---- the gradient check for students ---------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "chosen"), [("half_backward", "s05"), ("backward", "s01")])
def test_the_gradient_check_takes_a_sample_of_which_every_entry_can_be_moved(name, chosen) -> None:
    suite = load_suite(load_assignment(name).testcases_file)
    assert chosen_case(name, suite.select("public")).name == chosen
    with pytest.raises(UsageError, match="takes too long: choose a smaller sample"):
        chosen_case(name, suite.select("t15"))


def test_the_gradient_check_is_for_gradients() -> None:
    suite = load_suite(FORWARD.testcases_file)
    with pytest.raises(UsageError, match="half asks for no gradients"):
        chosen_case("half", suite.select("public"))
