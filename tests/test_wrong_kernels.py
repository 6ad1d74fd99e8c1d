"""The wrong solutions: each says what must become of it, and some are graded here; all by tools.wrong_kernels."""

from __future__ import annotations

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


def test_wrong_solutions_are_refused_and_diagnosed(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["last_tile_dropped", "sum_not_rescaled-one-key"]
    assert main(["--engine", "emulator", "--tests", "s01,s02", *names]) == 0
    assert "refused 2 of 2, diagnosed 2 of 2" in capsys.readouterr().out
