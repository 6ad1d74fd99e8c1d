"""A new operator is one module: two planar outputs of different widths, rows that depend on all rows."""

import sys
from pathlib import Path

import numpy as np
import pytest

import grader.operators
from grader.base.errors import UsageError
from grader.checking.check import check_output
from grader.checking.diagnose import diagnose
from grader.course.catalogue import TestcaseFiles, generate, verify
from grader.course.testcase import load_suite
from grader.operators.returned import mistaken_rows, right_rows

MODULE = '''
import numpy as np
from grader.operators.base import Alternate, Dimension, Operator, Tensor


class Centre(Operator):
    """Y = X minus the mean of its column; norm = the length of each row of Y."""

    name = "centre"
    dimensions = (
        Dimension("G", "at least 1", lambda v: v >= 1),
        Dimension("rows", "at least 2", lambda v: v >= 2),
        Dimension("columns", "at least 1", lambda v: v >= 1),
    )
    unit, units_name = "group", "groups"
    planar_output = True
    independent_rows = False

    def units(self, shape):
        return shape[0]

    def inputs(self, shape):
        return (Tensor("X", shape[1], shape[2]),)

    def outputs(self, shape):
        return (Tensor("Y", shape[1], shape[2]), Tensor("norm", shape[1], 1))

    def flops(self, shape):
        return 4 * shape[0] * shape[1] * shape[2]

    def oracle(self, shape, tensors, rows=slice(None)):
        x = tensors[0].astype(np.float64)
        y = x - x.mean(axis=0)
        return y[rows], np.sqrt((y * y).sum(axis=1, keepdims=True))[rows]

    def alternates(self):
        return (
            Alternate("squared", "It matches the square of the length: take the root.", self._squared, tensor=1),
        )

    def _squared(self, shape, tensors, rows):
        return self.oracle(shape, tensors)[1][rows] ** 2


OPERATOR = Centre()
'''

SUITE = """\
assignment: lab
operator: centre
groups:
  - name: public
    graded: true
    hidden: false
    seed: lab
    distribution: {kind: uniform, low: 0, high: 2}
    cases:
      c1: [3, 10, 7]
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "centre.py").write_text(MODULE)
    (tmp_path / "lab.yaml").write_text(SUITE)
    monkeypatch.setattr(grader.operators, "__path__", [*grader.operators.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "grader.operators.centre", raising=False)
    return tmp_path / "centre.py"


@pytest.fixture
def case(module, tmp_path):
    suite = load_suite(tmp_path / "lab.yaml")
    files = TestcaseFiles.beside(suite)
    case = suite.cases["c1"]
    generate(case, files, suite.seed(case))
    assert verify(case, files, suite.seed(case), full=True).ok
    return case, files, tmp_path / "got"


def check(case, files, got: Path):
    tolerance = {"Y": 1e-3, "norm": 1e-2}
    found = check_output(case.operator, case.shape, files.expected(case), got, tolerance)
    return found, str(diagnose(found, case.operator, files.input(case), files.expected(case), got) or "")


@pytest.mark.parametrize(
    ("right", "slip", "sentence"),
    [
        ("OPERATOR = Centre", "OPERATR = Centre", r"centre\.py must define OPERATOR"),
        (
            'return (Tensor("X", shape[1], shape[2]),)',
            'return Tensor("X", 2, 2)',
            r"centre\.py:\d+: inputs must return",
        ),
        ("return 4 * shape[0]", "return '4' * shape[0]", r"centre\.py:\d+: flops must return a number"),
        (
            "return y[rows], np",
            "return np",
            r"centre\.py:\d+: oracle must return .* \(10, 7\), \(10, 1\); it returns array",
        ),
        ("[1][rows] ** 2", "[1].sum()", r"centre\.py:\d+: _squared must return an array of shape .10, 1. for"),
    ],
)
def test_a_slip_in_it_is_the_instructors_error_with_file_and_line(module, tmp_path, right, slip, sentence):
    module.write_text(MODULE.replace(right, slip))
    with pytest.raises(UsageError, match=sentence):
        suite = load_suite(tmp_path / "lab.yaml")
        drawn = (np.ones((10, 7), np.float32),)
        right_rows(suite.operator, (3, 10, 7), drawn)
        mistaken_rows(suite.operator, suite.operator.alternates()[0], (3, 10, 7), drawn)


def test_its_files_are_made_checked_and_explained(case):
    case, files, got = case
    right = np.fromfile(files.expected(case), dtype="<f4")
    assert len(right) == 3 * 10 * 7 + 3 * 10
    right.tofile(got)
    assert check(case, files, got)[0].passed

    wrong = right.copy()
    wrong[210:] = wrong[210:] ** 2
    wrong.tofile(got)
    found, text = check(case, files, got)
    assert str(found.first.location) == "norm of group 0, row 0, column 0"
    assert text.startswith("norm is wrong, Y right.")
    assert "the square of the length" in text
