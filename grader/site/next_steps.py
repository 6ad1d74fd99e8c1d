"""Says what a student should do next: the causes of failures, each once, or where to gain points and time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from grader.base.verdict import Verdict
from grader.records.measured_times import floor_share
from grader.records.record import Record
from grader.report.failures import causes, consequence
from grader.report.leaderboard import number


@dataclass(frozen=True)
class NextStep:
    """Advice on some tests or on a part of the points. Its `kind` is "bad" if the student has to fix something, "warn"
    if it is not the student's fault or a person has to check it, and "tip" if it can bring more points. `detail` says
    what the cause led to in the first test that it affects."""

    kind: str
    about: str
    sentence: str
    detail: str = ""


def next_steps(record: Record, parts: Mapping[str, float | None]) -> list[NextStep]:
    """The failures or, if there are none, the points and time that can still be gained. `parts` are the points that
    count."""
    return _failures(record) or [*_lost_points(record, parts), *_slowest(record)]


def _failures(record: Record) -> list[NextStep]:
    """The failures, each cause once, and the flags that a person has to check."""
    found = causes(record.tests)
    ran = [cause for cause in found if cause.first.verdict is not Verdict.NOT_RUN]
    steps = [
        NextStep(
            "warn" if cause.whose else "bad",
            "All tests" if len(cause.tests) == len(record.tests) > 1 else cause.names,
            f"{cause.whose.capitalize()}. {cause.sentence}" if cause.whose else cause.sentence,
            f"{cause.first.name}: {came}" if cause.known and (came := consequence(cause.first)) else "",
        )
        for cause in ran or found
    ]
    return steps + [NextStep("warn", "Times that are not believed", flag) for flag in record.flags]


def _lost_points(record: Record, parts: Mapping[str, float | None]) -> Iterator[NextStep]:
    known = [(part, points) for part in record.parts if (points := parts[part.part]) is not None]
    part, points = max(known, key=lambda each: each[0].max - each[1], default=(None, 0))
    if part is not None and points < part.max:
        yield NextStep("tip", part.part, f"Here you can gain the most points: you have {points:g} of {part.max:g}.")


def _slowest(record: Record) -> Iterator[NextStep]:
    shares = [(share, test) for test in record.tests if test.timing and (share := floor_share(test))]
    share, test = min(shares, key=lambda each: each[0], default=(0, None))
    if test is not None and test.floor is not None:
        yield NextStep(
            "tip",
            test.name,
            f"This test is farthest from what the GPU can do: it takes {number(test.gpu_ms or 0)} ms, and the least "
            f"possible time is {number(test.floor.ms)} ms, for {test.floor.limit} ({share:.0%}).",
        )
