"""Points that assistants enter, from a CSV file: a column `id`, one per manual part, and `PART_comment` if wanted."""

from __future__ import annotations

import csv
from pathlib import Path

from grader.assignment import Assignment
from grader.errors import UsageError
from grader.paths import shown
from grader.store.database import Points


def read_points(path: Path, assignment: Assignment, students: frozenset[str]) -> list[Points]:
    """Every entry of the file; an empty cell enters nothing. Raises UsageError with the line of the first that is not
    right: then nothing is entered."""
    manual = {part.part: part.points for part in assignment.rubric if part.kind == "manual"}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _read(path, csv.DictReader(file), manual, students)
    except OSError as error:
        raise UsageError(f"The points {shown(path)} cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"The points {shown(path)} are no CSV file in UTF-8: {error}.") from error


def _read(path: Path, rows: csv.DictReader[str], manual: dict[str, float], students: frozenset[str]) -> list[Points]:
    columns = [name.strip() for name in rows.fieldnames or ()]
    parts = [name for name in columns if name in manual]
    if "id" not in columns or not parts:
        raise UsageError(
            f"{shown(path)}: expected a column id and one of {', '.join(manual) or '(there is no manual part)'}, found "
            f"{', '.join(columns) or 'nothing'}."
        )
    found: list[Points] = []
    seen: set[str] = set()
    for row in rows:
        values = {(key or "").strip(): (value or "").strip() for key, value in row.items() if key is not None}
        where, student = f"{shown(path)}, line {rows.line_num}", values["id"]
        if not any(values.values()):
            continue
        if student not in students:
            raise UsageError(f"{where}: {student!r} is nobody in the store; nothing was entered.")
        if student in seen:
            raise UsageError(f"{where}: {student!r} appears twice; nothing was entered.")
        seen.add(student)
        for part in parts:
            if values[part]:
                points = _number(values[part], manual[part], f"{where}, {part}")
                found.append(Points(student, part, points, values.get(f"{part}_comment", "")))
    return found


def _number(text: str, most: float, where: str) -> float:
    try:
        points = float(text.replace(",", "."))
    except ValueError as error:
        raise UsageError(f"{where}: {text!r} is no number; nothing was entered.") from error
    if not 0 <= points <= most:
        raise UsageError(f"{where}: {text} is not between 0 and {most:g}; nothing was entered.")
    return points
