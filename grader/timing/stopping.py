"""The rule for when to stop repeating a timed run, and the statistics behind it. Pure functions.

The rule. After `warm_up` runs that are not counted, repeat until

    agreed   three to five runs agree closely, or
    stable   the 95 % confidence interval of the median lies within `within` (1 %) of the median on both sides, or
    budget   the time budget is spent, or
    count    `most` runs were made.

Most programs end with `agreed`, which saves a slow one more than half of its time on the GPU. Runs agree when the 95 %
interval of their mean by Student's t lies within a quarter of `within` of the mean. For three runs that is a standard
deviation of 0.1 %. Where speed gives 20 points, a test earns 0.001 points more at one end of such an interval than in
the middle, and the points are rounded to tenths. A warm-up that agrees with the runs after it has warmed nothing up,
so it counts like them. The interval by Student's t assumes a normal distribution, which is why it has to be four
times as narrow as that of `stable`.

The interval of `stable` needs `LEAST_RUNS`, the fewest runs for which it exists. It is distribution-free: GPU times are
skewed and sometimes have two modes (clocks), so no normal distribution is assumed. Of n independent runs, the number
that fall below the true median is Binomial(n, 1/2); hence the k-th smallest and the k-th largest enclose it with
probability 1 - 2 P(Binomial(n, 1/2) < k). (David and Nagaraja, Order Statistics, 3rd ed., 2003, section 7.1.) No run is
dropped: outliers are marked, and hardly affect a median.

The confidence of both intervals assumes a number of runs fixed beforehand. Stopping as soon as an interval is narrow
favours runs that happen to agree. A simulation with normally distributed runs, 2,000 measurements for each column:

    scatter of one run              0.05 %   0.1 %   0.2 %   0.4 %     1 %     2 %
    runs, the warm-up among them       3.0     3.4     4.9     6.5    13.6    31.7
    scatter of the result           0.03 %  0.06 %  0.11 %  0.19 %  0.34 %  0.47 %
    the interval held the median      96 %    95 %    92 %    90 %    94 %    93 %
    without `agreed`: runs             7.0     7.0     7.0     7.2    13.8    31.7
    scatter of the result           0.02 %  0.05 %  0.10 %  0.18 %  0.34 %  0.45 %
    the interval held the median      97 %    97 %    97 %    97 %    95 %    93 %
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Literal

from grader.course.assignment import TimingRules

CONFIDENCE = 0.95
LEAST_RUNS = 6
"""With 6 runs, the probability that the median lies outside all of them first falls below 5 %: 2 · 2^-6 = 3.1 %."""

_STUDENT_T = {3: 4.303, 4: 3.182, 5: 2.776}
"""The 97.5 % quantile of Student's t distribution with n - 1 degrees of freedom, for each number n of runs. From
LEAST_RUNS runs on, the distribution-free interval takes over."""
_CLOSER = 4
"""Runs agree when their interval is narrower than `within` by this factor."""

Verdict = Literal["more", "agreed", "stable", "budget", "count"]


@dataclass(frozen=True)
class Interval:
    """A confidence interval of the median, in the unit of the values. `confidence` is its probability, at least 0.95.
    With fewer than LEAST_RUNS values it is an interval of the mean, by Student's t."""

    median: float
    low: float
    high: float
    confidence: float

    @property
    def spread(self) -> float:
        """The larger distance from the median to an end of the interval, as a share of the median."""
        return max(self.high - self.median, self.median - self.low) / self.median if self.median else math.inf


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """The narrowest order-statistic interval with at least this confidence; None if there are too few values."""
    n = len(values)
    rank, tail, ways, all_ways = 0, 0.0, 1, 2**n  # tail = P(Binomial(n, 1/2) < rank)
    while rank < n / 2:
        further = tail + ways / all_ways  # ways = n over rank
        if 1 - 2 * further < confidence:
            break
        rank, tail, ways = rank + 1, further, ways * (n - rank) // (rank + 1)
    if rank == 0:
        return None
    ordered = sorted(values)
    return Interval(median(ordered), ordered[rank - 1], ordered[n - rank], 1 - 2 * tail)


def mean_interval(values: Sequence[float]) -> Interval | None:
    """The 95 % interval of the mean of three to five values by Student's t; None for any other number of values."""
    if len(values) not in _STUDENT_T:
        return None
    half = _STUDENT_T[len(values)] * stdev(values) / math.sqrt(len(values))
    return Interval(median(values), fmean(values) - half, fmean(values) + half, CONFIDENCE)


def agreement(rule: TimingRules) -> float:
    """The largest distance from the mean to an end of its interval at which runs agree, as a share of the mean."""
    return rule.within / _CLOSER


def agree(values: Sequence[float], rule: TimingRules) -> bool:
    """Whether a few runs agree so closely that no more are needed."""
    interval = mean_interval(values)
    return interval is not None and interval.high - interval.low <= 2 * agreement(rule) * fmean(values)


def decide(values: Sequence[float], spent_s: float, rule: TimingRules, warm_up: Sequence[float] = ()) -> Verdict:
    """Decide whether another run is needed after these `values` and `spent_s` seconds. `warm_up` are the runs
    before them, which do not count unless they agree with `values`."""
    if values and (agree((*warm_up, *values), rule) or agree(values, rule)):
        return "agreed"
    if len(values) >= LEAST_RUNS:
        interval = median_interval(values)
        if interval is not None and interval.spread <= rule.within:
            return "stable"
    if len(values) >= rule.most:
        return "count"
    if spent_s >= rule.budget_s and values:
        return "budget"
    return "more"


def outliers(values: Sequence[float]) -> tuple[bool, ...]:
    """Whether each value is far from the rest: its modified z-score is above 3.5 (Iglewicz and Hoaglin, How to
    Detect and Handle Outliers, 1993), and it is more than 1 % from the median. The second condition is needed because
    where most runs agree to 0.01 %, a harmless 0.1 % would otherwise count as an outlier."""
    if len(values) < 3:
        return (False,) * len(values)
    middle = median(values)
    deviation = median(abs(value - middle) for value in values)

    def far(value: float) -> bool:
        distance = abs(value - middle)
        return distance > 0.01 * middle and 0.6745 * distance > 3.5 * deviation

    return tuple(far(value) for value in values)
