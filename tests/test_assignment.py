"""assignment.yaml: what is right is read, what is wrong is named."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.base.errors import UsageError
from grader.course.assignment import load_assignment, load_assignment_file
from tests.support.course import ROOT

Write = Callable[[str, str], Path]


YAML = (ROOT / "tests/course/assignment/attention/assignment.yaml").read_text()


def test_the_handout_of_hw4_promises_what_its_yaml_holds() -> None:
    hw4 = load_assignment("hw4")
    assert hw4.tolerance == 5e-3
    assert hw4.max_points == 100
    assert (hw4.rubric[0].part, hw4.rubric[0].points) == ("correctness", 60)


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("tolerance: 5.0e-3", "tolerence: 5.0e-3", ["tolerence", "did you mean 'tolerance'", "rubric"]),
        ("per_failure: 15", "per_fail: 15", ["rubric[0].per_fail", "per_failure"]),
        ("points: 60", "points: sixty", ["rubric[0].points", "'sixty'"]),
        ("limit_s: 120", "limit_s: -1", ["build.limit_s", "greater than 0", "-1"]),
        ("kind: manual", "kind: manuel", ["rubric[3]", "manuel", "'manual'"]),
        ("full_at: 1000", "full_at: 1", ["full_at (1)", "zero_at (10)"]),
        ("name: attention", "name: [attention", ["line", "not YAML"]),
        ("part: speedup", "part: correctness", ["'correctness' appears twice"]),
        ("points: 60", "points: yes", ["line {line}", "rubric[0].points: expected a number, found true"]),
        ("points: 60", "points: .inf", ["rubric[0].points", "finite number"]),
        ("points: 60", "points: 1" + "0" * 30, ["rubric[0].points: expected a number of at most"]),
        ("tolerance: 5.0e-3", "tolerance: .inf", ["tolerance: expected a number greater than 0"]),
        ("default: true", "default: 1", ["default: expected true or false, found 1"]),
        ("title: Attention", 'title: ""', ["title", "found ''"]),
        ("seconds: 6}", "seconds: 1e12}", ["line {line}: limits.wall_s[1].seconds", "86400"]),
        ("default_flags: [-O3, -std=c++17]", "default_flags: -O3", ["default_flags: expected a list", "'-O3'"]),
        (
            "tolerance: 5.0e-3",
            "tolerance: 5.0e-3\ntolerance: 1.0",
            ["line {next}", "the key 'tolerance' is already on line {line}"],
        ),
        ("title: Attention", "? [title]\n: x", ["a key must be a word"]),
        ("metrics:", "deadline: {due: 2026-12-01}\nmetrics:", ["deadline.due", "found 2026-12-01.", "with its zone"]),
        ("metrics:", "deadline: {due: 2026-13-01T00:00:00Z}\nmetrics:", ["month must be in 1..12"]),
        ("metrics:", "deadline: {due: 20261201}\nmetrics:", ["deadline.due: expected a time", "found 20261201."]),
        ("metrics:", "a: &a [x, x]\nb: &b [*a, *b]\nmetrics:", ["aliases expand to too many values"]),
        ("metrics:", "a: " + "[" * 50_000 + "\nmetrics:", ["nest"]),
    ],
)
def test_a_wrong_key_or_value_is_named_with_the_file_and_what_is_allowed(
    write: Write, right: str, wrong: str, says: list[str]
) -> None:
    before, found, after = YAML.partition(right)
    assert found
    path = write("assignment.yaml", before + wrong + after)
    with pytest.raises(UsageError) as raised:
        load_assignment_file(path)
    line = before.count("\n") + 1
    for word in [str(path), *(word.format(line=line, next=line + 1) for word in says)]:
        assert word in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_small_file_that_unfolds_to_a_huge_one_is_refused_before_it_does(write: Write) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(UsageError, match="aliases expand to too many values: write the values out"):
        load_assignment_file(write("assignment.yaml", bomb))


def test_numbers_and_files_are_read_as_people_write_them(write: Write) -> None:
    path = write("assignment.yaml", "\ufeff" + YAML.replace("5.0e-3", "5e-3").replace("\n", "\r\n"))
    assert load_assignment_file(path).tolerance == 5e-3
    path = write("assignment.yaml", YAML.replace("metrics:", "judge: {per_hour: 7}\nmetrics:"))  # the key's older name
    assert load_assignment_file(path).judge.runs == 7


def test_an_empty_yaml_is_told_which_keys_it_needs(write: Write) -> None:
    with pytest.raises(UsageError, match=r"expected keys and values at the top .*rubric.*found nothing"):
        load_assignment_file(write("assignment.yaml", ""))


def test_what_has_the_assignments_name_need_not_be_written(tmp_path: Path) -> None:
    text = """\
name: saxpy
title: First day
baseline: {budget_s: 0.5}
tolerance: 1.0e-6
limits: {wall_s: 5}
rubric: [{part: correctness, kind: failed_tests, points: 70, per_failure: 14}]
"""
    (tmp_path / "assignment.yaml").write_text(text)
    rules = load_assignment_file(tmp_path / "assignment.yaml")
    assert (rules.operator, rules.submission.mains) == ("saxpy", ("saxpy.cu",))
    assert (rules.baseline.source, rules.baseline.budget_s) == ("seq_saxpy.c", 0.5)
    assert [(limit.tests, limit.seconds) for limit in rules.limits.wall_s] == [("every", 5)]
