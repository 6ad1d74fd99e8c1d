"""Records written to files for others to read: a page, JUnit XML."""

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
    try:
        path.write_text(report_page(records), encoding="utf-8")
    except OSError as error:
        raise MachineFault(f"The page could not be written to {shown(path)}: {error.strerror}.") from error


def write_junit(records: Sequence[Record], path: Path) -> None:
    """Write records as JUnit XML."""
    try:
        path.write_text(junit.render(records), encoding="utf-8")
    except OSError as error:
        raise MachineFault(f"The JUnit file could not be written to {shown(path)}: {error.strerror}.") from error
