"""The wrong solutions: each says what must become of it, and one is graded here; all by tools.wrong_kernels."""

import pytest

from grader.course.testcase import load_suite
from tests.support.course import ROOT
from tools.wrong_kernels import main, read_wrong_kernels

KERNELS = read_wrong_kernels(ROOT / "reference/hw4/wrong")


def test_each_says_what_becomes_of_it_and_is_wrong_somewhere() -> None:
    suite = load_suite(ROOT / "testcases/hw4.yaml")
    for kernel in KERNELS:
        assert kernel.words
        assert any(kernel.is_wrong_on(case, suite.operator) for case in suite.cases.values()), kernel.name


def test_a_wrong_solution_is_refused_and_diagnosed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--engine", "emulator", "--tests", "s01", "sum_not_rescaled-one-key"]) == 0
    assert "refused 1 of 1, diagnosed 1 of 1" in capsys.readouterr().out
