"""The gradebook as CSV: for spreadsheets with columns of one's choice, for Canvas and Moodle as they import it.

Canvas: https://community.canvaslms.com/t5/Instructor-Guide/How-do-I-import-grades-in-the-Gradebook/ta-p/807: a row of
headers beginning Student, ID, SIS User ID, SIS Login ID, Section, then assignments; a row `Points Possible`; students.
Moodle: any CSV with a column that identifies the user (ID number) and one per grade item; feedback beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grader.csv_table import csv_text
from grader.errors import UsageError
from grader.gradebook import Line
from grader.store.database import Student

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
    "device": lambda line: line.attempt.record.engine.device,
    "graded": lambda line: line.attempt.record.created,
    "sha256": lambda line: line.attempt.sha256,
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
    absent: Sequence[Student] = (),
) -> str:
    """The gradebook of `lines`, and in a spreadsheet's form of those who handed in nothing. `title` names the grade
    item. In Canvas's and Moodle's form a student without a total has an empty cell, which they take for no grade,
    unless `partial` asks for the points so far; who is not in them keeps what they have there."""
    if form not in FORMATS:
        raise UsageError(f"There is no gradebook format {form!r}: choose one of {', '.join(FORMATS)}.")
    if columns and form != "csv":
        raise UsageError(f"--columns is for --format csv: {form} prescribes its columns.")
    if form == "csv":
        table = _csv(lines, columns, absent)
    else:
        table = _canvas(lines, title, partial) if form == "canvas" else _moodle(lines, title, partial)
    return csv_text(table, line_end="\r\n" if form != "csv" else "\n")


def _csv(lines: Sequence[Line], columns: Sequence[str], absent: Sequence[Student]) -> list[list[object]]:
    parts = list(dict.fromkeys(part for line in lines for part in line.parts))
    chosen: list[str] = list(columns) or [*_USUAL, *parts, *_USUAL_END]
    for name in chosen:
        if name not in _COLUMNS and name not in parts:
            known = ", ".join([*_COLUMNS, *parts])
            raise UsageError(f"There is no column {name!r}; there are {known}.")
    rows = [[_cell(line, name) for name in chosen] for line in lines]
    rows += [[_cell_of_absent(student, name) for name in chosen] for student in absent]
    return [list[object](chosen), *rows]


def _cell_of_absent(student: Student, name: str) -> object:
    if name == "attempts":
        return 0
    return getattr(student, name) if name in ("id", "name", "nickname", "section") else ""


def _cell(line: Line, name: str) -> object:
    if name in _COLUMNS:
        return _COLUMNS[name](line)
    points = line.parts.get(name)
    return "" if points is None else points


def _canvas(lines: Sequence[Line], title: str, partial: bool) -> list[list[object]]:
    header: list[object] = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", title]
    possible: list[object] = ["    Points Possible", "", "", "", "", lines[0].max if lines else ""]
    rows: list[list[object]] = []
    for line in lines:
        student = line.attempt.student
        rows.append([student.name or student.id, "", "", student.id, student.section, _grade(line, partial)])
    return [header, possible, *rows]


def _moodle(lines: Sequence[Line], title: str, partial: bool) -> list[list[object]]:
    header: list[object] = ["ID number", title, f"{title} feedback"]
    return [header, *([line.attempt.student.id, _grade(line, partial), _feedback(line)] for line in lines)]


def _grade(line: Line, partial: bool) -> object:
    return line.total if line.total is not None else line.points if partial else ""


def _feedback(line: Line) -> str:
    parts = [
        f"{name}: {'not measured' if points is None else f'{points:g}'}"
        + (f" ({line.comments[name]})" if name in line.comments else "")
        for name, points in line.parts.items()
    ]
    late = f"; {line.attempt.days_late} days late, -{line.attempt.penalty:.0%}" if line.attempt.days_late else ""
    return "; ".join(parts) + late
