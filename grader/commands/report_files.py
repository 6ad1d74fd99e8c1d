"""Writes records to files for others to read: a page, JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grader.base.errors import MachineFault
from grader.base.paths import shown
from grader.records.record import Record
from grader.report import junit
from grader.site import report_page


def write_html(records: Sequence[Record], path: Path) -> None:
    """Write records as one page that needs no other file."""
    write(path, report_page(records), "page")


def write_junit(records: Sequence[Record], path: Path) -> None:
    """Write records as JUnit XML."""
    write(path, junit.render(records), "JUnit file")


def write(path: Path, text: str, what: str) -> None:
    """Write `text` to `path`. Raises MachineFault, which calls the file `what`."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MachineFault(f"The {what} could not be written to {shown(path)}: {error.strerror}.") from error
