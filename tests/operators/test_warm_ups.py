"""Matrix product and softmax of rows: oracles against the definition, sizes, tolerances, places."""

import numpy as np
import pytest

from grader.checking.check import check_output
from grader.checking.diagnose import diagnose
from grader.course.assignment import load_assignment
from grader.course.catalogue import TestcaseFiles, generate
from grader.course.seeds import public_seed
from grader.course.testcase import load_suite
from grader.operators import load_operator
from grader.operators.tolerance import limit_of

PRODUCT = load_operator("matrix_product")
SOFTMAX = load_operator("row_softmax")


def matrices(m, n, k, seed=1):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (m, k)).astype(np.float32), rng.uniform(-1, 1, (k, n)).astype(np.float32)


def matrix(rows, columns, seed=1):
    return (np.random.default_rng(seed).uniform(80, 100, (rows, columns)).astype(np.float32),)


def test_the_product_is_a_sum_of_products():
    a, b = matrices(3, 4, 5)
    (c,) = PRODUCT.oracle((3, 4, 5), (a, b))
    for row in range(3):
        for column in range(4):
            assert c[row, column] == pytest.approx(
                sum(float(a[row, k]) * float(b[k, column]) for k in range(5)), rel=1e-15
            )


def test_some_rows_of_the_product_are_those_rows():
    tensors = matrices(20, 30, 40)
    rows = np.array([19, 0, 7])
    (some,), (every,) = PRODUCT.oracle((20, 30, 40), tensors, rows), PRODUCT.oracle((20, 30, 40), tensors)
    assert np.allclose(some, every[rows], rtol=0, atol=1e-13)  # BLAS may sum in another order


def test_sizes_and_costs_of_a_product():
    assert PRODUCT.input_bytes((2, 3, 5)) == 12 + 4 * (2 * 5 + 5 * 3)
    assert PRODUCT.output_bytes((2, 3, 5)) == 4 * 2 * 3
    assert PRODUCT.flops((2, 3, 5)) == 2 * 2 * 3 * 5
    assert str(PRODUCT.locate((2, 3, 5), 4 * 4)) == "row 1, column 1"


def test_the_products_tolerance_grows_with_the_number_of_terms():
    assert PRODUCT.tolerances((8, 8, 100), 1e-6) == {"C": pytest.approx(1e-4)}


@pytest.mark.parametrize("k", [64, 4096])
def test_plain_float32_sums_stay_well_within_the_products_tolerance(k):
    a, b = matrices(16, 16, k)
    got = np.zeros((16, 16), np.float32)
    for term in range(k):  # one after the other, as a kernel's loop does
        got += a[:, term : term + 1] * b[term]
    error = np.abs(got - PRODUCT.oracle((16, 16, k), (a, b))[0]).max()
    assert error < PRODUCT.tolerances((16, 16, k), 1e-6)["C"] / 5  # type: ignore[operator]


def test_the_softmax_of_a_row_sums_to_one_and_keeps_ratios():
    (x,) = matrix(5, 77)
    (y,) = SOFTMAX.oracle((5, 77), (x,))
    assert np.allclose(y.sum(axis=1), 1, rtol=1e-14)
    assert np.allclose(np.log(y[:, 1:] / y[:, :-1]), np.diff(x.astype(np.float64), axis=1), atol=1e-12)


def test_the_softmaxs_tolerance_is_relative_to_a_rows_average():
    assert SOFTMAX.tolerances((3, 1000), 5e-3) == {"Y": pytest.approx(5e-6)}


def test_zeros_never_pass_for_a_softmax_however_long_the_row():
    shape = (1, 1 << 20)
    (y,) = SOFTMAX.oracle(shape, matrix(*shape))
    assert (y > SOFTMAX.tolerances(shape, 5e-3)["Y"]).mean() > 0.2  # type: ignore[operator]


def test_a_matrix_too_large_for_the_oracle_is_refused_with_the_limit():
    assert "at most 67,108,864" in SOFTMAX.problem((1 << 20, 1 << 10))


def diagnosed(tmp_path, name, wrong):
    """What is said of the output `wrong(x, y)` of a softmax whose right output is y."""
    suite = load_suite(load_assignment("softmax").testcases_file)
    case, files = suite.cases[name], TestcaseFiles(tmp_path)
    generate(case, files, public_seed("a test"))
    rows = int(case.shape[0])
    x = np.fromfile(files.input(case), np.float32, offset=8).reshape(rows, -1)
    y = np.fromfile(files.expected(case), np.float32).reshape(rows, -1)
    with np.errstate(over="ignore"):
        wrong(x.astype(np.float64), y).astype(np.float32).tofile(tmp_path / "got")
    check = check_output(SOFTMAX, case.shape, files.expected(case), tmp_path / "got", 5e-3)
    return diagnose(check, SOFTMAX, files.input(case), files.expected(case), tmp_path / "got")


def of_half_the_rows(x, y):
    return np.where(np.arange(len(y))[:, None] < len(y) // 2, y, 0)


def test_rows_at_the_end_that_were_not_written_are_named(tmp_path):
    found = diagnosed(tmp_path, "s02", of_half_the_rows)
    assert "exactly 0" in str(found) and "rows" in found.where


def test_a_single_value_explains_nothing(tmp_path):
    assert diagnosed(tmp_path, "s01", lambda x, y: y * 3) is None


def test_softmax_notices_a_sum_that_was_guessed_from_the_distribution():
    """The longest testcase of few rows, and one million terms added one after another in float32, which pass."""
    rules, suite = load_assignment("softmax"), load_suite(load_assignment("softmax").testcases_file)
    shape = suite.cases["t04"].shape
    limit = limit_of(SOFTMAX.tolerances(shape, rules.tolerance), "Y")
    for seed in range(3):
        (x,) = matrix(shape[0], shape[1], seed)
        (right,) = SOFTMAX.oracle(shape, (x,))
        weights = np.exp(x - x.max(1, keepdims=True))
        added = weights / np.cumsum(weights, axis=1, dtype=np.float32)[:, -1:]
        guessed = np.exp(x.astype(np.float64) - 100) * 20 / shape[1]
        assert (np.abs(added - right) <= limit.allowed(right)).all()
        assert not (np.abs(guessed - right) <= limit.allowed(right)).all()
