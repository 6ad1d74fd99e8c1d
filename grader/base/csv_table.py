"""Reads the CSV files that people write (rosters, points), and writes CSV in which a spreadsheet runs no formulas.

Excel writes semicolons where the comma is the decimal sign, a byte order mark, CRLF, and line breaks inside quotes. The
reader accepts all of that, and refuses ambiguous files, for example those with a repeated column.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.names import student_id
from grader.base.paths import shown

_FORMULA = re.compile(r" *[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""Characters that begin a formula, and their full-width forms, which some spreadsheets treat the same."""
_SEPARATORS = (",", ";", "\t")


@dataclass(frozen=True)
class Row:
    """A nonempty line. `where` names the file and the line; `values` are the cells by column, in lower case."""

    where: str
    id: str
    values: dict[str, str]


def csv_text(rows: Iterable[Sequence[object]], line_end: str = "\n") -> str:
    """`rows` as CSV. A cell that a spreadsheet would run as a formula gets an apostrophe in front, which makes it text
    (OWASP, CSV Injection)."""
    out = io.StringIO()
    csv.writer(out, lineterminator=line_end).writerows([[_safe(cell) for cell in row] for row in rows])
    return out.getvalue()


def _safe(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    # A lone CR would end the row: Python's writer does not quote it.
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if _FORMULA.match(text) else text


def read_table(path: Path, what: str) -> tuple[list[str], list[Row]]:
    """Read a CSV file with a column `id`, as (columns in lower case, rows); `what` names the file in messages, as in
    "The roster". Raises UsageError with the file, the line and what was expected."""
    name = f"{what} {shown(path)}"
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text: save it as CSV UTF-8.") from error
    try:
        return _table(name, text)
    except csv.Error as error:
        raise UsageError(f"{name} is not a CSV file: {error}.") from error


def _table(name: str, text: str) -> tuple[list[str], list[Row]]:
    first = text.split("\n", 1)[0]
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=max(_SEPARATORS, key=first.count), strict=True)
    columns = [cell.strip().lower() for cell in next(lines, [])]
    if "id" not in columns:
        raise UsageError(
            f"{name} has no column id: its first line must name the columns, found {', '.join(columns) or 'nothing'}."
        )
    if repeated := [column for column in columns if column and columns.count(column) > 1]:
        raise UsageError(f"{name} has the column {repeated[0]} twice: keep one of the two.")
    return columns, list(_rows(name, columns, lines))


def _rows(name: str, columns: list[str], lines: Iterator[list[str]]) -> Iterator[Row]:
    first_line: dict[str, int] = {}
    start = 2
    for cells in lines:
        where, start, line = f"{name}, line {start}", lines.line_num + 1, start  # type: ignore[attr-defined]
        if not any(cell.strip() for cell in cells):
            continue
        if any(cell.strip() for cell in cells[len(columns) :]):
            raise UsageError(
                f"{where}: {len(cells)} cells, expected at most {len(columns)} as in the first line: put quotes "
                "around a cell that contains the separator."
            )
        values = {column: cell.strip() for column, cell in zip_longest(columns, cells[: len(columns)], fillvalue="")}
        student = student_id(values.get("id", ""))
        if not student:
            raise UsageError(f"{where}: the id is empty; every student needs one.")
        if student in first_line:
            raise UsageError(f"{where}: {student!r} is already on line {first_line[student]}; keep one of the two.")
        first_line[student] = line
        yield Row(where, student, values)
