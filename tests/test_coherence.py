"""assignment.yaml and testcases/NAME.yaml that are each right in themselves and do not fit each other."""

from pathlib import Path

import pytest

from grader.base.errors import UsageError
from grader.course.assignment import load_assignment
from grader.course.coherence import suite_of

RULES, CASES = "assignment/attention/assignment.yaml", "testcases/attention.yaml"


@pytest.mark.parametrize(
    ("file", "right", "wrong", "says"),
    [
        (RULES, "t03..t04, zero_at", "t03..t05, zero_at", "LINE: rubric[1].tests: attention has no testcase 't05'"),
        (RULES, "tests: t03, full", "tests: s01, full", "LINE: rubric[2].tests: s01 is not graded"),
        (RULES, "t01..t02, seconds", "t02..t01, seconds", "LINE: limits.wall_s[0].tests: The range t02..t01 runs"),
        (
            RULES,
            "emulator_wall_s: 60",
            "emulator_cpu_s: [{tests: x, seconds: 9}]",
            "emulator_cpu_s[0].tests: attention",
        ),
        (RULES, "fresh_from: t01..t02", "fresh_from: x", "LINE: hidden_inputs.fresh_from: attention has no testcase"),
        (RULES, "per_failure: 15", "per_failure: 10", "rubric[0].per_failure: with all 4 graded testcases failed, 20"),
        (RULES, "sequential.c", "sequence.c", "baseline.source: there is no file 'sequence.c'"),
        (RULES, "- sm_efficiency", "- sm_eficiency", "LINE: metrics[1]: metrics: there is no metric 'sm_eficiency'"),
        (RULES, "tolerance: 5.0e-3", "tolerance: {dQ: 1e-3}", "LINE: tolerance.dQ: expected a number for each of O"),
        (CASES, "assignment: attention", "assignment: x", "LINE: assignment: expected 'attention', as in"),
        (CASES, "graded: true", "graded: false", "groups: no group is graded"),
        (CASES, "t02: [3", "t01: [3", "LINE, column 7: the key 't01' is already on line"),
        (CASES, "t01: [2, 128", "t01: [.nan, 128", "LINE: groups[0].cases.t01"),
        (CASES, "high: 3}", "high: 1e39}", "LINE: groups[0].distribution.high"),
    ],
)
def test_what_does_not_fit_is_named_by_file_line_and_key(
    course: Path, file: str, right: str, wrong: str, says: str
) -> None:
    text = (course / file).read_text()
    before, found, after = text.partition(right)
    assert found
    (course / file).write_text(before + wrong + after)
    with pytest.raises(UsageError) as caught:
        suite_of(load_assignment("attention"))
    line = f"line {before.count(chr(10)) + 1}"
    assert file in str(caught.value) and says.replace("LINE", line) in str(caught.value)


def test_testcases_that_are_missing_are_told(course: Path) -> None:
    (course / CASES).unlink()
    with pytest.raises(UsageError, match=r"attention\.yaml is missing: it defines the testcases of the assignment"):
        suite_of(load_assignment("attention"))
