"""assignment.yaml and testcases/NAME.yaml that are each right in themselves and do not fit each other."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.base.errors import UsageError
from grader.base.paths import course_root
from grader.course.assignment import load_assignment
from grader.course.coherence import suite_of
from tests.support.course import ROOT

RULES, CASES = "assignment/hw4/assignment.yaml", "testcases/hw4.yaml"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A course of its own with hw4 in it."""
    for name in (RULES, CASES, "reference/hw4/seq_flash_attention.c", "reference/hw4/flash2.cu"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setenv("GRADER_ROOT", str(tmp_path))
    course_root.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    course_root.cache_clear()


@pytest.mark.parametrize(
    ("file", "right", "wrong", "says"),
    [
        (RULES, "t21..t30, zero_at", "t21..t31, zero_at", "line 69: rubric[1].tests: hw4 has no testcase 't31'"),
        (RULES, "tests: t23", "tests: s01", "line 72: rubric[2].tests: s01 is not graded"),
        (RULES, "t01..t10, seconds", "t10..t01, seconds", "line 22: limits.wall_s[0].tests: The range t10..t01 runs"),
        (RULES, "fresh_from: t01..t10", "fresh_from: x", "line 33: hidden_inputs.fresh_from: hw4 has no testcase 'x'"),
        (RULES, "per_failure: 3", "per_failure: 1", "rubric[0].per_failure: with all 30 graded testcases failed 30 of"),
        (RULES, "seq_flash_attention", "seq_attention", "baseline.source: there is no file 'seq_attention.c'"),
        (RULES, "- sm_efficiency", "- sm_eficiency", "line 77: metrics[1]: metrics: there is no metric 'sm_eficiency'"),
        (RULES, "tolerance: 5.0e-3", "tolerance: {dQ: 1e-3}", "line 18: tolerance.dQ: expected a number for each of O"),
        (CASES, "assignment: hw4", "assignment: hw5", "line 5: assignment: expected 'hw4', as in assignment.yaml"),
        (CASES, "graded: true", "graded: false", "groups: no group is graded"),
        (CASES, "t02: [160", "t01: [160", "line 16, column 7: the key 't01' is already on line 15"),
        (CASES, "[320, 128, 32]", "[.nan, 128, 32]", "line 15: groups[0].cases.t01"),
        (CASES, "high: 3}", "high: 1e39}", "line 13: groups[0].distribution.high"),
    ],
)
def test_what_does_not_fit_is_named_by_file_line_and_key(
    course: Path, file: str, right: str, wrong: str, says: str
) -> None:
    text = (course / file).read_text()
    assert right in text
    (course / file).write_text(text.replace(right, wrong, 1))
    with pytest.raises(UsageError) as caught:
        suite_of(load_assignment("hw4"))
    assert file in str(caught.value) and says in str(caught.value)


def test_testcases_that_are_missing_are_told(course: Path) -> None:
    (course / CASES).unlink()
    with pytest.raises(UsageError, match=r"hw4\.yaml is missing: it defines the testcases of the assignment hw4"):
        suite_of(load_assignment("hw4"))


def test_every_assignment_of_the_course_fits() -> None:
    assert suite_of(load_assignment("hw4")).assignment == "hw4"
    assert len(suite_of(load_assignment("backward")).graded) > 0
