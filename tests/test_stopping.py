"""The stopping rule: intervals that hold what they promise, and when to stop."""

import random
from statistics import fmean, median, stdev

import pytest

from grader.course.assignment import TimingRules
from grader.timing.stopping import LEAST_RUNS, decide, mean_interval, median_interval, outliers


def test_fewer_than_six_runs_have_no_interval() -> None:
    assert median_interval([1.0] * (LEAST_RUNS - 1)) is None
    assert median_interval([1.0] * LEAST_RUNS) is not None


@pytest.mark.parametrize(
    ("count", "low", "high"),
    # ranks from tables of the sign test (for example Conover, Practical Nonparametric Statistics, table A3)
    [(6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (15, 4, 12), (20, 6, 15), (25, 8, 18)],
)
def test_the_ends_are_the_order_statistics_of_the_sign_test(count: int, low: int, high: int) -> None:
    interval = median_interval([float(value) for value in range(count, 0, -1)])
    assert interval is not None
    assert (interval.low, interval.high) == (low, high)
    assert 0.95 <= interval.confidence < 1


def test_the_interval_of_many_runs_takes_no_longer_than_sorting_them() -> None:
    """Each binomial coefficient comes from the one before: a record from elsewhere can have 10,000 runs in a test."""
    interval = median_interval([float(n) for n in range(10_000)])
    assert interval is not None and (interval.low, interval.high) == (4901.0, 5098.0)


def test_the_interval_holds_the_median_of_a_skewed_distribution_at_least_95_times_in_100() -> None:
    source = random.Random(7)
    true_median, hits = 2.0**0.5, 0
    for _ in range(2000):
        interval = median_interval([source.paretovariate(2.0) for _ in range(12)])
        assert interval is not None
        hits += interval.low <= true_median <= interval.high
    assert hits >= 0.94 * 2000


def test_runs_that_agree_within_a_per_cent_stop_after_the_sixth() -> None:
    rule = TimingRules(budget_s=100)
    values = [10.0, 10.04, 9.96, 10.06, 9.98, 10.01]
    assert [decide(values[:n], 0.0, rule) for n in range(1, 7)] == ["more"] * 5 + ["stable"]


def test_three_runs_that_agree_closely_are_enough_and_a_warm_up_like_them_is_one_of_the_three() -> None:
    values = [10.0, 10.005, 9.995]
    decisions = [decide(values[:n], 0.0, TimingRules()) for n in range(1, 4)]
    assert decisions == ["more", "more", "agreed"]
    assert decide(values[:2], 0.0, TimingRules(), warm_up=[10.002]) == "agreed"
    assert decide(values[:2], 0.0, TimingRules(), warm_up=[10.5]) == "more", "the GPU was not warm yet"
    assert decide([], 0.0, TimingRules(warm_up=3), warm_up=values) == "more", "none of them is a run that counts"
    assert decide(values, 0.0, TimingRules(within=0.001)) == "more", "a narrower `within` asks for closer runs"


def test_the_interval_of_three_runs_is_students() -> None:
    interval = mean_interval([9.9, 10.0, 10.1])  # standard deviation 0.1, t = 4.303
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((10 - 0.2484, 10 + 0.2484), abs=1e-4)


def test_stopping_early_keeps_the_time_repeatable() -> None:
    source = random.Random(7)
    for scatter in (0.0005, 0.002, 0.01):
        times = []
        for _ in range(300):
            values: list[float] = [source.gauss(1, scatter)]
            while decide(values, 0.0, TimingRules()) == "more":
                values.append(source.gauss(1, scatter))
            times.append(median(values))
        assert stdev(times) / fmean(times) < 0.005, "the promise of docs/benchmarks.md"


def test_runs_that_do_not_agree_go_on_until_the_budget_or_the_count() -> None:
    values = [10.0, 11.0] * 10
    assert decide(values[:8], 5.0, TimingRules(budget_s=10, most=20)) == "more"
    assert decide(values[:8], 10.0, TimingRules(budget_s=10, most=20)) == "budget"
    assert decide(values, 5.0, TimingRules(budget_s=10, most=20)) == "count"


def test_a_spent_budget_still_needs_one_run() -> None:
    assert decide([], 99.0, TimingRules(budget_s=1)) == "more"


def test_one_slow_run_is_marked_and_does_not_move_the_median() -> None:
    values = [10.0, 10.01, 10.02, 13.0, 9.99, 10.0, 10.01]
    assert outliers(values) == (False, False, False, True, False, False, False)
    interval = median_interval(values)
    assert interval is not None
    assert interval.median == 10.01


def test_a_tenth_of_a_per_cent_is_no_outlier_however_well_the_others_agree() -> None:
    assert not any(outliers([10.0, 10.0, 10.0, 10.0, 10.01]))
