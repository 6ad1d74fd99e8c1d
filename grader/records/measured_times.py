"""Reading times and their uncertainty out of a test's record, for every report that compares them."""

from __future__ import annotations

from dataclasses import dataclass

from grader.base.verdict import Verdict
from grader.records.record import TestRecord


@dataclass(frozen=True)
class Measured:
    """A number and the interval it lies in; without repeated measurement there is no interval."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The interval, or the number alone when it has none."""
        return (self.value, self.value) if self.low is None or self.high is None else (self.low, self.high)

    def overlaps(self, other: Measured) -> bool:
        """Whether the two may be equal: their intervals overlap."""
        (low, high), (other_low, other_high) = self.ends, other.ends
        return low <= other_high and other_low <= high


def gpu_ms(test: TestRecord) -> Measured | None:
    """GPU time in milliseconds; None for a wrong answer."""
    if test.gpu_ms is None or test.verdict is not Verdict.PASSED or refused(test):
        return None
    timing = test.timing
    return Measured(test.gpu_ms, *((timing.low_ms, timing.high_ms) if timing is not None else ()))


def refused(test: TestRecord) -> bool:
    """Whether the measured time is rejected; the rubric then counts the test as not accelerated."""
    return bool(test.timing_refused or test.flags)


def wall_s(test: TestRecord) -> Measured | None:
    """Wall time of the whole process in seconds, of a test that passed."""
    return None if test.wall_s is None or test.verdict is not Verdict.PASSED else Measured(test.wall_s)


def speedup(test: TestRecord) -> Measured | None:
    """Speedup over the sequential program."""
    time = gpu_ms(test)
    if test.speedup is None or time is None:
        return None
    if not time.low or not time.high:
        return Measured(test.speedup)
    return Measured(test.speedup, test.speedup * time.value / time.high, test.speedup * time.value / time.low)


def floor_share(test: TestRecord) -> float | None:
    """The least time the GPU could need over the measured one, 0 to 1; None where that is not known."""
    return test.floor.share if test.floor is not None and not refused(test) else None
