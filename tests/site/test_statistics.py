"""The class in numbers: each recomputed from the records."""

import random
import re
from fractions import Fraction
from statistics import mean, median
from typing import Any

import pytest

from grader.base.verdict import Verdict
from grader.findings import Finding
from grader.records.record import PartRecord
from grader.report.failures import alike
from grader.site.statistics import _in_general, statistics
from tests.support.records import line_of, made_record, made_test


def scored(name: str, points: float, **changes: Any) -> object:
    parts = (
        PartRecord(part="correctness", points=points, max=60, how=""),
        PartRecord(part="speedup", points=None, max=20, how="not measured: no GPU"),
    )
    return line_of(made_record(name, parts=parts, **changes))


def test_the_histogram_holds_everybody_once_and_mean_and_median_are_those_of_the_shares() -> None:
    dice = random.Random(7)
    for _ in range(60):
        points = [dice.randrange(0, 601) / 10 for _ in range(dice.randint(1, 40))]
        found = statistics([scored(f"s{n}", each) for n, each in enumerate(points)])  # type: ignore[misc]
        shares = [Fraction(repr(each)) / 60 for each in points]
        assert sum(count for _, count in found.scores) == found.graded == len(points)
        tenth = [sum(min(9, int(share * 10)) == number for share in shares) for number in range(10)]
        assert [count for _, count in found.scores] == tenth
        assert found.mean == pytest.approx(float(mean(shares)))
        assert found.median == pytest.approx(float(median(shares)))


def test_what_was_not_judged_counts_neither_as_passed_nor_as_failed() -> None:
    tests = [made_test("t01"), made_test("t02", Verdict.WRONG_ANSWER), made_test("t03", Verdict.NOT_RUN, fault=None)]
    faulted = [made_test("t01", Verdict.GRADER_ERROR), made_test("t02"), made_test("t03")]
    found = statistics([scored("a", 57, tests=tests), scored("b", 60, tests=faulted)])  # type: ignore[list-item]
    assert found.graded == 1
    assert found.pass_rates == [("t01", 1, 1), ("t02", 0, 1)]


def test_speedup_beside_occupancy_is_the_leaderboards_and_failing_does_not_raise_it() -> None:
    slow, fast = made_test("t21", gpu_ms=100.0, speedup=10.0), made_test("t22", gpu_ms=1.0, speedup=1000.0)
    failed = made_test("t21", Verdict.WRONG_ANSWER)
    lines = [
        line_of(made_record("a", tests=[slow, fast], occupancy=0.5)),
        line_of(made_record("b", tests=[failed, fast], occupancy=0.25)),
    ]
    chart = str(statistics(lines).occupancy_chart)
    assert re.findall(r"<title>(.+?)</title>", chart) == ["50% occupancy, 100.0x", "25% occupancy, 31.6x"]


def test_what_goes_wrong_most_has_a_row_for_each_cause_and_not_for_each_sentence() -> None:
    def failing(name: str, line: int, code: str) -> object:
        cause = f"The maximum is not taken off the scores. Look at hw4.cu:{line}: `{code}`."
        wrong = f"{line} of 4,096 values differ"
        tests = [
            made_test("t01", Verdict.WRONG_ANSWER, cause=cause, reason=f"{cause} {wrong}."),
            made_test("t02", Verdict.WRONG_ANSWER, reason=f"{wrong} by more than 0.005."),
        ]
        return line_of(made_record(name, tests=tests))

    found = statistics([failing("a", 41, "p = exp(s);"), failing("b", 77, "w = expf(x)")])  # type: ignore[list-item]
    (failure,) = found.failures
    assert (failure.sentence, failure.students, failure.tests) == ("The maximum is not taken off the scores.", 2, 4)


def test_findings_of_one_kind_are_one_cause_however_their_sentences_differ() -> None:
    def raced(name: str, sentence: str) -> object:
        found = (Finding(kind="race", file="hw4.cu", line=41),)
        test = made_test("t01", Verdict.WRONG_ANSWER, cause=sentence, reason=f"{sentence} 12 differ.", findings=found)
        return line_of(made_record(name, tests=[test]))

    tile, sum_ = "Race: hw4.cu:41 writes `tile` while another warp reads it.", "Race on `sum` in hw4.cu:90."
    found = statistics([raced("a", tile), raced("b", sum_), raced("c", tile)])  # type: ignore[list-item]
    (failure,) = found.failures
    assert failure.students == 3 and failure.sentence.startswith("Race: writes")


def test_long_words_and_impossible_shares_of_a_record_from_elsewhere_harm_no_statistics() -> None:
    """A search from each of their characters would take minutes."""
    words = ("a" * 200_000, "1," * 100_000)
    assert [_in_general(each)[:9] for each in words] == ["…", "…"]
    assert alike(words[1]) == "#"
    assert not statistics([line_of(made_record("bob", speedups=[2.0], occupancy=1e308))]).occupancy_chart
