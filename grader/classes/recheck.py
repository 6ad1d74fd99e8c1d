"""Reruns submissions on values that no program has seen, before they get a rank on the leaderboard.

A recheck runs the tests that decide the place, those with a GPU time. Each test must pass on a second draw, its trace
must be credible, and on the same GPU model it must take about as long as when it was graded. This costs much less than
grading the class twice: timing repeats a run until its time is known precisely, while one to three runs show whether a
time can be reproduced. Students who cannot reach a place within `--top` are not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from enum import StrEnum

from grader.base.errors import MachineFault
from grader.base.verdict import STUDENT_VERDICTS, Verdict
from grader.records.record import RecheckedTest, RecheckRecord, Record, TestRecord

SLOWER = 1.25
"""A time is reproduced if one of the new runs takes at most this many times as long as the longest graded run, warm-up
included. The factor is generous, since GPU times repeat within 0.3 % (measured on an H200), but small enough that
faking times within it gains little."""

RUNS = 3

Grade = Callable[[Sequence[str]], Record]
"""A function that grades the same files on the named testcases of the second draw."""


class Recheck(StrEnum):
    """The state of a result's recheck, which decides whether the result may have a place."""

    NOT_NEEDED = "not needed"
    MISSING = "missing"
    PASSED = "passed"
    FAILED = "failed"


def rests_on(record: Record, tests: Collection[str] = ()) -> tuple[str, ...]:
    """The tests of a record that decide its place in a ranking by `tests`: those that passed with a GPU time. Without
    `tests`, as in a ranking by points: the tests whose runs were repeated or, if there are none, all with a time."""
    passed = [test for test in record.tests if test.verdict is Verdict.PASSED]
    timed = [test for test in passed if test.gpu_ms is not None and not test.timing_refused]
    if tests:
        chosen = [test for test in timed if test.name in tests]
    else:
        chosen = [test for test in timed if test.timing is not None] or timed
    return tuple(test.name for test in chosen)


def state_of(record: Record, tests: Collection[str] = ()) -> Recheck:
    """The state of a record's recheck in a ranking by `tests`. Points without a GPU time, such as the emulator's, need
    no recheck: grading itself can run hidden testcases on a second draw (`grader.grading.hidden_testcases`)."""
    needed = rests_on(record, tests)
    if not needed:
        return Recheck.NOT_NEEDED
    if record.recheck is None:
        return Recheck.MISSING
    if not record.recheck.passed:
        return Recheck.FAILED
    return Recheck.PASSED if {test.name for test in record.recheck.tests}.issuperset(needed) else Recheck.MISSING


def recheck(record: Record, tests: Sequence[str], draw: str, grade: Grade) -> RecheckRecord:
    """Recheck `tests` of a record; `grade` runs them on the draw called `draw`. Raises MachineFault when the grader or
    the machine failed, since the result is then unknown."""
    graded = {test.name: test for test in record.tests}
    found: dict[str, TestRecord] = {}
    device, left = "", list(tests)
    for _ in range(RUNS):
        again = grade(left)
        device = again.engine.device
        for test in again.tests:
            if test.verdict not in STUDENT_VERDICTS and test.verdict is not Verdict.PASSED:
                raise MachineFault(f"{test.name}: {test.reason}")
            found[test.name] = _better(found.get(test.name), test)
        same = device == record.engine.device
        left = [name for name in tests if same and _slower(found[name], graded[name])]
        if not left:
            break
    looked_at = tuple(_rechecked(found[name], graded[name] if same else None) for name in tests)
    reasons = [reason for test in looked_at if (reason := _problem(test))]
    return RecheckRecord(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        draw=draw,
        device=device,
        passed=not reasons,
        reason=" ".join(reasons[:3]),
        tests=looked_at,
    )


def _better(before: TestRecord | None, now: TestRecord) -> TestRecord:
    """Of two runs on the second draw, the one that counts: one without a GPU time (it fails), else the faster one."""
    if before is None or now.gpu_ms is None:
        return now
    return now if before.gpu_ms is not None and now.gpu_ms < before.gpu_ms else before


def _longest_ms(graded: TestRecord) -> float:
    """The longest run of a graded test. Its warm-up counts, since a recheck has no warm-up of its own."""
    runs = graded.timing.runs if graded.timing is not None else ()
    return max(graded.gpu_ms or 0.0, *(run.gpu_ms for run in runs), 0.0)


def _slower(now: TestRecord, graded: TestRecord) -> bool:
    """Whether a test is worth another run: nothing is wrong with it except that its time is too long."""
    return not now.flags and now.gpu_ms is not None and now.gpu_ms > SLOWER * _longest_ms(graded)


def _rechecked(now: TestRecord, graded: TestRecord | None) -> RecheckedTest:
    return RecheckedTest(
        name=now.name,
        verdict=now.verdict,
        reason=now.reason,
        gpu_ms=now.gpu_ms,
        graded_ms=_longest_ms(graded) if graded is not None else None,
        flags=now.flags,
    )


def _problem(test: RecheckedTest) -> str:
    """A sentence on why a test did not pass the recheck; '' if it passed."""
    if test.verdict is not Verdict.PASSED:
        return f"{test.name} on a second draw: {test.reason}"
    if test.flags:
        return f"{test.name} on a second draw: {test.flags[0]}"
    if test.gpu_ms is None:
        return f"{test.name} on a second draw: no GPU time was measured."
    if test.graded_ms is not None and test.gpu_ms > SLOWER * test.graded_ms:
        times = f"{test.gpu_ms:.4g} ms on a second draw, but at most {test.graded_ms:.4g} ms when it was graded"
        return f"{test.name} took {times}."
    return ""
