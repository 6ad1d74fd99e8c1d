"""Renders a record as the page that a student reads: verdict and points, what to do next, then the tables."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Annotated

import jinja2
from markupsafe import Markup
from pydantic import Field

from grader.base.errors import UsageError
from grader.base.verdict import Verdict
from grader.classes.final_points import Line, days_words, share_words
from grader.classes.similarity import Findings
from grader.course.assignment import title_of
from grader.profiling.roofline import roofline_of
from grader.records import measured_times as timing
from grader.records.points import sum_of
from grader.records.record import PartRecord, Record, TestRecord
from grader.report.leaderboard import number
from grader.report.terminal import nearest_to_the_limit
from grader.sandbox.room import Unreadable, confined
from grader.site import charts, pictures
from grader.site.annotate import SourceFile, annotated, breakable, code, linked, messages_of, warnings_of
from grader.site.next_steps import NextStep, next_steps

MAX_PAGE_BYTES = 128 << 20
Page = Annotated[str, Field(max_length=MAX_PAGE_BYTES)]
"""HTML, made by our templates, which escape everything."""


@dataclass(frozen=True)
class PastAttempt:
    """An attempt's row on the pages of all attempts of its student; `page` is the file name of its own page."""

    number: int
    page: str
    handed_in: datetime | None
    passed: int
    tests: int
    points: float


@dataclass(frozen=True)
class Report:
    """The values that the template of one record needs. `verdict` is a kind (see `NextStep`) and the text."""

    record: Record
    title: str
    verdict: tuple[str, str]
    parts: dict[str, float | None]
    points: float
    most: float
    standing: str
    steps: list[NextStep]
    warnings: list[tuple[str, str]]
    times_picture: Markup
    speedup_chart: Markup
    roofline_picture: Markup
    sources: tuple[SourceFile, ...] = ()
    line: Line | None = None
    history: Sequence[PastAttempt] = ()
    """Every attempt, oldest first."""

    @property
    def nearest(self) -> str:
        """A sentence on the tensor that is closest to its tolerance; '' if tolerances are absolute."""
        return nearest_to_the_limit(self.record.tests)

    @property
    def has_floors(self) -> bool:
        return any(test.floor is not None and test.floor.share is not None for test in self.record.tests)

    @property
    def timed(self) -> list[TestRecord]:
        return [test for test in self.record.tests if test.gpu_ms]


def report_of(
    record: Record,
    sources: Sequence[tuple[str, bytes]] = (),
    line: Line | None = None,
    history: Sequence[PastAttempt] = (),
    title: str = "",
) -> Report:
    """Arrange a record for its page. `title` is the assignment's, which the room cannot look up; `line` and `history`
    are for students of a class."""
    parts = line.parts if line else {part.part: part.points for part in record.parts}
    return Report(
        record=record,
        title=title or record.assignment,
        verdict=_verdict(record),
        parts=parts,
        points=line.points if line else sum_of(parts.values()),
        most=sum_of(part.max for part in record.parts if part.points is not None)
        if record.practice
        else record.scores.max,
        standing=_standing(record, parts, line),
        steps=next_steps(record, parts),
        warnings=warnings_of(record.tests),
        times_picture=pictures.times(record.tests),
        speedup_chart=_speedup_chart(record.tests),
        roofline_picture=pictures.roofline(roofline_of(record)),
        sources=annotated(sources, messages_of(record)),
        line=line,
        history=history,
    )


def _verdict(record: Record) -> tuple[str, str]:
    passed = sum(test.verdict is Verdict.PASSED for test in record.tests)
    if record.infrastructure_failed:
        return "warn", "Not judged yet, through no fault of yours"
    if not record.build.ok:
        return "bad", "The program was not built"
    if passed < len(record.tests):
        return "bad", f"{passed} of {len(record.tests)} tests passed"
    return "good", f"All {passed} tests passed" if passed > 1 else "The test passed"


def _standing(record: Record, parts: Mapping[str, float | None], line: Line | None) -> str:
    """A note on points that are not final; '' if they are."""
    if record.practice:
        return "Practice on testcases other than the graded ones: there is no final total."
    said = (
        ["These points are not final: a test could not be judged and will be run again."]
        if record.infrastructure_failed
        else []
    )
    waiting = [f"{part.part} ({missing_words(part)})" for part in record.parts if parts[part.part] is None]
    if waiting:
        said.append(f"{'Also' if said else 'Points so far;'} still missing: {', '.join(waiting)}.")
    if line and line.attempt.days_late:
        late, penalty = days_words(line.attempt.days_late), share_words(line.attempt.penalty)
        cost = f"{penalty} of the points are deducted" if line.attempt.penalty else "that costs nothing"
        said.append(f"Handed in {late}: {cost}.")
    return " ".join(said)


def missing_words(part: PartRecord) -> str:
    """The reason why a part has no points."""
    return "not entered" if part.is_manual else "not measured"


def _speedup_chart(tests: Sequence[TestRecord]) -> Markup:
    speedups = [(test.name, timing.speedup(test)) for test in tests]
    bars = [charts.Bar(name, value.value, f"{name}: {value.value:,.1f}x") for name, value in speedups if value]
    return charts.bars(bars, label="Speedup of every timed testcase", x_label="test", y_label="speedup")


@functools.cache
def environment() -> jinja2.Environment:
    """The jinja2 environment of the templates; every value is escaped."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("grader.site"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(missing_words=missing_words)
    env.filters["number"] = lambda value: "–" if value is None else number(value)
    env.filters["points"] = lambda value: "–" if value is None else f"{value:g}"
    env.filters["percent"] = lambda value: "–" if value is None else f"{value:.0%}"
    env.filters["linked"], env.filters["code"], env.filters["breakable"] = linked, code, breakable
    env.filters["interval"] = lambda timed: (
        f"{number(timed.low_ms)} to {number(timed.high_ms)}" if timed and timed.low_ms and timed.high_ms else "–"
    )
    env.filters["seconds"] = lambda value: "–" if value is None else f"{value:.2f}"
    env.filters["error"] = lambda value: "–" if value is None else f"{value:.1e}"
    return env


def asset(name: str) -> str:
    """The text of a file in the templates folder: style.css or site.js."""
    return (files("grader.site") / "templates" / name).read_text(encoding="utf-8")


def similarity_page(found: Findings) -> str:
    """One page with similar submissions side by side."""
    return environment().get_template("similarity.html.j2").render(found=found, style=Markup(asset("style.css")))


def report_page(records: Sequence[Record]) -> str:
    """One self-contained page with the reports of `records`, for `grade --html`. Raises UsageError if records, which
    may come from elsewhere, cannot be drawn within the room's limits."""
    try:
        return _drawn(list(records), [title_of(record.assignment) for record in records])
    except Unreadable as unreadable:
        raise UsageError(f"These records have no page: it {unreadable}.") from unreadable


@confined(cpu_s=300, memory_bytes=4 << 30, answer_bytes=2 * MAX_PAGE_BYTES)
def _drawn(records: list[Record], titles: list[str]) -> Page:
    return (
        environment()
        .get_template("records.html.j2")
        .render(
            reports=[report_of(record, title=title) for record, title in zip(records, titles, strict=True)],
            style=Markup(asset("style.css")),
            script=Markup(asset("site.js")),
        )
    )
