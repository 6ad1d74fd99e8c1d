"""Measures how long each stage of a grading takes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping

RUN_STAGES = ("compile", "graded runs", "timed runs", "profiled run")
"""The stages of the submission itself; all other time is the grader's overhead."""


class Stopwatch:
    """Adds up seconds by stage, starting when it is created."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._seconds: dict[str, float] = {}

    def add(self, stage: str, seconds: float) -> None:
        """Add seconds that were measured elsewhere."""
        self._seconds[stage] = self._seconds.get(stage, 0.0) + seconds

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a block as the stage `name`, without the seconds of stages that are timed or added inside it."""
        began, before = time.monotonic(), sum(self._seconds.values())
        try:
            yield
        finally:
            inner = sum(self._seconds.values()) - before
            self.add(name, time.monotonic() - began - inner)

    def timings(self) -> dict[str, float]:
        """Seconds by stage, in the order in which the stages first began, then `other` and `total`."""
        total = time.monotonic() - self._began
        other = max(0.0, total - sum(self._seconds.values()))
        return {name: round(s, 4) for name, s in (self._seconds | {"other": other, "total": total}).items()}


def overhead(timings: Mapping[str, float]) -> float | None:
    """Total time divided by the time of compiling and running; None when nothing ran."""
    own = sum(timings.get(stage, 0.0) for stage in RUN_STAGES)
    return timings["total"] / own if own > 0 and "total" in timings else None
