"""assignment.yaml: what is right is read, what is wrong is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.assignment import assignment_for, load_assignment, load_assignment_file
from grader.errors import UsageError
from tests.conftest import ROOT

Write = Callable[[str, str], Path]


def test_the_handout_of_hw4_promises_what_its_yaml_holds() -> None:
    hw4 = load_assignment("hw4")
    assert hw4.tolerance == 5e-3
    assert hw4.max_points == 100
    assert (hw4.rubric[0].part, hw4.rubric[0].points) == ("correctness", 60)


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("tolerance: 5.0e-3", "tolerence: 5.0e-3", ["tolerence", "did you mean 'tolerance'", "rubric"]),
        ("per_failure: 3", "per_fail: 3", ["rubric[0].per_fail", "per_failure"]),
        ("points: 60", "points: sixty", ["rubric[0].points", "'sixty'"]),
        ("limit_s: 120", "limit_s: -1", ["build.limit_s", "greater than 0", "-1"]),
        ("kind: manual", "kind: manuel", ["rubric[3]", "manuel", "'manual'"]),
        ("full_at: 1000", "full_at: 1", ["full_at (1)", "zero_at (10)"]),
        ("name: hw4", "name: [hw4", ["line", "not YAML"]),
        ("part: speedup", "part: correctness", ["'correctness' appears twice"]),
    ],
)
def test_a_wrong_key_or_value_is_named_with_the_file_and_what_is_allowed(
    write: Write, right: str, wrong: str, says: list[str]
) -> None:
    text = (ROOT / "assignment/hw4/assignment.yaml").read_text()
    assert right in text
    path = write("assignment.yaml", text.replace(right, wrong, 1))
    with pytest.raises(UsageError) as raised:
        load_assignment_file(path)
    for word in [str(path), *says]:
        assert word in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_empty_yaml_is_told_which_keys_it_needs(write: Write) -> None:
    with pytest.raises(UsageError, match=r"expected keys and values at the top .*rubric.*found nothing"):
        load_assignment_file(write("assignment.yaml", ""))


def test_an_unknown_assignment_lists_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"no assignment 'hw5'.*hw4"):
        load_assignment("hw5")


def test_a_submission_called_as_the_main_file_belongs_to_that_assignment(write: Write) -> None:
    assert assignment_for(write("alice/hw4.cu", "int main() {}")).name == "hw4"
