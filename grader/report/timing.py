"""Reading times and their uncertainty out of a test's record, for every report that compares them."""

from __future__ import annotations

from dataclasses import dataclass

from grader.record import TestRecord


@dataclass(frozen=True)
class Measured:
    """A number and the interval it lies in; without repeated measurement there is no interval, and none is claimed."""

    value: float
    low: float | None = None
    high: float | None = None

    def overlaps(self, other: Measured) -> bool:
        """Whether the two may be equal: their intervals overlap. Without both intervals, only if they are equal."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return self.value == other.value
        return self.low <= other.high and other.low <= self.high


def gpu_ms(test: TestRecord) -> Measured | None:
    """GPU time in milliseconds."""
    return None if test.gpu_ms is None else Measured(test.gpu_ms)


def speedup(test: TestRecord) -> Measured | None:
    """Speedup over the sequential program."""
    if test.speedup is None or test.gpu_ms is None:
        return None
    time = gpu_ms(test)
    if time is None or time.low is None or time.high is None:
        return Measured(test.speedup)
    return Measured(test.speedup, test.speedup * time.value / time.high, test.speedup * time.value / time.low)


def floor_share(test: TestRecord) -> float | None:
    """How near the GPU time came to the least time the GPU could need, 0 to 1; None where that is not known."""
    return None
