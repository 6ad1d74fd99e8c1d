"""The dimensions that the headers of several attention operators share; sequence lengths are powers of two."""

from __future__ import annotations

from grader.operators.base import Dimension


def _power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


SEQUENCE_LENGTH = Dimension(
    "N", "a power of two from 128 to 32768", lambda v: 128 <= v <= 32768 and _power_of_two(int(v))
)
HEAD_DIMENSION = Dimension("d", "32 or 64", lambda v: v in (32, 64))
