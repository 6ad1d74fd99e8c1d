"""The rubric: formulas with their numbers, and null for what was not measured."""

import math
import random

import pytest

from grader.base.verdict import Fault, Verdict
from grader.course.assignment import Assignment, FailedTests, LogSpeedup, Occupancy, ReferenceRatio, SpeedOfLight
from grader.records.record import BaselineRecord, FloorRecord, PartRecord, TestRecord
from grader.records.score import (
    Evidence,
    failed_tests,
    is_practice,
    log_speedup,
    occupancy,
    reference_ratio,
    score,
    speed_of_light,
)

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


def test_points_over_a_sequential_time_that_is_not_known_closely_have_an_interval(hw4: Assignment) -> None:
    def over(spread: float) -> PartRecord:
        baseline = BaselineRecord(seconds=1, description="", source_sha256="0", cpu="a CPU", spread=spread)
        tests = [record(name).model_copy(update={"baseline": baseline}) for name in GRADED]
        return parts(hw4, tests)["speedup"]

    assert "only" not in over(0.019).how and over(0.019).points == 10
    assert over(0.26).how.endswith("known to 26.0% only: between 9 and 10 points")


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


def ratio(points: float = 20) -> ReferenceRatio:
    return ReferenceRatio(
        part="speed", kind="reference_ratio", points=points, tests="x", reference="r.cu", full_within=1, zero_at=100
    )


def log(points: float = 20, zero_at: float = 10) -> LogSpeedup:
    return LogSpeedup(part="speedup", kind="log_speedup", points=points, tests="x", zero_at=zero_at, full_at=1000)


def light(points: float = 20, zero_at: float = 0.1) -> SpeedOfLight:
    return SpeedOfLight(part="speed", kind="speed_of_light", points=points, tests="x", zero_at=zero_at, full_at=0.6)


def in_all_parts(*tests: TestRecord, occupancy: float | None = None) -> Evidence:
    names = frozenset(test.name for test in tests)
    return Evidence(tests, names, dict.fromkeys(("speed", "speedup", "occupancy"), names), None, occupancy, "no ncu")


def timed(name: str, speedup: float) -> TestRecord:
    floor = FloorRecord(ms=1.0, refuse_below_ms=0.5, limit="memory", terms=(), share=speedup / 1000)
    changes = {"gpu_ms": 1000 / speedup, "reference_ms": 1.0, "floor": floor}
    return record(name, speedup=speedup).model_copy(update=changes)


def test_failing_a_test_is_never_worth_more_than_being_slow_on_it() -> None:
    """Whatever the times of the others are: thousands of made-up classes, by both formulas for times."""
    dice = random.Random(1)
    for _ in range(1500):
        tests = [timed(f"t{number}", 10 ** dice.uniform(-4, 4)) for number in range(dice.randint(1, 6))]
        tests = [record(test.name, Verdict.TIME_LIMIT) if dice.random() < 0.3 else test for test in tests]
        place = dice.randrange(len(tests))
        if tests[place].verdict is not Verdict.PASSED:
            continue
        failed = [*tests[:place], record(tests[place].name, Verdict.WRONG_ANSWER), *tests[place + 1 :]]
        faster = [*tests[:place], timed(tests[place].name, (tests[place].speedup or 0) * 3), *tests[place + 1 :]]
        rule = log(zero_at=dice.choice([0.3, 1, 10]))
        for part in (
            lambda evidence, rule=rule: log_speedup(rule, evidence),
            lambda evidence: reference_ratio(ratio(), evidence),
            lambda evidence: speed_of_light(light(), evidence),
        ):
            worse, now, better = (part(in_all_parts(*each)).points for each in (failed, tests, faster))
            assert worse is not None and now is not None and better is not None
            assert worse <= now <= better


def test_failing_everything_earns_nothing_for_speed_wherever_its_points_begin() -> None:
    failed = in_all_parts(record("t01", Verdict.WRONG_ANSWER))
    assert log_speedup(log(zero_at=0.5), failed).points == 0
    assert reference_ratio(ratio(), failed).points == 0
    assert speed_of_light(light(), failed).points == 0


@pytest.mark.parametrize("most", [6.66, 12.25, 33.333, 20])
def test_full_points_are_all_of_them_and_never_more(most: float) -> None:
    fast = in_all_parts(timed("t01", 1e6), occupancy=1.0)
    given = [log_speedup(log(most), fast), reference_ratio(ratio(most), fast), speed_of_light(light(most), fast)]
    given.append(occupancy(Occupancy(part="occupancy", kind="occupancy", points=most, tests="x", full_at=0.15), fast))
    given.append(failed_tests(FailedTests(part="c", kind="failed_tests", points=most, per_failure=3), fast))
    assert [part.points for part in given] == [most] * 5


def test_the_numbers_in_a_formula_give_the_points_beside_it() -> None:
    dice = random.Random(2)
    rule = Occupancy(part="occupancy", kind="occupancy", points=10, tests="t23", full_at=0.15)
    for _ in range(500):
        given = in_all_parts(timed("t23", 10 ** dice.uniform(1, 3)), occupancy=dice.uniform(0.01, 0.15))
        for part in (occupancy(rule, given), log_speedup(log(), given), reference_ratio(ratio(), given)):
            formula = part.how.replace(",", "").split(": ", 1)[1].split(";")[0].replace(" x ", " * ")
            formula = formula.replace("min(1 ", "min(1, ")
            told = max(0.0, eval(formula, {"log": math.log, "min": min}))
            assert part.points == pytest.approx(told, abs=0.0501), part.how


def test_occupancy_is_lost_with_its_test_and_unknown_where_the_machine_failed() -> None:
    rule = Occupancy(part="occupancy", kind="occupancy", points=10, tests="t23,t24", full_at=0.2)
    passed, failed = record("t23"), record("t24", Verdict.RUNTIME_ERROR)
    half = occupancy(rule, in_all_parts(passed, failed, occupancy=0.2))
    assert half.points == 5
    assert "1 of 2 tests failed and counted as 0" in half.how
    assert occupancy(rule, in_all_parts(failed)).points == 0
    spoilt = in_all_parts(passed, record("t24", Verdict.GRADER_ERROR), occupancy=0.2)
    assert occupancy(rule, spoilt).points is None
    without_gpu = Evidence((failed,), frozenset({"t24"}), {"occupancy": frozenset({"t24"})}, "no GPU", None, "no GPU")
    assert occupancy(rule, without_gpu).points is None


@pytest.mark.parametrize(("shares", "points"), [((0.05,), 0), ((0.35,), 10), ((0.6, 0.35), 15), ((0.9, 0.1), 10)])
def test_speed_of_light_is_linear_in_the_floors_share_of_each_time(shares: tuple[float, ...], points: float) -> None:
    tests = (timed(f"t{number}", 1000 * share) for number, share in enumerate(shares))
    assert speed_of_light(light(), in_all_parts(*tests)).points == pytest.approx(points)


def test_a_time_without_a_floor_earns_no_guess() -> None:
    test = timed("t1", 100).model_copy(update={"floor": None})
    assert speed_of_light(light(), in_all_parts(test)).points is None
