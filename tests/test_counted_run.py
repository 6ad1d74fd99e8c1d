"""A profile on the emulator counts a part of a large testcase, and says which; one that was cut off says what ran."""

from dataclasses import replace
from pathlib import Path

import pytest

from grader.base.progress import Progress
from grader.commands.choice import Choice
from grader.commands.inspection import profile_program
from grader.course.assignment import Assignment
from grader.course.coherence import suite_of
from grader.profiling import counted_run as counting
from grader.programs.build import build
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.submission import read_submission
from grader.programs.toolkit import find_toolkit
from grader.report import profile as profile_report
from tests.support.course import PROGRAMS, ROOT

ENGINE = replace(EmulatorEngine(find_toolkit(), "sm_80"), count=True)


def test_one_batch_of_many_is_counted_where_more_would_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "BUDGET_S", 0.0)
    source = ROOT / "reference/hw4/naive.cu"
    study = profile_program(source, Choice("hw4", "s03", "emulator"), launches=1)
    assert study.notes[0].startswith(
        "Counted on 1 of 32 batches of the same size: the whole testcase has about 32 times"
    )
    assert "Counted on 1 of 32 batches" in profile_report.render(study)
    assert all(kernel.launches > 0 for kernel in study.kernels)


def test_all_batches_are_counted_where_that_is_quick(hw4: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "BUDGET_S", 1e6)
    done = _counted(ROOT / "reference/hw4/naive.cu", "s02", hw4)
    assert (done.units, done.whole, done.cut_off) == (3, 3, "")


def test_a_run_that_was_cut_off_says_what_share_ran(hw4: Assignment) -> None:
    impatient = hw4.model_copy(update={"limits": hw4.limits.model_copy(update={"emulator_wall_s": 1.5})})
    done = _counted(PROGRAMS / "kernel_hang.cu", "s01", impatient)
    assert done.units == 1
    assert "in launch 1 (spin), of which 1 of 1 blocks had begun (100.0%)" in done.cut_off


def _counted(source: Path, test: str, rules: Assignment) -> counting.CountedRun:
    built = build(read_submission(source, rules), rules, ENGINE)
    assert built.program is not None, built.log
    case = suite_of(rules).cases[test]
    return counting.counted_run(ENGINE, built.program, case, rules.limits, Progress(), "hw4")
