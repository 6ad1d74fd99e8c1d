"""Statistics of a class: scores, pass rates, speedup against occupancy, the most common failures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from textwrap import shorten

from markupsafe import Markup

from grader.base.verdict import Fault, Verdict
from grader.classes.final_points import Line
from grader.report.failures import causes
from grader.report.leaderboard import values_of
from grader.site import charts

_BINS = 10
_QUOTED = re.compile(r"`[^`]*`")
_PLACE = re.compile(r"(?<![\w./-])[\w./-]+\.(?:cu|cuh|h|hpp|cpp|py)(?:[:(][\d,:)]*)?:? ?")
_SENTENCE_END = re.compile(r"(?<=[.:;]) (?=[A-Z`])")
_NUMBERS = re.compile(r"(?<!\w)[-+]?\d[\d,.]*(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Failure:
    """A cause of failures: its first sentence without numbers, names of files and quoted code, and the numbers of
    students and tests that it affects."""

    verdict: Verdict
    sentence: str
    students: int
    tests: int


@dataclass(frozen=True)
class Statistics:
    """Charts, and the tables with the same numbers."""

    graded: int
    score_chart: Markup
    scores: list[tuple[str, int]]
    pass_chart: Markup
    pass_rates: list[tuple[str, int, int]]
    occupancy_chart: Markup
    failures: list[Failure]
    mean: float | None
    median: float | None


def statistics(lines: Sequence[Line]) -> Statistics:
    """Statistics over the attempts that count, without parts that were not measured and without faults of the
    machine."""
    judged = [line for line in lines if not line.attempt.record.infrastructure_failed]
    shares = [line.points / most for line in judged if (most := _measured_max(line))]
    bins = Counter(min(_BINS - 1, int(share * _BINS)) for share in shares)
    scores = [(f"{number * 100 // _BINS}–{(number + 1) * 100 // _BINS} %", bins[number]) for number in range(_BINS)]
    rates = _pass_rates(judged)
    return Statistics(
        graded=len(judged),
        score_chart=charts.bars(
            [charts.Bar(name, count, f"{name} of the points: {count} students") for name, count in scores],
            label="Histogram of scores",
            x_label="share of the points that were measured",
            y_label="students",
        ),
        scores=scores,
        pass_chart=charts.bars(
            [
                charts.Bar(name, 100 * passed / tried, f"{name}: {passed} of {tried} passed")
                for name, passed, tried in rates
            ],
            label="Pass rate of every testcase",
            x_label="test",
            y_label="% passed",
            most=100,
        ),
        pass_rates=rates,
        occupancy_chart=_occupancy(judged),
        failures=_failures(judged),
        mean=fmean(shares) if shares else None,
        median=median(shares) if shares else None,
    )


def _measured_max(line: Line) -> float:
    return sum(part.max for part in line.attempt.record.parts if line.parts.get(part.part) is not None)


def _pass_rates(lines: Sequence[Line]) -> list[tuple[str, int, int]]:
    passed: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for line in lines:
        for test in line.attempt.record.tests:
            if test.verdict is not Verdict.NOT_RUN and test.fault in (None, Fault.STUDENT):
                tried[test.name] += 1
                passed[test.name] += test.verdict is Verdict.PASSED
    return [(name, passed[name], count) for name, count in sorted(tried.items())]


def _occupancy(lines: Sequence[Line]) -> Markup:
    """Speedups against occupancy. As on the leaderboard, speedups are over the same tests for all students, and a
    failed test counts as no speedup."""
    points = []
    for line, mean in values_of(lines, "speedup")[1]:
        if (achieved := line.attempt.record.occupancy) is not None and 0 <= achieved <= 1:
            title = f"{achieved:.0%} occupancy, {mean.value:,.1f}x"
            points.append(charts.Point(achieved * 100, mean.value, title))
    return charts.scatter(
        points, label="Speedup against achieved occupancy", x_label="achieved occupancy, %", y_label="speedup"
    )


def _failures(lines: Sequence[Line]) -> list[Failure]:
    """The most common causes of failures, grouped as in each student's own report, of tests that were run. Causes are
    alike if they are findings of one kind or, without one, have one sentence. The commonest sentence stands for all."""
    students: dict[str, set[str]] = {}
    tests: Counter[str] = Counter()
    said: dict[str, Counter[tuple[Verdict, str]]] = {}
    for line in lines:
        blamed = [test for test in line.attempt.record.tests if test.fault is Fault.STUDENT]
        for cause in causes(each for each in blamed if each.verdict is not Verdict.TIME_LIMIT or each.wall_s):
            words = cause.first.verdict, _in_general(cause.sentence)
            found = cause.first.findings if cause.known else ()
            key = found[0].kind if found else " ".join(words)
            students.setdefault(key, set()).add(line.attempt.student.id)
            tests[key] += len(cause.tests)
            said.setdefault(key, Counter())[words] += 1
    ordered = sorted(students, key=lambda key: (-len(students[key]), -tests[key]))
    return [Failure(*said[key].most_common(1)[0][0], len(students[key]), tests[key]) for key in ordered[:20]]


def _in_general(sentence: str) -> str:
    """What the sentences on one cause in different programs have in common."""
    first = _QUOTED.sub("`…`", sentence.split("\n")[0])
    first = _SENTENCE_END.split(first, maxsplit=1)[0]
    return shorten(_NUMBERS.sub("…", _PLACE.sub("", first)), 200, placeholder=" …")
