"""An operator in `assignment/NAME/operator.py`: integers compared exactly, and answers of which several are right."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from grader.base.errors import GraderFault, UsageError
from grader.base.paths import course_root
from grader.checking.check import check_output
from grader.checking.diagnose import diagnose
from grader.course.assignment import Assignment, load_assignment
from grader.course.catalogue import TestcaseFiles, generate, verify
from grader.course.testcase import load_suite
from grader.operators import known_operators, line_at_fault, load_operator
from grader.operators.tolerance import ErrorRule, Limit, errors_of

MODULE = '''
import numpy as np
from grader.operators.base import Violation, WholeOperator, size_of, vector
from grader.operators.number_types import I32, I64


class Order(WholeOperator):
    """P is any order in which X does not fall; S is the sum of X."""

    name = "order"
    dimensions = (size_of("n"),)
    planar_output = True
    independent_rows = False

    def inputs(self, shape):
        return (vector("X", shape[0], I32),)

    def outputs(self, shape):
        return vector("P", shape[0], I32), vector("S", 1, I64)

    def flops(self, shape):
        return shape[0]

    def oracle(self, shape, tensors, rows=slice(None)):
        x = tensors[0]
        return np.argsort(x, axis=0, kind="stable"), x.sum(axis=0, keepdims=True, dtype=np.int64)

    def check(self, shape, inputs, outputs):
        x, (p, s) = inputs[0].ravel(), outputs
        falls = np.diff(x[p.ravel()]) < 0
        if falls.any():
            return Violation("the values fall here", "P", int(falls.argmax()) + 1, 0, int(falls.sum()))
        return None if s[0, 0] == x.sum(dtype=np.int64) else Violation("the sum is wrong")

    def generators(self):
        return {"pairs": lambda shape, random: (np.repeat(random.integers(0, 9, shape[0] // 2 + 1), 2)[: shape[0]],)}


OPERATOR = Order()
'''

SUITE = """\
assignment: lab
operator: order
groups:
  - name: public
    graded: true
    hidden: false
    seed: lab
    distribution: {kind: integers, low: -2000000000, high: 2000000000}
    cases:
      c1: [1000]
  - name: pairs
    graded: false
    hidden: false
    seed: lab
    distribution: {kind: own, name: pairs}
    cases:
      p1: [7]
"""


@pytest.fixture
def course(tmp_path, monkeypatch):
    (tmp_path / "assignment/order").mkdir(parents=True)
    (tmp_path / "assignment/order/operator.py").write_text(MODULE)
    (tmp_path / "lab.yaml").write_text(SUITE)
    monkeypatch.setenv("GRADER_ROOT", str(tmp_path))
    course_root.cache_clear()
    yield tmp_path
    course_root.cache_clear()


def made(course: Path, name: str):
    suite = load_suite(course / "lab.yaml")
    files, case = TestcaseFiles.beside(suite), suite.cases[name]
    generate(case, files, suite.seed(case))
    assert verify(case, files, suite.seed(case), full=True).ok
    return case, files, np.fromfile(files.input(case), "<i4")[1:]


def outcome(case, files, tmp_path: Path, order, total):
    got = tmp_path / "got"
    got.write_bytes(np.asarray(order, "<i4").tobytes() + np.int64(total).tobytes())
    return check_output(case.operator, case.shape, files.expected(case), got, 1.0, files.input(case))


def test_it_is_found_by_its_folder_and_its_values_have_its_types(course):
    assert "order" in known_operators()
    case, files, x = made(course, "c1")
    assert x.min() < -(10**9) and x.max() > 10**9
    expected = files.expected(case).read_bytes()
    assert case.operator.output_bytes(case.shape) == len(expected) == 4 * 1000 + 8
    assert np.frombuffer(expected[-8:], "<i8")[0] == x.sum(dtype=np.int64)


def test_any_right_answer_passes_and_a_wrong_one_is_named_by_its_place(course, tmp_path):
    case, files, x = made(course, "p1")
    backwards = np.lexsort((-np.arange(7), x))
    assert outcome(case, files, tmp_path, backwards, x.sum()).passed
    assert (backwards != np.argsort(x, kind="stable")).any()
    found = outcome(case, files, tmp_path, backwards[::-1], x.sum())
    assert not found.passed and found.reason.startswith("P, element ")
    assert "the values fall here" in found.reason
    assert outcome(case, files, tmp_path, backwards, 1).reason == "the sum is wrong"


def test_a_hostile_output_on_which_the_check_fails_is_wrong_and_no_fault_of_the_grader(course, tmp_path):
    case, files, x = made(course, "p1")
    found = outcome(case, files, tmp_path, [10**9] * 7, x.sum())
    assert not found.passed and "cannot be checked" in found.reason


def test_a_check_that_fails_on_the_right_answer_is_the_operators_fault(course, tmp_path):
    path = course / "assignment/order/operator.py"
    path.write_text(MODULE.replace("np.diff(x[p.ravel()])", "np.diff(x[p.ravel() + 10**6])"))
    case, files, x = made(course, "p1")
    with pytest.raises(GraderFault, match=r"operator\.py: check of order fails on the oracle's own answer"):
        outcome(case, files, tmp_path, range(7), x.sum())


def test_a_generator_of_the_wrong_size_and_a_slip_are_reported_with_their_place(course):
    path = course / "assignment/order/operator.py"
    path.write_text(MODULE.replace("[: shape[0]]", "[:3]"))
    with pytest.raises(UsageError, match="must return arrays with 7 x 1 of X values"):
        made(course, "p1")
    path.write_text(MODULE.replace("OPERATOR = Order()", "OPERATOR = Ordr()"))
    with pytest.raises(NameError) as raised:
        load_operator("order")
    assert line_at_fault(raised.value).rpartition(":")[0] == str(path)


@pytest.mark.parametrize(
    ("rule", "limit"),
    [
        ({"exact": True}, Limit(0.0, ulp=1.0)),
        ({"absolute": 0.5, "relative": 0.01}, Limit(0.5, relative=0.01, ulp=1.0)),
        ({"ulps": 2}, Limit(0.0, ulps=2, ulp=1.0)),
    ],
)
def test_rules_of_errors_become_limits(course, rule, limit):
    operator = load_operator("order")
    assert operator.tolerances((5,), {"P": ErrorRule(**rule), "S": 2.0}) == {"P": limit, "S": 2.0}


def test_a_limit_allows_its_sum() -> None:
    values = np.array([0.0, 1.0, -3.0, 1000.0], np.float32)
    assert Limit(0.0).allowed(values) == 0.0
    assert np.allclose(Limit(0.5, relative=0.01).allowed(values), [0.5, 0.51, 0.53, 10.5])
    assert np.allclose(Limit(0.0, ulps=4, ulp=2.0**-23).allowed(values)[1:], 4 * np.spacing(np.abs(values[1:])))


@pytest.mark.parametrize("rule", [{}, {"exact": True, "absolute": 1}, {"exact": False}, {"relative": 0}, {"ulps": 0.5}])
def test_a_rule_that_says_nothing_is_refused(rule):
    with pytest.raises(ValueError, match="tolerance"):
        Assignment.model_validate({"tolerance": rule})


def test_integers_that_float64_cannot_tell_apart_differ() -> None:
    big = np.array([2**60, 2**60 + 1, -5])
    assert errors_of(big, np.array([2**60 + 1, 2**60 + 1, 5])).tolist() == [1.0, 0.0, 10.0]
    assert errors_of(np.array([3], np.uint8), np.array([250], np.uint8)).tolist() == [247.0]


def test_another_process_gets_a_courses_operator() -> None:
    script = "import pickle, sys; print(pickle.load(sys.stdin.buffer).name)"
    sent = pickle.dumps(load_operator("saxpy"))
    assert subprocess.run([sys.executable, "-c", script], input=sent, stdout=subprocess.PIPE).stdout == b"saxpy\n"


def test_wrong_numbers_of_a_vector_are_not_said_to_be_multiples_of_the_right_ones(tmp_path):
    suite = load_suite(load_assignment("saxpy").testcases_file)
    case, files = suite.cases["s03"], TestcaseFiles(tmp_path)
    generate(case, files, suite.seed(case))
    right = np.fromfile(files.expected(case), "<f4")
    got = tmp_path / "got"
    (right + np.random.default_rng(1).uniform(1, 2, right.size).astype("<f4")).tofile(got)
    check = check_output(case.operator, case.shape, files.expected(case), got, 1e-6)
    said = str(diagnose(check, case.operator, files.input(case), files.expected(case), got) or "")
    assert check.wrong == 1000 and "factor" not in said
