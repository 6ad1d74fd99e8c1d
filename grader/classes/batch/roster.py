"""Reads the roster: a CSV file with the students of the class.

The first line names the columns: `id`, and any of `name`, `nickname`, `section`, `email` (or `email address`),
`handed_in` (ISO 8601; overrides the files' times), `due` (this student's own deadline) and `extension_days`. Other
columns are ignored, so a learning platform's export works once its id column is called id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from grader.base.csv_table import Row, read_table
from grader.base.errors import UsageError
from grader.base.names import printable_name
from grader.store import Store
from grader.store.sqlite_errors import translate_sqlite_errors

_LONGEST_DAYS = 366
_FIRST_YEAR, _LAST_YEAR = 1970, 9000


@dataclass(frozen=True)
class Student:
    """One line of the roster. A text is None if the roster lacks its column."""

    id: str
    name: str | None = None
    nickname: str | None = None
    section: str | None = None
    email: str | None = None
    handed_in: datetime | None = None
    due: datetime | None = None
    extension_days: float = 0.0


def read_roster(path: Path) -> dict[str, Student]:
    """Read the students of a roster, by id. Raises UsageError with the file, the line and what was expected."""
    _, rows = read_table(path, "The roster")
    return {
        row.id: Student(
            id=row.id,
            name=_words(row, "name"),
            nickname=_words(row, "nickname"),
            section=_words(row, "section"),
            email=_words(row, "email" if "email" in row.values else "email address"),
            handed_in=_time(row.values.get("handed_in", ""), f"{row.where}, handed_in"),
            due=_time(row.values.get("due", ""), f"{row.where}, due"),
            extension_days=_days(row.values.get("extension_days", ""), f"{row.where}, extension_days"),
        )
        for row in rows
    }


def enter_roster(store: Store, roster: Mapping[str, Student]) -> None:
    """Enter the students of a roster into a store. Each column of the roster replaces the stored values; an empty cell
    clears a value, so that a nickname, for example, can be removed."""
    with translate_sqlite_errors(store.path), store.transaction():
        for one in roster.values():
            store.add_student(
                one.id, name=one.name, nickname=one.nickname, section=one.section, email=one.email, enrolled=True
            )


def _words(row: Row, column: str) -> str | None:
    """A cell's text as one line."""
    text = row.values.get(column)
    return None if text is None else printable_name(" ".join(text.split()))


def _time(text: str, where: str) -> datetime | None:
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{where}: {text!r} is not a time; write it as 2026-11-30T23:59:00+01:00.") from error
    if not _FIRST_YEAR <= time.year <= _LAST_YEAR:
        raise UsageError(f"{where}: {text!r} is not between the years {_FIRST_YEAR} and {_LAST_YEAR}.")
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _days(text: str, where: str) -> float:
    try:
        days = float(text.replace(",", ".")) if text else 0.0
    except ValueError as error:
        raise UsageError(f"{where}: {text!r} is not a number of days.") from error
    if not abs(days) <= _LONGEST_DAYS:
        raise UsageError(f"{where}: {text} is not a number of days from {-_LONGEST_DAYS} to {_LONGEST_DAYS}.")
    return days
