"""A student's own check of samples is built in less time; what is graded is built as ever."""

import pytest

from grader.commands.choice import Choice
from grader.programs.engine.emulator import EmulatorEngine
from tests.support.course import ROOT


@pytest.mark.parametrize(
    ("tests", "quick", "short"),
    [(None, True, True), ("s01,s02", True, True), ("s01,t01", True, False), (None, False, False)],
)
def test_only_a_check_of_samples_is_built_for_short_runs(tests: str | None, quick: bool, short: bool) -> None:
    setup = Choice("hw4", tests, "emulator").setup(ROOT / "reference/hw4/naive.cu", quick=quick)
    assert isinstance(setup.engine, EmulatorEngine) and setup.engine.short_runs is short
