"""Rosters and points as spreadsheets write them, and what we write for spreadsheets."""

import csv
import io
from datetime import timedelta
from pathlib import Path

import pytest

from grader.base.csv_table import csv_text
from grader.base.errors import UsageError
from grader.classes.batch.roster import read_roster
from grader.classes.points_file import read_points
from grader.course.assignment import Assignment


def written(tmp_path: Path, text: str, encoding: str = "utf-8") -> Path:
    path = tmp_path / "file.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_a_roster_as_excel_writes_it_in_europe(tmp_path: Path) -> None:
    text = (
        'ID;Name;Nickname;Extension_Days;Remark\r\nbob;"Bob ""B""\r\nSmith";=1+1;1,5;"a;b"\r\n;;;;\r\nzoe\u0308;;;;\r\n'
    )
    students = read_roster(written(tmp_path, text, "utf-8-sig"))
    assert list(students) == ["bob", "zo\u00eb"]  # accents as in the names of folders, however they are encoded
    assert students["bob"].name == 'Bob "B" Smith'
    assert timedelta(days=students["bob"].extension_days) == timedelta(hours=36)


def test_points_as_excel_writes_them_in_europe(tmp_path: Path, hw4: Assignment) -> None:
    text = 'Id;Report;Report_comment\r\nbob;"8,5";"good\r\n=cmd()"\r\n'
    (entry,) = read_points(written(tmp_path, text, "utf-8-sig"), hw4, frozenset({"bob"}))
    assert (entry.points, entry.comment) == (8.5, "good\n=cmd()")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,extension_days\na,nan\n", "line 2, extension_days: nan is not a number of days from -366 to 366"),
        ("id,extension_days\na,1e300\n", "not a number of days from"),
        ("id,due\na,0001-01-01T00:00:00+14:00\n", "is not between the years 1970 and 9000"),
        ("id,name,name\na,b,c\n", "has the column name twice"),
        ('id,name\na,"b\nc"\nd,e,f\n', "line 4: 3 cells, expected at most 2"),
        ('id,name\na,"b\n', "is not a CSV file: unexpected end of data"),
        ("id,name\na\0b,c\n\na\\x00b,c\n", r"line 4: 'a\\\\x00b' is already on line 2"),
    ],
)
def test_what_could_mean_anything_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_roster(written(tmp_path, text))


@pytest.mark.parametrize("cell", ["=1+1", "  =1", "+1", "-1+2", "@SUM(A1)", "\t=1", "\n=1", "\uff1d1+1"])
def test_no_cell_that_is_text_is_run_by_a_spreadsheet(cell: str) -> None:
    ((kept, number),) = csv.reader(io.StringIO(csv_text([(cell, -1.5)]), newline=""))
    assert (kept, number) == (f"'{cell}", "-1.5")


def test_no_cell_ends_its_row() -> None:
    text = csv_text([("id", "name"), ("a", "x\r=1+1"), ("b", "\r\n=1")])
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["id", "name"], ["a", "x\n=1+1"], ["b", "'\n=1"]]
