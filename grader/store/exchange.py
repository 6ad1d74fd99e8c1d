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
from typing import IO, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from grader.base.errors import MachineFault, UsageError
from grader.base.paths import replacing, shown
from grader.base.sizes import MAX_NAME, MAX_SENTENCE, MAX_TEXT, Count, Digest, Whole
from grader.records.conditions import conditions_of
from grader.records.record import MAX_FILE_BYTES, MAX_RECORD_BYTES, Record, problem_in, record_in
from grader.sandbox.room import Unreadable, confined, shortened
from grader.store.database import Store
from grader.store.rows import MAX_FILES, MAX_FILES_BYTES, HandIn, Points, Student, decompressed

FORMAT = "grader-store-1"
_PIECE_BYTES, _MAX_ROWS = 8 << 20, 20_000
_MAX_LINE = 2 * MAX_FILES_BYTES

_Name = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
"""As long as a store can hold: a file's name of 255 bytes has 1530 characters if none of them is printable."""
_Word = Annotated[str, Field(max_length=MAX_TEXT)]
_PageName = Annotated[str, Field(pattern=r"^[\w-]{16,}$", max_length=MAX_NAME)]
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
        return {name: base64.b64encode(content).decode() for name, content in decompressed(tuple(rows))}
    except (sqlite3.DatabaseError, zlib.error) as error:
        lost.append(f"the sources of submission {submission} ({error})")
        return {}


def import_files(store: Store, paths: Sequence[Path]) -> tuple[int, int]:
    """Import exports, and files that `grade --json` wrote. Return (records added, records that the store already had).
    Raises UsageError with the file and the line that cannot be understood; rows imported before it stay."""
    added = known = 0
    for path in paths:
        for row in _rows_in(path):
            new = _import(store, row)
            added += new is True
            known += new is False
    return added, known


def _rows_in(path: Path) -> Iterator[_StudentRow | _SubmissionRow | _RecordRow | _PointsRow]:
    """The rows of a file, which may come from anybody and is read in the room, piece by piece."""
    try:
        with path.open("rb") as file:
            number, place = 0, 0
            while place >= 0:
                piece = read_piece(file, number, place)
                yield from piece.rows
                if piece.problem:
                    raise UsageError(f"{shown(path)}{piece.problem}")
                number, place = piece.number, piece.place
    except OSError as error:
        raise UsageError(f"{shown(path)} cannot be read: {error.strerror}.") from error
    except Unreadable as unreadable:
        raise UsageError(f"{shown(path)} cannot be read: it {unreadable}.") from unreadable


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class _StudentRow(_Row):
    kind: Literal["student"]
    student: _Name
    name: _Word
    nickname: _Word
    section: _Word
    page: _PageName
    email: _Word = ""
    enrolled: int = Field(default=0, ge=0, le=1)


class _SubmissionRow(_Row):
    kind: Literal["submission"]
    assignment: _Name
    student: _Name
    sha256: Digest
    path: _Word
    handed_in: Annotated[str, Field(max_length=64)] | None
    days_late: int = Field(ge=0, le=10**7)
    penalty: float = Field(ge=0, le=1)
    sources: Annotated[dict[_Word, Annotated[str, Field(max_length=2 * MAX_FILES_BYTES)]], Field(max_length=MAX_FILES)]

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
    """A record, as JSON in `text`. An export has the keys of the submission; a file of `grade --json` has none."""

    kind: Literal["record"]
    assignment: _Name | None = None
    student: _Name | None = None
    sha256: Digest | None = None
    conditions: _Word = ""
    text: Annotated[str, Field(max_length=MAX_RECORD_BYTES)]


class _PointsRow(_Row):
    kind: Literal["points"]
    assignment: _Name
    student: _Name
    part: _Name
    points: float = Field(ge=0)
    comment: Annotated[str, Field(max_length=100_000)]
    entered: _Word = ""
    """'' if the export is older than this column."""


_AnyRow = Annotated[_StudentRow | _SubmissionRow | _RecordRow | _PointsRow, Field(discriminator="kind")]
_ANY_ROW: TypeAdapter[_StudentRow | _SubmissionRow | _RecordRow | _PointsRow] = TypeAdapter(_AnyRow)


class Piece(BaseModel):
    """Some rows of a file, in order. After them, at the byte `place` (-1: nothing) and after the line `number`, comes
    the next piece, or `problem`, which continues the file's name to a sentence."""

    model_config = ConfigDict(frozen=True)
    rows: Annotated[tuple[_AnyRow, ...], Field(max_length=_MAX_ROWS)]
    number: Count
    place: Whole
    problem: Annotated[str, Field(max_length=MAX_SENTENCE)] = ""


@confined(cpu_s=60, memory_bytes=4 << 30, answer_bytes=2 * MAX_FILE_BYTES)
def read_piece(file: IO[bytes], number: int, place: int) -> Piece:
    """The rows at `place`: lines of an export, or all records of a file that has nothing else."""
    file.seek(place)
    rows: list[_StudentRow | _SubmissionRow | _RecordRow | _PointsRow] = []

    def problem(text: str) -> Piece:
        return Piece(rows=tuple(rows), number=number, place=-1, problem=shortened(text, MAX_SENTENCE))

    first = file.readline(_MAX_LINE) if place == 0 else b""
    if place == 0 and not (b'"schema"' in first and FORMAT.encode() in first):
        try:
            whole = json.loads((first + file.read(MAX_FILE_BYTES)).decode())
        except (ValueError, RecursionError) as error:
            utf8 = "cannot be read: it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else ""
            return problem(f" {utf8 or 'is neither an export of a store nor JSON records'}.")
        for number, record in enumerate(whole if isinstance(whole, list) else [whole], start=1):
            try:
                rows.append(_row({"kind": "record", "record": record}))
            except ValueError as error:
                return problem(f", record {number}: this is not a row of a store's export: {error}.")
        return Piece(rows=tuple(rows), number=number, place=-1)
    number, ends = max(number, 1), file.tell() + _PIECE_BYTES
    while file.tell() < ends and len(rows) < _MAX_ROWS:
        number += 1
        if not (line := file.readline(_MAX_LINE)):
            return Piece(rows=tuple(rows), number=number, place=-1)
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            return problem(f", line {number}: this is not JSON: check that the file is complete.")
        try:
            rows.append(_row(content))
        except ValueError as error:
            return problem(f", line {number}: this is not a row of a store's export: {error}.")
    return Piece(rows=tuple(rows), number=number, place=file.tell())


def _row(content: Any) -> _StudentRow | _SubmissionRow | _RecordRow | _PointsRow:
    """A row that can be stored. Raises ValueError with a phrase."""
    if isinstance(content, dict) and content.get("kind") == "record":
        text = content.get("json")
        if text is None:
            try:
                text = Record.model_validate(content.get("record")).model_dump_json(by_alias=True)
            except ValidationError as error:
                raise ValueError(problem_in(error)) from None
        content = {name: value for name, value in content.items() if name not in ("record", "json")} | {"text": text}
    try:
        row = _ANY_ROW.validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ValueError(f"{key + ': ' if key else ''}{first['msg']}") from None
    if isinstance(row, _SubmissionRow):
        row.hand_in()
    elif isinstance(row, _RecordRow):
        record_in(row.text)
    return row


def _import(store: Store, row: _StudentRow | _SubmissionRow | _RecordRow | _PointsRow) -> bool | None:
    """Store a row. Return whether a record is new, and None for other rows."""
    match row:
        case _StudentRow():
            student = Student(row.student, row.name, row.nickname, row.section, row.page, row.email, bool(row.enrolled))
            store.import_student(student)
        case _SubmissionRow():
            store.import_submission(row.hand_in())
        case _RecordRow():
            return _import_record(store, row)
        case _PointsRow():
            entry = Points(row.student, row.part, row.points, row.comment)
            store.import_points(row.assignment, entry, row.entered)
    return None


def _import_record(store: Store, row: _RecordRow) -> bool:
    record = record_in(row.text)
    student, graded = row.student or record.submission.id, record.submission
    submission = store.find(record.assignment, student, graded.sha256) or store.add_submission(
        HandIn(record.assignment, student, graded.sha256, graded.path)
    )
    return store.add_record(submission, row.conditions or conditions_of(record), record)
