"""The parts of a record that lists and the API show. They stay in memory until the attempt has a newer record, since
reading a record takes milliseconds and clients ask every second."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from grader.base.verdict import Verdict
from grader.records import measured_times
from grader.records.record import Record
from grader.store import Store

_SHOWN = {"name", "verdict", "fault", "reason", "max_error", "wall_s", "gpu_ms", "speedup"}
_KEPT = 2000
"""The number of results kept in memory; each takes up to 20 kB."""


@dataclass(frozen=True)
class Result:
    """The result of an attempt. `problem` is the reason of the first test that did not pass; `files` is the start of
    the SHA-256 of the files; `device` ran them."""

    tests: tuple[dict[str, Any], ...]
    passed: int
    problem: str
    scores: dict[str, Any]
    practice: bool
    max_error: float | None
    gpu_ms: float | None
    speedup: float | None
    occupancy: float | None
    files: str
    device: str


def result_of(record: Record) -> Result:
    """Extract the result from a record."""
    speedups = [value.value for test in record.tests if (value := measured_times.speedup(test))]
    times = [test.gpu_ms for test in record.tests if test.gpu_ms is not None]
    return Result(
        tests=tuple(test.model_dump(mode="json", include=_SHOWN) for test in record.tests),
        passed=sum(test.verdict is Verdict.PASSED for test in record.tests),
        problem=next((test.reason for test in record.tests if test.verdict is not Verdict.PASSED), ""),
        scores=record.scores.model_dump(),
        practice=record.practice,
        max_error=max((test.max_error for test in record.tests if test.max_error is not None), default=None),
        gpu_ms=sum(times) if times else None,
        speedup=geometric_mean(speedups) if speedups else None,
        occupancy=record.occupancy,
        files=record.submission.sha256[:12],
        device=record.engine.device,
    )


class Results:
    """The results of a store's attempts; use it from one thread only."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[int, tuple[int, Result]] = OrderedDict()

    def of(self, submission: int | None, newest: int | None) -> Result | None:
        """The result of an attempt whose newest record is `newest`; None if it has none yet."""
        if submission is None or newest is None:
            return None
        stamp, kept = self._kept.get(submission, (None, None))
        if stamp != newest or kept is None:
            record = self._store.record_that_counts(submission)
            assert record is not None
            kept = result_of(record)
            self._kept[submission] = newest, kept
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(submission)
        return kept
