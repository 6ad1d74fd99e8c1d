"""One record as the page that a student reads; what it takes beside the record is what the store knows."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import jinja2
from markupsafe import Markup

from grader.base.verdict import Verdict
from grader.classes.final_points import Line, share_words
from grader.classes.similarity import Findings
from grader.profiling.roofline import roofline_of
from grader.records import measured_times as timing
from grader.records.record import Record, TestRecord
from grader.report.causes import causes
from grader.report.leaderboard import number
from grader.site import charts, pictures
from grader.site.annotate import SourceFile, annotated, messages_of

WORDS = {
    Verdict.PASSED: "passed",
    Verdict.WRONG_ANSWER: "wrong answer",
    Verdict.TIME_LIMIT: "time limit",
    Verdict.MEMORY_LIMIT: "memory limit",
    Verdict.RUNTIME_ERROR: "runtime error",
    Verdict.NO_OUTPUT: "no output",
    Verdict.COMPILE_ERROR: "compile error",
    Verdict.NOT_RUN: "not run",
    Verdict.GRADER_ERROR: "grader error",
}


@dataclass(frozen=True)
class Reason:
    """Why some tests failed: their names, whose fault it was, and the sentence."""

    tests: str
    fault: str
    sentence: str


@dataclass(frozen=True)
class Report:
    """What the template shows of one record."""

    record: Record
    reasons: list[Reason]
    warnings: list[tuple[str, str]]
    times_picture: Markup
    speedup_chart: Markup
    roofline_picture: Markup
    floor_chart: Markup
    sources: tuple[SourceFile, ...] = ()
    line: Line | None = None
    history: list[tuple[int, str, Line]] = field(default_factory=list)
    """(number, file name of its page, its points) of every attempt, oldest first."""

    @property
    def has_floors(self) -> bool:
        return any(test.floor is not None and test.floor.share is not None for test in self.record.tests)

    @property
    def timed(self) -> list[TestRecord]:
        return [test for test in self.record.tests if test.gpu_ms]

    @property
    def passed(self) -> int:
        return sum(test.verdict is Verdict.PASSED for test in self.record.tests)


def report_of(
    record: Record,
    sources: Sequence[tuple[str, bytes]] = (),
    line: Line | None = None,
    history: Sequence[tuple[int, str, Line]] = (),
) -> Report:
    """Put a record's parts in the order and words of the page."""
    return Report(
        record=record,
        reasons=_reasons(record.tests),
        warnings=_warnings(record.tests),
        times_picture=pictures.times(record.tests),
        speedup_chart=_speedup_chart(record.tests),
        roofline_picture=pictures.roofline(roofline_of(record)),
        floor_chart=_floor_chart(record.tests),
        sources=annotated(sources, messages_of(record)),
        line=line,
        history=list(history),
    )


def _reasons(tests: Sequence[TestRecord]) -> list[Reason]:
    """Each cause once, with what came of it on its first test."""
    return [Reason(cause.names, cause.whose, cause.first.reason) for cause in causes(tests)]


def _warnings(tests: Sequence[TestRecord]) -> list[tuple[str, str]]:
    seen: dict[str, list[str]] = {}
    for test in tests:
        for warning in test.warnings:
            seen.setdefault(warning, []).append(test.name)
    return [(", ".join(names[:3]) + (" and others" if len(names) > 3 else ""), text) for text, names in seen.items()]


def _speedup_chart(tests: Sequence[TestRecord]) -> Markup:
    speedups = [(test.name, timing.speedup(test)) for test in tests]
    bars = [charts.Bar(name, value.value, f"{name}: {value.value:,.1f}x") for name, value in speedups if value]
    return charts.bars(
        bars, label="Speedup of every timed testcase", x_label="testcase", y_label="speedup over sequential C"
    )


def _floor_chart(tests: Sequence[TestRecord]) -> Markup:
    bars = []
    for test in tests:
        if test.floor is not None and (share := timing.floor_share(test)) is not None:
            title = f"{test.name}: {share:.0%} of the floor of {test.floor.ms:.3g} ms, which {test.floor.limit} sets"
            bars.append(charts.Bar(test.name, 100 * share, title))
    return charts.bars(
        bars, label="Share of the least possible time", x_label="testcase", y_label="% of the GPU's floor", most=100
    )


@functools.cache
def environment() -> jinja2.Environment:
    """The templates; every value is escaped."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("grader.site"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals["WORDS"] = WORDS
    env.filters["number"] = lambda value: "–" if value is None else number(value)
    env.filters["points"] = lambda value: "–" if value is None else f"{value:g}"
    env.filters["percent"] = lambda value: "–" if value is None else f"{value:.0%}"
    env.filters["share"] = share_words
    env.filters["interval"] = lambda timed: (
        f"{number(timed.low_ms)} to {number(timed.high_ms)}" if timed and timed.low_ms and timed.high_ms else "–"
    )
    env.filters["error"] = lambda value: "–" if value is None else f"{value:.1e}"
    return env


def asset(name: str) -> str:
    """A file of the package's templates folder as text: style.css, site.js."""
    return (files("grader.site") / "templates" / name).read_text(encoding="utf-8")


def similarity_page(found: Findings) -> str:
    """Similar hand-ins side by side, as one page."""
    return environment().get_template("similarity.html.j2").render(found=found, style=Markup(asset("style.css")))


def report_page(records: Sequence[Record]) -> str:
    """One self-contained page with the reports of `records`; what `grade --html` writes."""
    return (
        environment()
        .get_template("records.html.j2")
        .render(
            reports=[report_of(record) for record in records],
            style=Markup(asset("style.css")),
            script=Markup(asset("site.js")),
        )
    )
