"""The gradebook as CSV: for spreadsheets with any choice of columns, and in the formats that Canvas and Moodle import.

Canvas: https://community.canvaslms.com/t5/Instructor-Guide/How-do-I-import-grades-in-the-Gradebook/ta-p/807: a row of
headers beginning Student, ID, SIS User ID, SIS Login ID, Section, then assignments; a row `Points Possible`; students.
Moodle: any CSV with a column that identifies the user (ID number) and one per grade item; feedback in another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from grader.base.csv_table import csv_text
from grader.base.errors import UsageError
from grader.classes.comparable import rules_of
from grader.classes.final_points import Absent, Line, days_words, share_words

FORMATS = ("csv", "canvas", "moodle")

_COLUMNS: dict[str, Callable[[Line], object]] = {
    "id": lambda line: line.attempt.student.id,
    "name": lambda line: line.attempt.student.name,
    "nickname": lambda line: line.attempt.student.nickname,
    "section": lambda line: line.attempt.student.section,
    "attempt": lambda line: line.attempt.number,
    "attempts": lambda line: line.attempts,
    "handed_in": lambda line: line.attempt.handed_in.isoformat() if line.attempt.handed_in else "",
    "days_late": lambda line: line.attempt.days_late,
    "penalty": lambda line: line.attempt.penalty,
    "passed": lambda line: sum(test.verdict == "passed" for test in line.attempt.record.tests),
    "tests": lambda line: len(line.attempt.record.tests),
    "points": lambda line: line.points,
    "total": lambda line: "" if line.total is None else line.total,
    "max": lambda line: line.max,
    "missing": lambda line: " ".join(line.missing),
    "fault": lambda line: "machine or grader" if line.attempt.record.infrastructure_failed else "",
    "language": lambda line: line.attempt.record.submission.language,
    "device": lambda line: line.attempt.record.engine.device,
    "graded": lambda line: line.attempt.record.created,
    "sha256": lambda line: line.attempt.sha256,
    "rules": lambda line: rules_of(line.attempt.record),
}
_USUAL = ("id", "name", "section", "attempt", "handed_in", "days_late", "penalty", "passed", "tests")
_USUAL_END = ("points", "total", "max", "missing", "fault")


def render(
    lines: Sequence[Line],
    form: str = "csv",
    *,
    title: str,
    columns: Sequence[str] = (),
    partial: bool = False,
    absent: Sequence[Absent] = (),
) -> str:
    """Render the gradebook of `lines`, and of the `absent`, who have no graded submission. `title` names the grade
    item. For Canvas and Moodle, a student without a total gets an empty cell (no grade) or, if `partial`, the points so
    far. Canvas and Moodle keep the grades of students who are not in the file, so absent students without points are
    left out."""
    if form not in FORMATS:
        raise UsageError(f"There is no gradebook format {form!r}: choose one of {', '.join(FORMATS)}.")
    if columns and form != "csv":
        raise UsageError(f"--columns is for --format csv: {form} prescribes its columns.")
    if form == "csv":
        table = _csv(lines, columns, absent)
    else:
        table = (_canvas if form == "canvas" else _moodle)(lines, [one for one in absent if one.parts], title, partial)
    return csv_text(table, line_end="\r\n" if form != "csv" else "\n")


def all_empty(lines: Sequence[Line], form: str) -> str:
    """A note for a file without a single grade."""
    missing = Counter(part for line in lines for part in line.missing)
    why = f" ({', '.join(missing)} not entered or not measured)" if missing else ""
    return (
        f"All grades in this {form} file are empty because no student has a total{why}; --partial writes points so far."
    )


def _csv(lines: Sequence[Line], columns: Sequence[str], absent: Sequence[Absent]) -> list[list[object]]:
    named: list[Mapping[str, float | None]] = [*(line.parts for line in lines), *(one.parts for one in absent)]
    parts = list(dict.fromkeys(part for parts in named for part in parts))
    rules = ["rules"] * (len({rules_of(line.attempt.record) for line in lines}) > 1)
    chosen: list[str] = list(columns) or [*_USUAL, *parts, *_USUAL_END, *rules]
    for name in chosen:
        if name not in _COLUMNS and name not in parts:
            known = ", ".join([*_COLUMNS, *parts])
            raise UsageError(f"There is no column {name!r}; there are {known}.")
    rows = [[_cell(line, name) for name in chosen] for line in lines]
    rows += [[_cell_of_absent(one, name) for name in chosen] for one in absent]
    return [list[object](chosen), *rows]


def _cell_of_absent(one: Absent, name: str) -> object:
    if name in ("id", "name", "nickname", "section"):
        return getattr(one.student, name)
    of_all = {
        "attempts": "" if one.waiting else 0,
        "points": "" if one.points is None else one.points,
        "missing": "the submission is not graded yet" if one.waiting else "",
    }
    return of_all.get(name, one.parts.get(name, ""))


def _cell(line: Line, name: str) -> object:
    if name in _COLUMNS:
        return _COLUMNS[name](line)
    points = line.parts.get(name)
    return "" if points is None else points


def _canvas(lines: Sequence[Line], absent: Sequence[Absent], title: str, partial: bool) -> list[list[object]]:
    header: list[object] = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", title]
    possible: list[object] = ["    Points Possible", "", "", "", "", lines[0].max if lines else ""]
    rows: list[list[object]] = []
    for line in lines:
        student = line.attempt.student
        rows.append([student.name or student.id, "", "", student.id, student.section, _grade(line, partial)])
    for one in absent:
        points = one.points if partial else ""
        rows.append([one.student.name or one.student.id, "", "", one.student.id, one.student.section, points])
    return [header, possible, *rows]


def _moodle(lines: Sequence[Line], absent: Sequence[Absent], title: str, partial: bool) -> list[list[object]]:
    header: list[object] = ["ID number", "Full name", title, f"{title} feedback"]
    rows: list[list[object]] = []
    for line in lines:
        student = line.attempt.student
        rows.append([student.id, student.name, _grade(line, partial), _feedback(line)])
    for one in absent:
        points = one.points if partial else ""
        rows.append([one.student.id, one.student.name, points, _comments(one.parts, one.comments)])
    return [header, *rows]


def _grade(line: Line, partial: bool) -> object:
    return line.total if line.total is not None else line.points if partial else ""


def _feedback(line: Line) -> str:
    days, penalty = line.attempt.days_late, line.attempt.penalty
    late = f"; {days_words(days)}" if days else ""
    return _comments(line.parts, line.comments) + late + (f", -{share_words(penalty)}" if penalty else "")


def _comments(parts: Mapping[str, float | None], comments: Mapping[str, str]) -> str:
    return "; ".join(
        f"{name}: {'not measured' if points is None else f'{points:g}'}"
        + (f" ({comments[name]})" if name in comments else "")
        for name, points in parts.items()
    )
