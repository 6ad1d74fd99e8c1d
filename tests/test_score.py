"""The rubric: formulas with their numbers, and null for what was not measured."""

from __future__ import annotations

import pytest

from grader.assignment import Assignment
from grader.record import PartRecord, TestRecord
from grader.score import Evidence, is_practice, score
from grader.verdict import Fault, Verdict

GRADED = tuple(f"t{number:02}" for number in range(1, 31))


def record(name: str, verdict: Verdict = Verdict.PASSED, speedup: float | None = 100.0) -> TestRecord:
    fault = None if verdict is Verdict.PASSED else Fault.STUDENT
    if verdict is Verdict.GRADER_ERROR:
        fault = Fault.MACHINE
    return TestRecord(name=name, shape=(2, 128, 32), verdict=verdict, fault=fault, reason="", speedup=speedup)


def evidence(tests: list[TestRecord], untimed: str | None = None, occupancy: float | None = None) -> Evidence:
    in_part = {"speedup": frozenset(GRADED[20:]), "occupancy": frozenset({"t23"})}
    return Evidence(tuple(tests), frozenset(GRADED), in_part, untimed, occupancy, "no profiler")


def parts(assignment: Assignment, tests: list[TestRecord], **more: object) -> dict[str, PartRecord]:
    return {part.part: part for part in score(assignment, evidence(tests, **more))}  # type: ignore[arg-type]


@pytest.mark.parametrize(("failed", "points"), [(0, 60), (1, 57), (7, 39), (19, 3), (20, 0), (30, 0)])
def test_correctness_is_sixty_less_three_for_each_failure(hw4: Assignment, failed: int, points: float) -> None:
    tests = [record(n, Verdict.WRONG_ANSWER if i < failed else Verdict.PASSED) for i, n in enumerate(GRADED)]
    assert not is_practice(evidence(tests))
    correctness = parts(hw4, tests)["correctness"]
    assert correctness.points == points
    assert f"{failed} of 30 tests failed" in correctness.how


def test_in_practice_failing_everything_is_worth_nothing_and_passing_everything_all(hw4: Assignment) -> None:
    samples = [f"s{number:02}" for number in range(1, 9)]
    assert is_practice(evidence([record(name) for name in samples]))
    assert parts(hw4, [record(name, Verdict.WRONG_ANSWER) for name in samples])["correctness"].points == 0
    assert parts(hw4, [record(name) for name in samples])["correctness"].points == 60


def test_a_machine_fault_costs_no_points(hw4: Assignment) -> None:
    tests = [record(n, Verdict.GRADER_ERROR if n == "t07" else Verdict.PASSED) for n in GRADED]
    assert parts(hw4, tests)["correctness"].points == 60


@pytest.mark.parametrize(("speedup", "points"), [(5, 0), (10, 0), (100, 10), (1000, 20), (50_000, 20)])
def test_speedup_points_are_linear_in_the_logarithm_between_the_anchors(
    hw4: Assignment, speedup: float, points: float
) -> None:
    tests = [record(name, speedup=speedup) for name in GRADED]
    assert parts(hw4, tests)["speedup"].points == pytest.approx(points)


def test_a_failed_test_counts_as_no_speedup(hw4: Assignment) -> None:
    wrong = [record(n, Verdict.WRONG_ANSWER if n == "t21" else Verdict.PASSED, speedup=1000) for n in GRADED]
    # geometric mean of 1 and nine times 1000: 10 ** 2.7
    assert parts(hw4, wrong)["speedup"].points == pytest.approx(20 * 1.7 / 2, abs=0.01)


def test_what_was_not_measured_has_null_points_and_a_reason(hw4: Assignment) -> None:
    given = parts(hw4, [record(name, speedup=None) for name in GRADED], untimed="no GPU here")
    assert given["speedup"].points is None
    assert "no GPU here" in given["speedup"].how
    assert given["occupancy"].points is None
    assert "no profiler" in given["occupancy"].how
    assert given["report"].points is None


@pytest.mark.parametrize(("achieved", "points"), [(0.0, 0), (0.075, 5), (0.15, 10), (0.9, 10)])
def test_occupancy_points_are_capped(hw4: Assignment, achieved: float, points: float) -> None:
    given = parts(hw4, [record(name) for name in GRADED], occupancy=achieved)
    assert given["occupancy"].points == pytest.approx(points)
