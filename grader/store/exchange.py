"""Writes a store as JSON lines and reads such files, for backups and for moving results between machines.

The first line is a header. Every other line is one row. A row refers to others by their natural keys (student,
assignment, SHA-256), never by row numbers. So an import changes no row that the store already has, and importing
twice changes nothing. A record that is new to the store counts as the newest of its attempt.
"""

from __future__ import annotations

import base64
import json
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from grader.base.errors import MachineFault, UsageError
from grader.base.paths import replacing, shown
from grader.records.conditions import conditions_of
from grader.records.record import Record
from grader.store.database import Store
from grader.store.rows import HandIn, Points, Student

FORMAT = "grader-store-1"

_Name = Annotated[str, Field(min_length=1)]
_PageName = Annotated[str, Field(pattern=r"^[\w-]{16,}$")]
"""The name of a page. It becomes part of an address and of a path on disk, so it must not contain a slash."""

_QUERIES = {
    "student": "SELECT * FROM students ORDER BY rowid",
    "submission": "SELECT * FROM submissions ORDER BY id",
    "record": "SELECT assignment, student, sha256, records.* FROM records "
    "JOIN submissions ON submissions.id = submission ORDER BY records.id",
    "points": "SELECT * FROM manual_points ORDER BY rowid",
}
_DERIVED = ("id", "submission", "created", "faulted", "digest")
"""Columns that are not exported: row numbers, and columns that a record's JSON determines. All others are exported, and
an import refuses a column that it does not know, so no column is ever lost silently."""


def export_store(store: Store, target: Path) -> tuple[dict[str, int], list[str]]:
    """Write everything to `target`, whole or not at all. Return the number of rows by kind, and a phrase for each part
    that is lost because the store is damaged."""
    if target.resolve() in {store.path.resolve().with_name(store.path.name + end) for end in ("", "-journal")}:
        raise UsageError(f"{shown(target)} is the store itself, which its export would replace: name another file.")
    if target.is_dir():
        raise UsageError(f"{shown(target)} is a folder, expected a file: name one inside it.")
    counts: dict[str, int] = {}
    lost: list[str] = []
    try:
        with replacing(target) as file:
            file.write(json.dumps({"schema": FORMAT}).encode() + b"\n")
            for kind in _QUERIES:
                for row in _rows(store, kind, lost):
                    file.write(json.dumps({"kind": kind, **row}, ensure_ascii=False).encode() + b"\n")
                    counts[kind] = counts.get(kind, 0) + 1
    except OSError as error:
        raise MachineFault(f"The export could not be written to {shown(target)}: {error.strerror}.") from error
    return counts, lost


def _rows(store: Store, kind: str, lost: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of one kind. If the file is damaged, these are the rows before the damage, and `lost` names the rest."""
    try:
        cursor = store.execute(_QUERIES[kind])
        names = [column[0] for column in cursor.description]
        for values in cursor:
            row = dict(zip(names, values, strict=True))
            if kind == "submission":
                row["sources"] = _sources(store, row["id"], lost)
            yield {name: value for name, value in row.items() if name not in _DERIVED}
    except sqlite3.DatabaseError as error:
        lost.append(f"{kind}{'' if kind == 'points' else 's'} after a damaged place ({error})")


def _sources(store: Store, submission: int, lost: list[str]) -> dict[str, str]:
    try:
        rows = store.execute("SELECT name, content FROM sources WHERE submission = ?", (submission,))
        return {name: base64.b64encode(zlib.decompress(content)).decode() for name, content in rows}
    except (sqlite3.DatabaseError, zlib.error) as error:
        lost.append(f"the sources of submission {submission} ({error})")
        return {}


def import_files(store: Store, paths: Sequence[Path]) -> tuple[int, int]:
    """Import exports, and files that `grade --json` wrote. Return (records added, records that the store already had).
    Raises UsageError with the file and the line that cannot be understood; rows imported before it stay."""
    added = known = 0
    for path in paths:
        for where, line in _lines(path):
            new = _import(store, path, where, line)
            added += new is True
            known += new is False
    return added, known


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Read a file's rows as (place, object): the lines of an export, a record, or a list of records."""
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline()
            if '"schema"' in first and FORMAT in first:
                for number, line in enumerate(file, start=2):
                    try:
                        yield f"line {number}", json.loads(line)
                    except (ValueError, RecursionError) as error:
                        raise UsageError(
                            f"{shown(path)}, line {number}: this is not JSON: check that the file is complete."
                        ) from error
                return
            try:
                whole = json.loads(first + file.read())
            except (ValueError, RecursionError) as error:
                raise UsageError(f"{shown(path)} is neither an export of a store nor JSON records.") from error
    except OSError as error:
        raise UsageError(f"{shown(path)} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown(path)} cannot be read: it is not UTF-8 text.") from error
    for number, record in enumerate(whole if isinstance(whole, list) else [whole], start=1):
        yield f"record {number}", {"kind": "record", "record": record}


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class _StudentRow(_Row):
    kind: Literal["student"]
    student: _Name
    name: str
    nickname: str
    section: str
    page: _PageName
    email: str = ""
    enrolled: int = Field(default=0, ge=0, le=1)


class _SubmissionRow(_Row):
    kind: Literal["submission"]
    assignment: _Name
    student: _Name
    sha256: str
    path: str
    handed_in: str | None
    days_late: int = Field(ge=0, le=10**6)
    penalty: float = Field(ge=0, le=1)
    sources: dict[str, str]

    def hand_in(self) -> HandIn:
        """The row as an attempt. Raises ValueError if a file's name or content is malformed."""
        for name in self.sources:
            if not name or name.startswith("/") or ".." in name.split("/"):
                raise ValueError(f"{name!r} is not the name of a file in a submission")
        return HandIn(
            assignment=self.assignment,
            student=self.student,
            sha256=self.sha256,
            path=self.path,
            handed_in=datetime.fromisoformat(self.handed_in) if self.handed_in else None,
            days_late=self.days_late,
            penalty=self.penalty,
            files=tuple((name, base64.b64decode(text, validate=True)) for name, text in self.sources.items()),
        )


class _RecordRow(_Row):
    """A record. An export has `text` and the keys of the submission; a file of `grade --json` has only `record`."""

    kind: Literal["record"]
    assignment: _Name | None = None
    student: _Name | None = None
    sha256: str | None = None
    conditions: str = ""
    text: str | None = Field(default=None, alias="json")
    record: Any = None


class _PointsRow(_Row):
    kind: Literal["points"]
    assignment: _Name
    student: _Name
    part: _Name
    points: float = Field(ge=0)
    comment: str
    entered: str = ""
    """'' if the export is older than this column."""


_ANY_ROW: TypeAdapter[_StudentRow | _SubmissionRow | _RecordRow | _PointsRow] = TypeAdapter(
    Annotated[_StudentRow | _SubmissionRow | _RecordRow | _PointsRow, Field(discriminator="kind")]
)


def _import(store: Store, path: Path, where: str, content: Any) -> bool | None:
    """Store a row. Return whether a record is new, and None for other rows. Raises UsageError for a malformed row."""
    try:
        match _ANY_ROW.validate_python(content):
            case _StudentRow() as row:
                student = Student(
                    row.student, row.name, row.nickname, row.section, row.page, row.email, bool(row.enrolled)
                )
                store.import_student(student)
            case _SubmissionRow() as row:
                store.import_submission(row.hand_in())
            case _RecordRow() as row:
                return _import_record(store, row)
            case _PointsRow() as row:
                entry = Points(row.student, row.part, row.points, row.comment)
                store.import_points(row.assignment, entry, row.entered)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{shown(path)}, {where}: this is not a row of a store's export: {key + ': ' if key else ''}{first['msg']}."
        ) from error
    except ValueError as error:
        raise UsageError(f"{shown(path)}, {where}: this is not a row of a store's export: {error}.") from error
    return None


def _import_record(store: Store, row: _RecordRow) -> bool:
    record = Record.model_validate(row.record) if row.text is None else Record.model_validate_json(row.text)
    student, graded = row.student or record.submission.id, record.submission
    submission = store.find(record.assignment, student, graded.sha256) or store.add_submission(
        HandIn(record.assignment, student, graded.sha256, graded.path)
    )
    return store.add_record(submission, row.conditions or conditions_of(record), record)
