"""The roster: a CSV file of who is in the class.

The first line names the columns: `id`, and any of `name`, `nickname`, `section`, `handed_in` (ISO 8601; overrules the
files' times), `due` (this student's own deadline) and `extension_days`. Other columns are left alone, so a learning
platform's export will do once its id column is called id.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from grader.errors import UsageError
from grader.paths import shown


@dataclass(frozen=True)
class Student:
    """One line of the roster."""

    id: str
    name: str = ""
    nickname: str = ""
    section: str = ""
    handed_in: datetime | None = None
    due: datetime | None = None
    extension_days: float = 0.0


def read_roster(path: Path) -> dict[str, Student]:
    """Students by id. Raises UsageError naming the file, the line and what was expected."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _read(path, csv.DictReader(file))
    except OSError as error:
        raise UsageError(f"The roster {shown(path)} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The roster {shown(path)} is not UTF-8 text: save it as CSV UTF-8.") from error
    except csv.Error as error:
        raise UsageError(f"The roster {shown(path)} is no CSV file: {error}.") from error


def _read(path: Path, rows: csv.DictReader[str]) -> dict[str, Student]:
    columns = [name.strip().lower() for name in rows.fieldnames or ()]
    if "id" not in columns:
        raise UsageError(
            f"The roster {shown(path)} has no column id: its first line must name the columns, found "
            f"{', '.join(columns) or 'nothing'}."
        )
    students: dict[str, Student] = {}
    first_line: dict[str, int] = {}
    for row in rows:
        where = f"The roster {shown(path)}, line {rows.line_num}"
        values = {(key or "").strip().lower(): (value or "").strip() for key, value in row.items() if key is not None}
        student = values["id"]
        if not student:
            if any(values.values()):
                raise UsageError(f"{where}: the id is empty; every student needs one.")
            continue
        if student in students:
            raise UsageError(f"{where}: {student!r} is already on line {first_line[student]}; keep one of the two.")
        first_line[student] = rows.line_num
        students[student] = Student(
            id=student,
            name=values.get("name", ""),
            nickname=values.get("nickname", ""),
            section=values.get("section", ""),
            handed_in=_time(values.get("handed_in", ""), f"{where}, handed_in"),
            due=_time(values.get("due", ""), f"{where}, due"),
            extension_days=_number(values.get("extension_days", ""), f"{where}, extension_days"),
        )
    return students


def _time(text: str, where: str) -> datetime | None:
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{where}: {text!r} is no time; write it as 2026-11-30T23:59:00+01:00.") from error
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _number(text: str, where: str) -> float:
    try:
        return float(text) if text else 0.0
    except ValueError as error:
        raise UsageError(f"{where}: {text!r} is no number of days.") from error
