"""Reads assistants' points from a CSV file: a column `id`, one per manual part and, optionally, `PART_comment`."""

from __future__ import annotations

from pathlib import Path

from grader.base.csv_table import read_table
from grader.base.errors import UsageError
from grader.base.names import spelled_out
from grader.base.paths import shown
from grader.course.assignment import Assignment
from grader.store.rows import Points


def read_points(path: Path, assignment: Assignment, students: frozenset[str]) -> list[Points]:
    """Return every entry of the file; an empty cell is no entry. Raises UsageError with the line of the first wrong
    entry, so that nothing is entered."""
    manual = {part.part: part.points for part in assignment.rubric if part.kind == "manual"}
    columns, rows = read_table(path, "The file of points")
    parts = [name for name in columns if name in manual]
    if not parts:
        raise UsageError(
            f"{shown(path)}: expected a column id and one of {', '.join(manual) or '(there is no manual part)'}, found "
            f"{', '.join(columns)}."
        )
    found: list[Points] = []
    for row in rows:
        if row.id not in students:
            raise UsageError(f"{row.where}: the store has no student {row.id!r}; nothing was entered.")
        for part in parts:
            if text := row.values.get(part, ""):
                points = _number(text, manual[part], f"{row.where}, {part}")
                found.append(Points(row.id, part, points, spelled_out(row.values.get(f"{part}_comment", ""))))
    return found


def _number(text: str, most: float, where: str) -> float:
    try:
        points = float(text.replace(",", "."))
    except ValueError as error:
        raise UsageError(f"{where}: {text!r} is not a number; nothing was entered.") from error
    if not 0 <= points <= most:
        raise UsageError(f"{where}: {text} is not between 0 and {most:g}; nothing was entered.")
    return points
