"""Computes what follows from measurements: points, total and occupancy, for a new record and for a stored one.

If only points have changed in the rules, a stored record has all measurements that the new points need, or lacks a few
(`unmeasured`): a part may score the time of tests that ran once, or compare with another reference solution. `rescored`
gives the record its new points, and `with_tests` first replaces the tests that were run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean

from grader.base.identity import identity
from grader.base.verdict import Verdict
from grader.course.assignment import Assignment, Occupancy, ReferenceRatio, SpeedOfLight, TimedPart
from grader.course.testcase import Suite
from grader.records.points import keep, total_of
from grader.records.record import GraderRecord, PartRecord, ProfileRecord, Record, RescoredRecord, Scores, TestRecord
from grader.records.score import Evidence, is_practice, score


@dataclass(frozen=True)
class Scored:
    """The fields of a record that follow from its tests and profiles."""

    occupancy: float | None
    parts: tuple[PartRecord, ...]
    scores: Scores
    practice: bool
    not_measured: tuple[str, ...]


def scored(
    rules: Assignment,
    suite: Suite,
    tests: Sequence[TestRecord],
    profiles: Sequence[ProfileRecord],
    *,
    engine: str,
    measures_time: bool,
) -> Scored:
    """Apply the rubric. `engine` is the engine's name, `measures_time` whether its times are those of a GPU."""
    passed = [test for test in tests if test.verdict is Verdict.PASSED]
    untimed = None
    if not measures_time:
        untimed = f"the {engine}'s times say nothing about a GPU"
    elif passed and all(test.gpu_ms is None and not test.flags for test in passed):
        untimed = "the run left no complete trace of the GPU"
    timed = (part for part in rules.rubric if isinstance(part, TimedPart | Occupancy))
    occupancy, no_occupancy = _mean_occupancy(profiles)
    evidence = Evidence(
        tests=tuple(tests),
        graded=frozenset(case.name for case in suite.graded),
        in_part={part.part: _names(suite, part.tests) for part in timed},
        untimed_reason=untimed,
        occupancy=occupancy,
        no_occupancy_reason=no_occupancy if measures_time else "achieved occupancy needs a GPU",
    )
    practice, parts = is_practice(evidence), score(rules, evidence)
    points = {part.part: part.points for part in parts}
    return Scored(
        occupancy=occupancy,
        parts=parts,
        scores=Scores(total=total_of(parts, tests, practice=practice), max=rules.max_points, **points),
        practice=practice,
        not_measured=tuple(f"{part.part}: {part.how}" for part in parts if part.points is None),
    )


def _names(suite: Suite, words: str) -> frozenset[str]:
    return frozenset(case.name for case in suite.select(words))


def _mean_occupancy(profiles: Sequence[ProfileRecord]) -> tuple[float | None, str]:
    """Return (the mean achieved occupancy of the profiled tests, the reason why there is none)."""
    if not profiles:
        return None, "none of its tests was profiled"
    missing = next((profile for profile in profiles if profile.achieved is None), None)
    if missing is not None:
        return None, f"{missing.test}: {missing.reason}"
    return fmean(profile.achieved for profile in profiles if profile.achieved is not None), ""


def unmeasured(record: Record, rules: Assignment, suite: Suite, *, measures_time: bool) -> tuple[str, ...]:
    """The tests that have to run again because the rubric of `rules` needs something that `record` lacks."""
    if not measures_time:
        return ()
    missing = set(_unmeasured(record, rules, suite))
    return tuple(test.name for test in record.tests if test.name in missing)


def _unmeasured(record: Record, rules: Assignment, suite: Suite) -> Iterator[str]:
    profiled = {profile.test for profile in record.profiles}
    passed = [test for test in record.tests if test.verdict is Verdict.PASSED and not test.timing_refused]
    repeated = _names(suite, rules.timed_tests) if rules.timed_tests is not None else frozenset()
    yield from (test.name for test in passed if test.name in repeated and test.timing is None)
    for part in rules.rubric:
        if isinstance(part, Occupancy):
            names = _names(suite, part.tests) - profiled
            yield from (test.name for test in passed if test.name in names)
        elif isinstance(part, ReferenceRatio):
            names = _names(suite, part.tests)
            compared = {test.name for test in passed if test.reference and test.reference.name == part.reference}
            yield from (test.name for test in passed if test.name in names - compared)
        elif isinstance(part, SpeedOfLight):
            names = _names(suite, part.tests)
            yield from (test.name for test in passed if test.name in names and test.floor is None)


def with_tests(record: Record, again: Record) -> Record:
    """The record with the tests and profiles of `again`, a grading of the same files on some of the same tests."""
    newer = {test.name: test for test in again.tests}
    profiles = [profile for profile in record.profiles if profile.test not in newer]
    order = [test.name for test in record.tests]
    return record.model_copy(
        update={
            "tests": tuple(newer.get(test.name, test) for test in record.tests),
            "profiles": tuple(sorted((*profiles, *again.profiles), key=lambda profile: order.index(profile.test))),
            "flags": tuple(dict.fromkeys((*record.flags, *again.flags))),
        }
    )


def rescored(
    record: Record, rules: Assignment, suite: Suite, *, measures_time: bool, ran: Sequence[str] = ()
) -> Record:
    """The record with points by the rubric of `rules`, which agree with its own rules in everything that decides
    measurements. `ran` names the tests that were run again for it. Points that were entered by hand stay."""
    made = scored(rules, suite, record.tests, record.profiles, engine=record.engine.name, measures_time=measures_time)
    now = RescoredRecord(
        created=datetime.now(UTC).isoformat(timespec="seconds"), grader=GraderRecord.of(identity()), ran=tuple(ran)
    )
    changes = {**vars(made), "assignment_sha256": rules.rules_sha256, "rescored": now}
    return keep([record], record.model_copy(update=changes))
