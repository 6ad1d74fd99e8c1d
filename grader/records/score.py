"""Computes points by the rubric. Each kind of part is one pure function, whose `how` shows the formula with its
numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from grader.base.verdict import STUDENT_VERDICTS, Fault, Verdict
from grader.course.assignment import (
    Assignment,
    FailedTests,
    LogSpeedup,
    Manual,
    Occupancy,
    ReferenceRatio,
    RubricPart,
    SpeedOfLight,
    TimedPart,
)
from grader.records.record import MANUAL, PartRecord, TestRecord

_EXACT = ",.6g"
"""The format of a measured number in a formula, with enough digits to recompute the points."""

KNOWN_TO = 0.02
"""A sequential time is known if its fastest runs differ by at most this share."""

_TIMED_DIGITS = 1
"""Decimals of points for a measured number. GPU times repeat to about 0.1 %. For a logarithm over two decades, that is
0.004 of 20 points, so a second decimal could differ from grading to grading."""


@dataclass(frozen=True)
class Evidence:
    """The input to the rubric.

    `tests` are the tests that count. `graded` has the names of the whole graded group, `in_part` the names that each
    rubric part refers to. `untimed_reason` is the reason why there are no GPU times. `occupancy` is the achieved
    occupancy (0..1); if it is None, `no_occupancy_reason` says why.
    """

    tests: tuple[TestRecord, ...]
    graded: frozenset[str]
    in_part: dict[str, frozenset[str]]
    untimed_reason: str | None
    occupancy: float | None
    no_occupancy_reason: str


def is_practice(evidence: Evidence) -> bool:
    """Whether the tests differ from the graded group."""
    return {test.name for test in evidence.tests} != evidence.graded


def score(assignment: Assignment, evidence: Evidence) -> tuple[PartRecord, ...]:
    """The points of every part, in the rubric's order; null for a part without a measurement."""
    parts = []
    for part in assignment.rubric:
        match part:
            case FailedTests():
                parts.append(failed_tests(part, evidence))
            case LogSpeedup():
                parts.append(log_speedup(part, evidence))
            case ReferenceRatio():
                parts.append(reference_ratio(part, evidence))
            case SpeedOfLight():
                parts.append(speed_of_light(part, evidence))
            case Occupancy():
                parts.append(occupancy(part, evidence))
            case Manual():
                parts.append(_without_points(part, MANUAL))
    return tuple(parts)


def failed_tests(part: FailedTests, evidence: Evidence) -> PartRecord:
    """`max(0, points - per_failure * failed)`.

    For practice, which runs other tests than the graded group, `failed` is scaled to the group's size. Failing
    everything is then worth 0 points and passing everything full points, as in the graded group.
    """
    judged = [test for test in evidence.tests if test.fault is not Fault.GRADER and test.fault is not Fault.MACHINE]
    judged = [test for test in judged if test.verdict is not Verdict.NOT_RUN]
    if not judged:
        return _without_points(part, "no test could be judged")
    failed = sum(test.verdict in STUDENT_VERDICTS for test in judged)
    if is_practice(evidence):
        scaled = failed * len(evidence.graded) / len(judged)
        how = f"{failed} of {len(judged)} practice tests failed"
        how += f", scaled to the {len(evidence.graded)} graded tests" if failed else ""
    else:
        scaled = float(failed)
        how = f"{failed} of {len(judged)} tests failed"
    share = 1 - part.per_failure * scaled / part.points
    formula = f"max(0, {part.points:g} - {part.per_failure:g} x {scaled:g})"
    return _earned(part, share, f"{how}: {formula}", digits=2)


def log_speedup(part: LogSpeedup, evidence: Evidence) -> PartRecord:
    """`points * log(speedup / zero_at) / log(full_at / zero_at)`, within 0 and `points`; `speedup` is the geometric
    mean over the part's tests that ran. A test that failed by the student's fault, or whose time was refused, counts
    as 1 (as `zero_at` if that is less), and so does a slower test: failing is never worth more than being slow."""
    found = _known(part, evidence, lambda test: test.speedup)
    if isinstance(found, PartRecord):
        return found
    least = min(1.0, part.zero_at)
    speedups = [least if value is None else max(least, value) for value in found]
    mean = geometric_mean(speedups)
    share = math.log(mean / part.zero_at) / math.log(part.full_at / part.zero_at)
    slower = sum(value is not None and value < least for value in found)
    how = (
        f"geometric mean {mean:{_EXACT}}x over {len(speedups)} tests ({part.tests}){_lost(found)}"
        f"{f', {slower} slower than {least:g}x and counted as such' if slower else ''}: "
        f"{part.points:g} x log({mean:{_EXACT}}/{part.zero_at:g}) / log({part.full_at:g}/{part.zero_at:g})"
        f"{_uncertain(part, evidence, share)}"
    )
    return _earned(part, share, how, digits=_TIMED_DIGITS)


def _uncertain(part: LogSpeedup, evidence: Evidence, share: float) -> str:
    """A phrase with the interval of the points if the sequential times are not known closely; else ''. Disturbances
    only lengthen a sequential time, so the true speedup may be lower, by up to the spread of its fastest runs."""
    tests = (test for test in evidence.tests if test.name in evidence.in_part[part.part] and test.baseline is not None)
    spread = max((test.baseline.spread or 0.0 for test in tests if test.baseline), default=0.0)
    if spread <= KNOWN_TO:
        return ""
    low = share - math.log1p(spread) / math.log(part.full_at / part.zero_at)
    ends = [_earned(part, end, "", digits=_TIMED_DIGITS).points for end in (low, share)]
    return f"; the sequential times are known to {spread:.1%} only: between {ends[0]:g} and {ends[1]:g} points"


def reference_ratio(part: ReferenceRatio, evidence: Evidence) -> PartRecord:
    """`points * log(zero_at / ratio) / log(zero_at / full_within)`, within 0 and `points`; `ratio` is the geometric
    mean of the time divided by the reference's time. A test that failed, or whose time was refused, counts as
    `zero_at`, and so does a slower test: failing is never worth more than being slow."""
    found = _known(
        part, evidence, lambda test: test.gpu_ms / test.reference_ms if test.gpu_ms and test.reference_ms else None
    )
    if isinstance(found, PartRecord):
        return found
    ratios = [part.zero_at if value is None else min(part.zero_at, value) for value in found]
    mean = geometric_mean(ratios)
    share = math.log(part.zero_at / mean) / math.log(part.zero_at / part.full_within)
    slower = sum(value is not None and value > part.zero_at for value in found)
    how = (
        f"{mean:{_EXACT}} times as long as {part.reference} over {len(ratios)} tests ({part.tests}){_lost(found)}"
        f"{f', {slower} slower than {part.zero_at:g} times and counted as such' if slower else ''}: "
        f"{part.points:g} x log({part.zero_at:g}/{mean:{_EXACT}}) / log({part.zero_at:g}/{part.full_within:g})"
    )
    return _earned(part, share, how, digits=_TIMED_DIGITS)


def speed_of_light(part: SpeedOfLight, evidence: Evidence) -> PartRecord:
    """`points * mean((share - zero_at) / (full_at - zero_at))`, each test within 0 and 1; `share` is the floor divided
    by the time. A test that failed, or whose time was refused, counts as 0."""
    found = _known(part, evidence, lambda test: test.floor.share if test.floor else None)
    if isinstance(found, PartRecord):
        return found
    width = part.full_at - part.zero_at
    each = [min(1.0, max(0.0, ((share or 0.0) - part.zero_at) / width)) for share in found]
    shares = ", ".join("-" if share is None else f"{share:.3g}" for share in found)
    how = (
        f"floor / time is {shares} on {part.tests}{_lost(found)}: {part.points:g} x the mean of "
        f"(share - {part.zero_at:g}) / {width:.4g}, each within 0 and 1"
    )
    return _earned(part, fmean(each), how, digits=_TIMED_DIGITS)


def _known(
    part: TimedPart, evidence: Evidence, value: Callable[[TestRecord], float | None]
) -> list[float | None] | PartRecord:
    """The value for each of the part's tests that ran, None if the test failed or its time was refused. If the part
    cannot be scored, return the part's record instead."""

    if evidence.untimed_reason is not None:
        return _not_measured(part, evidence.untimed_reason)
    wanted = [test for test in evidence.tests if test.name in evidence.in_part[part.part]]
    lost = [test.verdict in STUDENT_VERDICTS or bool(test.timing_refused) for test in wanted]
    values = [None if gone else value(test) for test, gone in zip(wanted, lost, strict=True)]
    missing = sum(found is None and not gone for found, gone in zip(values, lost, strict=True))
    if len(values) == missing:
        return _not_measured(part, f"none of {part.tests} was timed")
    if missing:
        return _not_measured(part, f"{missing} of the tests {part.tests} have no GPU time")
    return values


def _lost(values: Sequence[float | None]) -> str:
    count = sum(value is None for value in values)
    return f", {count} of them failed or refused" if count else ""


def _not_measured(part: TimedPart | Occupancy, why: str) -> PartRecord:
    return _without_points(part, f"not measured: {why}")


def _without_points(part: RubricPart, how: str) -> PartRecord:
    return PartRecord(part=part.part, kind=part.kind, points=None, max=part.points, how=how)


def _earned(part: RubricPart, share: float, how: str, *, digits: int) -> PartRecord:
    """The record of a part that earned this share of its points. A full share earns exactly all points: rounding never
    changes the maximum."""
    points = part.points if share >= 1 else min(part.points, round(part.points * max(0.0, share), digits))
    return PartRecord(part=part.part, kind=part.kind, points=points, max=part.points, how=how)


def occupancy(part: Occupancy, evidence: Evidence) -> PartRecord:
    """`points * min(1, achieved / full_at)`; `achieved` is the mean over the part's tests that ran. A test that
    failed by the student's fault counts as 0."""
    wanted = [test for test in evidence.tests if test.name in evidence.in_part[part.part]]
    passed = sum(test.verdict is Verdict.PASSED for test in wanted)
    failed = sum(test.verdict in STUDENT_VERDICTS for test in wanted)
    if wanted and failed == len(wanted) and evidence.untimed_reason is None:
        achieved = 0.0
    elif evidence.occupancy is None:
        return _not_measured(part, evidence.no_occupancy_reason)
    elif passed + failed < len(wanted):
        return _not_measured(part, f"{len(wanted) - passed - failed} of the tests {part.tests} could not be judged")
    else:
        achieved = evidence.occupancy * passed / len(wanted) if wanted else evidence.occupancy
    lost = f", {failed} of {len(wanted)} tests failed and counted as 0" if failed else ""
    how = (
        f"achieved {achieved:{_EXACT}} on {part.tests}{lost}: "
        f"{part.points:g} x min(1, {achieved:{_EXACT}}/{part.full_at:g})"
    )
    return _earned(part, achieved / part.full_at, how, digits=_TIMED_DIGITS)
