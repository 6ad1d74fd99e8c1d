"""Reads times and their uncertainty from a test's record, for all reports that compare them."""

from __future__ import annotations

from dataclasses import dataclass

from grader.base.verdict import Verdict
from grader.records.record import TestRecord

_LEAST, _MOST = 1e-12, 1e15


@dataclass(frozen=True)
class Measured:
    """A number and its confidence interval, which exists only if the measurement was repeated."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the interval, or the number twice if there is no interval."""
        return (self.value, self.value) if self.low is None or self.high is None else (self.low, self.high)

    def overlaps(self, other: Measured) -> bool:
        """Whether the intervals overlap, so that the two numbers may be equal."""
        (low, high), (other_low, other_high) = self.ends, other.ends
        return low <= other_high and other_low <= high


def gpu_ms(test: TestRecord) -> Measured | None:
    """GPU time in milliseconds; None if the test did not pass or its time was refused."""
    if (value := _sound(test.gpu_ms)) is None or test.verdict is not Verdict.PASSED or refused(test):
        return None
    timing = test.timing
    return Measured(value, *((_sound(timing.low_ms), _sound(timing.high_ms)) if timing is not None else ()))


def _sound(number: float | None) -> float | None:
    """The number, if it is one that a grading can measure: a record from elsewhere may hold any, and others take its
    logarithm and divide by it."""
    return number if number is not None and _LEAST <= number <= _MOST else None


def refused(test: TestRecord) -> bool:
    """Whether the measured time is refused; the rubric then counts the test as not accelerated."""
    return bool(test.timing_refused or test.flags)


def why_no_place(test: TestRecord) -> str:
    """Why the test's GPU time gives no place in any ranking, as a phrase; '' if it may. The trace of a time comes from
    the program's own process, so only a clock outside the program makes it more than a claim."""
    if test.timing is None:
        return "it ran only once"
    if test.timing.outside is None:
        return "no clock outside the program confirms its time"
    share = floor_share(test)
    return "its time is below the floor of this GPU" if share is not None and share > 1 else ""


def wall_s(test: TestRecord) -> Measured | None:
    """Wall time of the whole process in seconds; None if the test did not pass."""
    value = _sound(test.wall_s)
    return None if value is None or test.verdict is not Verdict.PASSED else Measured(value)


def speedup(test: TestRecord) -> Measured | None:
    """Speedup over the sequential program; None without a GPU time."""
    time = gpu_ms(test)
    if (value := _sound(test.speedup)) is None or time is None:
        return None
    if not time.low or not time.high:
        return Measured(value)
    return Measured(value, value * time.value / time.high, value * time.value / time.low)


def floor_share(test: TestRecord) -> float | None:
    """The floor divided by the measured time, 0..1; None if unknown or refused."""
    return _sound(test.floor.share) if test.floor is not None and not refused(test) else None
